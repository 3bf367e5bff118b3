//! Where a node of a document stands in its text. The parser tells places only with its errors, so a place is
//! found by reading the text again and failing on purpose there. Refuses to keep any place that nobody asks for.

use std::{fmt, rc::Rc};

use serde::de::{self, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_yaml::Deserializer;

/// Something in a document that a message can point at.
#[derive(Debug, Clone)]
pub(crate) struct Spot {
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

impl Spot {
    /// A character of the text that stands here, from 1.
    pub(crate) fn character(&self, column: usize) -> Self {
        Self { path: Rc::clone(&self.path), part: Part::Character(column) }
    }
}

/// A place as an editor shows it: line and column in characters, from 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Place {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) length: usize,
}

/// The place of a spot.
pub(super) fn locate(text: &str, spot: &Spot) -> Option<Place> {
    let seek = Seek { path: &spot.path, stop_at_key: spot.part == Part::Key };
    let error = seek.deserialize(Deserializer::from_str(text)).err()?;
    let offset = offset_of_character(text, error.location()?.index());
    Some(match spot.part {
        Part::Character(column) => place_of(text, inside(text, offset, column)),
        Part::Key | Part::Value => place_of(text, offset),
    })
}

/// The place at an offset in bytes.
pub(super) fn place_of(text: &str, offset: usize) -> Place {
    let (before, rest) = text.split_at(offset);
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Place {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
        length: token_length(rest.lines().next().unwrap_or_default()),
    }
}

/// The offset in bytes of a character, by its number.
pub(super) fn offset_of_character(text: &str, index: usize) -> usize {
    text.char_indices().nth(index).map_or(text.len(), |(offset, _)| offset)
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
        } else {
            map.next_key::<IgnoredAny>()?;
            map.next_value_seed(Seek { path, ..self })?;
        }
        Err(de::Error::custom("not here"))
    }
}
