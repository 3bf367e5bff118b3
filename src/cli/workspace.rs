//! Finds the workspace of a command, and loads it.

use std::{
    io,
    path::{Path, PathBuf},
};

use super::{
    escape,
    exit::CliError,
    flags::{TrustFlag, WorkspaceFlags},
    paths::{display_path, shell_quoted},
    screen::Screen,
    settings::{VariablePolicy, settings_of, tell},
    units::plural,
};
use crate::{
    config::{
        self, HOOK_FILES, LastGoodSource, LastGoodStore, LoadContext, LoadedWorkspace, OuterSearch, Settings,
        TrustPolicy, WorkspaceSettings,
    },
    model::{Diagnostic, Severity, WorkspaceId},
    registry::Snapshot,
};

/// A workspace directory that exists, and its settings.
#[derive(Debug)]
pub(super) struct LocatedWorkspace {
    /// The directory, absolute and without symbolic links.
    pub(super) root: PathBuf,
    /// The settings; the defaults if they have errors.
    pub(super) settings: Settings,
    /// What is wrong with the settings.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// The directory as typed, to be repeated in advice.
    given: Option<PathBuf>,
}

/// How a workspace was chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkspaceOrigin {
    /// The command line names it.
    Given,
    /// It is the nearest one, from the current directory upwards.
    Nearest,
    /// There is none, so it is the current directory.
    CurrentDirectory,
}

impl LocatedWorkspace {
    /// Finds the workspace and reads the settings.
    ///
    /// Returns an error if there is no workspace, or the settings file cannot be read.
    pub(super) fn find(flags: &WorkspaceFlags) -> Result<Self, CliError> {
        Self::find_with(flags, VariablePolicy::Ignored)
    }

    fn find_with(flags: &WorkspaceFlags, variables: VariablePolicy) -> Result<Self, CliError> {
        let (found, origin) = Self::locate(flags, variables)?;
        // An agent that works in any directory has the hooks of its user.
        let has_none = |loaded: &LoadedWorkspace| loaded.files.is_empty() && loaded.hooks.is_empty();
        let is_none = origin == WorkspaceOrigin::CurrentDirectory && has_none(&found.load());
        if is_none { Err(no_workspace(&found.root)) } else { Ok(found) }
    }

    /// The named workspace, or the nearest one, or the current directory.
    fn locate(
        flags: &WorkspaceFlags,
        variables: VariablePolicy,
    ) -> Result<(Self, WorkspaceOrigin), CliError> {
        let (settings, diagnostics) = settings_of(&flags.settings, variables)?;
        let (root, origin) = if let Some(given) = &flags.workspace {
            (root(given, &settings)?, WorkspaceOrigin::Given)
        } else {
            let current = current_dir()?;
            match nearest_above(&current, &settings) {
                Some(nearest) => (nearest, WorkspaceOrigin::Nearest),
                None => (current, WorkspaceOrigin::CurrentDirectory),
            }
        };
        Ok((Self { root, settings, diagnostics, given: flags.workspace.clone() }, origin))
    }

    /// Finds the workspace, or the diagnostics of the settings alone where only a settings file is named and there is
    /// no workspace near. The settings are those that the daemon would have.
    pub(super) fn find_or_settings(
        flags: &WorkspaceFlags,
    ) -> Result<Result<Self, Vec<Diagnostic>>, CliError> {
        let alone = flags.settings.config.is_some() && flags.workspace.is_none();
        let variables = VariablePolicy::Read;
        match Self::find_with(flags, variables) {
            Err(_) if alone => {
                settings_of(&flags.settings, variables).map(|(_, diagnostics)| Err(diagnostics))
            }
            found => found.map(Ok),
        }
    }

    /// Finds the workspace; where there is none, takes the current directory. The settings must be valid.
    pub(super) fn find_or_current_dir(
        flags: &WorkspaceFlags,
        screen: &Screen,
    ) -> Result<(Self, WorkspaceOrigin), CliError> {
        let (found, origin) = Self::locate(flags, VariablePolicy::Ignored)?;
        found.with_valid_settings(screen).map(|found| (found, origin))
    }

