//! What a patch changed, down to the elements that differ, for a person to read. Owns how values are compared
//! and cut; refuses to take another spelling of the same value for a change.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::escape;
use crate::model::{Json, JsonFields};

/// How deep it looks for what changed. Each level is parsed anew, and a place with more steps than this tells
/// a person no more than its beginning.
const DEEPEST: usize = 16;

/// How much of a key is shown, in characters.
const LONGEST_KEY: usize = 40;

/// From here on not every whole number is a double of its own.
const EXACT_DOUBLES: f64 = 9_007_199_254_740_992.0;

/// One element that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change<'a> {
    /// Where it stands, such as `messages[2].content`; empty for the whole value. Ready to print.
    pub(super) place: String,
    /// What was there, as JSON.
    before: Option<&'a str>,
    /// What is there now, as JSON.
    after: Option<&'a str>,
}

/// What changed between two values.
pub(super) fn between<'a>(before: Option<&'a Json>, after: &'a Json) -> Vec<Change<'a>> {
    let mut changes = Vec::new();
    match before {
        Some(before) => compare(&Place::default(), before.as_str(), after.as_str(), &mut changes),
        None => Place::default().change(None, Some(after.as_str()), &mut changes),
    }
    changes
}

impl Change<'_> {
    /// What was there and what is there now, each with at most about `most` characters: of long texts, those
    /// around the first difference.
    pub(super) fn sides(&self, most: usize) -> (Option<String>, Option<String>) {
        if let (Some(before), Some(after)) = (self.before, self.after)
            && let (Shape::Text(before), Shape::Text(after)) = (Shape::of(before), Shape::of(after))
        {
            let (before, after) = around_the_difference(&before, &after, most);
            return (Some(before), Some(after));
        }
        let side = |json: Option<&str>| json.map(|json| escape::short(json, most));
        (side(self.before), side(self.after))
    }

    /// The change in one short phrase: with both values where they have at most `most` characters, else only
    /// its place.
    pub(super) fn phrase(&self, most: usize) -> String {
        let is_short =
            |json: Option<&str>| json.is_none_or(|json| json.chars().take(most + 1).count() <= most);
        let in_full = is_short(self.before) && is_short(self.after);
        let place = if self.place.is_empty() { "" } else { &format!("{}: ", self.place) };
        match self.sides(most) {
            (Some(before), Some(after)) if in_full || place.is_empty() => {
                format!("{place}{before} → {after}")
            }
            (None, Some(after)) if in_full => format!("{place}added {after}"),
            (None, Some(_)) => format!("{place}added"),
            (Some(_), None) => format!("{place}removed"),
            _ => self.place.clone(),
        }
    }
}

/// The way to an element.
#[derive(Debug, Clone, Default)]
struct Place {
    shown: String,
    depth: usize,
}

impl Place {
    fn field(&self, key: &str) -> Self {
        let is_plain = |c: char| c.is_alphanumeric() || "_-$".contains(c);
        let plain = !key.is_empty() && key.chars().take(LONGEST_KEY + 1).all(is_plain);
        let shown = escape::short(key, LONGEST_KEY);
        let step = match (plain, self.shown.is_empty()) {
            (true, true) => shown,
            (true, false) => format!(".{shown}"),
            (false, _) => format!("[\"{shown}\"]"),
        };
        Self { shown: format!("{}{step}", self.shown), depth: self.depth + 1 }
    }

    fn element(&self, number: usize) -> Self {
        Self { shown: format!("{}[{number}]", self.shown), depth: self.depth + 1 }
    }

    fn change<'a>(self, before: Option<&'a str>, after: Option<&'a str>, changes: &mut Vec<Change<'a>>) {
        changes.push(Change { place: self.shown, before, after });
    }
}

