//! Finds the workspace a command works with, and loads it. Owns what is said when there is no workspace; refuses
//! to guess one.

use std::path::{Path, PathBuf};

use super::{
    escape,
    exit::CliError,
    flags::WorkspaceFlags,
    paths::{display_path, io_reason, shell_quoted},
    screen::Screen,
    settings::{settings_of, tell},
    units::plural,
};
use crate::{
    config::{self, HOOK_FILES, LoadedWorkspace, Settings},
    model::{Diagnostic, Severity},
    registry::Snapshot,
};

/// A workspace that is there, and the settings for it.
#[derive(Debug)]
pub(super) struct LocatedWorkspace {
    /// Its directory, absolute and without symbolic links.
    pub(super) root: PathBuf,
    /// The settings; the defaults if they have errors.
    pub(super) settings: Settings,
    /// What is wrong with the settings.
    pub(super) diagnostics: Vec<Diagnostic>,
    /// Its directory as it was given on the command line, to be repeated in advice.
    given: Option<PathBuf>,
}

/// How a workspace came to be the one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkspaceOrigin {
    /// The command line names it.
    Given,
    /// It is the nearest one.
    Nearest,
    /// It is the current directory, because there was none.
    Here,
}

impl LocatedWorkspace {
    /// Finds the workspace and reads the settings.
    ///
    /// Returns an error if there is no workspace, or no settings file where one is named.
    pub(super) fn find(flags: &WorkspaceFlags) -> Result<Self, CliError> {
        let (settings, diagnostics) = settings_of(&flags.settings)?;
        let root = root(flags.workspace.as_deref(), &settings)?;
        Ok(Self { root, settings, diagnostics, given: flags.workspace.clone() })
    }

    /// The same for a command that can do with a settings file alone: where one is named, and no workspace is named or
    /// near, what is wrong with the settings.
    pub(super) fn find_or_settings(
        flags: &WorkspaceFlags,
    ) -> Result<Result<Self, Vec<Diagnostic>>, CliError> {
        let alone = flags.settings.config.is_some() && flags.workspace.is_none();
        match Self::find(flags) {
            Err(_) if alone => settings_of(&flags.settings).map(|(_, diagnostics)| Err(diagnostics)),
            found => found.map(Ok),
        }
    }

    /// The same for a command that may make a workspace: where there is none, it is the current directory. The
    /// settings must be sound.
    pub(super) fn find_or_current_dir(
        flags: &WorkspaceFlags,
        screen: &Screen,
    ) -> Result<(Self, WorkspaceOrigin), CliError> {
        let (settings, diagnostics) = settings_of(&flags.settings)?;
        let (root, chosen) = if let Some(given) = &flags.workspace {
            (root(Some(given), &settings)?, WorkspaceOrigin::Given)
        } else {
            let here = here()?;
            let nearest = above(&here, &settings).map(|nearest| (nearest, WorkspaceOrigin::Nearest));
            nearest.unwrap_or((here, WorkspaceOrigin::Here))
        };
        let found = Self { root, settings, diagnostics, given: flags.workspace.clone() };
        found.sound(screen).map(|found| (found, chosen))
    }

    /// The same, where the command cannot work with settings that have errors.
    ///
    /// Returns an error after the mistakes have been shown.
    pub(super) fn find_valid(flags: &WorkspaceFlags, screen: &Screen) -> Result<Self, CliError> {
        Self::find(flags)?.sound(screen)
    }

    fn sound(self, screen: &Screen) -> Result<Self, CliError> {
        tell(&self.diagnostics, screen).map(|()| self)
    }

    /// Loads its hooks.
    pub(super) fn load(&self) -> LoadedWorkspace {
        config::load_workspace(&self.root, None, &self.settings, &|name| std::env::var(name).ok())
    }

    /// Says on standard error that not every hook was loaded, or that there is none.
    pub(super) fn note_problems(&self, loaded: &[Diagnostic], files: &[PathBuf], screen: &Screen) {
        let errors = loaded.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count();
        if errors > 0 {
            let (errors, flag) = (plural(errors, "error"), self.flag());
            let paint = screen.err.paint;
            let note =
                format!("{errors} in hook files; those hooks are left out; run `hookyard check{flag}`");
            screen.note(&format!("{} {note}", paint.yellow("note:")));
        }
        if let Some(info) = loaded.iter().find(|diagnostic| diagnostic.severity == Severity::Info) {
            screen.note(&format!("{} {}", screen.err.paint.yellow("note:"), escape::line(&info.message)));
        } else if files.is_empty() {
            screen.note(&self.no_files());
        }
    }

    /// The flag that names it as the command line did, to be put behind a command.
    pub(super) fn flag(&self) -> String {
        self.given.as_ref().map(|path| format!(" --workspace {}", shell_quoted(path))).unwrap_or_default()
    }

    /// What to say about a workspace without hook files.
    pub(super) fn no_files(&self) -> String {
        let name = self.given.as_deref().map_or_else(|| display_path(&self.root), escape::path);
        format!("note: {name} has no hook files ({HOOK_FILES} or *.yml, or settings of agents)")
    }
}

/// The registry of a loaded workspace, for commands that run nothing.
pub(super) fn snapshot(loaded: LoadedWorkspace) -> Snapshot {
    Snapshot::new(1, loaded.workspace.into(), loaded.hooks)
}

fn root(given: Option<&Path>, settings: &Settings) -> Result<PathBuf, CliError> {
    let Some(given) = given else { return nearest(settings) };
    let name = escape::path(given);
    match given.canonicalize() {
        Ok(root) if root.is_dir() => Ok(root),
        Ok(_) => Err(CliError::with_help(
            format!("the workspace `{name}` is not a directory"),
            "give the directory that holds the hook files' directory",
        )),
        Err(error) => {
            Err(CliError::new(format!("the workspace `{name}` cannot be used: {}", io_reason(&error))))
        }
    }
}

fn here() -> Result<PathBuf, CliError> {
    let here = std::env::current_dir().and_then(|here| here.canonicalize());
    here.map_err(|error| {
        CliError::with_help(
            format!("the current directory cannot be used: {}", io_reason(&error)),
            "give a workspace with `--workspace DIR`",
        )
    })
}

/// The nearest workspace, from a directory upwards.
fn above(here: &Path, settings: &Settings) -> Option<PathBuf> {
    let home = config::home_directory(settings, &|name| std::env::var(name).ok());
    config::nearest_workspace(here, home.as_deref())
}

fn nearest(settings: &Settings) -> Result<PathBuf, CliError> {
    let here = here()?;
    above(&here, settings).ok_or_else(|| {
        CliError::with_help(
            format!(
                "no workspace: looked for {HOOK_FILES} or *.yml, and for the settings of agents, in {} and every \
                 directory above it",
                escape::path(&here)
            ),
            "change to a directory with hook files, or give one with `--workspace DIR`",
        )
    })
}
