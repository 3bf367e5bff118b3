//! Reads a recording: one event per line. A line that cannot be read is reported and skipped.

use std::{
    borrow::Cow,
    collections::HashMap,
    io::{self, BufRead, BufReader},
    path::{Path, PathBuf},
};

use super::super::{
    escape,
    event_input::{CANONICAL_HINT, is_canonical, other_dialect_hint},
    exit::CliError,
    paths::open_input,
    units::byte_size,
};
use crate::{
    dialect,
    model::{Dialect, DialectName, Event, EventError, RunId},
};

/// Advice for an event over several lines.
const ONE_A_LINE: &str = "write one event per line; `jq -c .` does that";

/// Some editors put it before the first line of a text.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// An event and its line.
#[derive(Debug)]
pub(in crate::cli) struct RecordedEvent {
    /// From 1.
    pub(in crate::cli) line: usize,
    pub(in crate::cli) event: Event,
    /// As it is written.
    #[cfg(feature = "daemon")]
    pub(in crate::cli) json: Box<[u8]>,
}

impl RecordedEvent {
    #[cfg_attr(not(feature = "daemon"), expect(unused_variables, reason = "only `bench` sends it on"))]
    fn new(line: usize, event: Event, json: &[u8]) -> Self {
        Self {
            line,
            event,
            #[cfg(feature = "daemon")]
            json: json.into(),
        }
    }
}

/// A line that cannot be read.
#[derive(Debug)]
pub(in crate::cli) struct UnreadableLine {
    /// From 1.
    pub(in crate::cli) line: usize,
    pub(in crate::cli) message: String,
    /// What to do about it.
    pub(in crate::cli) help: Option<Cow<'static, str>>,
}

/// A recorded session.
#[derive(Debug)]
pub(in crate::cli) struct Recording {
    /// The file's name.
    pub(in crate::cli) name: PathBuf,
    /// The events of each run in the order of the file; runs in the order of their first event.
    pub(in crate::cli) runs: Vec<Vec<RecordedEvent>>,
    /// How many events there are.
    pub(in crate::cli) events: u64,
    pub(in crate::cli) unreadable: Vec<UnreadableLine>,
}

impl Recording {
    /// Reads a file, or standard input for `-`.
    ///
    /// Returns an error if the file cannot be read.
    pub(in crate::cli) fn read(path: &Path, dialect: DialectName, limit: usize) -> Result<Self, CliError> {
        let is_standard = path == Path::new("-");
        let name = if is_standard { PathBuf::from("standard input") } else { path.to_owned() };
        let read = if is_standard {
            Self::collect(io::stdin().lock(), dialect, limit)
        } else {
            open_input(path).and_then(|file| Self::collect(BufReader::new(file), dialect, limit))
        };
        match read {
            Ok(recording) => Ok(Self { name, ..recording }),
            Err(error) => {
                let name = escape::path(&name);
                Err(CliError::new(format!(
                    "the recording `{name}` cannot be read: {}",
                    crate::model::io_reason(&error)
                )))
            }
        }
    }

    fn collect(mut input: impl BufRead, dialect: DialectName, limit: usize) -> io::Result<Self> {
        let dialect = dialect::named(dialect);
        let mut recording =
            Self { name: PathBuf::new(), runs: Vec::new(), events: 0, unreadable: Vec::new() };
        let mut places: HashMap<RunId, usize> = HashMap::new();
        let mut line = Vec::new();
        let mut number = 0;
        while let Some(length) = next_line(&mut input, &mut line, limit)? {
            number += 1;
            let text = line.strip_prefix(BYTE_ORDER_MARK).filter(|_| number == 1).unwrap_or(&line);
            if length <= limit && text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let end = fatal_line_error(text, length, limit);
            if let Some(message) = end {
                recording.unreadable.push(UnreadableLine { line: number, message, help: None });
                break;
            }
            match event(dialect, text) {
                Ok(event) => recording.add(RecordedEvent::new(number, event, text), &mut places),
                Err(message) => {
                    let help = (number == 1).then(|| advice(dialect, text)).flatten();
                    recording.unreadable.push(UnreadableLine { line: number, message, help });
                }
            }
        }
        Ok(recording)
    }

    fn add(&mut self, recorded: RecordedEvent, places: &mut HashMap<RunId, usize>) {
        let place = *places.entry(recorded.event.run_id.clone()).or_insert_with(|| {
            self.runs.push(Vec::new());
            self.runs.len() - 1
        });
        self.runs[place].push(recorded);
        self.events += 1;
    }
}

