//! The settings file of a workspace, and the switches of all files: each reaches the hooks of its own level and of lower
//! ones.

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    files::FileBytes,
    workspace_options::{DialectSelection, WorkspaceKind},
};
use crate::{
    dialect::{Document, KeyPosition},
    model::{Diagnostic, DialectName, FailurePolicy, Hook, HookName, Level, Scope, Severity},
};

/// Keys of the file that concern the agent and not its hooks.
const OF_AGENT: &[&str] =
    &["default_agent", "runtime", "models", "skill_dirs", "engine", "imports", "system_prompt"];

/// How many hooks a diagnostic names.
const MOST_NAMED: usize = 3;

/// The hooks that every level may switch off, by the operator's settings.
pub(super) type SwitchExceptions = BTreeSet<String>;

/// A key of a file that switches hooks off, and what became of it.
#[derive(Debug)]
pub(super) struct Switch {
    level: Level,
    /// The key, with its value where that says more.
    key: String,
    file: PathBuf,
    position: KeyPosition,
    /// The hooks that it switched off, and whether one of them is a guard.
    off: usize,
    off_guard: bool,
    /// The hooks that it would have switched off, had it the authority.
    kept: Vec<HookName>,
}

impl Switch {
    pub(super) fn new(level: Level, key: impl Into<String>, file: &Path, position: KeyPosition) -> Self {
        let file = file.to_owned();
        Self { level, key: key.into(), file, position, off: 0, off_guard: false, kept: Vec::new() }
    }

    /// Whether it has the authority to switch a hook off.
    pub(super) fn reaches(&self, hook: &Hook, exceptions: &SwitchExceptions) -> bool {
        let is_exception = hook.source.bundle.is_none() && exceptions.contains(hook.name.as_str());
        hook.level() >= self.level || is_exception
    }

    /// Switches a hook off if it has the authority.
    pub(super) fn apply(&mut self, hook: &mut Hook, exceptions: &SwitchExceptions) {
        if self.reaches(hook, exceptions) { self.disable(hook) } else { self.keep(hook) }
    }

    /// Switches a hook off.
    pub(super) fn disable(&mut self, hook: &mut Hook) {
        if hook.enabled {
            self.off_guard |= hook.on_error == FailurePolicy::Deny;
            hook.execution.switches.disabled_by = Some(self.place());
        }
        self.off += 1;
        hook.enabled = false;
    }

    /// Notes that a hook stays in spite of the switch.
    pub(super) fn keep(&mut self, hook: &mut Hook) {
        if hook.enabled {
            hook.execution.switches.without_effect.push(self.place());
            self.kept.push(hook.name.clone());
        }
    }

    /// The key and where it stands.
    fn place(&self) -> Arc<str> {
        let file = self.file.display();
        match self.position.line {
            0 => format!("`{}` in {file}", self.key).into(),
            line => format!("`{}` in {file}:{line}", self.key).into(),
        }
    }

    /// What it did, about hooks of `of`: a warning if it left out a guard.
    pub(super) fn effect(&self, of: &str) -> Option<Diagnostic> {
        let message = format!("`{}` switches off {} of {of}", self.key, counted(self.off));
        let severity = if self.off_guard { Severity::Warning } else { Severity::Info };
        let diagnostic = Diagnostic::of_file(severity, "switched-off", &self.file, message);
        let guarded = "a hook with `on_error: deny` is among them; `hookyard list` shows which";
        let diagnostic = if self.off_guard { diagnostic.help(guarded) } else { diagnostic };
        (self.off > 0).then_some(diagnostic)
    }

    /// What it could not do.
    pub(super) fn failure(&self) -> Option<Diagnostic> {
        if self.kept.is_empty() {
            return None;
        }
        let named: Vec<_> = self.kept.iter().take(MOST_NAMED).map(|name| format!("`{name}`")).collect();
        let more = self.kept.len().saturating_sub(MOST_NAMED);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let hooks = counted(self.kept.len());
        let message =
            format!("`{}` cannot switch off {hooks} of a higher level: {}{more}", self.key, named.join(", "));
        let help = "a level switches off its own hooks and those of lower levels; the operator may allow more \
                    with `levels.allow_disable`";
        let diagnostic =
            Diagnostic::of_file(Severity::Warning, Diagnostic::CANNOT_DISABLE, &self.file, message);
        let KeyPosition { line, column } = self.position;
        let length = self.key.chars().count();
        Some(Diagnostic { line, column, length, ..diagnostic }.help(help))
    }
}

fn counted(hooks: usize) -> String {
    if hooks == 1 { "1 hook".to_owned() } else { format!("{hooks} hooks") }
}

