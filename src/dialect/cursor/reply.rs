//! Reads the answers of Cursor's hooks: one JSON object, whose words depend on the event. Where the agent is about to do
//! something, an answer that it cannot read is a denial.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::value::RawValue;

use crate::{
    dialect::{
        event_table::EventRow,
        output::{
            check_size, exited, flag_of, invalid, object_of, printed_too_much, text_in, text_of, value_of,
            whole_object, wrong_type,
        },
    },
    model::{
        EventKind, Failure, FailurePolicy, Hook, HookDecision, Json, JsonFields, NoteKind, Patch, RawReply,
        Reply, Target,
    },
};

/// The exit code of a block.
const BLOCK: i32 = 2;

/// What stands between the messages of several hooks.
pub(super) const SEPARATOR: &str = "\n\n---\n\n";

/// The variables that a hook gives a session.
pub(super) const ENV: &str = "env";

/// What a hook tells the model in other words than the person.
pub(super) const AGENT_MESSAGE: &str = "agent_message";

/// Set where a hook ends a session that begins.
pub(super) const STOPS: &str = "continue";

/// Reads the output of a handler.
///
/// Returns a failure if the agent does not take the answer, or the hook failed.
pub(super) fn read(row: &EventRow, hook: &Hook, raw: RawReply) -> Result<Reply, Failure> {
    match raw {
        RawReply::Command { exit_code: 0, truncated: true, stdout, .. } => Err(printed_too_much(&stdout)),
        RawReply::Command { exit_code: 0, stdout, .. } if stdout.trim_ascii().is_empty() => {
            // For a hook that fails closed, to print nothing is to fail.
            if hook.on_error == FailurePolicy::Deny {
                Err(invalid("the hook printed nothing"))
            } else {
                Ok(Reply::proceed())
            }
        }
        RawReply::Command { exit_code: 0, stdout, .. } => {
            printed(row, &stdout).or_else(|failure| unreadable(row, hook, failure))
        }
        RawReply::Command { exit_code: BLOCK, stdout, stderr, .. } => {
            blocked(row, reason_of_exit(&stdout, &stderr)).ok_or_else(|| exited(BLOCK, &stderr))
        }
        RawReply::Command { exit_code, stderr, .. } => Err(exited(exit_code, &stderr)),
        RawReply::Text(text) => judged(row, &text),
        RawReply::Native(reply) => Ok(reply),
        RawReply::Http { .. } => Err(invalid("only programs and models answer in this dialect")),
    }
}

/// Whether the event is about a permission.
fn is_permission(row: &EventRow) -> bool {
    row.kind == EventKind::BeforeToolDispatch || row.kind == EventKind::HostEvent && row.prevents()
}

/// What the agent says about an answer that it cannot read, where it does not go on then.
fn unreadable(row: &EventRow, hook: &Hook, failure: Failure) -> Result<Reply, Failure> {
    // One that fails closed fails, which is a block with the reason of its policy.
    if !is_permission(row) || hook.on_error == FailurePolicy::Deny {
        return Err(failure);
    }
    let reason = format!(
        "Hook returned an answer that cannot be read, so it was blocked for safety: {}",
        failure.message
    );
    Ok(Reply {
        decision: HookDecision::Block(Some(reason)),
        failure: Some(Box::new(failure)),
        ..Reply::default()
    })
}

/// The reason of a hook that blocks by its exit code: what it printed, or its standard error.
fn reason_of_exit(stdout: &Bytes, stderr: &Bytes) -> String {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).trim().to_owned();
    let (printed, said) = (text(stdout), text(stderr));
    match (printed.is_empty(), said.is_empty()) {
        (false, _) => printed,
        (true, false) => format!("Hook blocked with message: {said}"),
        (true, true) => "Hook blocked this action (exit code 2) but provided no reason.".to_owned(),
    }
}

/// The block of an event; `None` for one that cannot be blocked so.
fn blocked(row: &EventRow, reason: String) -> Option<Reply> {
    match row.kind {
        EventKind::PromptSubmitted => Some(block(reason)),
        EventKind::SessionStarted => Some(stopping(Some(reason))),
        // It ends as if the hook had said nothing.
        EventKind::AgentStopping => Some(Reply::proceed()),
        _ => is_permission(row).then(|| block(reason)),
    }
}

fn block(reason: String) -> Reply {
    Reply { decision: HookDecision::Block(Some(reason)), ..Reply::default() }
}

/// The end of a session that begins. Hooks on it only watch; the agent ends it all the same.
fn stopping(reason: Option<String>) -> Reply {
    let mut reply = Reply::default();
    reply.native.extend(Json::of(&false).ok().map(|no| (STOPS.into(), no)));
    reply.notes.extend(reason.map(|reason| (NoteKind::SystemMessage, reason)));
    reply
}

/// The answer of a model: whether what is asked for holds.
fn judged(row: &EventRow, text: &str) -> Result<Reply, Failure> {
    let fields = crate::dialect::output::object_in(text)?;
    let holds = flag_of(&fields, "", "ok")?.ok_or_else(|| invalid("the answer has no `ok`"))?;
    if holds {
        return Ok(Reply::proceed());
    }
    let reason =
        text_of(&fields, "", "reason")?.unwrap_or_else(|| "Prompt hook blocked this action".to_owned());
    blocked(row, reason).ok_or_else(|| invalid("a model can stop nothing on this event"))
}

