//! What a patch changed, field by field, for a person to read. Refuses to look deeper than one level.

use std::borrow::Cow;

use super::escape;
use crate::model::Json;

/// How much of a value is shown, in characters.
const LONGEST_VALUE: usize = 160;

/// A line of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// What was there.
    Removed(String),
    /// What is there now.
    Added(String),
}

/// What changed between two values.
pub(super) fn between(before: Option<&Json>, after: &Json) -> Vec<Change> {
    let fields = (before.and_then(Json::fields), after.fields());
    let (Some(old), Some(new)) = fields else {
        let removed = before.map(|before| Change::Removed(value(None, before.as_str())));
        return removed.into_iter().chain([Change::Added(value(None, after.as_str()))]).collect();
    };
    let mut changes = Vec::new();
    for (key, was) in old.iter() {
        match new.get(key).map(serde_json::value::RawValue::get) {
            Some(now) if now == was.get() => {}
            now => {
                changes.push(Change::Removed(value(Some(key), was.get())));
                changes.extend(now.map(|now| Change::Added(value(Some(key), now))));
            }
        }
    }
    let added = new.iter().filter(|(key, _)| old.get(key).is_none());
    changes.extend(added.map(|(key, now)| Change::Added(value(Some(key), now.get()))));
    changes
}

fn value(key: Option<&str>, json: &str) -> String {
    let shown = escape::short(json, LONGEST_VALUE);
    key.map_or(shown.clone(), |key| format!("{}: {shown}", shown_key(key)))
}

fn shown_key(key: &str) -> Cow<'_, str> {
    if key.chars().count() > LONGEST_VALUE {
        Cow::Owned(escape::short(key, LONGEST_VALUE))
    } else {
        escape::line(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_shown() {
        let json = |text: &str| Json::parse(text).unwrap();
        let changes = between(
            Some(&json(r#"{"command":"npm i","cwd":"/","old":1}"#)),
            &json(r#"{"command":"npm ci","cwd":"/","new":[2]}"#),
        );
        let (removed, added) = (|t: &str| Change::Removed(t.into()), |t: &str| Change::Added(t.into()));
        let expected = [
            removed(r#"command: "npm i""#),
            added(r#"command: "npm ci""#),
            removed("old: 1"),
            added("new: [2]"),
        ];
        assert_eq!(changes, expected);
        assert_eq!(between(Some(&json("1")), &json("2")), [removed("1"), added("2")]);
        assert_eq!(between(None, &json("{}")), [added("{}")]);
    }
}
