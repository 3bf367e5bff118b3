//! Writes the response to Cursor: on each event the words that it reads there.

use serde::Serialize;

use super::reply::{AGENT_MESSAGE, ENV, SEPARATOR, STOPS};
use crate::{
    dialect::{
        event_table::{ContextSupport, EventRow},
        response,
    },
    model::{EventKind, HostResponse, Json, NoteKind, Outcome, Target, Verdict},
};

/// Printed if an answer has no JSON form: on each event, the agent reads the word that it knows there.
const STRICTEST: &str = r#"{"permission":"deny","continue":false}"#;

/// The reason of a refusal without one.
const NO_REASON: &str = "blocked by a hook";

/// The longest context that it takes, in characters; a longer one is lost.
const LONGEST_CONTEXT: usize = 10_000;

/// What a hook would have printed. The agent refuses words of another type, and ignores those that an event does not have.
#[derive(Default, Serialize)]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#continue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    user_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    agent_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    followup_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    env: Option<&'a Json>,
}

/// Writes the answer to an event of this row. What has no place in it is on standard error, which the agent logs.
pub(super) fn write(row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return response::unreadable_event(outcome) };
    let mut output = Printed::default();
    let noted = |wanted: fn(NoteKind) -> bool| {
        let notes = outcome.notes.iter().filter(|note| wanted(note.kind));
        Some(joined(notes.map(|note| Some(note.text.to_string())))).filter(|text| !text.is_empty())
    };
    let mut messages = vec![noted(|kind| kind != NoteKind::AdditionalContext), response::failures(outcome)];
    let mut context = noted(|kind| kind == NoteKind::AdditionalContext);
    let refusal = reason_to_refuse(row, outcome);
    match row.kind {
        EventKind::BeforeToolDispatch | EventKind::HostEvent if row.prevents() => {
            output.permit(row, outcome, refusal);
        }
        EventKind::PromptSubmitted => {
            if let Some(reason) = refusal {
                output.r#continue = Some(false);
                messages.insert(0, Some(reason));
            }
        }
        // The end of the session is what an end of the run asks for.
        EventKind::AgentStopping | EventKind::SubagentStopping if outcome.verdict == Verdict::Halt => {
            messages.push(refusal);
        }
        EventKind::AgentStopping | EventKind::SubagentStopping => {
            output.followup_message = refusal.map(|reason| joined([Some(reason), context.take()]));
        }
        // What has happened stays so; the model reads why it should not have.
        EventKind::AfterToolDispatch | EventKind::ToolFailed => {
            context = Some(joined([refusal, context])).filter(|text| !text.is_empty());
        }
        EventKind::SessionStarted => {
            output.r#continue = response::native_field(outcome, STOPS).map(|_| false);
            output.env = response::native_field(outcome, ENV);
        }
        _ => messages.push(refusal),
    }
    match context {
        Some(text) if row.context == ContextSupport::Taken => {
            output.additional_context = Some(text.chars().take(LONGEST_CONTEXT).collect());
        }
        other => messages.push(other),
    }
    let message = joined(messages);
    if row.reads_messages() && !message.is_empty() {
        output.user_message = Some(match output.user_message.take() {
            Some(reason) => joined([Some(reason), Some(message)]),
            None => message,
        });
        return response::of(&output, STRICTEST);
    }
    HostResponse { stderr: message, ..response::of(&output, STRICTEST) }
}

impl EventRow {
    /// Whether the agent shows the person what an answer says.
    fn reads_messages(&self) -> bool {
        let reads = [EventKind::PromptSubmitted, EventKind::SessionStarted, EventKind::BeforeContextCompact];
        self.kind == EventKind::BeforeToolDispatch
            || self.prevents() && self.kind == EventKind::HostEvent
            || reads.contains(&self.kind)
    }
}

impl<'a> Printed<'a> {
    /// About what the agent is about to do. The model reads the message for the person, too.
    fn permit(&mut self, row: &EventRow, outcome: &'a Outcome, refusal: Option<String>) {
        let given = || outcome.reason.as_deref().map(str::to_owned);
        let (word, reason) = match (refusal, outcome.verdict) {
            (Some(reason), _) => (Some("deny"), Some(reason)),
            (None, Verdict::Ask) => (Some("ask"), given()),
            (None, Verdict::Allow) => (Some("allow"), given()),
            (None, _) => (None, None),
        };
        self.permission = word;
        let to_model = response::native_field(outcome, AGENT_MESSAGE).and_then(|text| text.read().ok());
        self.agent_message = to_model.or_else(|| reason.clone());
        self.user_message = reason;
        if word != Some("deny") && row.kind == EventKind::BeforeToolDispatch {
            self.updated_input = outcome.patched.get(Target::ToolInput);
        }
    }
}

/// Why the agent must not go on, if it must not. It asks a person about shell commands and calls of MCP servers alone: of
/// any other tool call it ignores that word, and the tool runs.
fn reason_to_refuse(row: &EventRow, outcome: &Outcome) -> Option<String> {
    let reason = match outcome.verdict {
        Verdict::Halt => Some(outcome.reason.as_deref().unwrap_or("stopped by a hook").to_owned()),
        Verdict::Ask if matches!(row.name, "beforeShellExecution" | "beforeMCPExecution") => None,
        _ => response::refusal(outcome).map(String::from),
    };
    let is_lost = |(target, value): &(Target, &Json)| {
        let is_taken = *target == Target::ToolInput && row.kind == EventKind::BeforeToolDispatch;
        !(is_taken && value.kind() == "an object")
    };
    let lost = || outcome.patched.iter().find(is_lost).map(|(target, _)| response::lost_change(target));
    reason.map(|reason| if reason.trim().is_empty() { NO_REASON.to_owned() } else { reason }).or_else(lost)
}

fn joined(texts: impl IntoIterator<Item = Option<String>>) -> String {
    let said = texts.into_iter().flatten().filter(|text| !text.trim().is_empty());
    said.collect::<Vec<_>>().join(SEPARATOR)
}
