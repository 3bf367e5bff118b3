//! Hooks from the settings files of agents: which files there are, and how their levels are merged.

use std::path::{Path, PathBuf};

use super::{
    Settings,
    files::{self, FileBytes},
    root_dir::LastLink,
    workspace_files::WorkspaceFiles,
};
use crate::{
    dialect::{
        HookRules, NativeDialect, ReferenceLookup, ScopeMerge, SettingsFile, SettingsHooks, SettingsLocation,
        SharedSettings, natives, read_settings,
    },
    model::{Diagnostic, Dialect, DialectName, Hook, Scope, Severity},
};

/// Where the hooks that an administrator installed are, unless the settings say otherwise.
const SYSTEM_DIRECTORY: &str = "/etc";

/// Looks up environment variables.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The home directory whose user's own hooks run.
pub fn home_directory(settings: &Settings, environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let home = settings.home.clone().or_else(|| absolute_path("HOOKYARD_HOME", environment));
    home.or_else(|| absolute_path("HOME", environment))
}

fn absolute_path(variable: &str, environment: Environment<'_>) -> Option<PathBuf> {
    environment(variable).map(PathBuf::from).filter(|path| path.is_absolute())
}

/// The directory of the machine's own configuration.
pub(crate) fn system_directory(settings: &Settings) -> PathBuf {
    settings.system_directory.clone().unwrap_or_else(|| SYSTEM_DIRECTORY.into())
}

/// Whether a directory has a settings file of some agent at the workspace level.
pub(super) fn has_settings(directory: &Path) -> bool {
    let files = natives().flat_map(NativeDialect::files);
    files.into_iter().any(|file| match file.location {
        SettingsLocation::Workspace(path) => directory.join(path).is_file(),
        SettingsLocation::Home(_) | SettingsLocation::System(_) => false,
    })
}

/// The dialect of the hooks in a file, by its path.
pub(crate) fn dialect_of_file(file: &Path) -> DialectName {
    natives().find(|native| is_file_of(file, native)).map_or(DialectName::OpenHarness, NativeDialect::name)
}

fn is_file_of(file: &Path, native: &NativeDialect) -> bool {
    native.files().iter().any(|known| match known.location {
        SettingsLocation::Workspace(path) | SettingsLocation::Home(path) | SettingsLocation::System(path) => {
            file.ends_with(path)
        }
    })
}

/// The hooks of one settings file.
struct Level {
    scope: Scope,
    file: PathBuf,
    found: SettingsHooks,
}

impl Level {
    /// Whether a setting of a file of this scope applies to the hooks of the level: only the administrator's file
    /// reaches the administrator's hooks.
    fn is_reached_from(&self, scope: Scope) -> bool {
        scope == Scope::Managed || self.scope != Scope::Managed
    }
}

/// The directories below which settings files are.
pub(super) struct SettingsDirectories<'a> {
    workspace: &'a WorkspaceFiles,
    home: Option<PathBuf>,
    system: PathBuf,
}

/// What the settings files of one dialect have.
#[derive(Default)]
pub(super) struct CollectedHooks {
    pub(super) hooks: Vec<Hook>,
    pub(super) files: Vec<PathBuf>,
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
        Self { workspace, home, system: system_directory(settings) }
    }

    /// The settings files of a dialect that exist.
    pub(super) fn files(&self, native: &'static NativeDialect) -> Vec<(PathBuf, SettingsFile)> {
        let files = native.files().iter();
        let all: Vec<_> = files.filter_map(|file| Some((self.path_of(file)?, *file))).collect();
        let mut existing = all.clone();
        existing.retain(|(path, file)| path.symlink_metadata().is_ok() && !is_of_user_too(path, file, &all));
        existing
    }

    fn path_of(&self, file: &SettingsFile) -> Option<PathBuf> {
        match file.location {
            SettingsLocation::System(path) => Some(self.system.join(path)),
            SettingsLocation::Home(path) => Some(self.home.as_ref()?.join(path)),
            SettingsLocation::Workspace(path) => Some(self.workspace.root().join(path)),
        }
    }

    /// A file of the workspace must be inside of it; others may be links, as the dotfiles of a user often are.
    fn read(&self, path: PathBuf, file: SettingsFile) -> Result<FileBytes, Box<Diagnostic>> {
        match file.location {
            SettingsLocation::Workspace(_) => self.workspace.read(path, LastLink::Followed),
            SettingsLocation::System(_) | SettingsLocation::Home(_) => files::read_anywhere(path),
        }
    }
}

/// Whether a file of the workspace is that of the user as well, as it is where the home directory is the workspace.
fn is_of_user_too(path: &Path, file: &SettingsFile, all: &[(PathBuf, SettingsFile)]) -> bool {
    matches!(file.location, SettingsLocation::Workspace(_))
        && all.iter().any(|(other, file)| other == path && matches!(file.location, SettingsLocation::Home(_)))
}

