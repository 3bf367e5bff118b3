//! What several dialects of the matrix have in common: the words of Claude Code's family, and JSON in scripts and answers.

use hookyard::model::HostResponse;
use serde_json::{Map, Value, json};

use super::replies::{CONTEXT, HookReply, HostReading, Move, REASON};

/// A settings file of Claude Code's family.
pub(super) fn settings(command: &str) -> Value {
    let hook = json!({ "type": "command", "command": command });
    json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash", "hooks": [hook] }] } })
}

/// What a hook of Claude Code's family says in words that all of it has.
pub(super) fn family_says(thing: HookReply) -> Option<String> {
    let decision =
        |word: &str| decides(&json!({ "permissionDecision": word, "permissionDecisionReason": REASON }));
    match thing {
        HookReply::Allow => decision("allow"),
        HookReply::Block => decision("deny"),
        HookReply::Ask => decision("ask"),
        HookReply::Halt => Some(prints(&json!({ "continue": false, "stopReason": REASON }))),
        HookReply::Context => decides(&json!({ "additionalContext": CONTEXT })),
        HookReply::Rewrite | HookReply::Shorten => None,
    }
}

pub(super) fn family_sends(session: &str, input: &Value) -> Value {
    json!({
        "hook_event_name": "PreToolUse",
        "session_id": session,
        "transcript_path": "",
        "tool_name": "Bash",
        "tool_input": input,
    })
}

/// What a host of Claude Code's family reads, but for the changed input.
pub(super) fn family_reads(answer: &HostResponse) -> (Value, HostReading) {
    let output = object(&answer.stdout);
    let specific = &output["hookSpecificOutput"];
    let reason = &specific["permissionDecisionReason"];
    let (moves, reason) = match specific["permissionDecision"].as_str() {
        _ if answer.exit_code == 2 => (Move::Refuses, &Value::String(answer.stderr.clone())),
        _ if output["continue"] == false => (Move::Ends, &output["stopReason"]),
        Some("deny") => (Move::Refuses, reason),
        Some("ask") => (Move::Asks, reason),
        Some("allow") => (Move::Runs, reason),
        None => (Move::AsUsual, reason),
        Some(other) => panic!("{other} is no decision: {output}"),
    };
    let heard = heard(moves, reason, specific);
    (output, heard)
}

/// What a host heard, but for the changed input.
pub(super) fn heard(moves: Move, reason: &Value, specific: &Value) -> HostReading {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let context = text(&specific["additionalContext"]);
    HostReading { moves, reason: text(reason).unwrap_or_default(), input: Value::Null, context }
}

/// A script that prints a value.
pub(super) fn prints(value: &Value) -> String {
    format!("cat <<'JSON'\n{value}\nJSON\n")
}

#[expect(clippy::unnecessary_wraps, reason = "it is one of the things a hook may not be able to say")]
pub(super) fn specific(value: &Value) -> Option<String> {
    Some(prints(&json!({ "hookSpecificOutput": value })))
}

pub(super) fn decides(value: &Value) -> Option<String> {
    let mut decision = value.as_object().cloned().unwrap_or_default();
    decision.insert("hookEventName".to_owned(), "PreToolUse".into());
    specific(&Value::Object(decision))
}

/// The object that an answer is; nothing printed is an empty one.
pub(super) fn object(stdout: &str) -> Value {
    if stdout.is_empty() {
        return Value::Object(Map::new());
    }
    serde_json::from_str(stdout).unwrap_or_else(|e| panic!("{e}: {stdout}"))
}

/// The input of hosts that merge a changed one into it, one level deep.
pub(super) fn merged(input: &Value, changed: &Value) -> Value {
    match (input.clone(), changed) {
        (input, Value::Null) => input,
        (Value::Object(mut fields), Value::Object(new)) => {
            fields.extend(new.clone());
            Value::Object(fields)
        }
        (_, other) => other.clone(),
    }
}
