//! Writes the response to Qwen Code, with the outputs of Gemini CLI.

use serde::Serialize;

use super::reply::{NO_MESSAGE, NO_REASON};
use crate::{
    dialect::{
        event_table::{ContextSupport, EventRow},
        gemini::{GeminiDecision, GeminiOutput},
        response,
    },
    model::{EventKind, HostResponse, Json, Outcome, Target, Verdict},
};

/// Printed if an answer has no JSON form.
const STRICTEST: &str =
    r#"{"continue":false,"decision":"deny","stopReason":"the answer could not be written"}"#;

/// Writes the answer to an event of this row.
pub(super) fn write(row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return response::unreadable_event(outcome) };
    let mut output = GeminiOutput::default();
    for message in [response::user_message(outcome), response::failures(outcome)].into_iter().flatten() {
        add_line(&mut output.system_message, &message);
    }
    let mut context = response::model_context(outcome);
    let refusal = reason_to_refuse(row, outcome);
    match row.kind {
        EventKind::BeforeToolDispatch => permission(&mut output, outcome, refusal),
        EventKind::PermissionRequested => permission_request(&mut output, outcome, refusal),
        EventKind::AfterToolDispatch => {
            // This alone keeps the output from the model, which reads the reason in its place.
            if let Some(reason) = refusal {
                output.r#continue = Some(false);
                output.stop_reason = Some(with_context(reason, context.take()));
            }
        }
        EventKind::PromptSubmitted => {
            if let Some(reason) = refusal {
                (output.decision, output.reason) = (Some(GeminiDecision::Block), Some(reason));
            }
        }
        // Any word but silence keeps the agent at work, also `continue: false`.
        EventKind::AgentStopping | EventKind::SubagentStopping if outcome.verdict == Verdict::Halt => {
            add_line(&mut output.system_message, &refusal.unwrap_or_default());
        }
        EventKind::AgentStopping | EventKind::SubagentStopping => {
            if let Some(reason) = refusal {
                output.decision = Some(GeminiDecision::Block);
                output.reason = Some(with_context(reason, context.take()));
            }
        }
        _ => add_line(&mut output.system_message, &refusal.unwrap_or_default()),
    }
    match context {
        Some(context) if row.context == ContextSupport::Taken => {
            set(&mut output, "additionalContext", &context);
        }
        Some(context) => add_line(&mut output.system_message, &context),
        None => {}
    }
    if output.is_empty() {
        // To nothing printed, the agent adds nothing: of two empty objects it makes a denied permission.
        return HostResponse { body: Some("{}".to_owned()), ..HostResponse::default() };
    }
    if !output.hook_specific_output.is_empty() {
        set(&mut output, "hookEventName", row.name);
    }
    response::of(&output, STRICTEST)
}

/// Why the agent must not go on, if it must not. It runs a tool and sends a prompt as they are.
fn reason_to_refuse(row: &EventRow, outcome: &Outcome) -> Option<String> {
    let halted = || outcome.reason.as_deref().unwrap_or("stopped by a hook").to_owned();
    let reason = match outcome.verdict {
        Verdict::Halt => Some(halted()),
        // The agent refuses such a call itself, and asks a person about such a permission.
        Verdict::Ask
            if matches!(row.kind, EventKind::BeforeToolDispatch | EventKind::PermissionRequested) =>
        {
            None
        }
        _ => response::refusal(outcome).map(String::from),
    };
    let is_lost = |target: &Target| {
        let is_taken = row.kind == EventKind::PermissionRequested && outcome.verdict == Verdict::Allow;
        !(is_taken && *target == Target::ToolInput)
    };
    let lost = || outcome.patched.iter().map(|(target, _)| target).find(is_lost).map(response::lost_change);
    reason.map(|reason| if reason.trim().is_empty() { NO_REASON.to_owned() } else { reason }).or_else(lost)
}

/// About a tool call. The agent does not run one that somebody has to be asked about; the model reads why.
fn permission(output: &mut GeminiOutput, outcome: &Outcome, refusal: Option<String>) {
    let given = || outcome.reason.as_deref().map(str::to_owned);
    let (word, reason) = match (refusal, outcome.verdict) {
        (Some(reason), _) => ("deny", Some(reason)),
        (None, Verdict::Ask) => ("ask", given()),
        (None, Verdict::Allow) => ("allow", given()),
        (None, _) => return,
    };
    set(output, "permissionDecision", word);
    if let Some(reason) = reason {
        set(output, "permissionDecisionReason", &reason);
    }
}

/// The answer in place of the person who would be asked.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PermissionAnswer<'a> {
    behavior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'a Json>,
}

/// Without a decision the agent asks a person.
fn permission_request(output: &mut GeminiOutput, outcome: &Outcome, refusal: Option<String>) {
    let updated_input = outcome.patched.get(Target::ToolInput);
    let answer = match (refusal, outcome.verdict) {
        (Some(message), _) => {
            let message = Some(message).filter(|message| message != NO_MESSAGE);
            PermissionAnswer { behavior: "deny", message, updated_input: None }
        }
        (None, Verdict::Allow) => PermissionAnswer { behavior: "allow", message: None, updated_input },
        (None, _) => return,
    };
    set(output, "decision", &answer);
}

fn set<T: Serialize + ?Sized>(output: &mut GeminiOutput, name: &str, value: &T) {
    if let Ok(value) = Json::of(value) {
        output.hook_specific_output.set(name, value);
    }
}

fn add_line(message: &mut Option<String>, line: &str) {
    if line.trim().is_empty() {
        return;
    }
    *message = Some(message.take().map_or_else(|| line.to_owned(), |text| format!("{text}\n{line}")));
}

fn with_context(reason: String, context: Option<String>) -> String {
    match context {
        Some(context) => format!("{reason}\n\n{context}"),
        None => reason,
    }
}
