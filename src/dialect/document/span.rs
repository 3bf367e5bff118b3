//! Where a node of a document stands in its text. The parser tells places only with its errors, so a place is
//! found by reading the text again and failing on purpose there. Refuses to keep any place that nobody asks for.

use std::{fmt, rc::Rc};

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_yaml::Deserializer;

/// Something in a document that a message can point at.
#[derive(Debug, Clone)]
pub(crate) struct Span {
    pub(super) path: Rc<[usize]>,
    pub(super) part: Part,
}

/// Which part of an entry is meant.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Part {
    /// Its key.
    Key,
    /// Its value.
    Value,
    /// A character of its value, from 1.
    Character(usize),
}

impl Span {
    /// A character of the text that stands here, from 1.
    pub(crate) fn character(&self, column: usize) -> Self {
        Self { path: Rc::clone(&self.path), part: Part::Character(column) }
    }
}

/// A place as an editor shows it: line and column in characters, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Location {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) length: usize,
}

/// The place of a spot.
pub(super) fn locate(text: &str, span: &Span) -> Option<Location> {
    let seek = Seek { path: &span.path, stop_at_key: span.part == Part::Key };
    let error = seek.deserialize(Deserializer::from_str(text)).err()?;
    let offset = text.floor_char_boundary(error.location()?.index());
    Some(match span.part {
        Part::Character(column) => Location { length: 1, ..place_of(text, inside(text, offset, column)) },
        Part::Key | Part::Value => place_of(text, offset),
    })
}

/// The place at an offset in bytes.
pub(super) fn place_of(text: &str, offset: usize) -> Location {
    let (before, rest) = text.split_at(offset);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Location {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        length: token_length(rest.lines().next().unwrap_or_default()),
    }
}

/// The offset of a character of the text that begins at `offset`. Where quotes hide escapes before it, or the
/// text begins on another line, the beginning has to do.
fn inside(text: &str, offset: usize, column: usize) -> usize {
    let rest = &text[offset..];
    let quote = rest.starts_with(['"', '\'']);
    let body = &rest[usize::from(quote)..];
    let before: usize = body.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
    let is_plain = !body[..before].contains(['\\', '\'', '\n']) && !rest.starts_with(['|', '>', '&', '*']);
    if is_plain { offset + usize::from(quote) + before } else { offset }
}

/// How many characters the token at the beginning of a line has.
fn token_length(line: &str) -> usize {
    let end = match line.chars().next() {
        Some(quote @ ('"' | '\'')) => line[1..].find(quote).map(|at| at + 2),
        Some('[' | '{' | '|' | '>') => None,
        _ => [": ", " #", ", ", "]", "}"].iter().filter_map(|mark| line.find(mark)).min(),
    };
    let token = line[..end.unwrap_or(line.len())].trim_end();
    token.strip_suffix(':').unwrap_or(token).chars().count().max(1)
}

/// Walks to one node and fails there; the parser attaches the place.
struct Seek<'p> {
    path: &'p [usize],
    stop_at_key: bool,
}

impl<'de> DeserializeSeed<'de> for Seek<'_> {
    type Value = ();

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

/// Scalars are refused by the methods that are not here, which is the failure that is wanted.
impl<'de> Visitor<'de> for Seek<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the place that is looked for")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Some((index, path)) = self.path.split_first() else { return Err(de::Error::custom("here")) };
        for _ in 0..*index {
            items.next_element::<IgnoredAny>()?;
        }
        items.next_element_seed(Seek { path, ..self })?;
        Err(de::Error::custom("not here"))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Some((index, path)) = self.path.split_first() else { return Err(de::Error::custom("here")) };
        for _ in 0..*index {
            map.next_entry::<IgnoredAny, IgnoredAny>()?;
        }
        if path.is_empty() && self.stop_at_key {
            map.next_key_seed(Seek { path, ..self })?;
        } else if map.next_key::<IgnoredAny>()?.is_some() {
            map.next_value_seed(Seek { path, ..self })?;
        }
        Err(de::Error::custom("not here"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# ü\nname: 'ä'\nlist:\n  - a\n  - { k: \"x y\", z: 1 } # c\nline: |\n  text\nab: &s é\ncd: *s\n";

    fn place(path: &[usize], part: Part) -> (usize, usize, usize) {
        let place = locate(TEXT, &Span { path: path.into(), part }).unwrap();
        (place.line, place.column, place.length)
    }

    #[test]
    fn keys_and_values_have_places() {
        assert_eq!(place(&[], Part::Value), (2, 1, 4));
        assert_eq!(place(&[0], Part::Key), (2, 1, 4));
        assert_eq!(place(&[0], Part::Value), (2, 7, 3));
        assert_eq!(place(&[1, 0], Part::Value), (4, 5, 1));
        assert_eq!(place(&[1, 1, 0], Part::Key), (5, 7, 1));
        assert_eq!(place(&[1, 1, 0], Part::Value), (5, 10, 5));
        assert_eq!(place(&[1, 1, 1], Part::Value), (5, 20, 1));
        assert_eq!(place(&[2], Part::Value), (6, 7, 1));
        assert_eq!(place(&[3], Part::Value).0, 8);
        assert_eq!(place(&[4], Part::Key), (9, 1, 2));
    }

    #[test]
    fn characters_of_a_value_have_places_where_it_is_written_plainly() {
        assert_eq!(place(&[1, 1, 0], Part::Character(3)), (5, 13, 1));
        assert_eq!(place(&[2], Part::Character(3)), (6, 7, 1));
    }

    #[test]
    fn what_is_not_there_has_the_place_of_what_it_is_not_in() {
        let place = locate(TEXT, &Span { path: [9].into(), part: Part::Value });
        assert_eq!(place.map(|place| place.line), Some(2));
    }
}
