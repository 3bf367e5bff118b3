//! Hooks that have the same name.

use super::files::FileBytes;
use crate::model::{Diagnostic, Hook, Severity};

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
