//! What takes the verdict of a guard away: its program is not there, or a file of the workspace switches it off. A guard
//! is a hook that denies or asks when it fails.

use std::path::Path;

use super::trust::trust_command;
use crate::model::{Diagnostic, FailurePolicy, Hook, Severity};

/// What to do about a guard that is switched off.
const SWITCHED_OFF: &str = "remove the switch, or the hook, or its `on_error` and `on_timeout`";

/// Makes errors of warnings about programs and scripts of guards that are not there. The hooks stay loaded, so that
/// their policies decide.
pub(super) fn escalate(diagnostics: &mut [Diagnostic], hooks: &[Hook]) {
    let of_commands = |known: &&mut Diagnostic| {
        known.severity == Severity::Warning && ["program", "script"].contains(&known.code)
    };
    for diagnostic in diagnostics.iter_mut().filter(of_commands) {
        let of_file =
            |hook: &&Hook| hook.source.file.as_deref() == Some(diagnostic.file.as_path()) && is_guard(hook);
        let Some(guard) = hooks.iter().find(of_file) else { continue };
        diagnostic.message =
            format!("{}; the guard `{}` cannot check anything", diagnostic.message, guard.name);
        diagnostic.severity = Severity::Error;
        diagnostic.code = Diagnostic::BROKEN_GUARD;
        diagnostic.skipped = true;
    }
}

/// Reports guards that a switch in some file disables.
pub(super) fn silenced(hooks: &[Hook]) -> Vec<Diagnostic> {
    let off = hooks.iter().filter(|hook| is_guard(hook)).filter_map(|hook| {
        let by = hook.execution.switches.disabled_by.as_ref()?;
        let message = format!("the guard `{}` is switched off by {by}", hook.name);
        let file = hook.source.file.as_ref()?;
        let error = Diagnostic::of_file(Severity::Error, Diagnostic::SILENT_GUARD, file, message);
        Some(Diagnostic { line: hook.source.line, column: 1, ..error.help(SWITCHED_OFF) })
    });
    off.collect()
}

/// Reports guards among the hooks of files that are not read, because their workspace says that it is a chat.
pub(super) fn unread(hooks: &[Hook], settings: &Path) -> Vec<Diagnostic> {
    let guards = hooks.iter().filter(|hook| hook.enabled && is_guard(hook)).map(|hook| {
        let message = format!("the guard `{}` is not loaded: the workspace is of kind `chat`", hook.name);
        Diagnostic::of_file(Severity::Error, Diagnostic::SILENT_GUARD, settings, message).help(SWITCHED_OFF)
    });
    guards.collect()
}

/// Reports hook files with mistakes among those that are not read, because their workspace says that it is a chat: each may
/// have a guard.
pub(super) fn unreadable(diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let broken = diagnostics.into_iter().filter(Diagnostic::is_of_broken_file).map(|found| {
        let message =
            format!("not loaded, as the workspace is of kind `chat`, and broken: {}", found.message);
        Diagnostic { code: Diagnostic::SILENT_GUARD, message, ..found }
    });
    broken.collect()
}

/// The error about a link in the place of a workspace with trusted hooks.
pub(super) fn replaced(root: &Path, link: &Path) -> Diagnostic {
    let target = link.read_link().unwrap_or_default();
    let message = format!(
        "it has trusted hooks, and the link {} to {} is in its place; none of its files is read",
        link.display(),
        target.display()
    );
    let command = trust_command(root, " --revoke");
    Diagnostic::of_file(Severity::Error, Diagnostic::REPLACED, root, message)
        .help(format!("put the directory back; if it was moved on purpose, run {command}"))
}

/// Whether a hook denies or asks when it fails.
pub(crate) fn is_guard(hook: &Hook) -> bool {
    hook.execution.required
        || [hook.on_error, hook.on_timeout].iter().any(|policy| *policy != FailurePolicy::Ignore)
}