    /// Finds the workspace. The settings must be valid.
    ///
    /// Returns an error after the mistakes in the settings have been printed.
    pub(super) fn find_valid(flags: &WorkspaceFlags, screen: &Screen) -> Result<Self, CliError> {
        Self::find(flags)?.with_valid_settings(screen)
    }

    fn with_valid_settings(self, screen: &Screen) -> Result<Self, CliError> {
        tell(&self.diagnostics, screen).map(|()| self)
    }

    /// The same, with the hooks of the workspace trusted for this call if the flag says so.
    pub(super) fn trusting(mut self, flag: TrustFlag) -> Self {
        if flag.trust_workspace {
            self.settings.trust = TrustPolicy::Off;
        }
        self
    }

    /// The workspace as the settings declare it, with its id, or else without anything of its own.
    pub(super) fn declared(&self) -> (Option<WorkspaceId>, WorkspaceSettings) {
        let is_here = |settings: &WorkspaceSettings| {
            root_of(&settings.root, &self.settings).is_ok_and(|root| root == self.root)
        };
        let declared = self.settings.workspaces.iter().find(|(_, settings)| is_here(settings));
        match declared {
            Some((id, settings)) => {
                (Some(id.clone()), WorkspaceSettings { root: self.root.clone(), ..settings.clone() })
            }
            None => (None, WorkspaceSettings::new(&self.root)),
        }
    }

    /// Loads the hooks of the files as they are.
    pub(super) fn load(&self) -> LoadedWorkspace {
        self.with_required(self.load_with(None))
    }

    /// Loads the hooks that a daemon would have in force after a start, with the last good rules of broken files.
    pub(super) fn load_in_force(&self) -> LoadedWorkspace {
        let environment = |name: &str| std::env::var(name).ok();
        let records = LastGoodSource::Settings.records(None, &self.settings, &environment);
        let mut loaded = self.load_with(records.as_ref());
        let kept = loaded.last_good.keys().map(PathBuf::as_path);
        config::apply_policy(self.settings.broken, &mut loaded.hooks, kept);
        self.with_required(loaded)
    }

    fn load_with(&self, last_good: Option<&LastGoodStore>) -> LoadedWorkspace {
        let environment = |name: &str| std::env::var(name).ok();
        let connections = config::connections(&self.settings, &environment);
        let managed = config::managed_level(&self.settings, &environment, &|_| false);
        let context = LoadContext {
            search: OuterSearch::EveryParent,
            connections: Some(&connections),
            last_good,
            managed: managed.as_ref(),
            ..LoadContext::new(&environment)
        };
        let (id, workspace) = self.declared();
        config::load_in_context(&workspace, id.as_ref(), &self.settings, &context)
    }

    /// The same, with the required hooks that are missing.
    fn with_required(&self, mut loaded: LoadedWorkspace) -> LoadedWorkspace {
        let LoadedWorkspace { workspace, outer, hooks, diagnostics, required, .. } = &mut loaded;
        let required = [required.clone(), self.settings.required.clone()].concat();
        let (_, missing) = config::require(&required, workspace, outer, hooks, diagnostics);
        loaded.warn(missing);
        loaded
    }

    /// What a daemon would do about broken files: use the rules that they last had, say. Nothing if none is broken, or the
    /// data directory cannot be read.
    pub(super) fn last_good_remarks(&self, loaded: &LoadedWorkspace) -> Vec<Diagnostic> {
        if !loaded.diagnostics.iter().any(Diagnostic::is_of_broken_file) {
            return Vec::new();
        }
        let environment = |name: &str| std::env::var(name).ok();
        let Some(store) = LastGoodSource::Settings.records(None, &self.settings, &environment) else {
            return Vec::new();
        };
        let found = self.load_with(Some(&store)).diagnostics;
        found.into_iter().filter(|remark| remark.code == Diagnostic::LAST_GOOD).collect()
    }

