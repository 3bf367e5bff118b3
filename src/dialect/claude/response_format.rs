//! The response format of a model that answers for a Claude Code hook: a judgement and its reason.

use serde_json::json;

use crate::{dialect::event_table::EventRow, model::ResponseFormat};

/// The placeholder for the envelope in a prompt.
const ARGUMENTS: &str = "$ARGUMENTS";

/// The format of an answer, for every event.
pub(in crate::dialect) fn judgement_format(_: &EventRow) -> ResponseFormat {
    let instructions = "Answer with one JSON object and nothing else: {\"ok\": true} if what is asked for holds and \
                        the agent may go on, or {\"ok\": false, \"reason\": \"why, for the agent\"} if not.";
    ResponseFormat {
        instructions: instructions.to_owned(),
        schema: json!({
            "type": "object",
            "properties": { "ok": { "type": "boolean" }, "reason": { "type": "string" } },
            "required": ["ok"],
            "additionalProperties": false,
        }),
        placeholder: Some(ARGUMENTS),
    }
}
