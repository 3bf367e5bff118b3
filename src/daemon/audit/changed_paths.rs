//! The paths of the values of a payload that hooks changed, without the values. Pure.

use serde_json::Value;

use crate::model::{Json, Target, Targets};

/// How many places of one part are told: more say only that it is another one.
const MAX_PATHS: usize = 64;

/// The places of changed values as JSON pointers, each below the name of its part: `/tool_input/command`.
pub(super) fn changed_paths(before: &Targets, patched: &Targets) -> Vec<String> {
    patched.iter().flat_map(|(target, after)| of_part(target, before.get(target), after)).collect()
}

fn of_part(target: Target, before: Option<&Json>, after: &Json) -> Vec<String> {
    let whole = format!("/{target}");
    let read = |json: &Json| json.read::<Value>().ok();
    let mut found = Vec::new();
    if let (Some(before), Some(after)) = (before.and_then(read), read(after)) {
        compare(&before, &after, &mut whole.clone(), &mut found);
    }
    if found.is_empty() || found.len() > MAX_PATHS { vec![whole] } else { found }
}

fn compare(before: &Value, after: &Value, place: &mut String, found: &mut Vec<String>) {
    if found.len() > MAX_PATHS || before == after {
        return;
    }
    match (before, after) {
        (Value::Object(before), Value::Object(after)) => {
            for (key, new) in after {
                below(place, key, found, |place, found| match before.get(key) {
                    Some(old) => compare(old, new, place, found),
                    None => found.push(place.clone()),
                });
            }
            for key in before.keys().filter(|key| !after.contains_key(*key)) {
                below(place, key, found, |place, found| found.push(place.clone()));
            }
        }
        (Value::Array(before), Value::Array(after)) if before.len() == after.len() => {
            for (number, (old, new)) in before.iter().zip(after).enumerate() {
                below(place, &number.to_string(), found, |place, found| compare(old, new, place, found));
            }
        }
        _ => found.push(place.clone()),
    }
}

/// Goes one step down for as long as this takes.
fn below(
    place: &mut String,
    key: &str,
    found: &mut Vec<String>,
    go: impl FnOnce(&mut String, &mut Vec<String>),
) {
    let length = place.len();
    place.push('/');
    place.push_str(&key.replace('~', "~0").replace('/', "~1"));
    go(place, found);
    place.truncate(length);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(before: Option<&str>, after: &str) -> Vec<String> {
        let part = |text: &str| {
            let mut targets = Targets::default();
            targets.set(Target::ToolInput, Json::parse(text).unwrap());
            targets
        };
        changed_paths(&before.map(part).unwrap_or_default(), &part(after))
    }

    #[test]
    fn only_what_changed_is_told() {
        let before = r#"{"command":"ls","a/b":{"~":[1,2],"same":1},"gone":true}"#;
        let after = r#"{"command":"ls -l","a/b":{"~":[1,3],"same":1},"new":null}"#;
        let expected =
            ["/tool_input/a~1b/~0/1", "/tool_input/command", "/tool_input/gone", "/tool_input/new"];
        let mut found = changed(Some(before), after);
        found.sort();
        assert_eq!(found, expected);
    }

    #[test]
    fn what_cannot_be_taken_apart_is_told_as_a_whole() {
        assert_eq!(changed(None, r#"{"a":1}"#), ["/tool_input"]);
        assert_eq!(changed(Some("[1]"), "[1,2]"), ["/tool_input"]);
        assert_eq!(changed(Some(r#"{"a":1}"#), r#"{"a": 1}"#), ["/tool_input"], "another text");
        let numbers: Vec<usize> = (0..100).collect();
        let others: Vec<usize> = (1..101).collect();
        assert_eq!(changed(Some(&format!("{numbers:?}")), &format!("{others:?}")), ["/tool_input"]);
    }
}