/// A value, taken apart as far as its own level.
enum Shape<'a> {
    Object(JsonFields<'a>),
    Array(Vec<&'a RawValue>),
    Text(String),
    Number,
    /// A boolean or null: these have one spelling.
    Word,
}

impl<'a> Shape<'a> {
    fn of(json: &'a str) -> Self {
        match json.as_bytes().first() {
            Some(b'{') => serde_json::from_str(json).map_or(Self::Word, Self::Object),
            Some(b'[') => serde_json::from_str(json).map_or(Self::Word, Self::Array),
            Some(b'"') => serde_json::from_str(json).map_or(Self::Word, Self::Text),
            Some(b't' | b'f' | b'n') => Self::Word,
            _ => Self::Number,
        }
    }
}

fn compare<'a>(place: &Place, old: &'a str, new: &'a str, changes: &mut Vec<Change<'a>>) {
    if old == new {
        return;
    }
    match (Shape::of(old), Shape::of(new)) {
        (Shape::Object(old), Shape::Object(new)) if place.depth < DEEPEST => {
            compare_fields(place, &old, &new, changes);
        }
        (Shape::Array(old), Shape::Array(new)) if place.depth < DEEPEST => {
            compare_elements(place, &old, &new, changes);
        }
        _ if equal(old, new, place.depth) => {}
        _ => place.clone().change(Some(old), Some(new), changes),
    }
}

fn compare_fields<'a>(
    place: &Place,
    old: &JsonFields<'a>,
    new: &JsonFields<'a>,
    changes: &mut Vec<Change<'a>>,
) {
    let (were, are) = (by_key(old), by_key(new));
    for (key, was) in old.iter() {
        match are.get(key) {
            Some(is) => compare(&place.field(key), was.get(), is, changes),
            None => place.field(key).change(Some(was.get()), None, changes),
        }
    }
    for (key, is) in new.iter().filter(|(key, _)| !were.contains_key(key)) {
        place.field(key).change(None, Some(is.get()), changes);
    }
}

/// What is the same at both ends is left out, so that one element more shifts no other.
fn compare_elements<'a>(
    place: &Place,
    old: &[&'a RawValue],
    new: &[&'a RawValue],
    changes: &mut Vec<Change<'a>>,
) {
    let same = |(a, b): &(&&RawValue, &&RawValue)| equal(a.get(), b.get(), place.depth + 1);
    let start = old.iter().zip(new).take_while(same).count();
    let end = old[start..].iter().rev().zip(new[start..].iter().rev()).take_while(same).count();
    let (old, new) = (&old[start..old.len() - end], &new[start..new.len() - end]);
    for number in 0..old.len().max(new.len()) {
        let place = place.element(start + number);
        match (old.get(number), new.get(number)) {
            (Some(was), Some(is)) => compare(&place, was.get(), is.get(), changes),
            (was, is) => place.change(was.map(|was| was.get()), is.map(|is| is.get()), changes),
        }
    }
}

/// Whether two texts are the same value.
fn equal(a: &str, b: &str, depth: usize) -> bool {
    if a == b {
        return true;
    }
    match (Shape::of(a), Shape::of(b)) {
        (Shape::Object(a), Shape::Object(b)) if depth < DEEPEST => {
            let (a, b) = (by_key(&a), by_key(&b));
            let is_in_b = |(key, a): (&&str, &&str)| b.get(key).is_some_and(|b| equal(a, b, depth + 1));
            a.len() == b.len() && a.iter().all(is_in_b)
        }
        (Shape::Array(a), Shape::Array(b)) if depth < DEEPEST => {
            a.len() == b.len() && a.iter().zip(&b).all(|(a, b)| equal(a.get(), b.get(), depth + 1))
        }
        (Shape::Text(a), Shape::Text(b)) => a == b,
        (Shape::Number, Shape::Number) => same_number(a, b),
        _ => false,
    }
}

fn by_key<'f, 'a>(fields: &'f JsonFields<'a>) -> HashMap<&'f str, &'a str> {
    fields.iter().map(|(key, value)| (key, value.get())).collect()
}

/// Whether two numbers are the same, also where a double could not tell them apart.
#[expect(clippy::float_cmp, reason = "the same number has the same double")]
fn same_number(a: &str, b: &str) -> bool {
    if let (Ok(a), Ok(b)) = (a.parse::<i128>(), b.parse::<i128>()) {
        return a == b;
    }
    match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => a == b && a.abs() < EXACT_DOUBLES,
        _ => false,
    }
}

