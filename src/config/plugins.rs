//! Plugins with hooks: which ones an agent has installed and enabled, and the files of theirs that have hooks.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    files::{self, DefinitionFiles, FileBytes, SymlinkPolicy},
    last_good_store::GoodFiles,
    settings_levels::SettingsLevel,
};
use crate::{
    dialect::{
        self, ExtensionFiles, Installation, KeyPosition, ManifestHooks, Marketplace, NativeDialect,
        PluginFiles, PluginFormat,
    },
    model::{Diagnostic, PluginSource, Scope, Severity},
    root_dir::{LastLink, OpenError, RootDir},
};

/// The largest registry or catalog, in bytes: large marketplaces have thousands of entries.
const LARGEST_CATALOG: u64 = 4 << 20;

/// The most plugins of an agent that are read. Each costs some files at every load.
const MOST_PLUGINS: usize = 128;

/// The most files with hooks of one plugin.
const MOST_FILES: usize = 8;

/// A file with hooks of a plugin.
pub(super) struct PluginHookFile {
    pub(super) scope: Scope,
    pub(super) file: FileBytes,
    pub(super) source: Arc<PluginSource>,
}

/// The files of plugins that have hooks, and what was examined to find them.
#[derive(Default)]
pub(super) struct FoundPlugins {
    pub(super) hook_files: Vec<PluginHookFile>,
    pub(super) examined: Vec<PathBuf>,
    /// Files that would count if they were there.
    pub(super) missing: Vec<PathBuf>,
    pub(super) definitions: DefinitionFiles,
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The directories of the plugins that are enabled.
    pub(super) directories: BTreeSet<PathBuf>,
}

/// A plugin that a settings file enables.
struct EnabledPlugin {
    id: String,
    /// The scope of the file.
    scope: Scope,
    file: PathBuf,
    position: KeyPosition,
}

/// A search for the plugins of an agent.
pub(super) struct PluginSearch<'a> {
    home: &'a Path,
    project: &'a Path,
    /// The files that are read as they were.
    good: &'a GoodFiles,
    found: FoundPlugins,
}

impl<'a> PluginSearch<'a> {
    pub(super) fn new(home: &'a Path, project: &'a Path, good: &'a GoodFiles) -> Self {
        Self { home, project, good, found: FoundPlugins::default() }
    }

    /// Finds the files with hooks of the plugins that these levels enable. A level that disables a plugin of a higher one
    /// takes it down as a switch.
    pub(super) fn run(mut self, native: &NativeDialect, levels: &mut [SettingsLevel]) -> FoundPlugins {
        match native.plugins() {
            PluginFormat::None => {}
            PluginFormat::Plugins(files) => {
                let enabled = enabled_plugins(levels);
                if !enabled.is_empty() {
                    self.plugins(files, enabled);
                }
            }
            PluginFormat::Extensions(files) => self.extensions(files),
        }
        self.found
    }

    /// Reads the plugins of Claude Code.
    fn plugins(&mut self, files: &PluginFiles, enabled: Vec<EnabledPlugin>) {
        let directory = self.home.join(files.directory);
        let installed =
            self.parsed(&directory.join(files.registry), |bytes| dialect::read_registry(bytes, &directory));
        let known = self.parsed(&directory.join(files.marketplaces), dialect::read_marketplaces);
        let (installed, known) = (installed.unwrap_or_default(), known.unwrap_or_default());
        self.too_many(enabled.len(), &directory);
        for plugin in enabled.into_iter().take(MOST_PLUGINS) {
            let installations = installed.get(&plugin.id).map(Vec::as_slice).unwrap_or_default();
            let located = self.locate(files, &plugin.id, installations, &known);
            let read = located.and_then(|(root, catalog)| {
                let listed_in = [files.registry, files.marketplaces].map(|file| directory.join(file));
                let source = PluginSource {
                    listed_in: listed_in.into_iter().chain(catalog).collect(),
                    ..dialect::plugin_source(&plugin.id, &root, &directory)
                };
                self.plugin(files, &plugin, &root, &source)
            });
            if let Err(why) = read {
                let message = format!("the hooks of the plugin `{}` do not run: {why}", plugin.id);
                let KeyPosition { line, column } = plugin.position;
                let diagnostic = Diagnostic::of_file(Severity::Warning, "plugin", &plugin.file, message);
                self.found.diagnostics.push(Diagnostic { line, column, ..diagnostic });
            }
        }
    }

