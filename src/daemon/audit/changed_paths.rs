//! JSON pointers to the values that hooks changed, without the values.

use crate::model::{ArrayDiff, Json, JsonChange, PathStep, Target, Targets, json_changes};

/// A part of the payload with more changed paths than this is listed as a whole.
const MAX_PATHS: usize = 64;

/// The changed values as JSON pointers, each below the name of its part: `/tool_input/command`. Sorted within a part.
pub(super) fn changed_paths(before: &Targets, patched: &Targets) -> Vec<String> {
    patched.iter().flat_map(|(target, after)| of_part(target, before.get(target), after)).collect()
}

fn of_part(target: Target, before: Option<&Json>, after: &Json) -> Vec<String> {
    let changes = json_changes(before, after, ArrayDiff::Whole, MAX_PATHS + 1);
    // Another spelling of the same value is listed as a whole.
    if changes.is_empty() || changes.len() > MAX_PATHS {
        return vec![format!("/{target}")];
    }
    let mut paths: Vec<String> = changes.iter().map(|change| pointer(target, change)).collect();
    paths.sort_unstable();
    paths
}

fn pointer(target: Target, change: &JsonChange<'_>) -> String {
    let mut pointer = format!("/{target}");
    for step in &change.path {
        pointer.push('/');
        match step {
            PathStep::Key(key) => pointer.push_str(&key.replace('~', "~0").replace('/', "~1")),
            PathStep::Index(index) => pointer.push_str(&index.to_string()),
        }
    }
    pointer
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
