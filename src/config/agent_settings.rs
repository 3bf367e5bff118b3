//! The settings files of the agents a user has, at all their levels. Owns how the levels join and which links
//! may be followed; refuses to know what is in the files.

use std::path::{Path, PathBuf};

use super::{
    Settings,
    files::{self, FileBytes, SymlinkPolicy},
};
use crate::{
    dialect::{
        HookRules, NativeDialect, ReferenceLookup, ScopeMerge, SettingsFile, SettingsHooks, SettingsLocation,
        SharedSettings, natives, read_settings,
    },
    model::{Diagnostic, Dialect, DialectName, Hook, Scope, Severity},
};

/// Where the hooks that an administrator installed are, unless the settings say otherwise.
const SYSTEM: &str = "/etc";

/// The home directory whose user's own hooks run.
pub fn home_directory(settings: &Settings, environment: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let variable = |name| environment(name).map(PathBuf::from).filter(|path| path.is_absolute());
    settings.home.clone().or_else(|| variable("HOOKYARD_HOME")).or_else(|| variable("HOME"))
}

/// The directory of the machine's own configuration.
pub(crate) fn system_directory(settings: &Settings) -> PathBuf {
    settings.system_directory.clone().unwrap_or_else(|| SYSTEM.into())
}

/// Whether a directory has hooks of some agent that are its own.
pub(super) fn has_settings(directory: &Path) -> bool {
    let files = natives().flat_map(NativeDialect::files);
    files.into_iter().any(|file| match file.location {
        SettingsLocation::Workspace(path) => directory.join(path).is_file(),
        SettingsLocation::Home(_) | SettingsLocation::System(_) => false,
    })
}

/// Whose hooks are in a file, by its path.
pub(crate) fn dialect_of_file(file: &Path) -> DialectName {
    let is_of = |native: &&'static NativeDialect| {
        native.files().iter().any(|known| match known.location {
            SettingsLocation::Workspace(path)
            | SettingsLocation::Home(path)
            | SettingsLocation::System(path) => file.ends_with(path),
        })
    };
    natives().find(is_of).map_or(DialectName::OpenHarness, NativeDialect::name)
}

/// What one settings file has.
struct Level {
    scope: Scope,
    file: PathBuf,
    found: SettingsHooks,
}

/// The directories below which settings files are.
pub(super) struct SettingsDirectories {
    root: PathBuf,
    home: Option<PathBuf>,
    system: PathBuf,
}

/// What was found in the settings files of one dialect.
#[derive(Default)]
pub(super) struct CollectedHooks {
    pub(super) hooks: Vec<Hook>,
    pub(super) files: Vec<PathBuf>,
    pub(super) diagnostics: Vec<Diagnostic>,
}