/// The output of a hook that succeeded.
fn printed(row: &EventRow, stdout: &[u8]) -> Result<Reply, Failure> {
    let text = text_in(stdout)?;
    let fields = whole_object(text, text)?;
    let mut reply = Reply::default();
    let said = |name| -> Result<Option<String>, Failure> {
        Ok(text_of(&fields, "", name)?.filter(|text: &String| !text.trim().is_empty()))
    };
    match row.kind {
        _ if is_permission(row) => permission(row, &fields, &mut reply)?,
        EventKind::PromptSubmitted => {
            let message = said("user_message")?;
            match flag_of(&fields, "", "continue")? {
                Some(false) => reply.decision = HookDecision::Block(message),
                _ => note(&mut reply, NoteKind::SystemMessage, message),
            }
        }
        EventKind::AgentStopping | EventKind::SubagentStopping => {
            let followup = match said("followup_message")? {
                Some(followup) => Some(followup),
                None if fields.get("followup_message").is_none() && is_block(&fields) => said("reason")?,
                None => None,
            };
            reply.decision = followup.map_or(HookDecision::None, |text| HookDecision::Block(Some(text)));
        }
        EventKind::SessionStarted => {
            let message = said("user_message")?;
            if flag_of(&fields, "", "continue")? == Some(false) {
                reply = stopping(message);
            } else {
                note(&mut reply, NoteKind::SystemMessage, message);
            }
            if let Some(value) = value_of(&fields, ENV) {
                reply.native.push((ENV.into(), texts(value)?));
            }
        }
        EventKind::BeforeContextCompact => note(&mut reply, NoteKind::SystemMessage, said("user_message")?),
        _ => {}
    }
    if takes_context(row) {
        let context = match said("additional_context")? {
            None if fields.get("additional_context").is_none() => {
                said("additionalContext").unwrap_or_default()
            }
            context => context,
        };
        note(&mut reply, NoteKind::AdditionalContext, context);
    }
    Ok(reply)
}

/// What an answer says about a permission.
fn permission(row: &EventRow, fields: &JsonFields<'_>, reply: &mut Reply) -> Result<(), Failure> {
    let said = |text: Option<String>| text.filter(|text: &String| !text.trim().is_empty());
    let to_person = said(text_of(fields, "", "user_message")?);
    let to_model = if reads_agent_message(row) { said(text_of(fields, "", "agent_message")?) } else { None };
    let asks = !matches!(row.name, "beforeReadFile" | "beforeTabFileRead");
    // The message for the person is the reason: the model reads it, too.
    let reason = || to_person.clone().or_else(|| to_model.clone());
    reply.decision = match text_of(fields, "", "permission")?.as_deref() {
        Some("deny") => HookDecision::Block(reason()),
        Some("ask") if asks => HookDecision::Ask(reason()),
        Some("allow") => HookDecision::Allow(reason()),
        None => HookDecision::None,
        Some(other) => {
            return Err(invalid(format!("`permission` is {other:?}; it is \"allow\", \"deny\" or \"ask\"")));
        }
    };
    if reply.decision == HookDecision::None {
        note(reply, NoteKind::SystemMessage, to_person);
    } else if let Some(text) = to_model
        && let Ok(text) = Json::of(&text)
    {
        reply.native.push((AGENT_MESSAGE.into(), text));
    }
    if row.kind == EventKind::BeforeToolDispatch
        && let Some(value) = value_of(fields, "updated_input")
    {
        check_size(value)?;
        object_of("updated_input", value)?;
        reply.patches.push(Patch::Target(Target::ToolInput, Json::checked(value)));
    }
    Ok(())
}

fn reads_agent_message(row: &EventRow) -> bool {
    matches!(row.name, "preToolUse" | "beforeShellExecution" | "beforeMCPExecution")
}

fn takes_context(row: &EventRow) -> bool {
    use EventKind::{AfterToolDispatch, BeforeToolDispatch, PromptSubmitted, SessionStarted, ToolFailed};
    matches!(row.kind, SessionStarted | PromptSubmitted | BeforeToolDispatch | AfterToolDispatch | ToolFailed)
}

/// Whether an answer keeps the agent at work by Claude Code's word for it.
fn is_block(fields: &JsonFields<'_>) -> bool {
    text_of(fields, "", "decision").is_ok_and(|word| word.as_deref() == Some("block"))
}

/// An object of texts.
fn texts(value: &RawValue) -> Result<Json, Failure> {
    let fields = object_of(ENV, value)?;
    match fields.iter().find(|(_, value)| !value.get().starts_with('"')) {
        Some((name, value)) => Err(wrong_type(&format!("{ENV}.{name}"), "a string", value)),
        None => Ok(Json::checked(value)),
    }
}

fn note(reply: &mut Reply, kind: NoteKind, text: Option<String>) {
    reply.notes.extend(text.filter(|text| !text.trim().is_empty()).map(|text| (kind, text)));
}

/// Merges what hooks give a session with what earlier ones gave it; of two variables with one name, the last counts.
pub(super) fn combine_native(earlier: &[Reply], reply: &mut Reply) {
    let Some(own) = reply.native.iter().position(|(name, _)| **name == *ENV) else { return };
    let given = earlier.iter().flat_map(|reply| &reply.native).filter(|(name, _)| **name == *ENV);
    let mut all: BTreeMap<String, Json> = BTreeMap::new();
    for variables in given.map(|(_, variables)| variables).chain([&reply.native[own].1]) {
        let fields = variables.fields().unwrap_or_default();
        all.extend(fields.iter().map(|(name, value)| (name.to_owned(), Json::checked(value))));
    }
    if let Ok(all) = Json::of(&all) {
        reply.native[own].1 = all;
    }
}
