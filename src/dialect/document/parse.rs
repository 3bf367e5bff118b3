//! YAML as a tree of nodes, in one pass over the parser's events. Tags, several documents, repeated keys, and nesting
//! and aliases beyond their bounds are errors.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, StrInput};

use super::{
    super::suggest::shorten,
    error::{self, DocumentError, tags, too_deep},
    node::{MappingEntry, Node, NodeValue},
    span::{ByteOffsets, Span, location_of},
};

/// What a document may always grow to, beside twice its length. A document without aliases stays far below;
/// with them a small file could expand to gigabytes.
const ALWAYS_ALLOWED: usize = 4096;

/// How deep lists and mappings may nest.
const DEEPEST: usize = 127;

/// The tree of a text without a byte order mark.
pub(super) fn parse(text: &str) -> Result<Node, DocumentError> {
    if let Some((offset, c)) = text.char_indices().find(|(_, c)| is_forbidden(*c)) {
        let message = format!("the character U+{:04X} is not allowed", u32::from(c));
        let help = "remove it, or write it as an escape in double quotes";
        let span = Span { start: offset, end: offset + c.len_utf8() };
        return Err(DocumentError::new("yaml-syntax", message, help).at(span));
    }
    let root = TreeBuilder::new(text).document()?;
    if root.value == NodeValue::Null { Err(empty_document()) } else { Ok(root) }
}

/// Characters that YAML does not allow in a text.
fn is_forbidden(c: char) -> bool {
    let is_allowed_control = matches!(c, '\t' | '\n' | '\r' | '\u{85}');
    (c.is_control() && !is_allowed_control) || matches!(c, '\u{feff}' | '\u{fffe}' | '\u{ffff}')
}

/// Builds the tree of one text.
struct TreeBuilder<'t> {
    text: &'t str,
    parser: Parser<'t, StrInput<'t>>,
    offsets: ByteOffsets,
    /// Where the event before the current one ends.
    previous_end: usize,
    current_end: usize,
    /// How much the tree may still grow.
    budget: usize,
    /// The finished nodes that aliases may refer to, by the parser's numbers.
    anchors: HashMap<usize, AnchoredNode>,
}

/// A node with an anchor.
struct AnchoredNode {
    node: Node,
    /// How much of the budget each copy takes.
    size: usize,
    /// How many lists and mappings are in each other in it, itself included.
    height: usize,
}

impl<'t> TreeBuilder<'t> {
    fn new(text: &'t str) -> Self {
        Self {
            text,
            parser: Parser::new_from_str(text),
            offsets: ByteOffsets::new(text),
            previous_end: 0,
            current_end: 0,
            budget: 2 * text.len() + ALWAYS_ALLOWED,
            anchors: HashMap::new(),
        }
    }

    /// The one document that the text has to be.
    fn document(mut self) -> Result<Node, DocumentError> {
        loop {
            match self.next()? {
                (Event::DocumentStart(_), span) => {
                    self.check_directives(span)?;
                    break;
                }
                (Event::StreamEnd, _) => return Err(empty_document()),
                _ => {}
            }
        }
        let (event, span) = self.next()?;
        let root = self.node(event, span, 0)?;
        loop {
            match self.next()? {
                (Event::DocumentStart(_), span) => {
                    let help = "keep one document per file and remove the `---` between them";
                    let message = "more than one document in the file";
                    return Err(DocumentError::new("several-documents", message, help).at(span));
                }
                (Event::StreamEnd, _) => return Ok(root),
                _ => {}
            }
        }
    }

    /// Only `%YAML` may precede a document: `%TAG` names tags, and the parser ignores others.
    fn check_directives(&self, document: Span) -> Result<(), DocumentError> {
        let mut start = 0;
        for line in self.text[..document.start].split_inclusive('\n') {
            let span = Span { start, end: start + line.trim_end().len() };
            if line.starts_with("%TAG") {
                return Err(tags().at(span));
            }
            let directive = line.split(" #").next().unwrap_or_default().trim_end();
            if directive.starts_with('%') && !matches!(directive, "%YAML 1.1" | "%YAML 1.2") {
                let error =
                    DocumentError::new("yaml-syntax", "not valid YAML: unknown directive", "remove it");
                return Err(error.at(span));
            }
            start += line.len();
        }
        Ok(())
    }

