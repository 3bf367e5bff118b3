//! From text to nodes. Owns what is refused as a whole: tags, several documents, repeated keys, nesting and
//! aliases beyond bounds. Refuses to know what any key means.

use std::{borrow::Cow, cell::RefCell, collections::HashSet, fmt};

use serde::de::{self, DeserializeSeed, EnumAccess, MapAccess, SeqAccess, Visitor};
use serde_yaml::Deserializer;

/// What a document may always grow to, beside twice its length. A document without aliases stays far below;
/// with them a small file could stand for gigabytes.
const ALWAYS_ALLOWED: usize = 4096;

/// How many opening brackets a document may have, wherever they stand. The parser's work grows with the square
/// of how deep brackets nest, long before it tells how deep they do.
const MOST_BRACKETS: usize = 8192;

/// One value.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Node {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
    List(Vec<Node>),
    Mapping(Vec<(String, Node)>),
}

impl Node {
    /// What kind of value this is, as a message names it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}

/// Why a text is no acceptable document.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct DocumentError {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
    /// The offset in bytes, where one place is to blame.
    pub(super) offset: Option<usize>,
}

impl DocumentError {
    pub(super) fn new(code: &'static str, message: impl Into<String>, help: &'static str) -> Self {
        Self { code, message: message.into(), help: Some(help), offset: None }
    }
}

/// The nodes of a text without a byte order mark.
pub(super) fn parse(text: &str) -> Result<Node, DocumentError> {
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| is_forbidden(*c)) {
        let message = format!("the character U+{:04X} is not allowed", u32::from(c));
        let refusal = DocumentError::new(
            "yaml-syntax",
            message,
            "remove it, or write it as an escape in double quotes",
        );
        return Err(DocumentError { offset: Some(offset), ..refusal });
    }
    if text.bytes().filter(|byte| matches!(byte, b'[' | b'{')).nth(MOST_BRACKETS).is_some() {
        let message = format!("nested too deeply: there are more than {MOST_BRACKETS} opening brackets");
        return Err(DocumentError::new(
            "too-deep",
            message,
            "write lists and mappings on lines of their own",
        ));
    }
    if let Some(offset) = tag_directive(text) {
        return Err(DocumentError { offset: Some(offset), ..tags() });
    }
    let root = attempt(text)?;
    if let Some(offset) = hidden_tag(text) {
        return Err(DocumentError { offset: Some(offset), ..tags() });
    }
    match root {
        Node::Null => {
            Err(DocumentError::new("empty-document", "empty document", "write the keys, or delete the file"))
        }
        root => Ok(root),
    }
}

/// Characters the parser refuses without telling where, or, as NUL, takes for the end of the text.
fn is_forbidden(c: char) -> bool {
    let is_allowed_control = matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    (c.is_control() && !is_allowed_control) || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

fn tags() -> DocumentError {
    DocumentError::new(
        "tag",
        "YAML tags are not allowed",
        "remove the `!…`; put the value in quotes if it is meant",
    )
}

fn tag_directive(text: &str) -> Option<usize> {
    if text.starts_with("%TAG") { Some(0) } else { text.find("\n%TAG").map(|offset| offset + 1) }
}

/// The place of a tag such as `!!python/object` or `!<uri>`, which the parser would silently take off. As a
/// tag of the document's own it is not, and in texts and comments the change does no harm.
fn hidden_tag(text: &str) -> Option<usize> {
    if !text.contains("!!") && !text.contains("!<") {
        return None;
    }
    let disarmed = text.replace("!!", "!x").replace("!<", "!x");
    attempt(&disarmed).err()?.offset
}

fn attempt(text: &str) -> Result<Node, DocumentError> {
    let growth = RefCell::new(Growth { left: 2 * text.len() + ALWAYS_ALLOWED, refusal: None });
    let result = Grow(&growth).deserialize(Deserializer::from_str(text));
    let error = match result {
        Ok(root) => return Ok(root),
        Err(error) => error,
    };
    let refusal = growth.take().refusal.unwrap_or_else(|| translated(&error));
    let place = error.location().map(|place| text.floor_char_boundary(place.index()));
    let offset = place.or_else(|| (refusal.code == "several-documents").then(|| second_document(text))?);
    let help = refusal.help.or_else(|| advice(text, offset?));
    Err(DocumentError { help, offset, ..refusal })
}

/// What to do about the usual slips, by the characters around the place where the parser gave up.
fn advice(text: &str, offset: usize) -> Option<&'static str> {
    let around = [text[..offset].chars().next_back(), text[offset..].chars().next()];
    if around.contains(&Some('\t')) {
        Some("indent with spaces; YAML allows no tabs there")
    } else if around.contains(&Some('*')) {
        Some(
            "`*` begins an alias: put the value in quotes, or leave out a `matcher` that should match everything",
        )
    } else if matches!(around[1], Some('%' | '@' | '`')) {
        Some("put the value in quotes")
    } else {
        None
    }
}