    /// Prints a note on standard error if hooks are left out, or if there are none.
    pub(super) fn note_problems(&self, loaded: &[Diagnostic], files: &[PathBuf], screen: &Screen) {
        let note = screen.err.paint.yellow("note:");
        for missing in loaded.iter().filter(|diagnostic| diagnostic.code == Diagnostic::REQUIRED_MISSING) {
            screen.note(&format!("{note} {}; its events are blocked", escape::line(&missing.message)));
        }
        let is_skipped =
            |diagnostic: &&Diagnostic| diagnostic.skipped && diagnostic.code != Diagnostic::REQUIRED_MISSING;
        let errors = loaded.iter().filter(is_skipped).count();
        if errors > 0 {
            let errors = plural(errors, "error");
            let check = format!("`hookyard check{}`", self.flag());
            screen.note(&format!("{note} {errors} in hook files; not all hooks are in force; run {check}"));
        }
        for powerless in loaded.iter().filter(|diagnostic| diagnostic.code == Diagnostic::CANNOT_DISABLE) {
            let place = format!("{}:{}", display_path(&powerless.file), powerless.line);
            screen.note(&format!("{note} {}, at {place}", escape::line(&powerless.message)));
        }
        let is_note = |diagnostic: &&Diagnostic| {
            diagnostic.severity == Severity::Info
                && ![Diagnostic::TRUST, Diagnostic::BUNDLE].contains(&diagnostic.code)
        };
        if let Some(info) = loaded.iter().find(is_note) {
            screen.note(&format!("{note} {}", escape::line(&info.message)));
        } else if files.is_empty() {
            screen.note(&self.no_files_note());
        }
    }

    /// The flag that names the workspace as the command line did, with a space before it.
    pub(super) fn flag(&self) -> String {
        self.given.as_ref().map(|path| format!(" --workspace {}", shell_quoted(path))).unwrap_or_default()
    }

    /// The note about a workspace without hook files.
    pub(super) fn no_files_note(&self) -> String {
        let name = self.given.as_deref().map_or_else(|| display_path(&self.root), escape::path);
        format!("note: {name} has no hook files ({HOOK_FILES} or *.yml, or settings of agents)")
    }
}

/// Prints what a daemon does about broken files on standard error, as [`LocatedWorkspace::last_good_remarks`] has it.
pub(super) fn note_last_good(remarks: &[Diagnostic], screen: &Screen) {
    let note = screen.err.paint.yellow("note:");
    for remark in remarks {
        let file = display_path(&remark.file);
        screen.note(&format!("{note} {file}: {}", escape::line(&remark.message)));
    }
}

/// The registry of a loaded workspace, for commands that run nothing.
pub(super) fn snapshot(loaded: LoadedWorkspace) -> Snapshot {
    Snapshot::new(1, loaded.workspace.into(), loaded.hooks)
}

fn root(given: &Path, settings: &Settings) -> Result<PathBuf, CliError> {
    let name = escape::path(given);
    match root_of(given, settings) {
        Ok(root) if root.is_dir() => Ok(root),
        Ok(_) => Err(CliError::with_help(
            format!("the workspace `{name}` is not a directory"),
            "name the directory that contains the directory of hook files",
        )),
        Err(error) => Err(CliError::new(format!(
            "the workspace `{name}` cannot be used: {}",
            crate::model::io_reason(&error)
        ))),
    }
}

fn root_of(given: &Path, settings: &Settings) -> io::Result<PathBuf> {
    config::workspace_place(given, settings, &|name| std::env::var(name).ok()).map(|place| place.root)
}

fn current_dir() -> Result<PathBuf, CliError> {
    let current = std::env::current_dir().and_then(|current| current.canonicalize());
    current.map_err(|error| {
        CliError::with_help(
            format!("the current directory cannot be used: {}", crate::model::io_reason(&error)),
            "name a workspace with `--workspace DIR`",
        )
    })
}

/// The nearest workspace, from a directory upwards.
pub(super) fn nearest_above(directory: &Path, settings: &Settings) -> Option<PathBuf> {
    let environment = |name: &str| std::env::var(name).ok();
    let home = config::home_directory(settings, &environment);
    let trusted = config::trusted_roots(settings, &environment).read();
    config::nearest_of(directory, home.as_deref(), &trusted)
}

fn no_workspace(current: &Path) -> CliError {
    CliError::with_help(
        format!(
            "no workspace: looked for {HOOK_FILES} or *.yml, and for the settings of agents, in {} and every \
             directory above it",
            escape::path(current)
        ),
        "create a first hook here with `hookyard new NAME`, change to a directory with hook files, or name one \
         with `--workspace DIR`",
    )
}
