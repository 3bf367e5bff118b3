//! Writes the response to a host of Claude Code's family: what one hook would have printed, and its exit code.
//! What an event cannot express becomes the stricter thing that it can.

use std::borrow::Cow;

use serde::{Serialize, Serializer};

use super::reply::{DEFER, TERMINAL_SEQUENCE, UPDATED_INPUT, WORKTREE_PATH};
use crate::{
    dialect::{
        event_table::{BlockEffect, ContextSupport, EventRow, PlainText, extra_field},
        response::{self, BLOCK, native_field},
    },
    model::{Event, EventKind, HostResponse, Json, Outcome, Target, Verdict},
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
    stop_reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    suppress_output: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    terminal_sequence: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Object::is_empty")]
    hook_specific_output: Object<'a>,
}

/// An object whose fields are in the order in which they were added.
#[derive(Default)]
pub(in crate::dialect) struct Object<'a>(Vec<(&'a str, Item<'a>)>);

#[derive(Serialize)]
#[serde(untagged)]
enum Item<'a> {
    Text(Cow<'a, str>),
    Json(&'a Json),
    Object(Object<'a>),
}

impl<'a> Object<'a> {
    pub(in crate::dialect) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(in crate::dialect) fn text(&mut self, name: &'a str, text: impl Into<Cow<'a, str>>) {
        self.0.push((name, Item::Text(text.into())));
    }

    pub(in crate::dialect) fn json(&mut self, name: &'a str, value: Option<&'a Json>) {
        self.0.extend(value.map(|value| (name, Item::Json(value))));
    }

    pub(in crate::dialect) fn object(&mut self, name: &'a str, value: Self) {
        self.0.push((name, Item::Object(value)));
    }

    /// What hooks of the host's own dialect said in words that have no canonical meaning, but for those that have their place
    /// elsewhere.
    pub(in crate::dialect) fn add_native(&mut self, outcome: &'a Outcome, placed: &[&str]) {
        let rest = outcome.native.iter().filter(|(name, _)| !placed.contains(&&**name));
        self.0.extend(rest.map(|(name, value)| (&**name, Item::Json(value))));
    }

    /// Puts the name of the event before the rest, if there is any.
    pub(in crate::dialect) fn name(&mut self, row: &EventRow) {
        if !self.is_empty() {
            self.0.insert(0, ("hookEventName", Item::Text(row.name.into())));
        }
    }
}

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, item)| (name, item)))
    }
}

/// The agents that run the hooks in the files of Claude Code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HostAgent {
    ClaudeCode,
    /// The local agent of VS Code. It says when an event was, which Claude Code does not, and of which call, which Copilot CLI
    /// does not.
    VsCode,
}

impl HostAgent {
    fn of(event: &Event) -> Self {
        let has = |name| extra_field(event, name).is_some();
        let is_of_tool = event.targets.get(Target::ToolInput).is_some();
        let says_call = event.tool_call_id.is_some() || !is_of_tool;
        let is_vscode = has("timestamp") && !has("permission_mode") && says_call;
        if is_vscode { Self::VsCode } else { Self::ClaudeCode }
    }
}

/// Writes the answer to an event of this row.
pub(super) fn write(event: &Event, row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    match (row, HostAgent::of(event)) {
        (None, _) => response::unreadable_event(outcome),
        (Some(row), HostAgent::VsCode) => for_vscode(row, outcome),
        (Some(row), HostAgent::ClaudeCode) => written(HostAgent::ClaudeCode, row, outcome),
    }
}

/// Writes the answer for VS Code. It discards a changed input that does not fit the schema of a tool, and runs the tool with
/// the original: so a change is a denial.
pub(in crate::dialect) fn for_vscode(row: &EventRow, outcome: &Outcome) -> HostResponse {
    let is_lost = row.kind == EventKind::BeforeToolDispatch
        && outcome.verdict < Verdict::Block
        && outcome.patched.get(Target::ToolInput).is_some();
    if is_lost {
        return written(HostAgent::VsCode, row, &response::blocked_for(Target::ToolInput, outcome));
    }
    written(HostAgent::VsCode, row, outcome)
}