impl SettingsDirectories {
    /// The directories for a workspace whose root has no symbolic links.
    pub(super) fn new(
        root: &Path,
        settings: &Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Self {
        let home = home_directory(settings, environment);
        Self { root: root.to_owned(), home, system: system_directory(settings) }
    }

    /// The settings files of a dialect that are there.
    pub(super) fn files(&self, native: &'static NativeDialect) -> Vec<(PathBuf, SettingsFile)> {
        let at = |file: &SettingsFile| match file.location {
            SettingsLocation::System(path) => Some(self.system.join(path)),
            SettingsLocation::Home(path) => Some(self.home.as_ref()?.join(path)),
            SettingsLocation::Workspace(path) => Some(self.root.join(path)),
        };
        let files = native.files().iter();
        let all: Vec<_> = files.filter_map(|file| Some((at(file)?, *file))).collect();
        // In a home directory, the user's own file stands where the workspace's would.
        let is_users = |path: &Path| {
            all.iter().any(|(own, file)| own == path && matches!(file.location, SettingsLocation::Home(_)))
        };
        let is_own = |path: &Path, file: &SettingsFile| {
            !matches!(file.location, SettingsLocation::Workspace(_)) || !is_users(path)
        };
        let there =
            |(path, file): &&(PathBuf, SettingsFile)| path.symlink_metadata().is_ok() && is_own(path, file);
        all.iter().filter(there).cloned().collect()
    }

    fn read(&self, path: PathBuf, file: SettingsFile) -> Result<FileBytes, Box<Diagnostic>> {
        if !matches!(file.location, SettingsLocation::Workspace(_)) {
            return files::read_as(path, SymlinkPolicy::Followed);
        }
        match path.canonicalize() {
            Ok(real) if !real.starts_with(&self.root) => {
                let message = "the file is a symbolic link that leads outside the workspace";
                Err(Box::new(Diagnostic::of_file(Severity::Error, "unreadable", &path, message)))
            }
            Ok(real) => files::read(real).map(|found| FileBytes { path, ..found }),
            Err(_) => files::read(path),
        }
    }
}

/// Reads the settings files of a dialect and joins their levels.
pub(super) fn collect(
    native: &'static NativeDialect,
    places: &SettingsDirectories,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> CollectedHooks {
    let mut collected = CollectedHooks::default();
    let mut levels = Vec::new();
    for (path, file) in places.files(native) {
        collected.files.push(path.clone());
        match places.read(path, file) {
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
        replace(&mut levels);
    }
    switch_some_off(&mut levels);
    let off = switch_off(&mut levels, native);
    collected.diagnostics.extend(off);
    let said = say_to_all(&mut levels, native, rules, resolver);
    collected.diagnostics.extend(said);
    let hooks = levels.into_iter().flat_map(|level| level.found.hooks);
    collected.hooks.extend(hooks.map(|configured| configured.hook));
    collected
}

/// Has what the files say about all hooks hold for them: a later file's word counts before an earlier one's, and a
/// variable's before all files'.
fn say_to_all(
    levels: &mut [Level],
    native: &NativeDialect,
    rules: &HookRules,
    resolver: &dyn ReferenceLookup,
) -> Vec<Diagnostic> {
    let Some(file) = levels.last().map(|level| level.file.clone()) else { return Vec::new() };
    let said =
        levels.iter().fold(SharedSettings::default(), |said, level| said.overridden_by(&level.found.shared));
    let (variables, mut diagnostics) =
        SharedSettings::from_variables(native.shared_keys(), &file, rules.max_timeout, resolver);
    let said = said.overridden_by(&variables);
    let hooks = levels.iter_mut().flat_map(|level| &mut level.found.hooks);
    let mut number = 0;
    for configured in hooks {
        said.apply(configured);
        number += 1;
    }
    if said.switches_off() && number > 0 {
        let message = format!("`enabled: false` switches off {} of {}", counted(number), native.name());
        diagnostics.push(Diagnostic::of_file(Severity::Info, "switched-off", &file, message));
    }
    diagnostics
}

fn counted(hooks: usize) -> String {
    if hooks == 1 { "1 hook".to_owned() } else { format!("{hooks} hooks") }
}

/// Leaves out the user's hooks for events that the project configures.
fn replace(levels: &mut [Level]) {
    let project = levels.iter().filter(|level| level.scope == Scope::Project);
    let events: Vec<&str> = project.flat_map(|level| level.found.events.iter().copied()).collect();
    for level in levels.iter_mut().filter(|level| level.scope == Scope::User) {
        level.found.hooks.retain(|configured| !events.contains(&configured.event));
    }
}

/// Switches off the hooks that some file names. Only the administrator's file reaches the administrator's hooks.
fn switch_some_off(levels: &mut [Level]) {
    let off: Vec<(Scope, String)> = levels
        .iter()
        .flat_map(|level| level.found.disabled.iter().map(|called| (level.scope, called.clone())))
        .collect();
    for level in levels {
        for configured in &mut level.found.hooks {
            let reached = |from: Scope| from == Scope::Managed || level.scope != Scope::Managed;
            if off.iter().any(|(from, called)| reached(*from) && configured.aliases.contains(called)) {
                configured.hook.enabled = false;
            }
        }
    }
}

/// Switches hooks off where a file says so: of several files, the administrator's counts, and else the most
/// particular. Only the administrator's switches off the administrator's hooks.
fn switch_off(levels: &mut [Level], native: &NativeDialect) -> Option<Diagnostic> {
    let by_weight = [Scope::Managed, Scope::Local, Scope::Project, Scope::User];
    let says = |wanted: &Scope| {
        levels.iter().find(|level| level.scope == *wanted && level.found.all_disabled.is_some())
    };
    let level = by_weight.iter().find_map(says).filter(|level| level.found.all_disabled == Some(true))?;
    let (scope, file) = (level.scope, level.file.clone());
    let mut number = 0;
    let reached = |level: &&mut Level| scope == Scope::Managed || level.scope != Scope::Managed;
    for level in levels.iter_mut().filter(reached) {
        for configured in &mut level.found.hooks {
            configured.hook.enabled = false;
            number += 1;
        }
    }
    let message = format!("`{}` switches off {} of {}", native.disable_key(), counted(number), native.name());
    (number > 0).then(|| Diagnostic::of_file(Severity::Info, "switched-off", &file, message))
}
