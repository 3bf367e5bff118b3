//! Writes answers to Droid: on each event the words that it reads there.

use serde::Serialize;

use crate::{
    dialect::{
        claude::Object,
        event_table::{ContextSupport, EventRow},
        response::{self, BLOCK},
    },
    model::{EventKind, HostResponse, Outcome, Target, Verdict},
};

/// Printed if an answer has no JSON form.
const STRICTEST: &str = r#"{"continue":false,"stopReason":"the answer could not be written"}"#;

/// What a hook would have printed.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#continue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Object::is_empty")]
    hook_specific_output: Object<'a>,
}

/// Writes the answer to an event of this row. Of nothing to say, nothing is printed: of a prompt and a start, the model
/// would read it.
pub(super) fn write(row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return response::unreadable_event(outcome) };
    let mut output = Printed::default();
    let mut messages = vec![response::user_message(outcome), response::failures(outcome)];
    let is_taken = |target| match row.kind {
        EventKind::BeforeToolDispatch => target == Target::ToolInput,
        EventKind::PromptSubmitted => target == Target::Prompt,
        _ => false,
    };
    let lost = outcome.patched.iter().map(|(target, _)| target).filter(|target| !is_taken(*target));
    messages.extend(lost.map(|target| Some(response::lost_change(target))));
    let halted = (outcome.verdict == Verdict::Halt)
        .then(|| outcome.reason.as_deref().unwrap_or("stopped by a hook").to_owned());
    let refusal = response::refusal(outcome).map(String::from).or(halted.clone());
    let mut by_exit = None;
    match row.kind {
        EventKind::BeforeToolDispatch if halted.is_none() => output.permission(outcome, refusal),
        EventKind::PromptSubmitted if refusal.is_none() => output.prompt(outcome),
        // There is an end of the run, and for a prompt no other word.
        EventKind::BeforeToolDispatch | EventKind::PromptSubmitted => output.end(refusal),
        EventKind::AfterToolDispatch | EventKind::AgentStopping if halted.is_some() => output.end(halted),
        EventKind::AgentStopping => {
            output.decision = refusal.is_some().then_some("block");
            output.reason = refusal;
        }
        EventKind::AfterToolDispatch | EventKind::BeforeContextCompact => by_exit = refusal,
        _ => messages.push(refusal),
    }
    match response::model_context(outcome) {
        Some(context) if row.context == ContextSupport::Taken && output.r#continue.is_none() => {
            output.hook_specific_output.text("additionalContext", context);
        }
        Some(context) => match &mut output.reason {
            Some(reason) => *reason = format!("{reason}\n\n{context}"),
            None => messages.push(Some(context)),
        },
        None => {}
    }
    output.system_message = response::joined(messages);
    output.hook_specific_output.name(row);
    let answer = if output.is_empty() {
        HostResponse { body: Some("{}".to_owned()), ..HostResponse::default() }
    } else {
        response::of(&output, STRICTEST)
    };
    match by_exit {
        Some(reason) => HostResponse { stderr: reason, exit_code: BLOCK, ..answer },
        None => answer,
    }
}

impl<'a> Printed<'a> {
    fn is_empty(&self) -> bool {
        let Self { r#continue, stop_reason: _, decision, reason: _, system_message, hook_specific_output } =
            self;
        r#continue.is_none()
            && decision.is_none()
            && system_message.is_none()
            && hook_specific_output.is_empty()
    }

    fn end(&mut self, reason: Option<String>) {
        (self.r#continue, self.stop_reason) = (Some(false), reason);
    }

    /// The decision about a tool call, or its changed input. The agent asks nobody because a hook wants it, so that is a
    /// denial.
    fn permission(&mut self, outcome: &'a Outcome, refusal: Option<String>) {
        let specific = &mut self.hook_specific_output;
        let reason = match (refusal, outcome.verdict) {
            (Some(reason), _) => {
                specific.text("permissionDecision", "deny");
                Some(reason)
            }
            (None, Verdict::Allow) => {
                specific.text("permissionDecision", "allow");
                outcome.reason.as_deref().map(str::to_owned)
            }
            (None, _) => None,
        };
        let is_denied = outcome.verdict >= Verdict::Ask;
        if let Some(reason) = reason {
            specific.text("permissionDecisionReason", reason);
        }
        if !is_denied {
            specific.json("updatedInput", outcome.patched.get(Target::ToolInput));
        }
    }

    /// A changed prompt is a field of a changed input.
    fn prompt(&mut self, outcome: &'a Outcome) {
        let Some(prompt) = outcome.patched.get(Target::Prompt) else { return };
        let mut input = Object::default();
        input.json("prompt", Some(prompt));
        self.hook_specific_output.object("updatedInput", input);
    }
}