fn written(agent: HostAgent, row: &EventRow, outcome: &Outcome) -> HostResponse {
    if row.plain_text == PlainText::Path {
        return made_path(row, outcome);
    }
    let mut output = Printed {
        suppress_output: (outcome.suppress_output || native_field(outcome, "suppressOutput").is_some())
            .then_some(true),
        system_message: response::user_message(outcome),
        terminal_sequence: native_field(outcome, TERMINAL_SEQUENCE),
        ..Printed::default()
    };
    if outcome.verdict == Verdict::Halt {
        output.halt(Cow::Borrowed(outcome.reason.as_deref().unwrap_or("stopped by a hook")));
    }
    match row.kind {
        EventKind::BeforeToolDispatch => output.permission(outcome),
        EventKind::PermissionRequested => output.permission_request(outcome),
        _ => output.refuse(agent, row, outcome),
    }
    if row.kind == EventKind::AfterToolDispatch && agent == HostAgent::ClaudeCode {
        output.hook_specific_output.json("updatedToolOutput", outcome.patched.get(Target::ToolOutput));
    }
    output.unexpressed(agent, row, outcome);
    output.context(row, outcome);
    // What is printed there reaches the model.
    if let Some(failures) = response::failures(outcome).filter(|_| row.context != ContextSupport::Printed) {
        output.add_message(&failures);
    }
    output.words(outcome);
    output.hook_specific_output.name(row);
    if row.context == ContextSupport::Printed && output.is_empty() {
        return output_text(outcome);
    }
    let by_exit = matches!(row.block, BlockEffect::PreventsByExit | BlockEffect::Declines);
    let stderr = output.reason.as_deref().filter(|_| by_exit).unwrap_or_default().to_owned();
    let exit_code = if stderr.is_empty() { 0 } else { BLOCK };
    HostResponse { stderr, exit_code, ..response::of(&output, STRICTEST) }
}

/// The answer to an event whose hooks make something: its path. Over HTTP it is a field.
pub(in crate::dialect) fn made_path(row: &EventRow, outcome: &Outcome) -> HostResponse {
    if let Some(refusal) = response::stopping_reason(outcome) {
        let mut output = Printed::default();
        output.halt(Cow::Borrowed(&refusal));
        let body = Some(response::of(&output, STRICTEST).stdout);
        return HostResponse {
            stderr: refusal.to_string(),
            exit_code: BLOCK,
            body,
            ..HostResponse::default()
        };
    }
    let Some(path) = native_field(outcome, WORKTREE_PATH) else {
        return HostResponse { body: Some("{}".to_owned()), ..HostResponse::default() };
    };
    let mut output = Printed::default();
    output.hook_specific_output.text("hookEventName", row.name);
    output.hook_specific_output.json(WORKTREE_PATH, Some(path));
    let body = Some(response::of(&output, STRICTEST).stdout);
    HostResponse { stdout: path.read::<String>().unwrap_or_default(), body, ..HostResponse::default() }
}

/// The answer to an event whose host takes standard output as text. Over HTTP it takes the body, which must be JSON.
fn output_text(outcome: &Outcome) -> HostResponse {
    let Some(text) = response::model_context(outcome) else {
        return HostResponse { body: Some(String::new()), ..HostResponse::default() };
    };
    let message = Printed { system_message: Some(text.clone()), ..Printed::default() };
    let body = Some(response::of(&message, STRICTEST).stdout);
    HostResponse { stdout: text, body, ..HostResponse::default() }
}

