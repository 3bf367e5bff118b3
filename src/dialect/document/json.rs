//! JSON as a tree of nodes, and error messages for text that is almost JSON.

use std::fmt::Write;

use serde_json::value::RawValue;

use super::{
    error::DocumentError,
    node::{MappingEntry, Node, NodeValue},
    span::Span,
};
use crate::model::check_json;

/// The tree of a text without a byte order mark.
pub(super) fn parse(text: &str) -> Result<Node, DocumentError> {
    if text.trim().is_empty() {
        return Err(DocumentError::new("empty-document", "empty document", "write `{}`, or delete the file"));
    }
    check_json(text).map_err(|error| {
        let offset = offset_at(text, error.line, error.column);
        let (message, help) = explained(&error.message, text, offset);
        let code = if error.message.starts_with("duplicate key") { "duplicate-key" } else { "json-syntax" };
        DocumentError::new(code, message, help).at(token_span(text, offset))
    })?;
    TreeBuilder { text, at: 0 }.node().ok_or_else(|| {
        let help = "correct it; until then no hook is read from it";
        DocumentError::new("json-syntax", "not valid JSON", help)
    })
}

/// The text with blanks in the place of its comments, one for each character, so that everything else stays in its line
/// and column.
pub(crate) fn without_comments(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            '/' if rest.starts_with("//") => rest.find(['\n', '\r']).unwrap_or(rest.len()),
            '/' if rest.starts_with("/*") => rest[2..].find("*/").map_or(rest.len(), |end| end + 4),
            _ => c.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        if c == '/' && length > 1 {
            blanked.extend(part.chars().map(|c| if c == '\n' { '\n' } else { ' ' }));
        } else {
            blanked.push_str(part);
        }
        rest = behind;
    }
    blanked
}

/// A text without comments, with blanks in the place of the commas behind the last elements of lists and objects.
pub(crate) fn without_trailing_commas(text: &str) -> String {
    let mut blanked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = if c == '"' { string_length(rest) } else { c.len_utf8() };
        let (part, behind) = rest.split_at(length);
        let is_last = c == ',' && behind.trim_start().starts_with(['}', ']']);
        blanked.push_str(if is_last { " " } else { part });
        rest = behind;
    }
    blanked
}

/// A text without comments, with a large double in the place of each number beyond a double.
pub(crate) fn with_finite_numbers(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            '-' | '0'..='9' => rest.find(is_no_part_of_numbers).unwrap_or(rest.len()),
            _ => c.len_utf8(),
        };
        let (part, behind) = rest.split_at(length);
        if is_beyond_double(part) {
            let number = if c == '-' { "-1e308" } else { "1e308" };
            // Everything behind it stays in its column; no number beyond a double is shorter.
            write!(plain, "{number:length$}").ok();
        } else {
            plain.push_str(part);
        }
        rest = behind;
    }
    plain
}

fn is_no_part_of_numbers(c: char) -> bool {
    !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E')
}

/// Whether a text is a number of JSON that no double holds.
fn is_beyond_double(text: &str) -> bool {
    text.parse().is_ok_and(f64::is_infinite) && serde_json::from_str::<&RawValue>(text).is_ok()
}

/// The length of the string that a text begins with, quotes included.
fn string_length(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 1;
    while end < bytes.len() && bytes[end] != b'"' {
        end += if bytes[end] == b'\\' { 2 } else { 1 };
    }
    text.ceil_char_boundary((end + 1).min(text.len()))
}

/// What is wrong with a text that is no JSON, and what to do.
fn explained(message: &str, text: &str, offset: usize) -> (String, &'static str) {
    let around = [text[..offset].chars().next_back(), text[offset..].chars().next()];
    let begins_comment = |c: Option<char>| matches!(c, Some('/' | '#'));
    if around.into_iter().any(begins_comment) {
        return ("comments are not JSON".to_owned(), "remove them; until then no hook is read from it");
    }
    let help = match message {
        _ if message.starts_with("duplicate key") => {
            "keep one of the two; until then no hook is read from it"
        }
        "trailing comma" => "remove the comma; until then no hook is read from it",
        _ => "correct it; until then no hook is read from it",
    };
    (format!("not valid JSON: {message}"), help)
}

