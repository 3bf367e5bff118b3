//! Hooks from the settings files of agents: which files there are, and how they are read.

use std::path::{Path, PathBuf};

use super::{
    Settings,
    account::home_directory,
    files::{self, DefinitionFiles, FileBytes},
    front_matter::{FoundTexts, TextReading},
    last_good_store::{GoodFiles, NO_GOOD_FILES},
    own_settings::SwitchExceptions,
    plugins::{PluginHookFile, PluginSearch},
    settings_levels::{self, SettingsLevel, adopted_file},
    shortage,
    workspace_files::{self, WorkspaceFiles, is_there},
};
use crate::{
    dialect::{
        HookRules, NativeDialect, PluginFormat, ReferenceLookup, SettingsFile, SettingsLocation, natives,
        read_plugin_hooks, read_settings, unread_hooks,
    },
    model::{Diagnostic, Dialect, DialectName, Hook, Scope, Severity},
    root_dir::LastLink,
};

/// Where the hooks that an administrator installed are, unless the settings say otherwise.
const SYSTEM_DIRECTORY: &str = "/etc";

/// Looks up environment variables.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The directory of the machine's own configuration.
pub(crate) fn system_directory(settings: &Settings) -> PathBuf {
    settings.system_directory.clone().unwrap_or_else(|| SYSTEM_DIRECTORY.into())
}

/// The dialect of the hooks in a file, by its path.
pub(crate) fn dialect_of_file(file: &Path) -> DialectName {
    natives().find(|native| is_file_of(file, native)).map_or(DialectName::OpenHarness, NativeDialect::name)
}

fn is_file_of(file: &Path, native: &NativeDialect) -> bool {
    let is_it = |known: &SettingsFile| {
        let adopted = || adopted_file(Path::new(known.location.path()));
        known.location.has(file) || (known.location.directory().is_none() && file.ends_with(adopted()))
    };
    native.files().iter().any(is_it) || native.plugins().has_file(file)
}

/// The directories below which settings files are.
pub(super) struct SettingsDirectories<'a> {
    workspace: &'a WorkspaceFiles,
    home: Option<PathBuf>,
    system: PathBuf,
    /// The files that are read as they were.
    good: &'a GoodFiles,
}

/// How settings files are read.
pub(super) struct SettingsReading<'a> {
    pub(super) directories: &'a SettingsDirectories<'a>,
    pub(super) own_files: OwnFiles,
    pub(super) rules: &'a HookRules,
    pub(super) resolver: &'a dyn ReferenceLookup,
    pub(super) exceptions: &'a SwitchExceptions,
}

/// Whether the settings files of the workspace itself are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OwnFiles {
    /// They are.
    Read,
    /// They are not: the workspace is for conversation.
    Ignored,
}

/// What the settings files of one dialect have.
#[derive(Default)]
pub(super) struct CollectedHooks {
    pub(super) hooks: Vec<Hook>,
    pub(super) files: Vec<PathBuf>,
    pub(super) missing_files: Vec<PathBuf>,
    pub(super) definitions: DefinitionFiles,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl<'a> SettingsDirectories<'a> {
    /// The directories for a workspace.
    pub(super) fn new(
        workspace: &'a WorkspaceFiles,
        settings: &Settings,
        environment: Environment<'_>,
    ) -> Self {
        let home = home_directory(settings, environment);
        Self { workspace, home, system: system_directory(settings), good: &NO_GOOD_FILES }
    }

    /// The same, which read these files as they were.
    pub(super) fn with_good(self, good: &'a GoodFiles) -> Self {
        Self { good, ..self }
    }

    /// The files that are read as they were.
    pub(super) fn good(&self) -> &'a GoodFiles {
        self.good
    }

    /// The settings files of a dialect that exist, and what is wrong with directories of such files.
    pub(super) fn files(
        &self,
        native: &'static NativeDialect,
    ) -> (Vec<(PathBuf, SettingsFile)>, Vec<Diagnostic>) {
        let (mut all, mut diagnostics) = (Vec::new(), Vec::new());
        for file in native.files() {
            let Some((base, path)) = self.place_of(file) else { continue };
            let paths = match file.location.directory() {
                None => vec![base.join(path)],
                Some(directory) => self.files_in(directory, *file, &mut diagnostics),
            };
            all.extend(paths.into_iter().map(|path| (path, *file)));
        }
        let mut existing = all.clone();
        existing.retain(|(path, file)| {
            let is_one = file.location.directory().is_none();
            let is_absent = is_one && !self.has(file) && !self.good.contains_key(path);
            !is_absent && !is_of_user_too(path, file, &all)
        });
        (existing, diagnostics)
    }