    /// The directory of a plugin, and the catalog that says so.
    ///
    /// Returns why it has none.
    fn locate(
        &mut self,
        files: &PluginFiles,
        id: &str,
        installations: &[Installation],
        known: &BTreeMap<String, Marketplace>,
    ) -> Result<(PathBuf, Option<PathBuf>), String> {
        let (name, marketplace) = dialect::names(id).ok_or("its name is not `PLUGIN@MARKETPLACE`")?;
        let unknown = || format!("the agent does not know the marketplace `{marketplace}`");
        let Marketplace { is_local, location } = known.get(marketplace).ok_or_else(unknown)?;
        let (above, catalog) = match location.parent() {
            Some(above) if !location.is_dir() => (above, location.clone()),
            _ => (location.as_path(), location.join(files.catalog)),
        };
        let entry = self.parsed(&catalog, |bytes| dialect::read_catalog(bytes, name));
        let entry = entry
            .map(|entry| entry.ok_or_else(|| format!("`{marketplace}` does not have it")))
            .transpose()?;
        if entry.as_ref().is_some_and(|entry| entry.has_hooks) {
            let message =
                format!("the hooks that the marketplace itself has for the plugin `{id}` do not run");
            let diagnostic = Diagnostic::of_file(Severity::Warning, "plugin", location, message);
            self.found
                .diagnostics
                .push(diagnostic.help("leave them to the agent, or copy them to the plugin"));
        }
        if let Some(relative) = entry.and_then(|entry| entry.directory).filter(|_| *is_local) {
            let below =
                dialect::path_below(&relative).ok_or("its directory is outside of its marketplace")?;
            return Ok((above.join(below), Some(catalog)));
        }
        let mut usable = installations.iter().filter(|installation| installation.is_for(self.project));
        let first = usable.clone().next().ok_or("it is not installed for this project")?;
        let installed = usable.find(|installation| installation.install_path.is_dir()).unwrap_or(first);
        if installed.install_path.extension().is_some_and(|end| end == "zip") {
            return Err("it is packed as a zip file, which only the agent reads".to_owned());
        }
        Ok((installed.install_path.clone(), None))
    }

    /// Reads the files with hooks of a plugin.
    ///
    /// Returns why its directory cannot be read.
    fn plugin(
        &mut self,
        files: &PluginFiles,
        plugin: &EnabledPlugin,
        given: &Path,
        source: &PluginSource,
    ) -> Result<(), String> {
        let root = open(given)?;
        self.found.directories.insert(root.path().to_owned());
        let manifest = self.read(&root, Path::new(files.manifest), Absence::Usual);
        let named = manifest.as_ref().map(|manifest| dialect::read_manifest(&manifest.bytes)).transpose();
        let named = named.unwrap_or_else(|why| {
            self.error(&root.path().join(files.manifest), &why);
            None
        });
        let ManifestHooks { files: more, is_inline, unread } = named.unwrap_or_default();
        let unread = unread + more.len().saturating_sub(MOST_FILES - 2);
        if unread > 0 {
            let message = format!("{unread} of the sets of hooks that the manifest lists are not read");
            let manifest = root.path().join(files.manifest);
            self.found.diagnostics.push(Diagnostic::of_file(Severity::Warning, "plugin", &manifest, message));
        }
        let mut hook_files = vec![self.read(&root, Path::new(files.hooks), Absence::Usual)];
        hook_files.extend(is_inline.then_some(manifest));
        for name in more.iter().take(MOST_FILES - 2) {
            if let Some(path) = dialect::path_below(name) {
                hook_files.push(self.read(&root, &path, Absence::Mistake));
            } else {
                let why = format!("names `{name}`, which is outside of the plugin");
                self.error(&root.path().join(files.manifest), &why);
            }
        }
        self.keep(plugin.scope, hook_files.into_iter().flatten(), source);
        Ok(())
    }

