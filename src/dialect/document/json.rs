//! JSON as a document: its nodes, and where they stand in its text. Owns what is said of text that is almost
//! JSON; refuses to know what any key means.

use serde::de::DeserializeSeed;

use super::{
    parse::{DocumentError, Grow, Growth, Node},
    span::{Location, Part, Span, place_of},
};
use crate::model::check_json;

/// The nodes of a text without a byte order mark.
pub(super) fn parse(text: &str) -> Result<Node, DocumentError> {
    if text.trim().is_empty() {
        let refusal =
            DocumentError::new("empty-document", "empty document", "write `{}`, or delete the file");
        return Err(refusal);
    }
    check_json(text).map_err(|error| {
        let offset = offset_at(text, error.line, error.column);
        let (message, help) = explained(&error.message, text, offset);
        let code = if error.message.starts_with("duplicate key") { "duplicate-key" } else { "json-syntax" };
        DocumentError { offset: Some(offset), ..DocumentError::new(code, message, help) }
    })?;
    let growth = Growth::without_aliases();
    let mut deserializer = serde_json::Deserializer::from_str(text);
    Grow(&growth).deserialize(&mut deserializer).map_err(|error| {
        DocumentError::new(
            "json-syntax",
            format!("not valid JSON: {error}"),
            "correct it; nothing of it counts",
        )
    })
}

/// What is wrong with a text that is no JSON, and what to do.
fn explained(message: &str, text: &str, offset: usize) -> (String, &'static str) {
    let around = [text[..offset].chars().next_back(), text[offset..].chars().next()];
    let begins_comment = |c: Option<char>| matches!(c, Some('/' | '#'));
    if around.into_iter().any(begins_comment) {
        return ("comments are not JSON".to_owned(), "remove them; until then nothing in the file counts");
    }
    let help = match message {
        _ if message.starts_with("duplicate key") => {
            "keep one of the two; until then nothing in the file counts"
        }
        "trailing comma" => "remove the comma; until then nothing in the file counts",
        _ => "correct it; until then nothing in the file counts",
    };
    (format!("not valid JSON: {message}"), help)
}

/// The offset of a line and a column in bytes, both from 1.
fn offset_at(text: &str, line: usize, column: usize) -> usize {
    let start: usize = text.split_inclusive('\n').take(line.saturating_sub(1)).map(str::len).sum();
    text.floor_char_boundary((start + column.saturating_sub(1)).min(text.len()))
}

/// The place of a spot in a text that is JSON.
pub(super) fn locate(text: &str, span: &Span) -> Option<Location> {
    let walk = Walk(text.as_bytes());
    let offset = walk.to(&span.path, span.part)?;
    Some(match span.part {
        Part::Character(column) => {
            let body = text.get(offset + 1..)?;
            let before: usize = body.chars().take(column.saturating_sub(1)).map(char::len_utf8).sum();
            let is_plain = !body[..before].contains('\\');
            Location { length: 1, ..place_of(text, if is_plain { offset + 1 + before } else { offset }) }
        }
        Part::Key | Part::Value => {
            let token = text[offset..walk.skip_value(offset)].lines().next().unwrap_or_default();
            Location { length: token.chars().count().max(1), ..place_of(text, offset) }
        }
    })
}

/// Walks through a text that is known to be JSON.
struct Walk<'t>(&'t [u8]);