/// What a workspace's own settings file says, or the defaults.
#[derive(Debug, Default)]
pub(super) struct OwnSettings {
    pub(super) kind: WorkspaceKind,
    pub(super) dialects: DialectSelection,
    kind_at: KeyPosition,
    dialects_at: KeyPosition,
}

/// The values of one settings file; those that are wrong or not there are none.
#[derive(Default)]
struct WrittenSettings {
    kind: Option<(WorkspaceKind, KeyPosition)>,
    dialects: Option<(DialectSelection, KeyPosition)>,
}

impl OwnSettings {
    /// What was in force before a reload.
    pub(super) fn former((kind, dialects): &(WorkspaceKind, DialectSelection)) -> Self {
        Self { kind: *kind, dialects: dialects.clone(), ..Self::default() }
    }

    /// Takes what the settings file of a workspace says, with what is wrong with it. If it has an error, the former settings
    /// stay. When there are none, the valid keys apply: the hooks may be guards, so the workspace must not lose them.
    pub(super) fn read(
        file: Result<FileBytes, Box<Diagnostic>>,
        former: Option<&(WorkspaceKind, DialectSelection)>,
    ) -> (Self, Vec<Diagnostic>) {
        let before = || former.map(Self::former).unwrap_or_default();
        match file {
            Ok(file) => {
                let (written, diagnostics) = WrittenSettings::read(&file);
                let is_sound = diagnostics.iter().all(|diagnostic| diagnostic.severity != Severity::Error);
                let found = if is_sound || former.is_none() { written.or_defaults() } else { before() };
                (found, diagnostics)
            }
            Err(diagnostic) => (before(), vec![*diagnostic]),
        }
    }

    /// Switches off what the file says, and reports what it did and what it could not do.
    pub(super) fn apply<'h>(
        &self,
        kind: WorkspaceKind,
        file: &Path,
        hooks: impl Iterator<Item = &'h mut Hook>,
        exceptions: &SwitchExceptions,
    ) -> Vec<Diagnostic> {
        match kind {
            WorkspaceKind::Chat => self.silence(file, hooks, exceptions).into_iter().collect(),
            WorkspaceKind::Project => self.select(file, hooks, exceptions),
        }
    }

    /// Switches off the hooks of dialects that the file does not select, and reports what it switched off and what it
    /// could not.
    fn select<'h>(
        &self,
        file: &Path,
        hooks: impl Iterator<Item = &'h mut Hook>,
        exceptions: &SwitchExceptions,
    ) -> Vec<Diagnostic> {
        let mut switch = Switch::new(Scope::Project.level(0), "dialects", file, self.dialects_at);
        let mut left_out: Vec<DialectName> = Vec::new();
        for hook in hooks.filter(|hook| !self.dialects.has(hook.dialect.name())) {
            if switch.reaches(hook, exceptions) && !left_out.contains(&hook.dialect.name()) {
                left_out.push(hook.dialect.name());
            }
            switch.apply(hook, exceptions);
        }
        let names: Vec<_> = left_out.iter().map(|name| name.as_str()).collect();
        [switch.effect(&names.join(" and ")), switch.failure()].into_iter().flatten().collect()
    }

    /// Switches off the hooks of higher levels in a workspace of kind `chat`, as far as the operator allows it, and
    /// reports what it could not switch off.
    fn silence<'h>(
        &self,
        file: &Path,
        hooks: impl Iterator<Item = &'h mut Hook>,
        exceptions: &SwitchExceptions,
    ) -> Option<Diagnostic> {
        let mut switch = Switch::new(Scope::Project.level(0), "kind: chat", file, self.kind_at);
        hooks.for_each(|hook| switch.apply(hook, exceptions));
        switch.failure()
    }
}

impl WrittenSettings {
    fn read(file: &FileBytes) -> (Self, Vec<Diagnostic>) {
        let document = match Document::parse(&file.bytes, &file.path) {
            Ok(document) => document,
            Err(diagnostic) if diagnostic.code == "empty-document" => return (Self::default(), Vec::new()),
            Err(diagnostic) => return (Self::default(), vec![*diagnostic]),
        };
        let mut written = Self::default();
        if let Some(root) = document.root() {
            root.allow_only(&[&["kind", "dialects"], OF_AGENT].concat());
            let kind = root.get("kind");
            written.kind =
                kind.and_then(|value| Some((WorkspaceKind::read(&value)?, KeyPosition::of_key(&value))));
            let dialects = root.get("dialects");
            written.dialects = dialects
                .and_then(|value| Some((DialectSelection::read(&value)?, KeyPosition::of_key(&value))));
        }
        (written, document.into_diagnostics())
    }

    fn or_defaults(self) -> OwnSettings {
        let (kind, kind_at) = self.kind.unwrap_or_default();
        let (dialects, dialects_at) = self.dialects.unwrap_or_default();
        OwnSettings { kind, dialects, kind_at, dialects_at }
    }
}
