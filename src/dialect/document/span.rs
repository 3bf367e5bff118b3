//! Spans of a document's text, and their line and column as an editor shows them.

use crate::model::Diagnostic;

/// A range of the text in bytes; the end is exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(super) start: usize,
    pub(super) end: usize,
}

impl Span {
    /// The range of bytes.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(crate) fn range(self) -> std::ops::Range<usize> {
        self.start..self.end
    }

    /// An empty span.
    pub(super) fn at(offset: usize) -> Self {
        Self { start: offset, end: offset }
    }

    /// The same text without blanks and line breaks at its end.
    pub(super) fn trimmed(self, text: &str) -> Self {
        let length = text[self.start..self.end].trim_end_matches([' ', '\t', '\r', '\n']).len();
        Self { end: self.start + length, ..self }
    }
}

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

/// Where a diagnostic points: line and column in characters, from 1, and the characters to underline, at least 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct TextLocation {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) length: usize,
}

/// The location of a span. The underline ends with the span's first line.
pub(super) fn location_of(text: &str, span: Span) -> TextLocation {
    let (before, rest) = text.split_at(span.start);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let spanned = &rest[..span.end - span.start];
    let first_line = spanned.lines().next().unwrap_or_default().trim_end();
    TextLocation {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        length: first_line.chars().count().max(1),
    }
}

/// Has a diagnostic point at a span.
pub(super) fn point_at(diagnostic: &mut Diagnostic, text: &str, span: Span) {
    let location = location_of(text, span);
    diagnostic.line = location.line;
    diagnostic.column = location.column;
    diagnostic.length = location.length;
}

/// The span of a character, from 1, of the string at a span. Where quotes hide escapes before it, or lines
/// are folded, it is the span of the string.
pub(super) fn character_span(text: &str, span: Span, column: usize) -> Span {
    let written = &text[span.start..span.end];
    let before = match written.as_bytes().first() {
        Some(b'|') => in_literal(written, column),
        Some(b'>' | b'&' | b'*') => None,
        Some(b'"') => on_line(written, 1, column, &['\\', '\n']),
        Some(b'\'') => on_line(written, 1, column, &['\'', '\n']),
        _ => on_line(written, 0, column, &['\n']),
    };
    let Some(before) = before else { return span };
    let start = span.start + before;
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    Span { start, end: start + length }
}

/// How many bytes are before a character of a text that is written on one line, behind its quote. Nothing if characters
/// before it are written in another way.
fn on_line(written: &str, quote: usize, column: usize, others: &[char]) -> Option<usize> {
    let body = &written[quote..];
    let before: usize = body.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    (!body[..before].contains(others)).then_some(quote + before)
}

/// The same for a text that is written as a literal block, whose lines are indented.
fn in_literal(written: &str, column: usize) -> Option<usize> {
    let (header, rest) = written.split_once('\n')?;
    if !matches!(header.trim_end(), "|" | "|-" | "|+") {
        return None;
    }
    let first = rest.lines().find(|line| !line.trim().is_empty())?;
    let indent = first.len() - first.trim_start_matches(' ').len();
    let mut left = column.saturating_sub(1);
    let mut start = header.len() + 1;
    for line in rest.split('\n') {
        let own = line.get(indent..).unwrap_or_default();
        let count = own.chars().count();
        if left <= count {
            let before: usize = own.chars().take(left).map(char::len_utf8).sum();
            return Some(start + indent.min(line.len()) + before);
        }
        left -= count + 1;
        start += line.len() + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_count_characters() {
        let text = "# ü\nkey: 'ä b'\n";
        let location = |start, end| {
            let TextLocation { line, column, length } = location_of(text, Span { start, end });
            (line, column, length)
        };
        assert_eq!(location(5, 8), (2, 1, 3));
        assert_eq!(location(10, 16), (2, 6, 5));
        assert_eq!(location(0, text.len()), (1, 1, 3));
        assert_eq!(location(text.len(), text.len()), (3, 1, 1));
    }

    #[test]
    fn characters_have_spans_where_the_string_is_written_plainly() {
        let found = |text: &str, column| {
            let whole = Span { start: 0, end: text.len() };
            let span = character_span(text, whole, column);
            text[span.start..span.end].to_owned()
        };
        assert_eq!(found("äbc", 2), "b");
        assert_eq!(found("\"xy\"", 2), "y");
        assert_eq!(found("\"x\\ny\"", 3), "\"x\\ny\"");
        assert_eq!(found("|\n  text", 2), "e");
        assert_eq!(found("|\n  ab\n    c\n", 6), "c");
        assert_eq!(found(">\n  text", 2), ">\n  text");
        assert_eq!(found("a 'b' c", 7), "c");
        assert_eq!(found("&a text", 2), "&a text");
    }
}