    /// Keeps files with hooks, each once. From the second one on, the names of their hooks have its number.
    fn keep(&mut self, scope: Scope, hook_files: impl Iterator<Item = FileBytes>, source: &PluginSource) {
        let mut seen = BTreeSet::new();
        for file in hook_files {
            if !seen.insert(file.path.clone()) {
                continue;
            }
            let label = match seen.len() {
                1 => Arc::clone(&source.label),
                number => format!("{}.{number}", source.label).into(),
            };
            let source = Arc::new(PluginSource { label, ..source.clone() });
            self.found.definitions.insert(file.path.clone(), file.bytes.as_slice().into());
            self.found.hook_files.push(PluginHookFile { scope, file, source });
        }
    }

    /// Reads the extensions of Gemini CLI.
    fn extensions(&mut self, files: &ExtensionFiles) {
        let directory = self.home.join(files.directory);
        let places = files::directories_in(&directory).unwrap_or_else(|why| {
            let message = format!("the directory {why}");
            self.found.diagnostics.push(Diagnostic::of_file(Severity::Error, "plugin", &directory, message));
            Vec::new()
        });
        if places.is_empty() {
            return;
        }
        self.too_many(places.len(), &directory);
        let enablement = self.state(directory.join(files.enablement));
        for place in places.iter().take(MOST_PLUGINS) {
            let Some(manifest) = self.state(place.join(files.manifest)) else { continue };
            let installation = place.join(files.installation);
            let installation = installation.exists().then(|| self.state(installation)).flatten();
            let read =
                dialect::read_extension(&manifest, installation.as_deref()).and_then(|(name, link)| {
                    let root = link.as_deref().unwrap_or(place);
                    let listed_in = [files.manifest, files.installation].map(|file| place.join(file));
                    let source = dialect::extension_source(&name, root, self.project);
                    let source = PluginSource { listed_in: listed_in.into(), ..source };
                    self.extension(files, root, &source, enablement.as_deref())
                });
            if let Err(why) = read {
                self.error(&place.join(files.manifest), &why);
            }
        }
    }

    /// Reads the hooks of an extension.
    ///
    /// Returns why that is not possible.
    fn extension(
        &mut self,
        files: &ExtensionFiles,
        given: &Path,
        source: &PluginSource,
        enablement: Option<&[u8]>,
    ) -> Result<(), String> {
        let root = open(given)?;
        let name = &source.id;
        let Some(hooks) = self.read(&root, Path::new(files.hooks), Absence::Usual) else { return Ok(()) };
        let enabled =
            enablement.map(|rules| dialect::is_extension_enabled(rules, name, self.project)).transpose();
        if enabled == Ok(Some(false)) {
            let message = format!("the hooks of the extension `{name}` do not run: it is disabled here");
            let diagnostic = Diagnostic::of_file(Severity::Info, "plugin", &hooks.path, message);
            self.found.diagnostics.push(diagnostic);
            return Ok(());
        }
        // Where nobody can tell whether it is enabled, its hooks run, as in the agent.
        if let Err(why) = enabled {
            self.error(&self.home.join(files.directory).join(files.enablement), &why);
        }
        self.keep(Scope::User, std::iter::once(hooks), source);
        Ok(())
    }

    fn too_many(&mut self, number: usize, directory: &Path) {
        if number > MOST_PLUGINS {
            let message = format!("{number} plugins are enabled; the hooks of only {MOST_PLUGINS} are read");
            let diagnostic = Diagnostic::of_file(Severity::Error, "too-many-plugins", directory, message);
            self.found.diagnostics.push(diagnostic.help("disable what is not needed"));
        }
    }

    fn error(&mut self, file: &Path, why: &str) {
        self.found.diagnostics.push(Diagnostic::of_file(
            Severity::Error,
            "plugin",
            file,
            format!("the file {why}"),
        ));
    }

    /// What a file about plugins says, if it is there and can be read.
    fn parsed<T>(&mut self, file: &Path, parse: impl FnOnce(&[u8]) -> Result<T, String>) -> Option<T> {
        let bytes = self.state(file.to_owned())?;
        parse(&bytes).map_err(|why| self.error(file, &why)).ok()
    }

