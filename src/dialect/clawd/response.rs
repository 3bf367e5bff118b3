//! Writes the response to a ClawdCode host. What an event cannot express becomes the stricter thing that it can, or
//! the exit code of a block.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    dialect::{
        event_table::{BlockEffect, ContextSupport, EventRow},
        response::{self, BLOCK},
    },
    model::{EventKind, HostResponse, Json, Outcome, Target, Verdict},
};

/// Printed if an answer has no JSON form.
const STRICTEST: &str =
    r#"{"decision":"deny","continue":false,"prevent":true,"reason":"the answer could not be written"}"#;

/// What is printed.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#continue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    prevent: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_input: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
}

/// Writes the answer to an event of this row; without one, to an event that could not be read.
pub(super) fn write(row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let mut output = Printed::default();
    // What has no place in the answer is for the person at the host.
    let mut aside: Vec<String> = response::user_message(outcome).into_iter().collect();
    let mut exit_code = 0;
    match row.map(|row| row.kind) {
        Some(EventKind::BeforeToolDispatch) => output.permission(outcome, None, "allow"),
        Some(EventKind::PermissionRequested) => output.permission(outcome, Some("ask"), "approve"),
        Some(EventKind::AgentStopping | EventKind::SubagentStopping) => {
            // A halt wants the agent to stop.
            output.r#continue = Some(matches!(outcome.verdict, Verdict::Ask | Verdict::Block));
            output.reason = refusal(outcome);
        }
        Some(EventKind::BeforeContextCompact) => {
            output.reason = refusal(outcome);
            output.prevent = Some(output.reason.is_some());
        }
        _ => {
            if let Some(reason) = refusal(outcome).or_else(|| lost_prompt(outcome)) {
                exit_code = BLOCK;
                aside.insert(0, reason.into_owned());
            }
        }
    }
    aside.extend(unexpressed(row, outcome));
    output.context(row, outcome, &mut aside);
    let printed = response::of(&output, STRICTEST);
    HostResponse { stderr: aside.join("\n\n"), exit_code, ..printed }
}

/// Why the host must not go on.
fn refusal(outcome: &Outcome) -> Option<Cow<'_, str>> {
    match outcome.verdict {
        Verdict::Halt => Some(outcome.reason.as_deref().unwrap_or("stopped by a hook").into()),
        _ => response::refusal(outcome),
    }
}

/// A prompt that went on unchanged might contain what a hook removed.
fn lost_prompt(outcome: &Outcome) -> Option<Cow<'_, str>> {
    let lost = outcome.patched.get(Target::Prompt).is_some();
    lost.then(|| "a hook changed the prompt, which this host cannot receive".into())
}

/// The patches that the host cannot receive.
fn unexpressed(row: Option<&EventRow>, outcome: &Outcome) -> Vec<String> {
    let is_supported = |target| match target {
        Target::ToolInput => row.is_some_and(|row| row.block == BlockEffect::Denies),
        Target::Prompt => true,
        _ => false,
    };
    let lost = outcome.patched.iter().filter(|(target, _)| !is_supported(*target));
    lost.map(|(target, _)| format!("a hook changed `{target}`, which this host cannot receive")).collect()
}

impl<'a> Printed<'a> {
    /// The decision about a tool call; `undecided` and `consent` are the event's names for two of them.
    fn permission(&mut self, outcome: &'a Outcome, undecided: Option<&'static str>, consent: &'static str) {
        self.decision = match outcome.verdict {
            Verdict::Proceed => undecided,
            Verdict::Allow => Some(consent),
            Verdict::Ask => Some("ask"),
            Verdict::Block | Verdict::Halt => Some("deny"),
        };
        if outcome.verdict >= Verdict::Block {
            self.reason = refusal(outcome);
        } else {
            self.reason = outcome.reason.as_deref().map(Cow::Borrowed);
            self.modified_input = outcome.patched.get(Target::ToolInput);
        }
    }

    /// Context for the model: in its own field, or else with the reason, or else as a message. The model also receives
    /// the reason against something that has happened already.
    fn context(&mut self, row: Option<&EventRow>, outcome: &Outcome, aside: &mut Vec<String>) {
        let context = response::model_context(outcome);
        if row.is_some_and(|row| row.context == ContextSupport::Taken) {
            let tells = row.is_some_and(|row| row.block == BlockEffect::Tells);
            let why = refusal(outcome).filter(|_| tells).map(Cow::into_owned);
            let parts: Vec<String> = why.into_iter().chain(context).collect();
            self.additional_context = (!parts.is_empty()).then(|| parts.join("\n\n"));
        } else if let Some(context) = context {
            match self.reason.take() {
                Some(reason) => self.reason = Some(format!("{reason}\n\n{context}").into()),
                None => aside.push(context),
            }
        }
    }
}