/// The offset of a line and a column in bytes, both from 1.
fn offset_at(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    text.floor_char_boundary((start + column.saturating_sub(1)).min(text.len()))
}

/// The token that an error is at, for its underline.
fn token_span(text: &str, start: usize) -> Span {
    let line = text[start..].lines().next().unwrap_or_default();
    let end = match line.chars().next() {
        Some('"') => line[1..].find('"').map(|at| at + 2),
        _ => line.find([',', ':', ']', '}', ' ']),
    };
    Span { start, end: start + end.unwrap_or(line.len()) }
}

/// Builds the tree of a text that `check_json` accepted, which bounds its depth.
///
/// Its methods return `None` where the text is no JSON after all, which would be a defect.
struct TreeBuilder<'t> {
    text: &'t str,
    at: usize,
}

impl TreeBuilder<'_> {
    fn node(&mut self) -> Option<Node> {
        self.skip_space();
        let start = self.at;
        let value = match self.text.as_bytes().get(start)? {
            b'{' => self.object()?,
            b'[' => self.array()?,
            b'"' => NodeValue::Text(self.string()?.into()),
            _ => self.word()?,
        };
        Some(Node { value, span: Span { start, end: self.at } })
    }

    fn object(&mut self) -> Option<NodeValue> {
        self.at += 1;
        let mut entries = Vec::new();
        while !self.closes(b'}')? {
            let start = self.at;
            let key = self.string()?;
            let key_span = Span { start, end: self.at };
            self.skip_space();
            // The colon.
            self.at += 1;
            entries.push(MappingEntry { key, key_span, node: self.node()? });
        }
        Some(NodeValue::Mapping(entries.into()))
    }

    fn array(&mut self) -> Option<NodeValue> {
        self.at += 1;
        let mut items = Vec::new();
        while !self.closes(b']')? {
            items.push(self.node()?);
        }
        Some(NodeValue::List(items.into()))
    }

    /// Goes to the next element, behind the comma before it; or behind the bracket, if there is none.
    fn closes(&mut self, bracket: u8) -> Option<bool> {
        self.skip_space();
        if *self.text.as_bytes().get(self.at)? == b',' {
            self.at += 1;
            self.skip_space();
        }
        let closes = *self.text.as_bytes().get(self.at)? == bracket;
        self.at += usize::from(closes);
        Some(closes)
    }

    fn string(&mut self) -> Option<String> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        while *bytes.get(end)? != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.at = end + 1;
        serde_json::from_str(self.text.get(start..self.at)?).ok()
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Option<NodeValue> {
        let rest = &self.text[self.at..];
        let length = rest.find([',', ']', '}', ' ', '\t', '\r', '\n']).unwrap_or(rest.len());
        self.at += length;
        Some(match &rest[..length] {
            "null" => NodeValue::Null,
            "true" => NodeValue::Bool(true),
            "false" => NodeValue::Bool(false),
            number => {
                let number: serde_json::Number = serde_json::from_str(number).ok()?;
                number.as_i64().map_or(NodeValue::Float(number.as_f64()?), NodeValue::Integer)
            }
        })
    }

    fn skip_space(&mut self) {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n\t\"a\": {\"x\": [1, \"t\\\"}\", {\"ü\": null}]},\n  \"b\" : true,\"c\":\"M(\"}\n";

    /// The node at a path, and the span of its key.
    fn find<'n>(root: &'n Node, path: &[usize]) -> (&'n Node, Span) {
        path.iter().fold((root, root.span), |(node, _), index| match &node.value {
            NodeValue::Mapping(entries) => (&entries[*index].node, entries[*index].key_span),
            NodeValue::List(items) => (&items[*index], items[*index].span),
            _ => panic!("nothing is in {node:?}"),
        })
    }

    #[test]
    fn keys_and_values_have_spans() {
        let root = parse(TEXT).unwrap();
        let key = |path: &[usize]| {
            let span = find(&root, path).1;
            &TEXT[span.start..span.end]
        };
        let value = |path: &[usize]| {
            let span = find(&root, path).0.span;
            &TEXT[span.start..span.end]
        };
        assert_eq!(value(&[]), TEXT.trim_end());
        assert_eq!((key(&[0]), key(&[1]), key(&[2])), ("\"a\"", "\"b\"", "\"c\""));
        assert_eq!(value(&[0, 0]), "[1, \"t\\\"}\", {\"ü\": null}]");
        assert_eq!(value(&[0, 0, 0]), "1");
        assert_eq!(value(&[0, 0, 1]), "\"t\\\"}\"");
        assert_eq!(key(&[0, 0, 2, 0]), "\"ü\"");
        assert_eq!((value(&[0, 0, 2, 0]), value(&[1]), value(&[2])), ("null", "true", "\"M(\""));
    }

    #[test]
    #[cfg(all(feature = "cli", feature = "daemon"))]
    fn comments_are_blanked_outside_of_strings() {
        for (text, expected) in [
            ("{\"a\": \"//x\"} // y\n", "{\"a\": \"//x\"}     \n"),
            ("{/* ü\n*/\"a\\\"/*\": 1}", "{    \n  \"a\\\"/*\": 1}"),
            ("/*/ {} */ 1 / 2", "          1 / 2"),
            ("{} /* open", "{}        "),
            ("\"open // x", "\"open // x"),
            ("\"\\", "\"\\"),
        ] {
            assert_eq!(without_comments(text), expected, "{text}");
        }
    }

    fn json() -> impl proptest::strategy::Strategy<Value = serde_json::Value> {
        use proptest::prelude::*;
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i32>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..4)
                    .prop_map(|map| serde_json::Value::Object(map.into_iter().collect())),
            ]
        })
    }

    /// Every node has the text that its value has, and so has every key.
    fn check_spans(text: &str, value: &serde_json::Value, node: &Node) {
        let written =
            |span: Span| serde_json::from_str::<serde_json::Value>(&text[span.start..span.end]).unwrap();
        assert_eq!(&written(node.span), value, "{text}");
        match (value, &node.value) {
            (serde_json::Value::Object(map), NodeValue::Mapping(entries)) => {
                assert_eq!(map.len(), entries.len());
                for ((key, value), entry) in map.iter().zip(&**entries) {
                    assert_eq!((written(entry.key_span), key), (key.as_str().into(), &entry.key));
                    check_spans(text, value, &entry.node);
                }
            }
            (serde_json::Value::Array(values), NodeValue::List(items)) => {
                assert_eq!(values.len(), items.len());
                values.iter().zip(&**items).for_each(|(value, item)| check_spans(text, value, item));
            }
            _ => {}
        }
    }

    proptest::proptest! {
        #[test]
        fn every_node_has_its_span(value in json()) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                check_spans(&text, &value, &parse(&text).unwrap());
            }
        }
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let refused = |text: &str| {
            let error = parse(text).expect_err(text);
            (error.message, error.span.map(|span| span.start))
        };
        assert_eq!(refused("{\n  // x\n}"), ("comments are not JSON".to_owned(), Some(4)));
        assert_eq!(refused("{\"a\": 1, /* x */ \"b\": 2}"), ("comments are not JSON".to_owned(), Some(9)));
        assert_eq!(refused("{\"a\": 1} # x").0, "comments are not JSON");
        assert!(refused("{\"a\": 1,}").0.contains("trailing comma"));
        assert!(refused("{\"a\": 1, \"a\": 2}").0.contains("duplicate key"));
        assert!(refused("{'a': 1}").0.contains("key must be a string"));
        assert!(refused(&"[".repeat(10_000)).0.contains("recursion limit"));
        assert_eq!(refused(" \n").0, "empty document");
        assert!(parse("{\"a\": \"\\ud83d\\ude00\", \"b\":\t1e3}").is_ok());
    }

    #[test]
    fn commas_behind_last_elements_become_blanks() {
        let cases = [
            ("[1,2]", "[1,2]"),
            ("[1,]", "[1 ]"),
            ("{\"a\": [1, 2,\n ], }", "{\"a\": [1, 2 \n ]  }"),
            (r#"[",]", "\"", ]"#, r#"[",]", "\""  ]"#),
            (",", ","),
        ];
        for (text, expected) in cases {
            assert_eq!(without_trailing_commas(text), expected, "{text}");
        }
    }
}
