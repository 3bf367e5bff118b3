//! JSON of an event that is taken apart level by level, as far as rules look into it.

use std::{fmt, sync::OnceLock};

use serde::de::{self, Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::budget::Budget;

/// The most elements of one list or object that a rule can look at. More would take memory for nothing.
const MOST_ELEMENTS: usize = 65_536;

/// A valid JSON value, or one inside of it, as the range of its text. Each level is read when a rule first looks at it.
#[derive(Debug)]
pub(super) struct JsonNode {
    start: usize,
    end: usize,
    level: OnceLock<JsonLevel>,
}

/// A value with its elements, which are not read yet.
#[derive(Debug)]
pub(super) enum JsonLevel {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    /// A string without escapes: its range.
    Plain,
    /// A string with escapes.
    Unescaped(Box<str>),
    List(Box<[JsonNode]>),
    Object(Box<[(Box<str>, JsonNode)]>),
    /// A list or an object with too many elements.
    TooLong,
}

/// A value of a tree, with the text that it is in and the steps that reading it takes.
#[derive(Clone, Copy)]
pub(super) struct JsonRef<'a> {
    text: &'a str,
    node: &'a JsonNode,
    budget: &'a Budget,
}

impl JsonNode {
    /// The tree of a text, which must be one valid JSON value.
    pub(super) fn of(text: &str) -> Self {
        Self::new(0, text.len())
    }

    fn new(start: usize, end: usize) -> Self {
        Self { start, end, level: OnceLock::new() }
    }
}

impl JsonLevel {
    /// How many elements it has.
    fn len(&self) -> usize {
        match self {
            Self::List(items) => items.len(),
            Self::Object(fields) => fields.len(),
            _ => 0,
        }
    }
}

impl<'a> JsonRef<'a> {
    /// The value of a tree, with the text that the tree was made of. Reading it is paid from the budget.
    pub(super) fn new(text: &'a str, node: &'a JsonNode, budget: &'a Budget) -> Self {
        Self { text, node, budget }
    }

    /// The value as text.
    pub(super) fn as_str(self) -> &'a str {
        &self.text[self.node.start..self.node.end]
    }

    pub(super) fn level(self) -> &'a JsonLevel {
        self.node.level.get_or_init(|| {
            self.budget.spend_on_json(self.node.end - self.node.start);
            let level = read_level(self.as_str(), self.node.start);
            self.budget.spend_on_nodes(level.len());
            level
        })
    }

    /// What reading it is paid from.
    pub(super) fn budget(self) -> &'a Budget {
        self.budget
    }

    /// The string that it is, if it is one.
    pub(super) fn string(self) -> Option<&'a str> {
        match self.level() {
            JsonLevel::Plain => {
                let text = self.as_str();
                Some(&text[1..text.len() - 1])
            }
            JsonLevel::Unescaped(text) => Some(text),
            _ => None,
        }
    }

    pub(super) fn with(self, node: &'a JsonNode) -> Self {
        Self { node, ..self }
    }
}

/// Reads one level. The text of a tree is valid, so that what cannot be read has too many elements.
fn read_level(text: &str, offset: usize) -> JsonLevel {
    let node = |raw: &RawValue| {
        let start = offset + (raw.get().as_ptr().addr() - text.as_ptr().addr());
        JsonNode::new(start, start + raw.get().len())
    };
    match text.as_bytes().first() {
        Some(b'{') => {
            serde_json::from_str::<Fields<'_>>(text).map_or(JsonLevel::TooLong, |Fields(fields)| {
                JsonLevel::Object(fields.into_iter().map(|(key, raw)| (key, node(raw))).collect())
            })
        }
        Some(b'[') => serde_json::from_str::<Items<'_>>(text).map_or(JsonLevel::TooLong, |Items(items)| {
            JsonLevel::List(items.into_iter().map(node).collect())
        }),
        Some(b'"') if !text.contains('\\') => JsonLevel::Plain,
        Some(b'"') => serde_json::from_str::<String>(text)
            .map_or(JsonLevel::Null, |text| JsonLevel::Unescaped(text.into())),
        Some(b't') => JsonLevel::Bool(true),
        Some(b'f') => JsonLevel::Bool(false),
        Some(b'-' | b'0'..=b'9') => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => JsonLevel::Int(number),
            (Err(_), Ok(number)) => JsonLevel::Double(number),
            (Err(_), Err(_)) => JsonLevel::Null,
        },
        _ => JsonLevel::Null,
    }
}

/// The fields of an object in their order.
struct Fields<'a>(Vec<(Box<str>, &'a RawValue)>);

impl<'de> Deserialize<'de> for Fields<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(FieldsVisitor).map(Self)
    }
}

/// The elements of a list.
struct Items<'a>(Vec<&'a RawValue>);

impl<'de> Deserialize<'de> for Items<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(ItemsVisitor).map(Self)
    }
}

/// Reads fields up to a number: more would take memory for nothing.
struct FieldsVisitor;

impl<'de> Visitor<'de> for FieldsVisitor {
    type Value = Vec<(Box<str>, &'de RawValue)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some(entry) = map.next_entry()? {
            if fields.len() == MOST_ELEMENTS {
                return Err(de::Error::custom("too many fields"));
            }
            fields.push(entry);
        }
        Ok(fields)
    }
}

/// Reads elements, in the same way.
struct ItemsVisitor;

impl<'de> Visitor<'de> for ItemsVisitor {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(item) = items.next_element()? {
            if found.len() == MOST_ELEMENTS {
                return Err(de::Error::custom("too many elements"));
            }
            found.push(item);
        }
        Ok(found)
    }
}
