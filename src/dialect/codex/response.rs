//! Writes the response to Codex. An answer with a word too many is ignored and the tool runs, so each event gets
//! its own words alone, and what they cannot say becomes a denial.

use std::borrow::Cow;

use serde::Serialize;

use super::reply::STOP_REASON;
use crate::{
    dialect::{
        event_table::{ContextSupport, EventRow},
        response::{self, BLOCK},
    },
    model::{Event, EventKind, HostResponse, Json, JsonFields, Outcome, Target, Verdict},
};

/// Printed if an answer has no JSON form; the exit code says the same.
const STRICTEST: &str = "";

/// The reason of a refusal without one: a blank one would not count as a refusal.
const BLOCKED: &str = "blocked by a hook";

/// What a hook would have printed.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    r#continue: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<SpecificAnswer<'a>>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct SpecificAnswer<'a> {
    hook_event_name: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    updated_input: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<PermissionAnswer<'a>>,
}

#[derive(Serialize)]
struct PermissionAnswer<'a> {
    behavior: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<Cow<'a, str>>,
}

/// Writes the answer to an event of this row.
pub(super) fn write(event: &Event, row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return response::unreadable_event(outcome) };
    let messages = [response::user_message(outcome), response::failures(outcome)];
    let system_message = response::joined(messages);
    let mut output = Printed { system_message, ..Printed::default() };
    match row.kind {
        // It reads nothing that hooks on these events print.
        EventKind::SessionEnded => return silent(),
        EventKind::HostEvent if row.name != "Interrupt" => return silent(),
        EventKind::HostEvent => {}
        EventKind::BeforeToolDispatch => output.tool_call(event, outcome),
        EventKind::PermissionRequested => output.permission(outcome),
        EventKind::AfterToolDispatch
        | EventKind::PromptSubmitted
        | EventKind::AgentStopping
        | EventKind::SubagentStopping => output.block(row, outcome),
        _ => output.halt(stopping_reason(outcome).or_else(|| reason_to_stop(outcome))),
    }
    output.context(row, outcome);
    if let Some(specific) = &mut output.hook_specific_output {
        specific.hook_event_name = row.name;
    }
    if output.is_empty() {
        return silent();
    }
    let written = response::of(&output, STRICTEST);
    if written.stdout.is_empty() {
        return HostResponse { stderr: BLOCKED.to_owned(), exit_code: BLOCK, ..written };
    }
    written
}

/// Nothing printed, which every event takes for no opinion.
fn silent() -> HostResponse {
    HostResponse { body: Some("{}".to_owned()), ..HostResponse::default() }
}

/// Why the agent must not go on, if it must not.
fn stopping_reason(outcome: &Outcome) -> Option<Cow<'_, str>> {
    let halted = (outcome.verdict == Verdict::Halt)
        .then(|| Cow::Borrowed(outcome.reason.as_deref().unwrap_or("stopped by a hook")));
    let reason = halted.or_else(|| response::refusal(outcome))?;
    Some(if reason.trim().is_empty() { Cow::Borrowed(BLOCKED) } else { reason })
}

/// Why a hook that only watches ends the turn, if one does.
fn reason_to_stop(outcome: &Outcome) -> Option<Cow<'_, str>> {
    Some(Cow::Owned(
        response::native_field(outcome, STOP_REASON)?.read().unwrap_or_else(|_| BLOCKED.to_owned()),
    ))
}

/// Whether a message says something.
fn said(text: &str) -> bool {
    !text.trim().is_empty()
}

impl<'a> Printed<'a> {
    fn is_empty(&self) -> bool {
        let Self { r#continue, system_message, decision, hook_specific_output, .. } = self;
        r#continue.is_none()
            && system_message.is_none()
            && decision.is_none()
            && hook_specific_output.is_none()
    }

    fn specific(&mut self) -> &mut SpecificAnswer<'a> {
        self.hook_specific_output.get_or_insert_default()
    }