fn translated(error: &serde_yaml::Error) -> DocumentError {
    let text = error.to_string();
    if text.contains("recursion limit") {
        return DocumentError::new(
            "too-deep",
            "the document is nested too deeply",
            "at most 127 levels are allowed",
        );
    }
    if text.contains("repetition limit") {
        return too_large();
    }
    if text.contains("more than one document") {
        let help = "keep one document per file and remove the `---` between them";
        return DocumentError::new("several-documents", "more than one document in the file", help);
    }
    let what = text.split(" at line ").next().unwrap_or_default();
    if what.contains("expected a key") {
        return DocumentError::new("wrong-type", "a key must be a string", "put it in quotes");
    }
    DocumentError {
        code: "yaml-syntax",
        message: format!("not valid YAML: {what}"),
        help: None,
        offset: None,
    }
}

fn too_large() -> DocumentError {
    DocumentError::new("aliases", "the aliases of the document stand for too much", "write the values out")
}

/// Where the second document begins, which the parser does not tell.
fn second_document(text: &str) -> Option<usize> {
    let mut offset = 0;
    let mut has_content = false;
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim_end();
        if trimmed == "---" || trimmed.starts_with("--- ") {
            if has_content {
                return Some(offset);
            }
            has_content = trimmed != "---";
        } else if !trimmed.is_empty() && !trimmed.starts_with('#') {
            has_content = true;
        }
        offset += line.len();
    }
    None
}

/// How much a document may still grow, and why it was refused.
#[derive(Default)]
pub(super) struct Growth {
    left: usize,
    refusal: Option<DocumentError>,
}

impl Growth {
    /// For documents that cannot stand for more than they are.
    pub(super) fn without_aliases() -> RefCell<Self> {
        RefCell::new(Self { left: usize::MAX, refusal: None })
    }
}

/// Builds the nodes of one value.
#[derive(Clone, Copy)]
pub(super) struct Grow<'g>(pub(super) &'g RefCell<Growth>);

impl Grow<'_> {
    fn refuse<T, E: de::Error>(self, refusal: DocumentError) -> Result<T, E> {
        let error = E::custom(&refusal.message);
        self.0.borrow_mut().refusal.get_or_insert(refusal);
        Err(error)
    }

    fn take<E: de::Error>(self, size: usize) -> Result<(), E> {
        let left = self.0.borrow().left.checked_sub(size + 1);
        match left {
            Some(left) => {
                self.0.borrow_mut().left = left;
                Ok(())
            }
            None => self.refuse(too_large()),
        }
    }

    fn scalar<E: de::Error>(self, node: Node) -> Result<Node, E> {
        self.take(0)?;
        Ok(node)
    }
}

impl<'de> DeserializeSeed<'de> for Grow<'_> {
    type Value = Node;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Node, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Grow<'_> {
    type Value = Node;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a YAML value")
    }

    fn visit_bool<E: de::Error>(self, value: bool) -> Result<Node, E> {
        self.scalar(Node::Bool(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Node, E> {
        self.scalar(Node::Integer(value))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Node, E> {
        self.visit_i128(value.into())
    }

    #[expect(clippy::cast_precision_loss, reason = "no key takes a number of that size")]
    fn visit_i128<E: de::Error>(self, value: i128) -> Result<Node, E> {
        self.scalar(i64::try_from(value).map_or(Node::Float(value as f64), Node::Integer))
    }

    #[expect(clippy::cast_precision_loss, reason = "no key takes a number of that size")]
    fn visit_u128<E: de::Error>(self, value: u128) -> Result<Node, E> {
        self.scalar(Node::Float(value as f64))
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Node, E> {
        self.scalar(Node::Float(value))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Node, E> {
        self.take(text.len())?;
        Ok(Node::Text(text.to_owned()))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Node, E> {
        self.scalar(Node::Null)
    }

    fn visit_none<E: de::Error>(self) -> Result<Node, E> {
        self.scalar(Node::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Node, A::Error> {
        self.take(0)?;
        let mut list = Vec::new();
        while let Some(item) = items.next_element_seed(self)? {
            list.push(item);
        }
        Ok(Node::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Node, A::Error> {
        self.take(0)?;
        let mut seen = HashSet::new();
        let mut entries = Vec::new();
        while let Some(key) = map.next_key_seed(GrowKey { grow: self, seen: &mut seen })? {
            entries.push((key, map.next_value_seed(self)?));
        }
        Ok(Node::Mapping(entries))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<Node, A::Error> {
        self.refuse(tags())
    }
}

/// Reads one key, and fails at its place if it cannot be one.
struct GrowKey<'g, 's> {
    grow: Grow<'g>,
    seen: &'s mut HashSet<String>,
}

impl<'de> DeserializeSeed<'de> for GrowKey<'_, '_> {
    type Value = String;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for GrowKey<'_, '_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: de::Error>(self, key: &str) -> Result<String, E> {
        self.grow.take::<E>(key.len())?;
        if !self.seen.insert(key.to_owned()) {
            let short: Cow<'_, str> = super::super::suggest::shorten(key, 64).into();
            let message = format!("`{short}` is there twice");
            return self.grow.refuse(DocumentError::new("duplicate-key", message, "keep one of the two"));
        }
        Ok(key.to_owned())
    }

    fn visit_enum<A: EnumAccess<'de>>(self, _: A) -> Result<String, A::Error> {
        self.grow.refuse(tags())
    }
}
