//! Offsets in bytes for the YAML parser's offsets in characters.

use super::span::Span;

/// The byte offset of each character of a text.
pub(super) struct ByteOffsets {
    /// Empty for ASCII, where both are the same.
    offsets: Vec<usize>,
    length: usize,
}

impl ByteOffsets {
    pub(super) fn new(text: &str) -> Self {
        let offsets = if text.is_ascii() {
            Vec::new()
        } else {
            text.char_indices().map(|(offset, _)| offset).collect()
        };
        Self { offsets, length: text.len() }
    }

    /// The byte offset of a character; the end of the text for one behind it.
    pub(super) fn of(&self, character: usize) -> usize {
        if self.offsets.is_empty() {
            character.min(self.length)
        } else {
            self.offsets.get(character).copied().unwrap_or(self.length)
        }
    }

    pub(super) fn span(&self, span: saphyr_parser::Span) -> Span {
        let start = self.of(span.start.index());
        Span { start, end: self.of(span.end.index()).max(start) }
    }
}