    /// The bytes of a file about plugins.
    fn state(&mut self, path: PathBuf) -> Option<Vec<u8>> {
        if let Some(good) = self.good.get(&path) {
            self.found.definitions.insert(path, Arc::clone(&good.bytes));
            return Some(good.bytes.to_vec());
        }
        if path.symlink_metadata().is_err_and(|error| error.kind() == std::io::ErrorKind::NotFound) {
            self.found.missing.push(path);
            return None;
        }
        let file = files::open_regular(&path, SymlinkPolicy::Followed);
        match file.and_then(|file| files::read_open(file, LARGEST_CATALOG)) {
            Ok(bytes) => {
                self.found.definitions.insert(path.clone(), bytes.as_slice().into());
                self.found.examined.push(path);
                Some(bytes)
            }
            Err(why) => {
                self.error(&path, &why);
                self.found.examined.push(path);
                None
            }
        }
    }

    /// A file of a plugin, which nothing outside of the plugin's directory can be.
    fn read(&mut self, root: &RootDir, relative: &Path, absence: Absence) -> Option<FileBytes> {
        let path = root.path().join(relative);
        if let Some(good) = self.good.get(&path) {
            return Some(FileBytes { bytes: good.bytes.to_vec(), path });
        }
        let file = root.file(relative, LastLink::Followed);
        let is_absent = matches!(file, Err(OpenError::Missing)) && path.symlink_metadata().is_err();
        // When the agent adds it, it changes the registry too.
        if is_absent && absence == Absence::Usual {
            return None;
        }
        self.found.examined.push(path.clone());
        let read = files::with_bytes(path, file.map_err(|error| files::why(&error)));
        read.map_err(|diagnostic| self.found.diagnostics.push(*diagnostic)).ok()
    }
}

/// Whether a file that is not there is a mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Absence {
    Usual,
    Mistake,
}

/// Opens the directory of a plugin.
fn open(given: &Path) -> Result<RootDir, String> {
    let opened = given.canonicalize().and_then(|real| RootDir::open(&real));
    opened.map_err(|error| format!("its directory {} {}", given.display(), files::unreadable(error)))
}

/// The plugins that settings files enable, in the order of the files. The most specific file decides, and that of the
/// administrator above all; but a plugin of a higher level stays where a lower one disables it, which is a switch.
fn enabled_plugins(levels: &mut [SettingsLevel]) -> Vec<EnabledPlugin> {
    let ids = levels.iter().flat_map(|level| level.found.plugins.iter().map(|(id, ..)| id.clone()));
    let mut ids: Vec<String> = ids.collect();
    let mut seen = BTreeSet::new();
    ids.retain(|id| seen.insert(id.clone()));
    ids.into_iter().filter_map(|id| enabled_plugin(id, levels)).collect()
}

fn enabled_plugin(id: String, levels: &mut [SettingsLevel]) -> Option<EnabledPlugin> {
    let statement = |level: &SettingsLevel| {
        let statements = level.found.plugins.iter().rev();
        let (_, is_enabled, position) = statements.clone().find(|(named, ..)| *named == id)?;
        Some((*is_enabled, *position))
    };
    let precedence = |scope: Scope| (scope == Scope::Managed, scope);
    let stating = levels.iter().enumerate().filter(|(_, level)| statement(level).is_some());
    let (deciding, _) = stating.max_by_key(|(_, level)| precedence(level.scope))?;
    let (is_enabled, position) = statement(&levels[deciding])?;
    let enabling = levels.iter().filter(|level| statement(level).is_some_and(|(is_enabled, _)| is_enabled));
    let enabling = enabling.min_by_key(|level| level.scope)?;
    // A file of the same level may disable it, and that of the administrator in any case.
    let is_of_higher = enabling.scope.level(0) < levels[deciding].scope.level(0);
    if !is_enabled && !is_of_higher {
        return None;
    }
    let (_, enabled_at) = statement(enabling)?;
    let plugin = EnabledPlugin {
        id: id.clone(),
        scope: enabling.scope,
        file: enabling.file.clone(),
        position: enabled_at,
    };
    if !is_enabled {
        levels[deciding].found.disabled.push((id, position));
    }
    Some(plugin)
}