    fn next(&mut self) -> Result<(Event<'t>, Span), DocumentError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => {
                let span = self.offsets.span(span);
                self.previous_end = self.current_end;
                self.current_end = span.end;
                Ok((event, span))
            }
            Some(Err(error)) => {
                let offset = self.offsets.of(error.marker().index());
                Err(error::translate(error.info(), self.text, offset))
            }
            None => Ok((Event::StreamEnd, Span::at(self.text.len()))),
        }
    }

    /// The node that begins with an event; `depth` is how many lists and mappings it is in.
    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, DocumentError> {
        let before = self.budget;
        let (node, anchor) = match event {
            Event::Alias(anchor) => return self.alias(anchor, span, depth),
            Event::Scalar(_, _, _, Some(_))
            | Event::SequenceStart(_, Some(_))
            | Event::MappingStart(_, Some(_)) => {
                return Err(tags().at(span));
            }
            Event::Scalar(text, style, anchor, None) => (self.scalar(&text, style, span)?, anchor),
            Event::SequenceStart(..) | Event::MappingStart(..) if depth == DEEPEST => {
                return Err(too_deep().at(span));
            }
            Event::SequenceStart(anchor, None) => (self.list(span, depth + 1)?, anchor),
            Event::MappingStart(anchor, None) => (self.mapping(span, depth + 1)?, anchor),
            // The parser emits no other event where a node belongs.
            _ => return Err(DocumentError { span: Some(span), ..empty_document() }),
        };
        if anchor > 0 {
            let (size, height) = (before - self.budget, node.height());
            self.anchors.insert(anchor, AnchoredNode { node: node.clone(), size, height });
        }
        Ok(node)
    }

    fn scalar(&mut self, text: &str, style: ScalarStyle, span: Span) -> Result<Node, DocumentError> {
        let is_block = matches!(style, ScalarStyle::Literal | ScalarStyle::Folded);
        let (value, span) = match style {
            ScalarStyle::Plain if text.is_empty() => (NodeValue::Null, self.absent_span(span)),
            ScalarStyle::Plain => (plain(text), span),
            _ if is_block => (NodeValue::Text(self.block_text(text, span).into()), self.block_span(span)),
            _ => (NodeValue::Text(text.into()), span),
        };
        self.grow(if let NodeValue::Text(text) = &value { text.len() } else { 0 }, span)?;
        Ok(Node { value, span: span.trimmed(self.text) })
    }

    /// The text of a block scalar. The parser ends it with a line break also at the end of a file that has none there.
    fn block_text<'s>(&self, text: &'s str, content: Span) -> &'s str {
        let is_last = self.text[self.current_end..].is_empty() && !self.text.ends_with('\n');
        if !is_last {
            return text;
        }
        let has_content = text.bytes().any(|byte| byte != b'\n');
        if !has_content {
            // Only the line breaks after that of the header are text.
            let breaks = self.text[content.start..].matches('\n').count().saturating_sub(1);
            return &text[..text.len().min(breaks)];
        }
        // A last line with less than the indentation of the text is no line of it, so the parser adds no break.
        let indentation = content.start - self.line_start(content.start);
        let last_line = &self.text[self.line_start(self.text.len())..];
        let is_outside = last_line.len() < indentation && last_line.bytes().all(|byte| byte == b' ');
        if is_outside { text } else { text.strip_suffix('\n').unwrap_or(text) }
    }

    /// Where the line of an offset begins.
    fn line_start(&self, offset: usize) -> usize {
        self.text[..offset].rfind('\n').map_or(0, |at| at + 1)
    }

    /// The span of a block scalar from its `|` or `>`. That of the parser begins with the first line of text.
    fn block_span(&self, content: Span) -> Span {
        let before = self.text.get(self.previous_end..content.start).unwrap_or_default();
        let start = before.find(['|', '>']).map_or(content.start, |at| self.previous_end + at);
        Span { start, ..content }
    }

    /// Where a value that is not there would be: the parser gives it the span of the indicator before it.
    fn absent_span(&self, indicator: Span) -> Span {
        let is_empty =
            indicator.start == indicator.end && self.text[indicator.start..].starts_with([':', '-', '?']);
        Span::at(indicator.end + usize::from(is_empty))
    }

    fn list(&mut self, opening: Span, depth: usize) -> Result<Node, DocumentError> {
        self.grow(0, opening)?;
        let mut items = Vec::new();
        let closing = loop {
            match self.next()? {
                (Event::SequenceEnd, closing) => break closing,
                (event, span) => items.push(self.node(event, span, depth)?),
            }
        };
        let first = items.first().map(|item: &Node| item.span);
        let span = self.collection_span(opening, first, closing);
        Ok(Node { value: NodeValue::List(items.into()), span })
    }

    fn mapping(&mut self, opening: Span, depth: usize) -> Result<Node, DocumentError> {
        self.grow(0, opening)?;
        let mut keys: HashMap<String, Span> = HashMap::new();
        let mut entries = Vec::new();
        let closing = loop {
            let (event, span) = self.next()?;
            if event == Event::MappingEnd {
                break span;
            }
            let (key, key_span) = self.key(event, span)?;
            if let Some(first) = keys.insert(key.clone(), key_span) {
                let line = location_of(self.text, first).line;
                let message = format!("duplicate key `{}`, first on line {line}", shorten(&key, 64));
                return Err(DocumentError::new("duplicate-key", message, "keep one of the two").at(key_span));
            }
            let (event, span) = self.next()?;
            entries.push(MappingEntry { key, key_span, node: self.node(event, span, depth)? });
        };
        let first = entries.first().map(|entry| entry.key_span);
        let span = self.collection_span(opening, first, closing);
        Ok(Node { value: NodeValue::Mapping(entries.into()), span })
    }

    /// A key, which has to be text.
    fn key(&mut self, event: Event<'t>, span: Span) -> Result<(String, Span), DocumentError> {
        let is_collection = matches!(event, Event::SequenceStart(_, None) | Event::MappingStart(_, None));
        let node = if is_collection { None } else { Some(self.node(event, span, 0)?) };
        if let Some(Node { value: NodeValue::Text(key), span }) = node {
            return Ok((key.to_string(), span));
        }
        let error = DocumentError::new("wrong-type", "a key must be a string", "put it in quotes");
        Err(error.at(span.trimmed(self.text)))
    }

    /// A copy of the node that an alias refers to, with the span of the alias.
    fn alias(&mut self, anchor: usize, span: Span, depth: usize) -> Result<Node, DocumentError> {
        // An anchor whose value is not finished is around the alias.
        let Some(AnchoredNode { node, size, height }) = self.anchors.get(&anchor) else {
            let message = "an alias refers to a value that contains it";
            return Err(DocumentError::new("aliases", message, "write the value out").at(span));
        };
        // Without this, each line could add the whole depth to that of an alias in it.
        if depth + height > DEEPEST {
            return Err(too_deep().at(span));
        }
        self.budget = self.budget.checked_sub(*size).ok_or_else(|| too_large().at(span))?;
        Ok(Node { span, ..node.clone() })
    }

    /// A bracketed collection has the span from bracket to bracket; another has that of its first key or item.
    fn collection_span(&self, opening: Span, first: Option<Span>, closing: Span) -> Span {
        let end = match first {
            Some(first) if !self.opens_with_bracket(opening) => first.end.max(opening.start),
            // The parser's closing token goes on over the blanks and the comment behind it.
            _ => self.text.floor_char_boundary(closing.start + 1),
        };
        Span { start: opening.start, end }
    }

    /// Whether a bracket comes after the anchor with which the span of an opening may begin, and the blanks and
    /// comments behind that. The span of a block, which has no opening of its own, ends before its first key or item.
    fn opens_with_bracket(&self, opening: Span) -> bool {
        let mut rest = &self.text[opening.start..opening.end];
        if rest.starts_with('&') {
            rest = rest.trim_start_matches(|c: char| !c.is_ascii_whitespace());
        }
        loop {
            rest = rest.trim_start();
            if !rest.starts_with('#') {
                return rest.starts_with(['[', '{']);
            }
            rest = rest.trim_start_matches(|c| c != '\n');
        }
    }

    fn grow(&mut self, size: usize, span: Span) -> Result<(), DocumentError> {
        self.budget = self.budget.checked_sub(size + 1).ok_or_else(|| too_large().at(span))?;
        Ok(())
    }
}

