//! What loading a workspace found: its hooks, its files and their mistakes.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::{Path, PathBuf},
    sync::Arc,
    time::SystemTime,
};

use crate::{
    config::{BrokenFilePolicy, DialectSelection, RulesVersion, WorkspaceKind},
    model::{Diagnostic, Severity},
    registry::HookChanges,
};

/// A broken file, and what becomes of the rules that it last had.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeptFile {
    /// The file.
    pub file: PathBuf,
    /// Whether its last good rules stay in force, or their events are blocked.
    pub policy: BrokenFilePolicy,
    /// The content with those rules; none if the file always had some mistake.
    pub version: Option<RulesVersion>,
}

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
    /// The broken files whose last good rules are known: they stay in force, or their events are blocked.
    pub kept: Vec<KeptFile>,
    /// The content of each file with hooks when it had no mistakes last.
    pub versions: BTreeMap<PathBuf, RulesVersion>,
    /// When reading began: every change made before that is in this report.
    pub at: SystemTime,
}

impl LoadReport {
    /// The files that are broken and have no last good rules: their hooks are not loaded.
    pub fn lost(&self) -> impl Iterator<Item = &Path> {
        let broken = self.diagnostics.iter().filter(|diagnostic| diagnostic.is_of_broken_file());
        let files: BTreeSet<&Path> = broken.map(|diagnostic| diagnostic.file.as_path()).collect();
        files.into_iter().filter(|file| !self.kept.iter().any(|kept| kept.file.starts_with(file)))
    }

    /// The directory of the workspace, or that of its hook files, if it cannot be read and none of its last good rules are in
    /// force.
    pub(super) fn unreadable_directory(&self) -> Option<PathBuf> {
        let own = self.root.join(".openharness");
        let directories = [self.root.clone(), own.clone(), own.join("hooks")];
        let is_unread = |directory: &PathBuf| {
            self.errors().any(|error| {
                error.file == *directory && error.message.starts_with("the directory cannot be read")
            })
        };
        let unread = directories.into_iter().find(is_unread)?;
        (!self.kept.iter().any(|kept| kept.file.starts_with(&unread))).then_some(unread)
    }

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

    /// The error because of which nobody knows all guards of the workspace: the record of trust cannot be used.
    #[cfg(feature = "daemon")]
    pub(super) fn unknown_trust(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|diagnostic| diagnostic.code == Diagnostic::TRUST_RECORD)
    }

    /// The error about a link in the place of a workspace with trusted hooks.
    #[cfg(feature = "daemon")]
    pub(crate) fn replaced(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|diagnostic| diagnostic.code == Diagnostic::REPLACED)
    }

    /// The remark that the files could not be read again, and the hooks of an earlier load stay.
    pub(super) fn shortage(&self) -> Option<&Diagnostic> {
        self.diagnostics.iter().find(|diagnostic| diagnostic.code == Diagnostic::SHORTAGE)
    }

    /// The report of a load that could not read every file: what the load before it found stays.
    pub(super) fn kept_in_shortage(&self) -> Self {
        let mut kept = Self { changes: HookChanges::default(), ..self.clone() };
        if kept.shortage().is_none() {
            let message = "its files cannot all be read again, for want of file descriptors or memory: its hooks stay \
                           as they are, and it is tried again each second";
            let help = "raise the limit of open files (`LimitNOFILE=` of a service, `ulimit -n` of a shell)";
            let remark = Diagnostic::of_file(Severity::Warning, Diagnostic::SHORTAGE, &kept.root, message);
            kept.diagnostics.push(remark.help(help));
        }
        kept
    }

    /// The diagnostics about switches in files that tried to disable hooks of a higher level, and could not.
    pub fn powerless_switches(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.code == Diagnostic::CANNOT_DISABLE)
    }
}
