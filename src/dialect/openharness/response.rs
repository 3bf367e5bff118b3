//! The unified output JSON: writes the response to an OpenHarness host, and says what a model that answers for a hook may
//! write. That is only what the hook may do, because a model uses what it is offered.

use std::{borrow::Cow, fmt::Write as _, sync::LazyLock};

use serde::Serialize;
use serde_json::{Value, json};

use super::{super::response, kinds::may_stop};
use crate::model::{EventKind, Hook, HostResponse, Outcome, ResponseFormat, Target, Targets, Verdict};

/// Printed if an answer has no JSON form.
const STRICTEST: &str = r#"{"continue":true,"decision":"block","reason":"the answer could not be written"}"#;

/// What a hook would have printed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Unified<'a> {
    r#continue: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppress_output: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<Specific<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Specific<'a> {
    hook_event_name: EventKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    #[serde(skip_serializing_if = "Targets::is_empty")]
    patch: &'a Targets,
}

pub(super) fn write(outcome: &Outcome) -> HostResponse {
    let given = outcome.reason.as_deref();
    let reason = response::refusal(outcome);
    let halted = outcome.verdict == Verdict::Halt;
    let output = Unified {
        r#continue: !halted,
        stop_reason: halted.then(|| given.unwrap_or("stopped by a hook")),
        decision: reason.is_some().then_some("block"),
        hook_specific_output: specific(outcome, halted || reason.is_some()),
        reason,
        suppress_output: outcome.suppress_output.then_some(true),
        system_message: response::user_message(outcome),
    };
    response::of(&output, STRICTEST)
}

/// The context and the patches. Beside a refusal there is no patch of what does not happen.
fn specific(outcome: &Outcome, is_refused: bool) -> Option<Specific<'_>> {
    static NO_PATCH: LazyLock<Targets> = LazyLock::new(Targets::default);
    let additional_context = response::model_context(outcome);
    let patch = if is_refused && !outcome.event.has_happened() { &*NO_PATCH } else { &outcome.patched };
    if additional_context.is_none() && patch.is_empty() {
        return None;
    }
    Some(Specific { hook_event_name: outcome.event, additional_context, patch })
}

/// The form for a hook on an event of this kind.
pub(super) fn model_format(hook: &Hook, kind: EventKind) -> ResponseFormat {
    let target = kind.target().filter(|target| hook.capabilities.contains(target.capability()));
    ResponseFormat {
        instructions: instructions(kind, target),
        schema: schema(kind, target),
        placeholder: None,
    }
}

fn instructions(kind: EventKind, target: Option<Target>) -> String {
    let mut text = "Answer with one JSON object and nothing else: no explanation, no code fence.\n\
                    - Nothing to object: {}\n"
        .to_owned();
    if may_stop(kind) {
        text.push_str(
            "- It must not happen: {\"decision\": \"block\", \"reason\": \"why, for the agent\"}\n\
             - The whole run must end: {\"continue\": false, \"stopReason\": \"why, for the user\"}\n",
        );
    }
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "- Something for the operator to know: {{\"systemMessage\": \"…\"}}\n\
         - Something for the agent to know: \
         {{\"hookSpecificOutput\": {{\"hookEventName\": \"{kind}\", \"additionalContext\": \"…\"}}}}\n"
    );
    if let Some(target) = target {
        let _ = writeln!(
            text,
            "- It may happen with a change of `{target}`: {{\"hookSpecificOutput\": {{\"hookEventName\": \
             \"{kind}\", \"patch\": {{\"{target}\": …}}}}}}. Give only the fields that change, or the whole \
             value if it is no object."
        );
    }
    text.push_str("The fields may be combined in one object.");
    text
}

fn schema(kind: EventKind, target: Option<Target>) -> Value {
    let mut specific = json!({
        "type": "object",
        "properties": {
            "hookEventName": { "type": "string", "enum": [kind.as_str()] },
            "additionalContext": { "type": "string" },
        },
        "required": ["hookEventName"],
        "additionalProperties": false,
    });
    if let Some(target) = target {
        specific["properties"]["patch"] = json!({
            "type": "object",
            "properties": { target.as_str(): {} },
            "additionalProperties": false,
        });
    }
    let mut properties = json!({ "systemMessage": { "type": "string" }, "hookSpecificOutput": specific });
    if may_stop(kind) {
        properties["decision"] = json!({ "type": "string", "enum": ["block"] });
        properties["reason"] = json!({ "type": "string" });
        properties["continue"] = json!({ "type": "boolean" });
        properties["stopReason"] = json!({ "type": "string" });
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
