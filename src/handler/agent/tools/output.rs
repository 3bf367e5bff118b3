//! The output of a tool for a model: lines, then notes about what is missing, within a limit of bytes; file names and
//! texts on one line; and the message about a path that is not opened.

use std::{fmt::Write, os::unix::ffi::OsStrExt, path::Path};

use crate::root_dir::OpenError;

/// The longest output, in bytes.
pub(super) const MAX_BYTES: usize = 32 << 10;

/// The part of it that is reserved for notes: there are few, each of one short line.
const NOTES_BYTES: usize = 1 << 10;

/// There is no room for the line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OutputFull;

/// Why a path is not opened, with what to name instead.
pub(super) fn refusal(error: &OpenError) -> String {
    match error {
        OpenError::NoPath => {
            "is not a path; name a file or directory relative to the workspace, or `.`".to_owned()
        }
        OpenError::Outside => {
            "is outside the workspace; paths are relative to the workspace's directory and stay below it"
                .to_owned()
        }
        OpenError::Special => "is neither a regular file nor a directory".to_owned(),
        OpenError::Failed(error) => format!("cannot be opened: {}", error.kind()),
        OpenError::Link | OpenError::Missing | OpenError::NoDirectory => error.to_string(),
    }
}

#[derive(Debug, Default)]
pub(super) struct ToolOutput {
    lines: String,
    notes: String,
}

impl ToolOutput {
    /// How many bytes are left for the text of one more line.
    pub(super) fn room(&self) -> usize {
        (MAX_BYTES - NOTES_BYTES).saturating_sub(self.lines.len() + 1)
    }

    /// Adds a line.
    ///
    /// Returns an error without adding it if there is no room.
    pub(super) fn line(&mut self, line: &str) -> Result<(), OutputFull> {
        if line.len() > self.room() {
            return Err(OutputFull);
        }
        self.lines.push_str(line);
        self.lines.push('\n');
        Ok(())
    }

    /// Adds a note, if there is room for it.
    pub(super) fn note(&mut self, note: &str) {
        if self.notes.len() + note.len() + "\n[]".len() <= NOTES_BYTES {
            self.notes.extend(["\n[", note, "]"]);
        }
    }

    /// The whole text, with `nothing` in place of the lines if there are none.
    pub(super) fn finish(self, nothing: &str) -> String {
        let lines = self.lines.strip_suffix('\n').unwrap_or(nothing);
        format!("{lines}{}", self.notes)
    }
}

/// A path on one line, so that no name can imitate another line of output. Bytes that are no UTF-8, and control
/// characters, are escaped.
pub(super) fn shown_path(path: &Path) -> String {
    let mut shown = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        chunk.valid().chars().for_each(|c| escape(c, &mut shown));
        for byte in chunk.invalid() {
            // Writing to a string cannot fail.
            _ = write!(shown, "\\x{byte:02x}");
        }
    }
    shown
}

/// The beginning of a text on one line, with `…` where it was cut.
pub(super) fn short(text: &str, most: usize) -> String {
    let mut shown = String::new();
    cut(text, most).chars().for_each(|c| escape(c, &mut shown));
    cut(&shown, most)
}

/// The beginning of a text, with `…` where it was cut.
pub(super) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
    }
}

fn escape(c: char, shown: &mut String) {
    if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
        shown.extend(c.escape_default());
    } else {
        shown.push(c);
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;

    #[test]
    fn an_answer_is_bounded_with_its_notes() {
        let mut answer = ToolOutput::default();
        while answer.line("0123456789").is_ok() {}
        (0..1000).for_each(|_| answer.note("a note"));
        let text = answer.finish("");
        assert!(text.len() <= MAX_BYTES && text.len() > MAX_BYTES - 100, "{}", text.len());
    }

    #[test]
    fn an_empty_answer_says_so() {
        let mut answer = ToolOutput::default();
        answer.note("why");
        assert_eq!(answer.finish("nothing"), "nothing\n[why]");
    }

    #[test]
    fn a_name_is_one_line() {
        let name = |bytes: &[u8]| shown_path(Path::new(OsStr::from_bytes(bytes)));
        assert_eq!(name(b"a\nb:1: c\x1b\xff"), r"a\nb:1: c\u{1b}\xff");
        assert_eq!(name("ünïcode\u{2028}".as_bytes()), r"ünïcode\u{2028}");
    }

    #[test]
    fn long_texts_are_cut() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äöüß", 3), "äö…");
        assert_eq!(short("\n\n\n", 4), "\\n\\…");
    }
}
