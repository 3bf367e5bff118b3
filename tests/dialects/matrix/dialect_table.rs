//! The dialects as the matrix needs them, written from their own rules and not with hookyard's code.

use hookyard::model::{DialectName, HostResponse};
use serde_json::{Map, Value, json};

use crate::matrix::{
    replies::{CONTEXT, HookReply, HostReading, Move, REASON},
    words::{
        decides, family_reads, family_says, family_sends, heard, merged, object, prints, settings, specific,
    },
};

/// One dialect, on both sides.
pub(crate) struct MatrixDialect {
    pub(crate) name: DialectName,
    /// The file that makes a command a hook on tool calls, below the workspace, and what is in it.
    pub(crate) configures: fn(&str) -> (&'static str, Value),
    /// A script that says the thing, if the dialect has a word for it.
    pub(crate) says: fn(HookReply) -> Option<String>,
    /// What a host sends before a tool call with this input.
    pub(crate) sends: fn(&Value) -> Value,
    /// What a host does about a tool call with this input that got this answer.
    pub(crate) reads: fn(&HostResponse, &Value) -> HostReading,
}

/// Every dialect, in the order of [`DialectName::ALL`].
pub(crate) const DIALECTS: &[MatrixDialect] = &[
    MatrixDialect {
        name: DialectName::OpenHarness,
        configures: |command| {
            let hook = json!({
                "name": "hook",
                "events": ["before_tool_dispatch"],
                "capabilities": ["rewrite_tool_request"],
                "handler": { "type": "command", "command": command },
            });
            // Every JSON text is YAML.
            (".openharness/hooks/hook.yaml", hook)
        },
        says: |thing| match thing {
            HookReply::Block => Some(format!("echo '{REASON}' >&2; exit 2")),
            HookReply::Halt => Some(prints(&json!({ "continue": false, "stopReason": REASON }))),
            HookReply::Rewrite => specific(&json!({ "patch": { "tool_input": { "command": "npm ci" } } })),
            HookReply::Context => specific(&json!({ "additionalContext": CONTEXT })),
            HookReply::Allow | HookReply::Ask | HookReply::Shorten => None,
        },
        sends: |input| {
            json!({
                "hook_event_name": "before_tool_dispatch",
                "session_id": "openharness",
                "run_id": "openharness",
                "tool_name": "Bash",
                "tool_input": input,
            })
        },
        reads: |answer, input| {
            let output = object(&answer.stdout);
            let specific = &output["hookSpecificOutput"];
            let (moves, reason) = match () {
                () if output["continue"] == false => (Move::Ends, &output["stopReason"]),
                () if output["decision"] == "block" => (Move::Refuses, &output["reason"]),
                () => (Move::AsUsual, &Value::Null),
            };
            let patch = &specific["patch"]["tool_input"];
            HostReading { input: merged(input, patch), ..heard(moves, reason, specific) }
        },
    },
    MatrixDialect {
        name: DialectName::Claude,
        configures: |command| (".claude/settings.json", settings(command)),
        says: |thing| match thing {
            HookReply::Rewrite => decides(&json!({ "updatedInput": { "command": "npm ci", "force": true } })),
            HookReply::Shorten => decides(&json!({ "updatedInput": { "command": "npm ci" } })),
            other => family_says(other),
        },
        sends: |input| family_sends("claude", input),
        reads: |answer, input| {
            let (output, heard) = family_reads(answer);
            let changed = output["hookSpecificOutput"].get("updatedInput");
            HostReading { input: changed.unwrap_or(input).clone(), ..heard }
        },
    },
    MatrixDialect {
        name: DialectName::CodeBuddy,
        configures: |command| (".codebuddy/settings.json", settings(command)),
        says: |thing| match thing {
            HookReply::Rewrite => decides(&json!({ "updatedInput": { "command": "npm ci" } })),
            // It has no word for it.
            HookReply::Halt => None,
            other => family_says(other),
        },
        sends: |input| family_sends("codebuddy", input),
        reads: |answer, input| {
            let (output, heard) = family_reads(answer);
            let input = merged(input, &output["hookSpecificOutput"]["updatedInput"]);
            HostReading { input, context: None, ..heard }
        },
    },
    MatrixDialect {
        name: DialectName::Gemini,
        configures: |command| {
            let hook = json!({ "type": "command", "command": command });
            let entry = json!({ "matcher": "^Bash$", "hooks": [hook] });
            (".gemini/settings.json", json!({ "hooks": { "BeforeTool": [entry] } }))
        },
        says: |thing| match thing {
            HookReply::Allow => Some(prints(&json!({ "decision": "allow", "reason": REASON }))),
            HookReply::Block => Some(prints(&json!({ "decision": "deny", "reason": REASON }))),
            HookReply::Ask => Some(prints(&json!({ "decision": "ask", "reason": REASON }))),
            HookReply::Halt => Some(prints(&json!({ "continue": false, "stopReason": REASON }))),
            // The input is replaced.
            HookReply::Rewrite => specific(&json!({ "tool_input": { "command": "npm ci", "force": true } })),
            HookReply::Shorten => specific(&json!({ "tool_input": { "command": "npm ci" } })),
            HookReply::Context => specific(&json!({ "additionalContext": CONTEXT })),
        },
        sends: |input| {
            json!({
                "session_id": "gemini",
                "transcript_path": "",
                "hook_event_name": "BeforeTool",
                "timestamp": "2026-01-02T03:04:05.678Z",
                "tool_name": "Bash",
                "tool_input": input,
            })
        },
        reads: |answer, input| {
            let output = object(&answer.stdout);
            let specific = &output["hookSpecificOutput"];
            let (moves, reason) = match output["decision"].as_str() {
                _ if output["continue"] == false => (Move::Ends, &output["stopReason"]),
                Some("deny" | "block") => (Move::Refuses, &output["reason"]),
                Some("ask") => (Move::Asks, &output["reason"]),
                // It also says so when nobody had an opinion.
                Some("allow" | "approve") | None => (Move::AsUsual, &output["reason"]),
                Some(other) => panic!("{other} is no decision: {output}"),
            };
            // It takes a changed input in place of its own.
            let changed = &specific["tool_input"];
            let input = if changed.is_null() { input.clone() } else { changed.clone() };
            HostReading { input, ..heard(moves, reason, specific) }
        },
    },
    MatrixDialect {
        name: DialectName::Clawd,
        configures: |command| {
            let hook = json!({ "type": "command", "command": command });
            let entry = json!({ "matcher": { "tools": "Bash" }, "hooks": [hook] });
            (".clawdcode/settings.json", json!({ "hooks": { "PreToolUse": [entry] } }))
        },
        says: |thing| {
            let decision =
                |word: &str| json!({ "permissionDecision": word, "permissionDecisionReason": REASON });
            let output = match thing {
                HookReply::Allow => decision("allow"),
                HookReply::Block => decision("deny"),
                HookReply::Ask => decision("ask"),
                HookReply::Rewrite => json!({ "updatedInput": { "command": "npm ci" } }),
                HookReply::Context => json!({ "additionalContext": CONTEXT }),
                HookReply::Halt | HookReply::Shorten => return None,
            };
            Some(prints(&output))
        },
        sends: |input| {
            json!({
                "hook_event_name": "PreToolUse",
                "hook_execution_id": "6f1c2b1e-0000-4000-8000-000000000001",
                "timestamp": "2026-01-02T03:04:05.678Z",
                "session_id": "clawd",
                "tool_name": "Bash",
                "tool_use_id": "call",
                "tool_input": input,
            })
        },
        reads: |answer, input| {
            let output = object(&answer.stdout);
            let reason = &output["permissionDecisionReason"];
            let (moves, reason) = match output["permissionDecision"].as_str() {
                Some("allow") if output.get("updatedInput").is_some() => (Move::AsUsual, reason),
                Some("deny") => (Move::Refuses, reason),
                Some("ask") => (Move::Asks, reason),
                Some("allow") => (Move::Runs, reason),
                None => (Move::AsUsual, reason),
                Some(other) => panic!("{other} is no decision: {output}"),
            };
            HostReading {
                input: merged(input, &output["updatedInput"]),
                ..heard(moves, reason, &Value::Null)
            }
        },
    },
    MatrixDialect {
        name: DialectName::Codex,
        configures: |command| (".codex/hooks.json", settings(command)),
        says: |thing| match thing {
            HookReply::Block | HookReply::Context => family_says(thing),
            HookReply::Rewrite => {
                let input = json!({ "command": "npm ci", "force": true });
                decides(&json!({ "permissionDecision": "allow", "updatedInput": input }))
            }
            HookReply::Shorten => {
                decides(&json!({ "permissionDecision": "allow", "updatedInput": { "command": "npm ci" } }))
            }
            HookReply::Allow | HookReply::Ask | HookReply::Halt => None,
        },
        sends: |input| {
            let turn = json!({ "turn_id": "turn", "model": "gpt-5", "permission_mode": "default" });
            merged(&family_sends("codex", input), &turn)
        },
        reads: |answer, input| {
            let output = object(&answer.stdout);
            let specific = &output["hookSpecificOutput"];
            // An answer with another word is ignored as a whole.
            let keys = |value: &Value| {
                value.as_object().into_iter().flat_map(Map::keys).cloned().collect::<Vec<_>>()
            };
            let known = [
                "hookEventName",
                "permissionDecision",
                "permissionDecisionReason",
                "updatedInput",
                "additionalContext",
            ];
            assert!(keys(&output).iter().all(|key| key == "hookSpecificOutput"), "{output}");
            assert!(keys(specific).iter().all(|key| known.contains(&key.as_str())), "{output}");
            let reason = &specific["permissionDecisionReason"];
            let (moves, reason) = match specific["permissionDecision"].as_str() {
                Some("deny") if reason.as_str().is_some_and(|reason| !reason.trim().is_empty()) => {
                    (Move::Refuses, reason)
                }
                Some("allow") if specific.get("updatedInput").is_some() => (Move::AsUsual, reason),
                None if specific.get("updatedInput").is_none() && reason.is_null() => (Move::AsUsual, reason),
                _ => panic!("it ignores this answer: {output}"),
            };
            // Of the input of a shell it takes the command.
            let mut input = input.clone();
            if let Some(command) = specific["updatedInput"].get("command") {
                input["command"] = command.clone();
            }
            HostReading { input, ..heard(moves, reason, specific) }
        },
    },
    MatrixDialect {
        name: DialectName::Qwen,
        configures: |command| (".qwen/settings.json", settings(command)),
        says: |thing| match thing {
            HookReply::Rewrite => decides(&json!({ "updatedInput": { "command": "npm ci", "force": true } })),
            HookReply::Shorten => decides(&json!({ "updatedInput": { "command": "npm ci" } })),
            // Its `continue: false` is a denial.
            HookReply::Halt => None,
            other => family_says(other),
        },
        sends: |input| {
            let further = json!({ "timestamp": "2026-01-02T03:04:05.678Z", "permission_mode": "yolo" });
            merged(&family_sends("qwen", input), &further)
        },
        reads: |answer, input| {
            let output = object(&answer.stdout);
            let specific = &output["hookSpecificOutput"];
            let reason = &specific["permissionDecisionReason"];
            let (moves, reason) = match specific["permissionDecision"].as_str() {
                // Whoever would be asked is not; the model reads why.
                Some("deny" | "ask") => (Move::Refuses, reason),
                // The person has been asked before.
                Some("allow") | None if output["continue"] != false => (Move::AsUsual, reason),
                _ => panic!("it says this in other words: {output}"),
            };
            assert!(output.get("decision").is_none(), "{output}");
            // It reads neither context nor a changed input.
            HostReading { input: input.clone(), context: None, ..heard(moves, reason, specific) }
        },
    },
    MatrixDialect {
        name: DialectName::Copilot,
        configures: |command| {
            let hook = json!({ "matcher": "Bash", "bash": command });
            (".github/hooks/hook.json", json!({ "version": 1, "hooks": { "preToolUse": [hook] } }))
        },
        says: |thing| {
            let decision =
                |word: &str| json!({ "permissionDecision": word, "permissionDecisionReason": REASON });
            let output = match thing {
                HookReply::Allow => decision("allow"),
                HookReply::Block => decision("deny"),
                HookReply::Ask => decision("ask"),
                HookReply::Rewrite => json!({ "modifiedArgs": { "command": "npm ci", "force": true } }),
                HookReply::Shorten => json!({ "modifiedArgs": { "command": "npm ci" } }),
                HookReply::Context => json!({ "additionalContext": CONTEXT }),
                HookReply::Halt => return None,
            };
            Some(prints(&output))
        },
        sends: |input| {
            json!({
                "hook_event_name": "PreToolUse",
                "session_id": "copilot",
                "timestamp": "2026-01-02T03:04:05.678Z",
                "cwd": "/srv/shop",
                "tool_name": "Bash",
                "tool_input": input,
            })
        },
        reads: |answer, input| {
            let output = object(&answer.stdout);
            let reason = &output["permissionDecisionReason"];
            let (moves, reason) = match output["permissionDecision"].as_str() {
                Some("deny") => (Move::Refuses, reason),
                Some("ask") => (Move::Asks, reason),
                Some("allow") => (Move::Runs, reason),
                // It ignores words of other agents.
                None if output.get("decision").or(output.get("continue")).is_none() => {
                    (Move::AsUsual, reason)
                }
                _ => panic!("it ignores this answer: {output}"),
            };
            let changed = output.get("modifiedArgs").unwrap_or(input).clone();
            HostReading { input: changed, ..heard(moves, reason, &output) }
        },
    },
    MatrixDialect {
        name: DialectName::Cursor,
        configures: |command| {
            let hook = json!({ "matcher": "Bash", "command": command });
            (".cursor/hooks.json", json!({ "version": 1, "hooks": { "preToolUse": [hook] } }))
        },
        says: |thing| {
            let permission = |word: &str| json!({ "permission": word, "user_message": REASON });
            let output = match thing {
                HookReply::Allow => permission("allow"),
                HookReply::Block => permission("deny"),
                HookReply::Ask => permission("ask"),
                HookReply::Rewrite => json!({ "updated_input": { "command": "npm ci", "force": true } }),
                HookReply::Shorten => json!({ "updated_input": { "command": "npm ci" } }),
                HookReply::Context => json!({ "additional_context": CONTEXT }),
                HookReply::Halt => return None,
            };
            Some(prints(&output))
        },
        sends: |input| {
            json!({
                "conversation_id": "cursor",
                "generation_id": "g",
                "hook_event_name": "preToolUse",
                "workspace_roots": ["/srv/shop"],
                "tool_name": "Bash",
                "tool_input": input,
                "tool_use_id": "t",
                "cwd": "",
            })
        },
        reads: |answer, input| {
            let output = object(&answer.stdout);
            let reason = &output["user_message"];
            let (moves, reason) = match output["permission"].as_str() {
                Some("deny") => (Move::Refuses, reason),
                // It goes by its own settings.
                Some("allow") | None if output.get("continue").is_none() => (Move::AsUsual, reason),
                _ => panic!("it ignores this answer: {output}"),
            };
            let changed = output.get("updated_input").unwrap_or(input).clone();
            let context = output["additional_context"].as_str().map(str::to_owned);
            HostReading { input: changed, context, ..heard(moves, reason, &Value::Null) }
        },
    },
    MatrixDialect {
        name: DialectName::Droid,
        configures: |command| {
            let hook = json!({ "type": "command", "command": command });
            // The events are at the top of this file.
            (".factory/hooks.json", json!({ "PreToolUse": [{ "matcher": "Bash", "hooks": [hook] }] }))
        },
        says: |thing| match thing {
            HookReply::Rewrite => decides(&json!({ "updatedInput": { "command": "npm ci" } })),
            // It has no word for them.
            HookReply::Shorten | HookReply::Context => None,
            other => family_says(other),
        },
        sends: |input| merged(&family_sends("droid", input), &json!({ "permission_mode": "auto-high" })),
        reads: |answer, input| {
            let output = object(&answer.stdout);
            let specific = &output["hookSpecificOutput"];
            let reason = &specific["permissionDecisionReason"];
            let (moves, reason) = match specific["permissionDecision"].as_str() {
                _ if output["continue"] == false => (Move::Ends, &output["stopReason"]),
                Some("deny") => (Move::Refuses, reason),
                Some("allow") => (Move::Runs, reason),
                // It asks nobody because of a hook.
                None | Some("ask") => (Move::AsUsual, reason),
                Some(other) => panic!("{other} is no decision: {output}"),
            };
            let input = merged(input, &specific["updatedInput"]);
            HostReading { input, context: None, ..heard(moves, reason, specific) }
        },
    },
];
