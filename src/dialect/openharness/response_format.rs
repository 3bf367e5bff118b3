//! The response format of a model that answers for an OpenHarness hook: instructions and a schema. It offers only
//! what the hook may do, because a model uses what it is offered.

use std::fmt::Write as _;

use serde_json::{Value, json};

use crate::model::{EventKind, Hook, ResponseFormat, Target};

/// The form for a hook on an event of this kind.
pub(super) fn of(hook: &Hook, kind: EventKind) -> ResponseFormat {
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
    if kind.is_interceptor() {
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
    if kind.is_interceptor() {
        properties["decision"] = json!({ "type": "string", "enum": ["block"] });
        properties["reason"] = json!({ "type": "string" });
        properties["continue"] = json!({ "type": "boolean" });
        properties["stopReason"] = json!({ "type": "string" });
    }
    json!({ "type": "object", "properties": properties, "additionalProperties": false })
}