/// Why reading stops at this line: after binary data or a line without an end, nothing useful follows.
fn fatal_line_error(text: &[u8], length: usize, limit: usize) -> Option<String> {
    if text.contains(&0) {
        return Some("this is not a text file".to_owned());
    }
    let is_too_long = length > limit;
    is_too_long
        .then(|| format!("the line is longer than the {} allowed; reading stops here", byte_size(limit)))
}

/// What to do about the first line.
fn advice(dialect: &dyn Dialect, text: &[u8]) -> Option<Cow<'static, str>> {
    if is_laid_out(text) {
        return Some(ONE_A_LINE.into());
    }
    if is_canonical(dialect.name(), text) {
        return Some(CANONICAL_HINT.into());
    }
    other_dialect_hint(dialect.name(), text).map(Cow::from)
}

/// Whether a line looks like the first of indented JSON.
fn is_laid_out(text: &[u8]) -> bool {
    matches!(text.trim_ascii(), b"{" | b"[" | b"[{")
}

fn event(dialect: &dyn Dialect, text: &[u8]) -> Result<Event, String> {
    dialect.read_event(text).map_err(|error| match error {
        // The JSON's own line is always 1; the line of the recording is printed elsewhere.
        EventError::Json(json) => format!("not valid JSON: {} at column {}", json.message, json.column),
        error => error.to_string(),
    })
}

/// Reads the next line without its line end, and returns its size in bytes; `None` at the end. A line larger than
/// `limit` is read no further: it may have no end.
fn next_line(input: &mut impl BufRead, line: &mut Vec<u8>, limit: usize) -> io::Result<Option<usize>> {
    line.clear();
    let mut size = 0;
    let mut any = false;
    loop {
        let available = match input.fill_buf() {
            Ok(available) => available,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        if available.is_empty() {
            return Ok(any.then_some(size));
        }
        any = true;
        let end = available.iter().position(|byte| *byte == b'\n');
        let part = &available[..end.unwrap_or(available.len())];
        size += part.len();
        line.extend_from_slice(&part[..part.len().min(limit.saturating_sub(line.len()))]);
        let used = part.len() + usize::from(end.is_some());
        input.consume(used);
        if end.is_some() || size > limit {
            return Ok(Some(size));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collect(text: &[u8], limit: usize) -> Recording {
        Recording::collect(BufReader::with_capacity(7, text), DialectName::Canonical, limit).unwrap()
    }

    fn line(run: &str) -> String {
        format!(r#"{{"event":"run_failed","session_id":"s","run_id":"{run}"}}"#)
    }

    #[test]
    fn a_broken_line_costs_itself_only() {
        let (a, b) = (line("a"), line("b"));
        let text = format!(
            "\u{feff}{a}\r\n\n  \n{{\"event\":\n{b}\n{a}\n\u{feff}{a}\n[]\n{b}\n{}\n{b}",
            "x".repeat(99)
        );
        let recording = collect(text.as_bytes(), 80);
        let lines = |run: &Vec<RecordedEvent>| run.iter().map(|recorded| recorded.line).collect::<Vec<_>>();
        assert_eq!(recording.runs.iter().map(lines).collect::<Vec<_>>(), [vec![1, 6], vec![5, 9]]);
        assert_eq!(recording.events, 4);
        let unreadable: Vec<_> = recording.unreadable.iter().map(|b| (b.line, b.message.as_str())).collect();
        assert_eq!(
            unreadable,
            [
                (4, "not valid JSON: EOF while parsing a value at column 9"),
                (7, "not valid JSON: expected value at column 1"),
                (8, "the event must be a JSON object, not an array"),
                (10, "the line is longer than the 80 bytes allowed; reading stops here"),
            ]
        );
    }

    #[test]
    fn a_recording_of_another_dialect_says_which() {
        let event = r#"{"hook_event_name":"PreToolUse","session_id":"s","transcript_path":"/t","cwd":"/","tool_name":"Bash","tool_input":{}}"#;
        let recording = collect(format!("{event}\n{event}\n").as_bytes(), 999);
        let helps: Vec<_> = recording.unreadable.iter().map(|line| line.help.as_deref()).collect();
        assert_eq!(helps, [Some("this looks like an event of claude; add `--dialect claude`"), None]);
    }

    #[test]
    fn an_empty_recording_has_no_events() {
        assert_eq!(collect(b"", 9).events, 0);
        assert_eq!(collect(b"\n\n", 9).events, 0);
        let invalid = collect(b"\xff\n", 9);
        assert_eq!(invalid.unreadable[0].message, "the event is not UTF-8: invalid byte at offset 0");
    }
}
