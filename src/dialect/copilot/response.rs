//! Writes answers to Copilot: on each event the words that it reads there.

use serde::Serialize;

use super::reply::NO_REASON;
use crate::{
    dialect::{
        claude::for_vscode,
        event_table::{ContextSupport, EventRow, extra_field},
        response,
    },
    model::{DialectName, Event, EventKind, HostResponse, Json, Outcome, Target, Verdict},
};

/// The result of a tool of another agent.
pub(super) fn result(value: &Json) -> Option<Json> {
    #[derive(Serialize)]
    struct ToolResult {
        result_type: &'static str,
        text_result_for_llm: String,
    }
    let is_one = value.fields().is_some_and(|fields| fields.get("text_result_for_llm").is_some());
    if is_one {
        return None;
    }
    Json::of(&ToolResult { result_type: "success", text_result_for_llm: text_of(value) }).ok()
}

/// The result of a tool in the second spelling.
pub(super) fn own_result(event: &Event, value: &Json) -> Option<Json> {
    let kind = value.fields().and_then(|fields| {
        let kind = fields.get("result_type").filter(|_| event.dialect == DialectName::Copilot)?;
        serde_json::from_str::<String>(kind.get()).ok()
    });
    let result_type = kind.as_deref().unwrap_or("success");
    Json::of(&OwnResult { result_type, text_result_for_llm: text_of(value) }).ok()
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnResult<'a> {
    result_type: &'a str,
    text_result_for_llm: String,
}

/// The text of a result that the model reads.
fn text_of(value: &Json) -> String {
    let fields = value.fields();
    let own = fields.as_ref().and_then(|fields| fields.get("text_result_for_llm"));
    let own = own.and_then(|text| serde_json::from_str(text.get()).ok());
    own.or_else(|| value.read().ok()).unwrap_or_else(|| value.as_str().to_owned())
}

/// Printed if an answer has no JSON form: on each event, the agent reads the word that it knows there.
const STRICTEST: &str = r#"{"permissionDecision":"deny","behavior":"deny","decision":"block","hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}}"#;

/// What a hook would have printed. The agent ignores what an event does not know, so each gets its own words.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Printed<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    permission_decision_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_args: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_prompt: Option<&'a Json>,
    #[serde(skip_serializing_if = "Option::is_none")]
    modified_result: Option<OwnResult<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    behavior: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    decision: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    additional_context: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook_specific_output: Option<ToolDenial>,
}

/// A denial of a tool call where Copilot CLI reads it too, and VS Code alone: also where nothing tells the two apart, such as
/// without a daemon.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolDenial {
    hook_event_name: &'static str,
    permission_decision: &'static str,
    permission_decision_reason: Option<String>,
}

/// Whether the host is the local agent of VS Code, which runs the hooks of these files, too. It reads the words of Claude
/// Code alone, and has fields that Copilot CLI does not have on the same event.
fn is_vscode(event: &Event) -> bool {
    let has = |name| extra_field(event, name).is_some();
    has("tool_use_id") || (has("transcript_path") && !has("stop_reason"))
}

/// Writes the answer to an event of this row. The person at the agent reads standard error.
pub(super) fn write(event: &Event, row: Option<&EventRow>, outcome: &Outcome) -> HostResponse {
    let Some(row) = row else { return response::unreadable_event(outcome) };
    if is_vscode(event) {
        return for_vscode(row, outcome);
    }
    let mut output = Printed::default();
    let mut messages = vec![response::user_message(outcome), response::failures(outcome)];
    let mut context = response::model_context(outcome).filter(|text| !text.trim().is_empty());
    let refusal = reason_to_refuse(row.kind, outcome);
    match (row.kind, refusal) {
        (EventKind::BeforeToolDispatch, refusal) => output.tool_call(outcome, refusal),
        (EventKind::PermissionRequested, Some(reason)) => {
            (output.behavior, output.message) = (Some("deny"), Some(reason));
        }
        (EventKind::PermissionRequested, None) => {
            output.behavior = (outcome.verdict == Verdict::Allow).then_some("allow");
        }
        // Only a block keeps it at work.
        (EventKind::AgentStopping | EventKind::SubagentStopping, refusal)
            if outcome.verdict == Verdict::Halt =>
        {
            messages.push(refusal);
        }
        (
            EventKind::AfterToolDispatch
            | EventKind::PromptSubmitted
            | EventKind::AgentStopping
            | EventKind::SubagentStopping,
            Some(reason),
        ) => (output.decision, output.reason) = (Some("block"), Some(reason)),
        (EventKind::PromptSubmitted, None) => output.modified_prompt = outcome.patched.get(Target::Prompt),
        (EventKind::AfterToolDispatch, None) => {
            let changed = outcome.patched.get(Target::ToolOutput);
            output.modified_result = changed
                .map(|value| OwnResult { result_type: "success", text_result_for_llm: text_of(value) });
        }
        (_, refusal) => messages.push(refusal),
    }
    match (row.context, &mut output.reason) {
        (ContextSupport::Taken, _) => output.additional_context = context.take(),
        (_, Some(reason)) => {
            if let Some(context) = context.take() {
                *reason = format!("{reason}\n\n{context}");
            }
        }
        _ => messages.push(context.take()),
    }
    let stderr = messages.into_iter().flatten().collect::<Vec<_>>().join("\n");
    HostResponse { stderr, ..response::of(&output, STRICTEST) }
}

/// Why the agent must not go on, if it must not.
fn reason_to_refuse(kind: EventKind, outcome: &Outcome) -> Option<String> {
    let reason = match outcome.verdict {
        Verdict::Halt => Some(outcome.reason.as_deref().unwrap_or("stopped by a hook").to_owned()),
        // It asks the person itself.
        Verdict::Ask if matches!(kind, EventKind::BeforeToolDispatch | EventKind::PermissionRequested) => {
            None
        }
        _ => response::refusal(outcome).map(String::from),
    };
    let is_lost = |(target, value): &(Target, &Json)| !receives(kind, *target, value);
    let lost = || outcome.patched.iter().find(is_lost).map(|(target, _)| response::lost_change(target));
    reason.map(|reason| if reason.trim().is_empty() { NO_REASON.to_owned() } else { reason }).or_else(lost)
}

/// Whether the agent takes a changed part of the payload.
fn receives(kind: EventKind, target: Target, value: &Json) -> bool {
    match target {
        Target::ToolInput => kind == EventKind::BeforeToolDispatch && value.kind() == "an object",
        Target::ToolOutput => kind == EventKind::AfterToolDispatch,
        Target::Prompt => kind == EventKind::PromptSubmitted && value.kind() == "a string",
        _ => false,
    }
}

impl<'a> Printed<'a> {
    /// About a tool call it knows all but the end of the run.
    fn tool_call(&mut self, outcome: &'a Outcome, refusal: Option<String>) {
        let given = || outcome.reason.as_deref().map(str::to_owned);
        let decided = match (refusal, outcome.verdict) {
            (Some(reason), _) => Some(("deny", Some(reason))),
            (None, Verdict::Ask) => Some(("ask", given())),
            (None, Verdict::Allow) => Some(("allow", given())),
            (None, _) => None,
        };
        if let Some((word, reason)) = decided {
            self.permission_decision = Some(word);
            self.hook_specific_output = (word == "deny").then(|| ToolDenial {
                hook_event_name: "PreToolUse",
                permission_decision: word,
                permission_decision_reason: reason.clone(),
            });
            self.permission_decision_reason = reason;
        }
        if self.permission_decision != Some("deny") {
            self.modified_args = outcome.patched.get(Target::ToolInput);
        }
    }
}