fn empty_document() -> DocumentError {
    DocumentError::new("empty-document", "empty document", "write the keys, or delete the file")
}

fn too_large() -> DocumentError {
    DocumentError::new("aliases", "the aliases of the document expand to too much", "write the values out")
}

/// The bases of integers, by their prefixes.
const RADIXES: [(&str, u32); 3] = [("0x", 16), ("0o", 8), ("0b", 2)];

/// The value of a plain scalar, as `serde_yaml` has it: by YAML 1.2, so `no` is text and `0o17` a number.
pub(super) fn plain(text: &str) -> NodeValue {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return NodeValue::Null,
        "true" | "True" | "TRUE" => return NodeValue::Bool(true),
        "false" | "False" | "FALSE" => return NodeValue::Bool(false),
        _ => {}
    }
    integer(text).or_else(|| float(text)).unwrap_or_else(|| NodeValue::Text(text.into()))
}

#[expect(clippy::cast_precision_loss, reason = "no key takes a number of that size")]
fn integer(text: &str) -> Option<NodeValue> {
    if let Some(number) = unsigned(text) {
        return Some(i64::try_from(number).map_or(NodeValue::Float(number as f64), NodeValue::Integer));
    }
    let number = negative(text)?;
    Some(i64::try_from(number).map_or(NodeValue::Float(number as f64), NodeValue::Integer))
}

