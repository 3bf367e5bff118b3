//! The output of a tool for a model: lines, then notes about what is missing, within a limit of bytes; and the message
//! about a path that is not opened.

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
        OpenError::Upwards => {
            "has a `..`, which is not followed here; name it from the workspace's directory".to_owned()
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

#[cfg(test)]
mod tests {
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
}
