//! Writes the response to CodeBuddy. What an event cannot express is a denial with a reason, or a message.

use serde::Serialize;

use super::reply::CHANGED_INPUT;
use crate::{
    dialect::{
        claude::{Object, made_path},
        event_table::{BlockEffect, ContextSupport, EventRow, PlainText},
        response::{self, BLOCK},
    },
    model::{EventKind, HostResponse, Outcome, Target, Verdict},
};

/// Printed if an answer has no JSON form.
const STRICTEST: &str = r#"{"continue":false,"stopReason":"the answer could not be written"}"#;

/// The reason of a refusal without one.
const NO_REASON: &str = "blocked by a hook";

/// What a hook would have printed. There is no end of a run: `continue: false` refuses what is about to happen, and at a
/// stop it keeps the agent at work.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppress_output: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Object::is_empty")]
    hook_specific_output: Object<'a>,
    /// Why a tool does not run. The agent may read nothing of what is printed, if another of its processes ends in the same
    /// moment, and takes nothing for consent unless the exit code says otherwise.
    #[serde(skip)]
    denied: Option<String>,
}

/// Writes the answer to an event of this row.
pub(super) fn write(row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return response::unreadable_event(outcome) };
    if row.plain_text == PlainText::Path {
        return made_path(row, outcome);
    }
    let mut output = Printed::default();
    let mut context = vec![response::model_context(outcome)];
    let mut messages = vec![response::user_message(outcome), response::failures(outcome)];
    messages.extend(lost_changes(row, outcome).map(|target| Some(response::lost_change(target))));
    let refusal = refusal(row, outcome);
    match row.kind {
        EventKind::BeforeToolDispatch => output.permission(outcome, refusal),
        EventKind::PermissionRequested => output.permission_request(outcome, refusal),
        EventKind::PromptSubmitted => output.refuse(refusal),
        // A halt is the end, which is what the agent is about to come to.
        EventKind::AgentStopping | EventKind::SubagentStopping if outcome.verdict != Verdict::Halt => {
            output.refuse(refusal);
        }
        // What has happened stays so; the model reads why it should not have.
        EventKind::AfterToolDispatch | EventKind::ToolFailed => context.insert(0, refusal),
        _ => {
            if refusal.is_some() && row.block == BlockEffect::Declines {
                output.hook_specific_output.text("action", "decline");
            }
            messages.push(refusal);
        }
    }
    match (row.context, response::joined(context)) {
        (ContextSupport::Taken, Some(text)) => output.hook_specific_output.text("additionalContext", text),
        // It is all that the agent reads.
        (ContextSupport::Printed, Some(text)) => {
            let stderr = response::joined(messages).unwrap_or_default();
            return HostResponse {
                stdout: text.clone(),
                stderr,
                body: Some(text),
                ..HostResponse::default()
            };
        }
        (_, text) if output.reason.is_some() => {
            output.reason = response::joined([output.reason.take(), text]);
        }
        (_, text) => messages.push(text),
    }
    output.system_message = response::joined(messages);
    output.hook_specific_output.add_native(outcome, &[]);
    output.hook_specific_output.name(row);
    output.print(row)
}

/// Why the agent must not go on, if it must not. A prompt that went on unchanged might contain what a hook removed.
fn refusal(row: &EventRow, outcome: &Outcome) -> Option<String> {
    let is_asked = matches!(row.kind, EventKind::BeforeToolDispatch | EventKind::PermissionRequested);
    let reason = match outcome.verdict {
        Verdict::Halt => Some(outcome.reason.as_deref().unwrap_or("stopped by a hook").into()),
        Verdict::Ask if is_asked => None,
        _ => response::refusal(outcome),
    };
    let is_lost = row.kind == EventKind::PromptSubmitted && outcome.patched.get(Target::Prompt).is_some();
    let lost = || is_lost.then(|| response::lost_change(Target::Prompt).into());
    let reason = reason.or_else(lost)?;
    Some(if reason.trim().is_empty() { NO_REASON.to_owned() } else { reason.into_owned() })
}

/// What hooks changed that the agent cannot receive.
fn lost_changes(row: &EventRow, outcome: &Outcome) -> impl Iterator<Item = Target> {
    let has_input = matches!(row.kind, EventKind::BeforeToolDispatch | EventKind::PermissionRequested);
    let changed = outcome.patched.iter().map(|(target, _)| target);
    changed.filter(move |target| !(has_input && *target == Target::ToolInput)).collect::<Vec<_>>().into_iter()
}

impl<'a> Printed<'a> {
    fn refuse(&mut self, reason: Option<String>) {
        self.decision = reason.is_some().then_some("block");
        self.reason = reason;
    }

    /// The decision about a tool call, or its changed input. It reads one of the two names of the field; which, depends on its
    /// version.
    fn permission(&mut self, outcome: &'a Outcome, refusal: Option<String>) {
        let (word, reason) = match (refusal, outcome.verdict) {
            (Some(reason), _) => (Some("deny"), Some(reason)),
            (None, Verdict::Ask) => (Some("ask"), outcome.reason.as_deref().map(str::to_owned)),
            (None, Verdict::Allow) => (Some("allow"), outcome.reason.as_deref().map(str::to_owned)),
            (None, _) => (None, None),
        };
        if word == Some("deny") {
            self.denied.clone_from(&reason);
        }
        let specific = &mut self.hook_specific_output;
        if let Some(word) = word {
            specific.text("permissionDecision", word);
        }
        if let Some(reason) = reason {
            specific.text("permissionDecisionReason", reason);
        }
        if word != Some("deny") {
            for name in CHANGED_INPUT {
                specific.json(name, outcome.patched.get(Target::ToolInput));
            }
        }
    }

    /// Without a decision the host asks a person, who would be shown an input that a hook changed as it was.
    fn permission_request(&mut self, outcome: &'a Outcome, refusal: Option<String>) {
        let input = outcome.patched.get(Target::ToolInput);
        let lost = || input.map(|_| response::lost_change(Target::ToolInput));
        let mut decision = Object::default();
        match (refusal, outcome.verdict) {
            (None, Verdict::Allow) => {
                decision.text("behavior", "allow");
                decision.json("updatedInput", input);
            }
            (refusal, _) => {
                let Some(reason) = refusal.or_else(lost) else { return };
                decision.text("behavior", "deny");
                self.denied = Some(reason.clone());
                decision.text("message", reason);
            }
        }
        self.hook_specific_output.object("decision", decision);
    }

    fn is_empty(&self) -> bool {
        let Self { decision, reason, suppress_output: _, system_message, hook_specific_output, denied: _ } =
            self;
        decision.is_none() && reason.is_none() && system_message.is_none() && hook_specific_output.is_empty()
    }

    /// Of nothing to say, nothing is printed: on some events, the model reads what is.
    fn print(mut self, row: &EventRow) -> HostResponse {
        if self.is_empty() {
            return HostResponse { body: Some(String::new()), ..HostResponse::default() };
        }
        self.suppress_output = (row.plain_text == PlainText::Told).then_some(true);
        let refused = self.denied.take().or_else(|| self.reason.clone());
        let exit_code = if refused.is_some() { BLOCK } else { 0 };
        let stderr = refused.unwrap_or_default();
        HostResponse { stderr, exit_code, ..response::of(&self, STRICTEST) }
    }
}