impl<'a> Printed<'a> {
    /// Whether nothing would be printed but an empty object.
    fn is_empty(&self) -> bool {
        let Self { r#continue, suppress_output, system_message, terminal_sequence, decision, .. } = self;
        r#continue.is_none()
            && suppress_output.is_none()
            && system_message.is_none()
            && terminal_sequence.is_none()
            && decision.is_none()
            && self.hook_specific_output.is_empty()
    }

    fn halt(&mut self, reason: Cow<'a, str>) {
        (self.r#continue, self.stop_reason) = (Some(false), Some(reason));
    }

    fn permission(&mut self, outcome: &'a Outcome) {
        let deferred = native_field(outcome, "permissionDecision");
        let decision = match outcome.verdict {
            Verdict::Allow => Some("allow"),
            Verdict::Ask if deferred.is_some() => Some(DEFER),
            Verdict::Ask => Some("ask"),
            Verdict::Block => Some("deny"),
            Verdict::Proceed | Verdict::Halt => None,
        };
        let specific = &mut self.hook_specific_output;
        if let Some(decision) = decision {
            specific.text("permissionDecision", decision);
            if let Some(reason) = outcome.reason.as_deref() {
                specific.text("permissionDecisionReason", reason);
            }
        }
        if outcome.verdict < Verdict::Block {
            specific.json(UPDATED_INPUT, outcome.patched.get(Target::ToolInput));
        }
    }

    /// Without a decision the host asks a person, which is what it was about to do; the person would be shown an
    /// input that a hook changed as it was.
    fn permission_request(&mut self, outcome: &'a Outcome) {
        let mut decision = Object::default();
        match outcome.verdict {
            Verdict::Proceed | Verdict::Ask if outcome.patched.get(Target::ToolInput).is_some() => {
                decision.text("behavior", "deny");
                decision.text("message", response::lost_change(Target::ToolInput));
            }
            Verdict::Allow => {
                decision.text("behavior", "allow");
                decision.json(UPDATED_INPUT, outcome.patched.get(Target::ToolInput));
                decision.json("updatedPermissions", native_field(outcome, "updatedPermissions"));
            }
            Verdict::Block => {
                decision.text("behavior", "deny");
                decision.text("message", outcome.reason.as_deref().unwrap_or("blocked by a hook"));
                decision.json("interrupt", native_field(outcome, "interrupt"));
            }
            Verdict::Proceed | Verdict::Ask | Verdict::Halt => return,
        }
        self.hook_specific_output.object("decision", decision);
    }

    fn refuse(&mut self, agent: HostAgent, row: &EventRow, outcome: &'a Outcome) {
        use EventKind::{AgentStopping, SubagentStopping};
        let Some(reason) = response::refusal(outcome) else { return };
        match row.block {
            BlockEffect::Nothing => return self.halt(reason),
            BlockEffect::Declines => self.hook_specific_output.text("action", "decline"),
            BlockEffect::Prevents
            | BlockEffect::PreventsByExit
            | BlockEffect::Tells
            | BlockEffect::Denies => {}
        }
        if agent == HostAgent::VsCode && matches!(row.kind, AgentStopping | SubagentStopping) {
            // It reads a block of a stop in this place alone.
            self.hook_specific_output.text("decision", "block");
            self.hook_specific_output.text("reason", reason.clone());
        }
        (self.decision, self.reason) = (Some("block"), Some(reason));
    }

    /// Patches that the host cannot receive. A prompt that went on unchanged might contain what a hook removed.
    fn unexpressed(&mut self, agent: HostAgent, row: &EventRow, outcome: &Outcome) {
        let supported = match row.kind {
            _ if agent == HostAgent::VsCode => None,
            EventKind::BeforeToolDispatch | EventKind::PermissionRequested => Some(Target::ToolInput),
            EventKind::AfterToolDispatch => Some(Target::ToolOutput),
            _ => None,
        };
        for (target, _) in outcome.patched.iter().filter(|(target, _)| Some(*target) != supported) {
            self.add_message(&response::lost_change(target));
            if target == Target::Prompt && self.decision.is_none() {
                (self.decision, self.reason) = (Some("block"), Some(response::lost_change(target).into()));
            }
        }
    }

    /// Context for the model: in its own field, or else with the reason, or else as a message to the person.
    fn context(&mut self, row: &EventRow, outcome: &Outcome) {
        let Some(context) = response::model_context(outcome) else { return };
        if row.context == ContextSupport::Taken {
            self.hook_specific_output.text("additionalContext", context);
        } else if row.context == ContextSupport::Printed && self.is_empty() {
            // It is all that is printed.
        } else if let Some(reason) = self.reason.take() {
            self.reason = Some(format!("{reason}\n\n{context}").into());
        } else {
            self.add_message(&context);
        }
    }

    fn words(&mut self, outcome: &'a Outcome) {
        const PLACED: [&str; 5] =
            ["suppressOutput", "permissionDecision", "updatedPermissions", "interrupt", TERMINAL_SEQUENCE];
        self.hook_specific_output.add_native(outcome, &PLACED);
    }

    fn add_message(&mut self, text: &str) {
        self.system_message = Some(match self.system_message.take() {
            Some(message) => format!("{message}\n\n{text}"),
            None => text.to_owned(),
        });
    }
}