impl Walk<'_> {
    /// The offset of the node at a path, or of its key.
    fn to(&self, path: &[usize], part: Part) -> Option<usize> {
        let mut at = self.skip_space(0);
        for (depth, index) in path.iter().enumerate() {
            let is_object = *self.0.get(at)? == b'{';
            at = self.skip_space(at + 1);
            for _ in 0..*index {
                if is_object {
                    at = self.after_key(at);
                }
                // One further for the comma.
                at = self.skip_space(self.skip_space(self.skip_value(at)) + 1);
            }
            let is_last = depth + 1 == path.len();
            if is_object && !(is_last && part == Part::Key) {
                at = self.after_key(at);
            }
        }
        (at < self.0.len()).then_some(at)
    }

    /// The offset of the value whose key begins here.
    fn after_key(&self, at: usize) -> usize {
        self.skip_space(self.skip_space(self.skip_value(at)) + 1)
    }

    fn skip_space(&self, at: usize) -> usize {
        let rest = self.0.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
    }

    fn skip_value(&self, at: usize) -> usize {
        let mut depth = 0_usize;
        let mut at = at;
        while let Some(byte) = self.0.get(at) {
            match byte {
                b'"' => at = self.skip_text(at),
                b'{' | b'[' => (depth, at) = (depth + 1, at + 1),
                b'}' | b']' | b',' | b':' if depth == 0 => return at,
                b'}' | b']' => (depth, at) = (depth - 1, at + 1),
                byte if depth == 0 && byte.is_ascii_whitespace() => return at,
                _ => {
                    at += 1;
                    continue;
                }
            }
            if depth == 0 {
                return at;
            }
        }
        at
    }

    fn skip_text(&self, at: usize) -> usize {
        let mut at = at + 1;
        while let Some(byte) = self.0.get(at) {
            match byte {
                b'\\' => at += 2,
                b'"' => return at + 1,
                _ => at += 1,
            }
        }
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{\n\t\"a\": {\"x\": [1, \"t\\\"}\", {\"ü\": null}]},\n  \"b\" : true,\"c\":\"M(\"}\n";

    fn place(path: &[usize], part: Part) -> (usize, usize, usize) {
        let place = locate(TEXT, &Span { path: path.into(), part }).unwrap();
        (place.line, place.column, place.length)
    }

    #[test]
    fn keys_and_values_have_places() {
        assert_eq!(place(&[], Part::Value).0, 1);
        assert_eq!(place(&[0], Part::Key), (2, 2, 3));
        assert_eq!(place(&[0], Part::Value).1, 7);
        assert_eq!(place(&[0, 0, 0], Part::Value), (2, 14, 1));
        assert_eq!(place(&[0, 0, 1], Part::Value).1, 17);
        assert_eq!(place(&[0, 0, 2, 0], Part::Key).1, 26);
        assert_eq!(place(&[0, 0, 2, 0], Part::Value), (2, 31, 4));
        assert_eq!(place(&[1], Part::Key), (3, 3, 3));
        assert_eq!(place(&[1], Part::Value), (3, 9, 4));
        assert_eq!(place(&[2], Part::Value), (3, 18, 4));
        assert_eq!(place(&[2], Part::Character(2)), (3, 20, 1));
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

    /// Every node stands where it is said to stand.
    fn check_places(text: &str, value: &serde_json::Value, path: &mut Vec<usize>) {
        let at = |path: &[usize], part| Walk(text.as_bytes()).to(path, part).unwrap();
        let begins = &value.to_string()[..1];
        assert!(text[at(path, Part::Value)..].starts_with(begins), "{path:?} in {text}");
        let (keys, items): (Vec<_>, Vec<_>) = match value {
            serde_json::Value::Object(map) => map.iter().map(|(key, item)| (Some(key), item)).unzip(),
            serde_json::Value::Array(items) => items.iter().map(|item| (None, item)).unzip(),
            _ => return,
        };
        for (index, (key, item)) in keys.into_iter().zip(items).enumerate() {
            path.push(index);
            if let Some(key) = key {
                let written = serde_json::to_string(key).unwrap();
                assert!(text[at(path, Part::Key)..].starts_with(&written), "key {path:?} in {text}");
            }
            check_places(text, item, path);
            path.pop();
        }
    }

    proptest::proptest! {
        #[test]
        fn every_node_is_found(value in json()) {
            check_places(&value.to_string(), &value, &mut Vec::new());
            check_places(&serde_json::to_string_pretty(&value).unwrap(), &value, &mut Vec::new());
        }
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let refusal = |text: &str| {
            let refusal = parse(text).expect_err(text);
            (refusal.message, refusal.offset)
        };
        assert_eq!(refusal("{\n  // x\n}"), ("comments are not JSON".to_owned(), Some(4)));
        assert_eq!(refusal("{\"a\": 1, /* x */ \"b\": 2}"), ("comments are not JSON".to_owned(), Some(9)));
        assert_eq!(refusal("{\"a\": 1} # x").0, "comments are not JSON");
        assert!(refusal("{\"a\": 1,}").0.contains("trailing comma"));
        assert!(refusal("{\"a\": 1, \"a\": 2}").0.contains("duplicate key"));
        assert!(refusal("{'a': 1}").0.contains("key must be a string"));
        assert!(refusal(&"[".repeat(10_000)).0.contains("recursion limit"));
        assert_eq!(refusal(" \n").0, "empty document");
        assert!(parse("{\"a\": \"\\ud83d\\ude00\", \"b\":\t1e3}").is_ok());
    }
}