    /// The files of a directory that count, with those that are read as they were.
    fn files_in(
        &self,
        directory: &'static str,
        file: SettingsFile,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Vec<PathBuf> {
        let Some((base, _)) = self.place_of(&file) else { return Vec::new() };
        let path = base.join(directory);
        let opened = match file.is_of_workspace() {
            true => self.workspace.directory(Path::new(directory)),
            false if !is_there(base, Path::new(directory)) => Ok(None),
            false => files::open_directory(&path).map(Some),
        };
        let (mut found, problems) = workspace_files::settings_files(&path, opened);
        diagnostics.extend(problems);
        found.extend(self.good.keys().filter(|known| known.parent() == Some(&path)).cloned());
        found.into_iter().collect()
    }

    fn path_of(&self, file: &SettingsFile) -> Option<PathBuf> {
        self.place_of(file).map(|(directory, path)| directory.join(path))
    }

    /// The directory that a file belongs to, and its path below that.
    fn place_of(&self, file: &SettingsFile) -> Option<(&Path, &'static str)> {
        match file.location {
            SettingsLocation::System(path) => Some((&self.system, path)),
            SettingsLocation::Home(path) => Some((self.home.as_deref()?, path)),
            SettingsLocation::Workspace(path) => Some((self.workspace.root(), path)),
        }
    }

    fn has(&self, file: &SettingsFile) -> bool {
        if file.is_of_workspace() && !self.workspace.has_files() {
            return false;
        }
        self.place_of(file).is_some_and(|(directory, path)| is_there(directory, Path::new(path)))
    }

    /// Reads a hook file of the workspace.
    pub(super) fn read_hook_file(&self, path: PathBuf) -> Result<FileBytes, Box<Diagnostic>> {
        match self.good.get(&path) {
            Some(good) => Ok(FileBytes { bytes: good.bytes.to_vec(), path }),
            None => self.workspace.read(path, LastLink::Refused),
        }
    }

    /// The directories with texts that may have hooks in their front matter, each with its scope.
    pub(super) fn of_texts(&self, native: &NativeDialect, own_files: OwnFiles) -> Vec<(Scope, PathBuf)> {
        let PluginFormat::Plugins(files) = native.plugins() else { return Vec::new() };
        let managed = native.files().iter().find(|file| file.scope == Scope::Managed);
        let managed = managed.and_then(|file| Path::new(file.location.path()).parent());
        let own = (own_files == OwnFiles::Read).then(|| self.workspace.root());
        let bases = [
            managed.map(|directory| (Scope::Managed, self.system.join(directory))),
            self.home.clone().map(|home| (Scope::User, home)),
            // The home directory may be the workspace.
            own.filter(|root| self.home.as_deref() != Some(*root))
                .map(|root| (Scope::Project, root.to_owned())),
        ];
        bases.into_iter().flatten().map(|(scope, base)| (scope, base.join(files.texts_directory))).collect()
    }

    /// Reads a text that may have hooks in its front matter.
    pub(super) fn read_text(&self, path: &Path, own_files: OwnFiles) -> Result<FileBytes, Box<Diagnostic>> {
        if let Some(good) = self.good.get(path) {
            return Ok(FileBytes { bytes: good.bytes.to_vec(), path: path.to_owned() });
        }
        if own_files == OwnFiles::Read && path.starts_with(self.workspace.root()) {
            return self.workspace.read(path.to_owned(), LastLink::Followed);
        }
        files::read_anywhere(path.to_owned())
    }

    /// A file of the workspace must be inside of it; others may be links, as the dotfiles of a user often are.
    fn read(&self, path: PathBuf, file: SettingsFile) -> Result<FileBytes, Box<Diagnostic>> {
        if let Some(good) = self.good.get(&path) {
            return Ok(FileBytes { bytes: good.bytes.to_vec(), path });
        }
        match file.location {
            SettingsLocation::Workspace(_) => self.workspace.read(path, LastLink::Followed),
            SettingsLocation::System(_) | SettingsLocation::Home(_) => files::read_anywhere(path),
        }
    }
}

/// The settings files of the user and the machine, whether they are there or not.
pub(super) fn shared_files(settings: &Settings, environment: Environment<'_>) -> Vec<PathBuf> {
    let home = home_directory(settings, environment);
    let system = system_directory(settings);
    let base = |file: &SettingsFile| match file.location {
        SettingsLocation::System(_) => Some(system.clone()),
        SettingsLocation::Home(_) => home.clone(),
        SettingsLocation::Workspace(_) => None,
    };
    let files =
        natives().flat_map(NativeDialect::files).filter_map(|file| Some((base(file)?, file.location)));
    let files = files.flat_map(|(base, location)| match location.directory() {
        None => vec![base.join(location.path())],
        Some(directory) => with_its_files(&base.join(directory)),
    });
    let files = files.flat_map(|file| [adopted_file(&file), file]);
    let registries = natives().filter_map(|native| Some(home.as_ref()?.join(native.plugins().registry()?)));
    files.chain(registries).collect()
}

/// A directory and the settings files in it.
fn with_its_files(directory: &Path) -> Vec<PathBuf> {
    let entries = directory.read_dir().inspect_err(shortage::note).into_iter().flatten().flatten();
    let files = entries.filter(|entry| SettingsLocation::takes(&entry.file_name())).map(|entry| entry.path());
    files.chain([directory.to_owned()]).collect()
}

/// Errors about the home directory and that of the machine's configuration, where they are gone with files whose rules are
/// known: a disk that is not mounted is no decision to remove them.
pub(crate) fn missing_directories<'f>(
    settings: &Settings,
    environment: Environment<'_>,
    known: &(impl Iterator<Item = &'f Path> + Clone),
) -> Vec<Diagnostic> {
    let directories = home_directory(settings, environment).into_iter().chain([system_directory(settings)]);
    let missing = directories.filter_map(|directory| {
        let mut below = known.clone().filter(|file| file.starts_with(&directory));
        let why = match directory.metadata() {
            Ok(found) if found.is_dir() => return None,
            Ok(_) => "is not a directory".to_owned(),
            Err(error) => files::unreadable(error),
        };
        below.next()?;
        let message = format!("the directory {why}");
        Some(Diagnostic::of_file(Severity::Error, "unreadable", &directory, message))
    });
    missing.collect()
}

/// Whether a file of the workspace is that of the user as well, as it is where the home directory is the workspace.
fn is_of_user_too(path: &Path, file: &SettingsFile, all: &[(PathBuf, SettingsFile)]) -> bool {
    matches!(file.location, SettingsLocation::Workspace(_))
        && all.iter().any(|(other, file)| other == path && matches!(file.location, SettingsLocation::Home(_)))
}

/// Warnings about files with hooks that are not read. What is wrong with a file that cannot be read, the agent says.
fn note_unread_files(native: &'static NativeDialect, reading: &SettingsReading<'_>) -> Vec<Diagnostic> {
    let SettingsReading { directories, own_files, .. } = *reading;
    let is_asked = |file: &&SettingsFile| own_files == OwnFiles::Read || !file.is_of_workspace();
    let files = native.unread_files().iter().filter(is_asked).filter(|file| directories.has(file));
    let found = files.filter_map(|file| directories.read(directories.path_of(file)?, *file).ok());
    found.filter_map(|found| unread_hooks(&found.bytes, &found.path)).collect()
}

/// Reads the settings files of a dialect and merges their levels.
/// The hooks of `outer` workspaces take note of switches without effect.
pub(super) fn collect(
    native: &'static NativeDialect,
    reading: &SettingsReading<'_>,
    outer: &mut [Hook],
) -> CollectedHooks {
    let SettingsReading { directories, own_files, rules, resolver, exceptions } = *reading;
    let mut collected = CollectedHooks::default();
    let mut levels = Vec::new();
    let (files, diagnostics) = directories.files(native);
    collected.diagnostics.extend(diagnostics);
    for (path, file) in files {
        if own_files == OwnFiles::Ignored && file.is_of_workspace() {
            continue;
        }
        collected.files.push(path.clone());
        match directories.read(path, file) {
            Ok(found) => {
                let (hooks, diagnostics) =
                    read_settings(native, &found.bytes, &found.path, file.scope, rules, resolver);
                collected.diagnostics.extend(diagnostics);
                collected.definitions.insert(found.path.clone(), found.bytes.as_slice().into());
                let mut level = SettingsLevel { scope: file.scope, file: found.path, found: hooks };
                levels.extend(read_adopted(native, reading, file, &mut level, &mut collected));
                levels.push(level);
            }
            Err(diagnostic) => collected.diagnostics.push(*diagnostic),
        }
    }
    collected.diagnostics.extend(note_unread_files(native, reading));
    let of_plugins = read_plugins(native, reading, &mut levels, &mut collected);
    levels.splice(0..0, of_plugins);
    let (hooks, diagnostics) = settings_levels::merge(levels, outer, native, rules, resolver, exceptions);
    collected.diagnostics.extend(diagnostics);
    collected.hooks = hooks;
    collected
}

/// The hooks that were moved out of a settings file, as a level of their own. They count while its entries say so: until
/// `connect` has replaced that file, and again once `disconnect` has, the agent runs them.
fn read_adopted(
    native: &'static NativeDialect,
    reading: &SettingsReading<'_>,
    file: SettingsFile,
    level: &mut SettingsLevel,
    collected: &mut CollectedHooks,
) -> Option<SettingsLevel> {
    let SettingsReading { directories, rules, resolver, .. } = *reading;
    let path = adopted_file(&level.file);
    let is_there = directories.good.contains_key(&path) || path.symlink_metadata().is_ok();
    if !level.is_adopted() {
        collected.diagnostics.extend(is_there.then(|| settings_levels::unadopted(native, &path)));
        collected.files.extend(is_there.then_some(path));
        return None;
    }
    collected.files.push(path.clone());
    let FileBytes { path, bytes } = match directories.read(path, file) {
        Ok(found) => found,
        Err(diagnostic) => {
            collected.diagnostics.push(*diagnostic);
            return None;
        }
    };
    let (found, diagnostics) = read_settings(native, &bytes, &path, file.scope, rules, resolver);
    collected.diagnostics.extend(diagnostics);
    collected.definitions.insert(path.clone(), bytes.as_slice().into());
    let mut adopted = SettingsLevel { scope: file.scope, file: path, found };
    adopted.adopt_from(level);
    Some(adopted)
}

/// The hooks of the plugins that levels enable, and those of agents' texts, each file as a level of its own.
fn read_plugins(
    native: &'static NativeDialect,
    reading: &SettingsReading<'_>,
    levels: &mut [SettingsLevel],
    collected: &mut CollectedHooks,
) -> Vec<SettingsLevel> {
    let SettingsReading { directories, rules, resolver, .. } = *reading;
    let home = directories.home.as_deref();
    let search = home.map(|home| PluginSearch::new(home, directories.workspace.root(), directories.good));
    let found = search.map(|search| search.run(native, levels)).unwrap_or_default();
    collected.files.extend(found.examined);
    collected.missing_files.extend(found.missing);
    collected.definitions.extend(found.definitions);
    collected.diagnostics.extend(found.diagnostics);
    let places = TextReading {
        places: directories.of_texts(native, reading.own_files),
        read: &|path| directories.read_text(path, reading.own_files),
        rules,
        resolver,
    };
    let texts = FoundTexts::of(native, &places, &found.directories);
    collected.files.extend(texts.files);
    collected.definitions.extend(texts.definitions);
    collected.diagnostics.extend(texts.diagnostics);
    let level = |PluginHookFile { scope, file, source }| {
        let FileBytes { path, bytes } = file;
        let read = read_plugin_hooks(native, (&bytes, &path), scope, &source, rules, resolver);
        let (hooks, diagnostics) = read;
        collected.diagnostics.extend(diagnostics);
        SettingsLevel { scope, file: path, found: hooks }
    };
    found.hook_files.into_iter().map(level).chain(texts.levels).collect()
}