    /// About a tool call it knows a denial and a changed input; it asks nobody, and does not end the turn.
    fn tool_call(&mut self, event: &Event, outcome: &'a Outcome) {
        let input = outcome.patched.get(Target::ToolInput);
        let lost = || {
            let is_lost = input.is_some_and(|input| !arrives(event, input));
            is_lost.then(|| Cow::Owned(response::lost_change(Target::ToolInput)))
        };
        if let Some(reason) = stopping_reason(outcome).or_else(lost) {
            self.specific().permission_decision = Some("deny");
            self.specific().permission_decision_reason = Some(reason);
        } else if input.is_some() {
            self.specific().permission_decision = Some("allow");
            self.specific().updated_input = input;
        }
    }

    /// Without a decision the agent asks a person, who would be shown an input that a hook changed as it was.
    fn permission(&mut self, outcome: &'a Outcome) {
        let lost = || Some(Cow::Owned(response::lost_change(Target::ToolInput)));
        let changed = || outcome.patched.get(Target::ToolInput).and_then(|_| lost());
        let refusal = stopping_reason(outcome).filter(|_| outcome.verdict != Verdict::Ask).or_else(changed);
        let decision = match refusal {
            Some(message) => PermissionAnswer { behavior: "deny", message: Some(message) },
            None if outcome.verdict == Verdict::Allow => {
                PermissionAnswer { behavior: "allow", message: None }
            }
            None => return,
        };
        self.specific().decision = Some(decision);
    }

    /// The decision about a prompt, a tool's output or a stop. A change that the agent cannot receive blocks: the
    /// reason then stands in place of the tool's output, and the prompt is not sent.
    fn block(&mut self, row: &EventRow, outcome: &'a Outcome) {
        let is_tool = row.kind == EventKind::AfterToolDispatch;
        if outcome.verdict == Verdict::Halt {
            let reason = stopping_reason(outcome);
            self.halt(reason.clone());
            // It goes on after the tool all the same; the model is to read why it gets no further.
            self.reason = reason.filter(|_| is_tool);
            return;
        }
        let target = if is_tool { Target::ToolOutput } else { Target::Prompt };
        let lost = || outcome.patched.get(target).map(|_| Cow::Owned(response::lost_change(target)));
        if let Some(reason) = stopping_reason(outcome).or_else(lost) {
            (self.decision, self.reason) = (Some("block"), Some(reason));
        }
    }

    fn halt(&mut self, reason: Option<Cow<'a, str>>) {
        if let Some(reason) = reason {
            (self.r#continue, self.stop_reason) = (Some(false), Some(reason));
        }
    }

    /// Context for the model: in its own field, or else with the reason, or else as a message to the person.
    fn context(&mut self, row: &EventRow, outcome: &Outcome) {
        let Some(context) = response::model_context(outcome).filter(|text| said(text)) else { return };
        if row.context == ContextSupport::Taken {
            self.specific().additional_context = Some(context);
        } else if let Some(reason) = self.reason.take() {
            self.reason = Some(format!("{reason}\n\n{context}").into());
        } else {
            self.system_message = Some(match self.system_message.take() {
                Some(message) => format!("{message}\n\n{context}"),
                None => context,
            });
        }
    }
}

/// Whether the agent runs a tool call with exactly this input. Of the input of these tools it takes the command alone.
fn arrives(event: &Event, input: &Json) -> bool {
    let takes_command = matches!(event.attributes.tool_name.as_deref(), Some("Bash" | "apply_patch"));
    if !takes_command {
        return true;
    }
    let Some(changed) = input.fields() else { return false };
    let sent = event.targets.get(Target::ToolInput).and_then(Json::fields);
    let is_text = changed.get("command").is_some_and(|value| value.get().starts_with('"'));
    is_text && sent.as_ref().map(others).unwrap_or_default() == others(&changed)
}

/// The fields beside the command, in an order of their own.
fn others<'j>(fields: &'j JsonFields<'j>) -> Vec<(&'j str, &'j str)> {
    let others = fields.iter().filter(|(name, _)| *name != "command");
    let mut others: Vec<_> = others.map(|(name, value)| (name, value.get())).collect();
    others.sort_unstable();
    others
}
