//! Reads one event from a file or standard input, and reports what is wrong with one that is invalid.

use std::{
    io::{self, IsTerminal, Read},
    path::{Path, PathBuf},
};

use super::{diagnostics, escape, exit::CliError, paths::open_input, screen::Screen, units::byte_size};
use crate::{
    dialect,
    model::{Diagnostic, DialectName, EventError, Json, Severity},
};

/// The file name that means standard input.
const STANDARD_INPUT: &str = "-";

/// Advice for a canonical event that is read in another dialect.
pub(super) const CANONICAL_HINT: &str = "this looks like a canonical event; leave out `--dialect`";

/// The bytes of an event, and where they are from.
#[derive(Debug)]
pub(super) struct EventInput {
    pub(super) bytes: Vec<u8>,
    name: PathBuf,
}

impl EventInput {
    /// Reads at most one byte more than `limit`, by which a larger event is recognised.
    ///
    /// Returns an error if the file cannot be read.
    pub(super) fn read(path: &Path, limit: usize, screen: &Screen) -> Result<Self, CliError> {
        let is_standard = path == Path::new(STANDARD_INPUT);
        let name = if is_standard { PathBuf::from("standard input") } else { path.to_owned() };
        let mut bytes = Vec::new();
        let most = limit as u64 + 1;
        let read = if is_standard {
            if io::stdin().is_terminal() {
                screen.note("note: type the event as JSON and end it with Ctrl-D");
            }
            io::stdin().lock().take(most).read_to_end(&mut bytes)
        } else {
            open_input(path).and_then(|file| file.take(most).read_to_end(&mut bytes))
        };
        match read {
            Ok(_) => Ok(Self { bytes, name }),
            Err(error) => Err(unreadable(&name, &error)),
        }
    }

    /// Reports why it is no event: with the line where the JSON is invalid, else by the field.
    pub(super) fn report_error(&self, error: &EventError, dialect: DialectName, screen: &Screen) {
        let name = escape::path(&self.name);
        match error {
            _ if self.bytes.iter().all(u8::is_ascii_whitespace) => {
                screen.error(&format!("{name} is empty"), Some("an event is a JSON object"));
            }
            EventError::Json(json) if json.line > 0 => {
                let text = String::from_utf8_lossy(&self.bytes);
                let mut diagnostic =
                    Diagnostic::of_file(Severity::Error, "invalid-json", &self.name, json.message.clone());
                diagnostic.line = json.line;
                diagnostic.column = char_column(&text, json.line, json.column);
                let paint = screen.err.paint;
                screen.note(&diagnostics::render_in(&diagnostic, Some(&text), paint, screen.width()));
                screen.error(&format!("{name} has no event: it is not valid JSON"), None);
            }
            EventError::TooLarge { limit, .. } => {
                let help = "raise `limits.payload` in the settings";
                screen.error(&format!("{name} is longer than the {} allowed", byte_size(*limit)), Some(help));
            }
            _ => {
                let canonical = is_canonical(dialect, &self.bytes).then(|| CANONICAL_HINT.to_owned());
                let help = canonical.or_else(|| other_dialect_hint(dialect, &self.bytes));
                screen.error(&format!("{name}: {error}"), help.as_deref());
            }
        }
    }
}

fn unreadable(name: &Path, error: &io::Error) -> CliError {
    CliError::with_help(
        format!("the event `{}` cannot be read: {}", escape::path(name), crate::model::io_reason(error)),
        "name a file with one event as JSON, or `-` for standard input",
    )
}

/// Whether bytes that are invalid in this dialect look like a canonical event: only those have the key `event`.
pub(super) fn is_canonical(dialect: DialectName, bytes: &[u8]) -> bool {
    let text = str::from_utf8(bytes).ok();
    let json = text.filter(|_| dialect != DialectName::Canonical).and_then(|text| Json::parse(text).ok());
    json.and_then(|json| json.fields().map(|fields| fields.get("event").is_some())).unwrap_or(false)
}

/// Advice for an event that is valid in another dialect.
pub(super) fn other_dialect_hint(dialect: DialectName, bytes: &[u8]) -> Option<String> {
    let reads =
        |other: &&DialectName| **other != dialect && dialect::named(**other).read_event(bytes).is_ok();
    let other = DialectName::ALL.iter().find(reads)?;
    Some(format!("this looks like an event of {other}; add `--dialect {other}`"))
}

/// The column in characters of a column in bytes. Both count from 1.
fn char_column(text: &str, line: usize, column: usize) -> usize {
    let line = text.split('\n').nth(line.saturating_sub(1)).unwrap_or_default();
    let end = column.saturating_sub(1).min(line.len());
    String::from_utf8_lossy(&line.as_bytes()[..end]).chars().count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted_in_characters() {
        assert_eq!(char_column("a\nüü}", 2, 5), 3);
        assert_eq!(char_column("abc", 1, 3), 3);
        assert_eq!(char_column("abc", 1, 99), 4);
        assert_eq!(char_column("abc", 7, 2), 1);
    }
}