fn unsigned(text: &str) -> Option<u128> {
    let digits = text.strip_prefix('+').unwrap_or(text);
    for (prefix, radix) in RADIXES {
        let Some(rest) = digits.strip_prefix(prefix) else { continue };
        // Rust would take a sign after the prefix.
        return if rest.starts_with(['+', '-']) { None } else { u128::from_str_radix(rest, radix).ok() };
    }
    let is_signed_again = digits.starts_with(['+', '-']);
    if is_signed_again || has_leading_zero(text) { None } else { digits.parse().ok() }
}

fn negative(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-')?;
    for (prefix, radix) in RADIXES {
        let Some(rest) = digits.strip_prefix(prefix) else { continue };
        return i128::from_str_radix(&format!("-{rest}"), radix).ok();
    }
    if has_leading_zero(text) { None } else { text.parse().ok() }
}

fn float(text: &str) -> Option<NodeValue> {
    let unsigned = text.strip_prefix('+').unwrap_or(text);
    let number = match unsigned {
        _ if has_leading_zero(text) => return None,
        _ if text.starts_with('+') && unsigned.starts_with(['+', '-']) => return None,
        ".inf" | ".Inf" | ".INF" => f64::INFINITY,
        "-.inf" | "-.Inf" | "-.INF" => f64::NEG_INFINITY,
        ".nan" | ".NaN" | ".NAN" if !text.starts_with('+') => f64::NAN,
        // Rust knows words such as `inf` and `nan`, and takes what is too large for infinity.
        digits => digits.parse().ok().filter(|number: &f64| number.is_finite())?,
    };
    Some(NodeValue::Float(number))
}

/// Digits with a zero before them, such as `007`, are text.
fn has_leading_zero(text: &str) -> bool {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    digits.len() > 1 && digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit())
}