/// Two texts in quotes, both cut at the same place before their first difference if one of them is long.
fn around_the_difference(before: &str, after: &str, most: usize) -> (String, String) {
    let is_long = |text: &str| text.chars().nth(most).is_some();
    let common = before.chars().zip(after.chars()).take_while(|(a, b)| a == b).count();
    let start = if is_long(before) || is_long(after) { common.saturating_sub(most / 3) } else { 0 };
    let cut = |text: &str| {
        let mut rest = text.chars().skip(start);
        let part: String = rest.by_ref().take(most).collect();
        let quoted = serde_json::to_string(&part).unwrap_or(part);
        let dots = |is_cut: bool| if is_cut { "…" } else { "" };
        let (from, to) = (dots(start > 0), dots(rest.next().is_some()));
        let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted);
        escape::line(&format!("\"{from}{inner}{to}\"")).into_owned()
    };
    (cut(before), cut(after))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    fn phrases(before: &str, after: &str) -> Vec<String> {
        between(Some(&json(before)), &json(after)).iter().map(|change| change.phrase(20)).collect()
    }

    #[test]
    fn only_what_changed_is_shown() {
        let before = r#"{"command":"npm i","cwd":"/","old":1}"#;
        let after = r#"{"command":"npm ci","cwd":"/","new":[2]}"#;
        let expected = [r#"command: "npm i" → "npm ci""#, "old: removed", "new: added [2]"];
        assert_eq!(phrases(before, after), expected);
        assert_eq!(phrases("1", "2"), ["1 → 2"]);
        assert_eq!(between(None, &json("{}"))[0].phrase(9), "added {}");
    }

    #[test]
    fn changes_are_found_in_the_depths() {
        let long = "x".repeat(50);
        let messages = |texts: &[&str]| {
            let texts: Vec<_> = texts.iter().map(|text| format!(r#"{{"content":"{text}"}}"#)).collect();
            format!(r#"{{"messages":[{}]}}"#, texts.join(","))
        };
        let before = messages(&["a", "b", &long]);
        assert_eq!(phrases(&before, &messages(&["a", "b", &format!("{long}y")])), ["messages[2].content"]);
        assert_eq!(phrases(&before, &messages(&["b", &long])), ["messages[0]: removed"]);
        assert_eq!(
            phrases(&before, &messages(&["n", "a", "b", &long])),
            ["messages[0]: added {\"content\":\"n\"}"]
        );
        assert_eq!(phrases(r#"{"a b":{"c":1}}"#, r#"{"a b":{"c":2}}"#), [r#"["a b"].c: 1 → 2"#]);
        let deep = |inner: &str| format!("{}{inner}{}", "[".repeat(100), "]".repeat(100));
        assert_eq!(phrases(&deep("1"), &deep("2")), ["[0]".repeat(DEEPEST)]);
    }

    #[test]
    fn another_spelling_is_no_change() {
        let before = r#"{"a":1.0,"b":"\u0041","c":[1, {"x":-0,"y":null}]}"#;
        let after = r#"{"c":[1e0,{"y":null,"x":0}],"b":"A","a":1}"#;
        assert_eq!(phrases(before, after), [""; 0]);
        assert_eq!(phrases("18446744073709551616", "18446744073709551617").len(), 1);
    }

    #[test]
    fn long_texts_are_cut_around_the_first_difference() {
        let text = |middle: &str| format!(r#""{}{middle}{}""#, "a".repeat(90), "z".repeat(90));
        let (before, after) = (json(&text("1")), json(&text("22")));
        let changes = between(Some(&before), &after);
        let expected = (Some(r#""…aaa1zzzzz…""#.to_owned()), Some(r#""…aaa22zzzz…""#.to_owned()));
        assert_eq!(changes[0].sides(9), expected);
        assert_eq!(changes[0].phrase(9), r#""…aaa1zzzzz…" → "…aaa22zzzz…""#);
    }
}
