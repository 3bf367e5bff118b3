//! The parts of a word.

/// A part of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// Text without its quotes.
    Text { text: String, is_quoted: bool },
    /// `$NAME` or `${NAME}`.
    Variable { name: String, written: String, is_quoted: bool },
    /// What is known only when the text runs.
    Unknown { written: String, is_quoted: bool },
}

impl Piece {
    pub(super) fn quoted(text: &str) -> Self {
        Self::Text { text: text.to_owned(), is_quoted: true }
    }

    pub(super) fn plain(text: &str) -> Self {
        Self::Text { text: text.to_owned(), is_quoted: false }
    }

    pub(super) fn unknown(written: &str, is_quoted: bool) -> Self {
        Self::Unknown { written: written.to_owned(), is_quoted }
    }

    pub(super) fn variable(name: &str, before: &str, after: &str, is_quoted: bool) -> Self {
        Self::Variable { name: name.to_owned(), written: format!("{before}{name}{after}"), is_quoted }
    }
}
