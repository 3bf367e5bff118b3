//! Hooks that have the same name, or do the same.

use std::collections::HashMap;

use super::files::FileBytes;
use crate::model::{Diagnostic, Handler, Hook, Severity};

/// The error about a hook whose name others have, too.
pub(super) fn duplicate_name(hook: &Hook, file: &FileBytes, files: &[String]) -> Diagnostic {
    let name = hook.name.as_str();
    let message = format!("the name `{name}` is used by {} hooks, so none of them is loaded", files.len());
    let mut diagnostic = Diagnostic::of_file(Severity::Error, "duplicate-name", &file.path, message)
        .help(format!("rename all but one; it is in {}", files.join(", ")));
    diagnostic.line = hook.source.line;
    diagnostic.column = column_of(&file.bytes, hook.source.line, name);
    diagnostic.length = name.len();
    diagnostic
}

/// The column of a name in its line, in characters from 1.
fn column_of(bytes: &[u8], line: usize, name: &str) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let found = text.lines().nth(line.saturating_sub(1)).and_then(|line| {
        let value = line.find(':').map_or(0, |colon| colon + 1);
        let at = value + line[value..].find(name)?;
        Some(line[..at].chars().count() + 1)
    });
    found.unwrap_or(1)
}

/// Warnings about commands that hooks of two dialects run for the same event.
pub(super) fn duplicate_commands(hooks: &[Hook]) -> Vec<Diagnostic> {
    let mut warnings = Vec::new();
    let mut seen: HashMap<String, Vec<&Hook>> = HashMap::new();
    for hook in hooks {
        let (Some(line), Some(file)) = (command_line(hook), &hook.source.file) else { continue };
        let known = seen.entry(line).or_default();
        if let Some(twin) = known.iter().find(|other| are_twins(other, hook)) {
            let message = format!("`{}` runs what `{}` runs for the same event", hook.name, twin.name);
            let help = "keep one of the two, or name the `dialects` you want in .openharness/settings.yaml";
            let diagnostic = Diagnostic::of_file(Severity::Warning, "twin", file, message).help(help);
            warnings.push(Diagnostic { line: hook.source.line, column: 1, ..diagnostic });
        }
        known.push(hook);
    }
    warnings
}

/// The shell line of an enabled command hook.
fn command_line(hook: &Hook) -> Option<String> {
    match &hook.handler {
        Handler::Command(command) if hook.enabled => Some(command.line.in_a_shell().into_owned()),
        _ => None,
    }
}

/// Whether two hooks of different dialects run for the same events.
fn are_twins(one: &Hook, other: &Hook) -> bool {
    one.dialect.name() != other.dialect.name()
        && one.execution.host_event == other.execution.host_event
        && one.events.iter().any(|kind| other.events.contains(kind))
}
