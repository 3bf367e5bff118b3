//! Reads the answers of Copilot's hooks. What is printed is JSON as a whole, or nothing.

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::{
    dialect::{
        event_reader::unquoted,
        event_table::EventRow,
        output::{
            check_size, exited, flag_of, invalid, object_of, printed_too_much, refused_by_server, text_of,
            value_of,
        },
    },
    model::{
        EventKind, Failure, HookDecision, Json, JsonFields, NoteKind, Patch, RawReply, Reply, Target,
        check_json,
    },
};

/// The exit code of a block.
const BLOCK: i32 = 2;

/// The reason of a refusal without one.
pub(super) const NO_REASON: &str = "No reason provided";

/// The prefix of the names of fields of `hookSpecificOutput` in messages.
const WITHIN: &str = "hookSpecificOutput.";

/// Reads the output of a handler. Before a tool call and about a permission, any failure but a timeout is a denial.
/// `is_first` says that the hook is configured in the first spelling.
///
/// Returns a failure if the dialect does not allow the answer, or if the hook failed without a say.
pub(super) fn read(is_first: bool, row: &EventRow, raw: RawReply) -> Result<Reply, Failure> {
    let (failure, stdout, text) = match raw {
        RawReply::Command { exit_code: 0, truncated: true, stdout, .. } => {
            return Err(printed_too_much(&stdout));
        }
        RawReply::Command { exit_code: 0, stdout, .. } => return printed(is_first, row, &stdout),
        RawReply::Http { status: 200..=299, body } => return printed(is_first, row, &body),
        RawReply::Command { exit_code, stdout, stderr, .. } => {
            // With the exit code of a block, both outputs may have the reason.
            let is_block = exit_code == BLOCK;
            let text = String::from_utf8_lossy(&stderr).trim().to_owned();
            let text = Some(text).filter(|text| is_block && !text.is_empty());
            (exited(exit_code, &stderr), if is_block { stdout } else { Bytes::new() }, text)
        }
        RawReply::Http { status, .. } => (refused_by_server(status), Bytes::new(), None),
        RawReply::Native(reply) => return Ok(reply),
        RawReply::Text(_) => return Err(invalid("only programs and servers answer in this dialect")),
    };
    if !matches!(row.kind, EventKind::BeforeToolDispatch | EventKind::PermissionRequested) {
        return Err(failure);
    }
    let printed = printed(is_first, row, &stdout).ok().and_then(|reply| match reply.decision {
        HookDecision::Block(reason) => reason,
        _ => None,
    });
    let reason = printed.or(text).unwrap_or_else(|| format!("hook failed: {}", failure.message));
    let decision = HookDecision::Block(Some(reason));
    Ok(Reply { decision, failure: Some(Box::new(failure)), ..Reply::default() })
}

/// The output of a hook that succeeded, without its progress messages. Any other text means nothing.
fn printed(is_first: bool, row: &EventRow, stdout: &[u8]) -> Result<Reply, Failure> {
    let text = String::from_utf8_lossy(stdout);
    let lines: Vec<&str> = text.lines().filter(|line| !is_progress(line)).collect();
    let rest = lines.join("\n");
    let rest = rest.trim();
    if !rest.starts_with('{') || check_json(rest).is_err() {
        return Ok(Reply::proceed());
    }
    let fields: JsonFields<'_> = serde_json::from_str(rest).map_err(|error| invalid(error.to_string()))?;
    answer(is_first, row, &fields)
}

/// Whether a line is a message about the progress of a hook.
fn is_progress(line: &str) -> bool {
    #[derive(serde::Deserialize)]
    struct Progress<'a> {
        r#type: &'a str,
    }
    let line = line.trim();
    line.starts_with('{')
        && serde_json::from_str(line).is_ok_and(|line: Progress<'_>| line.r#type == "progress")
}

