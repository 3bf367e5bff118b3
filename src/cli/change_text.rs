//! What a patch changed, as text. Escaped: ready to print.

use std::fmt::Write;

use super::escape;
use crate::model::{ArrayDiff, Json, JsonChange, PathStep, json_changes};

/// The longest part of a key that is shown, in characters.
const LONGEST_KEY: usize = 40;

/// The changes of a part of the payload.
pub(super) fn changes<'a>(before: Option<&'a Json>, after: &'a Json) -> Vec<JsonChange<'a>> {
    json_changes(before, after, ArrayDiff::Aligned, usize::MAX)
}

/// The path of a change, such as `messages[2].content`; empty for the whole value.
pub(super) fn path(change: &JsonChange<'_>) -> String {
    let mut path = String::new();
    for step in &change.path {
        // Writing to a string cannot fail.
        match step {
            PathStep::Key(key) => add_key(key, &mut path),
            PathStep::Index(index) => _ = write!(path, "[{index}]"),
        }
    }
    path
}

/// The values before and after, each with at most about `most` characters: of long texts, those around the first
/// difference.
pub(super) fn sides(change: &JsonChange<'_>, most: usize) -> (Option<String>, Option<String>) {
    if let (Some(before), Some(after)) = (change.before.and_then(text), change.after.and_then(text)) {
        let (before, after) = around_the_difference(&before, &after, most);
        return (Some(before), Some(after));
    }
    let before = change.before.map(|json| escape::short(json, most));
    let after = change.after.map(|json| escape::short(json, most));
    (before, after)
}

/// The change in one phrase: with both values where they have at most `most` characters, else only its path.
pub(super) fn phrase(change: &JsonChange<'_>, most: usize) -> String {
    let is_short = |json: Option<&str>| json.is_none_or(|json| json.chars().take(most + 1).count() <= most);
    let in_full = is_short(change.before) && is_short(change.after);
    let path = path(change);
    let prefix = if path.is_empty() { "" } else { &format!("{path}: ") };
    match sides(change, most) {
        (Some(before), Some(after)) if in_full || path.is_empty() => format!("{prefix}{before} → {after}"),
        (None, Some(after)) if in_full => format!("{prefix}added {after}"),
        (None, Some(_)) => format!("{prefix}added"),
        (Some(_), None) => format!("{prefix}removed"),
        _ => path,
    }
}

fn add_key(key: &str, path: &mut String) {
    let is_plain = |c: char| c.is_alphanumeric() || "_-$".contains(c);
    let plain = !key.is_empty() && key.chars().take(LONGEST_KEY + 1).all(is_plain);
    let key = escape::short(key, LONGEST_KEY);
    // Writing to a string cannot fail.
    _ = match (plain, path.is_empty()) {
        (true, true) => write!(path, "{key}"),
        (true, false) => write!(path, ".{key}"),
        (false, _) => write!(path, "[\"{key}\"]"),
    };
}

/// The text of a JSON string.
fn text(json: &str) -> Option<String> {
    if json.starts_with('"') { serde_json::from_str(json).ok() } else { None }
}

/// Two texts in quotes, both cut at the same place before their first difference if one of them is long.
fn around_the_difference(before: &str, after: &str, most: usize) -> (String, String) {
    let is_long = |text: &str| text.chars().nth(most).is_some();
    let common = before.chars().zip(after.chars()).take_while(|(a, b)| a == b).count();
    let start = if is_long(before) || is_long(after) { common.saturating_sub(most / 3) } else { 0 };
    (excerpt(before, start, most), excerpt(after, start, most))
}

/// A part of a text in quotes, with `…` where it was cut.
fn excerpt(text: &str, start: usize, most: usize) -> String {
    let mut rest = text.chars().skip(start);
    let part: String = rest.by_ref().take(most).collect();
    let quoted = serde_json::to_string(&part).unwrap_or(part);
    let inner = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(&quoted);
    let before = if start > 0 { "…" } else { "" };
    let after = if rest.next().is_some() { "…" } else { "" };
    escape::line(&format!("\"{before}{inner}{after}\"")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    fn phrases(before: &str, after: &str) -> Vec<String> {
        changes(Some(&json(before)), &json(after)).iter().map(|change| phrase(change, 20)).collect()
    }

    #[test]
    fn only_what_changed_is_shown() {
        let before = r#"{"command":"npm i","cwd":"/","old":1}"#;
        let after = r#"{"command":"npm ci","cwd":"/","new":[2]}"#;
        let expected = [r#"command: "npm i" → "npm ci""#, "old: removed", "new: added [2]"];
        assert_eq!(phrases(before, after), expected);
        assert_eq!(phrases("1", "2"), ["1 → 2"]);
        assert_eq!(phrase(&changes(None, &json("{}"))[0], 9), "added {}");
    }

    #[test]
    fn a_change_is_named_by_its_path() {
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
    }

    #[test]
    fn long_texts_are_cut_around_the_first_difference() {
        let text = |middle: &str| format!(r#""{}{middle}{}""#, "a".repeat(90), "z".repeat(90));
        let before = json(&text("1"));
        let after = json(&text("22"));
        let changes = changes(Some(&before), &after);
        let expected = (Some(r#""…aaa1zzzzz…""#.to_owned()), Some(r#""…aaa22zzzz…""#.to_owned()));
        assert_eq!(sides(&changes[0], 9), expected);
        assert_eq!(phrase(&changes[0], 9), r#""…aaa1zzzzz…" → "…aaa22zzzz…""#);
    }
}
