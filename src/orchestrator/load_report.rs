//! What loading a workspace found: its hooks, its files and their mistakes.

use std::{path::PathBuf, sync::Arc, time::SystemTime};

use crate::{
    config::{DialectSelection, WorkspaceKind},
    model::{Diagnostic, Severity},
    registry::HookChanges,
};

/// What was found when a workspace was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct LoadReport {
    /// The version of the workspace's registry; grows with every load.
    pub version: u64,
    /// A hash over the definitions and scripts of its hooks.
    pub content: Arc<str>,
    /// Its directory: absolute, without symbolic links.
    pub root: PathBuf,
    /// Whether it is a project or a chat; a chat runs no hooks.
    pub kind: WorkspaceKind,
    /// The dialects whose hook files are read.
    pub dialects: DialectSelection,
    /// How many hooks it has.
    pub hooks: usize,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// Files that hooks refer to and that do not exist, or are not in the workspace.
    pub missing_files: Vec<PathBuf>,
    /// The files that decide whether its hooks are trusted.
    pub watched: Vec<PathBuf>,
    /// The directories around it whose hook files apply in it too, if they have any.
    pub around: Vec<PathBuf>,
    /// Errors, warnings and remarks about them.
    pub diagnostics: Vec<Diagnostic>,
    /// Hooks added, removed and changed since the version before.
    pub changes: HookChanges,
    /// The broken files whose former hooks stay in use.
    pub kept: Vec<PathBuf>,
    /// When reading began: every change made before that is in this report.
    pub at: SystemTime,
}

impl LoadReport {
    /// The diagnostics that are errors: each leaves out a hook or a file.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
    }

    /// The diagnostics because of which a hook is not loaded: all errors, and some warnings about the settings files of
    /// agents.
    pub fn skipped(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.skipped)
    }

    /// The diagnostics about hooks that the operator requires and that are not in force.
    pub fn missing_required(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.code == Diagnostic::REQUIRED_MISSING)
    }

    /// The diagnostics about switches in files that tried to disable hooks of a higher level, and could not.
    pub fn powerless_switches(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.code == Diagnostic::CANNOT_DISABLE)
    }
}