fn answer(is_first: bool, row: &EventRow, fields: &JsonFields<'_>) -> Result<Reply, Failure> {
    let mut reply = Reply::default();
    // It reads no other place, but this one before a tool call, of hooks in the first spelling.
    let specific = match value_of(fields, "hookSpecificOutput") {
        Some(value) if is_first && row.kind == EventKind::BeforeToolDispatch => {
            object_of("hookSpecificOutput", value)?
        }
        _ => JsonFields::default(),
    };
    // A reason of another type takes no decision away.
    let text = |name| {
        let given = |fields, prefix| text_of(fields, prefix, name).ok().flatten();
        given(fields, "").or_else(|| given(&specific, WITHIN)).filter(|text: &String| !text.trim().is_empty())
    };
    let block = |reason: Option<String>| HookDecision::Block(Some(reason.unwrap_or_else(no_reason)));
    reply.notes.extend(text("additionalContext").map(|text| (NoteKind::AdditionalContext, text)));
    match row.kind {
        EventKind::BeforeToolDispatch => {
            let reason = text("permissionDecisionReason");
            reply.decision = match text("permissionDecision").as_deref() {
                Some("deny") => block(reason),
                Some("ask") => HookDecision::Ask(reason),
                Some("allow") => HookDecision::Allow(reason),
                _ => HookDecision::None,
            };
            if let Some(value) = value_of(fields, "modifiedArgs").or(value_of(&specific, "updatedInput")) {
                check_size(value)?;
                reply
                    .patches
                    .extend(changed_input(value).map(|input| Patch::Target(Target::ToolInput, input)));
            }
        }
        EventKind::PermissionRequested => {
            let interrupts = flag_of(fields, "", "interrupt").ok().flatten() == Some(true);
            reply.decision = match text("behavior").as_deref() {
                Some("deny") if interrupts => {
                    HookDecision::Halt(Some(text("message").unwrap_or_else(no_reason)))
                }
                Some("deny") => block(text("message")),
                Some("allow") => HookDecision::Allow(text("message")),
                _ => HookDecision::None,
            };
        }
        EventKind::AfterToolDispatch
        | EventKind::PromptSubmitted
        | EventKind::AgentStopping
        | EventKind::SubagentStopping => {
            if text("decision").as_deref() == Some("block") {
                reply.decision = block(text("reason"));
            }
            reply.patches.extend(change(row, fields)?);
        }
        _ => {}
    }
    Ok(reply)
}

/// A changed input: an object, which may be in a string.
fn changed_input(value: &RawValue) -> Option<Json> {
    let text = unquoted(value).unwrap_or_else(|| value.get().into());
    Json::parse(&text).ok().filter(|input| input.kind() == "an object")
}

/// The prompt or the output that a hook has changed.
fn change(row: &EventRow, fields: &JsonFields<'_>) -> Result<Option<Patch>, Failure> {
    match row.kind {
        EventKind::PromptSubmitted => {
            let prompt = value_of(fields, "modifiedPrompt").filter(|value| value.get().starts_with('"'));
            prompt.map(check_size).transpose()?;
            Ok(prompt.map(|value| Patch::Target(Target::Prompt, Json::checked(value))))
        }
        EventKind::AfterToolDispatch => {
            let Some(value) = value_of(fields, "modifiedResult") else { return Ok(None) };
            check_size(value)?;
            let result = object_of("modifiedResult", value)?;
            let text = text_of(&result, "modifiedResult.", "textResultForLlm")?.unwrap_or_default();
            let kind = text_of(&result, "modifiedResult.", "resultType")?;
            let kind = kind.unwrap_or_else(|| "success".to_owned());
            let written = serde_json::json!({ "result_type": kind, "text_result_for_llm": text });
            let patch = Json::of(&written).map_err(|error| invalid(error.to_string()))?;
            Ok(Some(Patch::Target(Target::ToolOutput, patch)))
        }
        _ => Ok(None),
    }
}

fn no_reason() -> String {
    NO_REASON.to_owned()
}
