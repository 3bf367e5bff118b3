//! Merges patches into the payload, for hookyard's own hooks and those of OpenHarness.

use std::borrow::Cow;

use crate::model::{Json, JsonError, JsonFields, Target, merge_deep, merge_one_level};

/// Fields of a model request that hosts spell in two ways.
const SPELLINGS: [[&str; 2]; 3] = [["model_ref", "model"], ["top_p", "topP"], ["max_tokens", "maxTokens"]];

/// Merges a patch into the current value.
///
/// Returns an error if either is no JSON, which [`Json`] rules out.
pub(super) fn merge_patch(target: Target, current: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
    match target {
        Target::Prompt => Ok(patch.clone()),
        Target::Context => merge_deep(current, patch),
        Target::ModelRequest => match current {
            Some(request) => merge_one_level(current, &respelt(request, patch)?),
            None => Ok(patch.clone()),
        },
        Target::ModelResponse | Target::ToolConfig | Target::ToolInput | Target::ToolOutput => {
            merge_one_level(current, patch)
        }
    }
}

/// The patch in the spelling of the request. A request with `top_p` and `topP` at once would leave it to the
/// host which of the two counts.
fn respelt(request: &Json, patch: &Json) -> Result<Json, JsonError> {
    let (Some(there), Some(wanted)) = (request.fields(), patch.fields()) else {
        return Ok(patch.clone());
    };
    let mut written = JsonFields::default();
    for (key, value) in wanted.iter() {
        for spelling in spellings_of(key, &there) {
            written.set(Cow::Borrowed(spelling), value);
        }
    }
    Json::of(&written)
}

/// The names under which a key of the patch is written: those that the request has, or else its own.
fn spellings_of<'a>(key: &'a str, request: &JsonFields<'_>) -> Vec<&'a str> {
    let there: Vec<&str> = SPELLINGS
        .iter()
        .filter(|spellings| spellings.contains(&key))
        .flatten()
        .copied()
        .filter(|spelling| request.get(spelling).is_some())
        .collect();
    if there.is_empty() { vec![key] } else { there }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Json {
        Json::parse(text).unwrap()
    }

    #[test]
    fn every_target_folds_by_its_rule() {
        use Target::{Context, ModelRequest, ModelResponse, Prompt, ToolConfig, ToolInput, ToolOutput};
        let cases = [
            (Prompt, r#""old""#, r#""new""#, r#""new""#),
            (Prompt, r#"{"a":1}"#, r#"{"b":2}"#, r#"{"b":2}"#),
            (
                Context,
                r#"{"a":{"x":1},"messages":[1]}"#,
                r#"{"a":{"y":2}}"#,
                r#"{"a":{"x":1,"y":2},"messages":[1]}"#,
            ),
            (Context, r#"{"messages":[1,2]}"#, r#"{"messages":[]}"#, r#"{"messages":[]}"#),
            (ToolInput, r#"{"a":1.0,"b":{"x":1}}"#, r#"{"b":{"y":2}}"#, r#"{"a":1.0,"b":{"y":2}}"#),
            (ToolInput, "[1]", r#"{"a":1}"#, r#"{"a":1}"#),
            (ToolOutput, r#""text""#, r#""other""#, r#""other""#),
            (ToolOutput, r#"{"a":1}"#, "null", "null"),
            (ModelResponse, r#"{"text":"a","n":1}"#, r#"{"text":"b"}"#, r#"{"text":"b","n":1}"#),
            (ToolConfig, r#"{"mode":"AUTO"}"#, r#"{"mode":"NONE"}"#, r#"{"mode":"NONE"}"#),
            (ModelRequest, r#"{"model":"a"}"#, r#"{"model_ref":"b"}"#, r#"{"model":"b"}"#),
            (ModelRequest, r#"{"model_ref":"a"}"#, r#"{"model":"b"}"#, r#"{"model_ref":"b"}"#),
            (ModelRequest, r#"{"topP":1,"t":2}"#, r#"{"top_p":0.5}"#, r#"{"topP":0.5,"t":2}"#),
            (ModelRequest, r#"{"t":2}"#, r#"{"maxTokens":5}"#, r#"{"t":2,"maxTokens":5}"#),
            (ModelRequest, r#"{"top_p":1,"topP":1}"#, r#"{"topP":0}"#, r#"{"top_p":0,"topP":0}"#),
            (ModelRequest, r#"{"messages":[1]}"#, r#"{"messages":[2]}"#, r#"{"messages":[2]}"#),
        ];
        for (target, current, patch, expected) in cases {
            let folded = merge_patch(target, Some(&json(current)), &json(patch)).unwrap();
            assert_eq!(folded, json(expected), "{target}: {current} + {patch}");
        }
        assert_eq!(
            merge_patch(Target::ModelRequest, None, &json(r#"{"model":"a"}"#)).unwrap(),
            json(r#"{"model":"a"}"#)
        );
    }
}