/// Reads the settings files of a dialect and merges their levels.
pub(super) fn collect(
    native: &'static NativeDialect,
    directories: &SettingsDirectories<'_>,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> CollectedHooks {
    let mut collected = CollectedHooks::default();
    let mut levels = Vec::new();
    for (path, file) in directories.files(native) {
        collected.files.push(path.clone());
        match directories.read(path, file) {
            Ok(found) => {
                let (hooks, diagnostics) =
                    read_settings(native, &found.bytes, &found.path, file.scope, rules, resolver);
                collected.diagnostics.extend(diagnostics);
                levels.push(Level { scope: file.scope, file: found.path, found: hooks });
            }
            Err(diagnostic) => collected.diagnostics.push(*diagnostic),
        }
    }
    if native.scope_merge() == ScopeMerge::ProjectReplacesUser {
        remove_replaced(&mut levels);
    }
    disable_named(&mut levels);
    collected.diagnostics.extend(disable_all(&mut levels, native));
    collected.diagnostics.extend(apply_common(&mut levels, native, rules, resolver));
    let hooks = levels.into_iter().flat_map(|level| level.found.hooks);
    collected.hooks.extend(hooks.map(|configured| configured.hook));
    collected
}

/// Applies the settings that files make for all hooks. A later file overrides an earlier one, and a variable
/// overrides all files.
fn apply_common(
    levels: &mut [Level],
    native: &NativeDialect,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> Vec<Diagnostic> {
    let Some(file) = levels.last().map(|level| level.file.clone()) else { return Vec::new() };
    let by_files = levels
        .iter()
        .fold(SharedSettings::default(), |common, level| common.overridden_by(&level.found.shared));
    let (variables, mut diagnostics) =
        SharedSettings::from_variables(native.shared_keys(), &file, rules.max_timeout, resolver);
    let common = by_files.overridden_by(&variables);
    let mut number = 0;
    for configured in levels.iter_mut().flat_map(|level| &mut level.found.hooks) {
        common.apply(configured);
        number += 1;
    }
    if common.switches_off() && number > 0 {
        let message = format!("`enabled: false` switches off {} of {}", counted(number), native.name());
        diagnostics.push(Diagnostic::of_file(Severity::Info, "switched-off", &file, message));
    }
    diagnostics
}

fn counted(hooks: usize) -> String {
    if hooks == 1 { "1 hook".to_owned() } else { format!("{hooks} hooks") }
}

/// Removes the user's hooks for events that the project configures.
fn remove_replaced(levels: &mut [Level]) {
    let project = levels.iter().filter(|level| level.scope == Scope::Project);
    let events: Vec<&str> = project.flat_map(|level| level.found.events.iter().copied()).collect();
    for level in levels.iter_mut().filter(|level| level.scope == Scope::User) {
        level.found.hooks.retain(|configured| !events.contains(&configured.event));
    }
}

/// Disables the hooks that some file disables by name.
fn disable_named(levels: &mut [Level]) {
    let off: Vec<(Scope, String)> = levels
        .iter()
        .flat_map(|level| level.found.disabled.iter().map(|called| (level.scope, called.clone())))
        .collect();
    for level in levels {
        let reaching: Vec<&String> =
            off.iter().filter(|(scope, _)| level.is_reached_from(*scope)).map(|(_, called)| called).collect();
        for configured in &mut level.found.hooks {
            if reaching.iter().any(|called| configured.aliases.contains(*called)) {
                configured.hook.enabled = false;
            }
        }
    }
}

/// Disables all hooks if a file says so. Of several files, the administrator's decides, and otherwise the most
/// specific one.
fn disable_all(levels: &mut [Level], native: &NativeDialect) -> Option<Diagnostic> {
    let by_weight = [Scope::Managed, Scope::Local, Scope::Project, Scope::User];
    let level = by_weight
        .iter()
        .find_map(|scope| {
            levels.iter().find(|level| level.scope == *scope && level.found.all_disabled.is_some())
        })
        .filter(|level| level.found.all_disabled == Some(true))?;
    let scope = level.scope;
    let file = level.file.clone();
    let mut number = 0;
    for level in levels.iter_mut().filter(|level| level.is_reached_from(scope)) {
        for configured in &mut level.found.hooks {
            configured.hook.enabled = false;
            number += 1;
        }
    }
    let message = format!("`{}` switches off {} of {}", native.disable_key(), counted(number), native.name());
    (number > 0).then(|| Diagnostic::of_file(Severity::Info, "switched-off", &file, message))
}
