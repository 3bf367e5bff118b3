//! `relay` answers in each dialect as `fire --native` does without a daemon.

use super::*;

/// An event of a dialect and the hook that is asked about it.
pub(super) struct Case {
    dialect: &'static str,
    /// What the hook's file says it is for.
    event: &'static str,
    command: String,
    /// What the agent sends beside the usual.
    sends: Value,
}

pub(super) fn case(
    dialect: &'static str,
    event: &'static str,
    command: impl Into<String>,
    sends: Value,
) -> Case {
    Case { dialect, event, command: command.into(), sends }
}

pub(super) fn tool() -> Value {
    json!({ "tool_name": "Bash", "tool_input": { "command": "npm install", "timeout": 5 } })
}

fn after(field: &str, output: Value) -> Value {
    let mut sent = tool();
    sent[field] = output;
    sent
}

fn specific(words: &Value) -> String {
    prints(&json!({ "hookSpecificOutput": words }))
}

pub(super) const BLOCKS: &str = "echo 'not here' >&2; exit 2";

/// What Claude Code and CodeBuddy have in common, and what changes an input in each.
fn of_claude(dialect: &'static str, changed: &str) -> Vec<Case> {
    let before = |mut words: Value| {
        words["hookEventName"] = json!("PreToolUse");
        specific(&words)
    };
    let prompt = json!({ "prompt": "tidy up" });
    let response = after("tool_response", json!({ "stdout": "a" }));
    vec![
        case(dialect, "PreToolUse", before(json!({ "permissionDecision": "allow" })), tool()),
        case(
            dialect,
            "PreToolUse",
            before(json!({ "permissionDecision": "ask", "permissionDecisionReason": "sure?" })),
            tool(),
        ),
        case(
            dialect,
            "PreToolUse",
            before(json!({ "permissionDecision": "allow", changed: { "command": "npm ci" } })),
            tool(),
        ),
        case(dialect, "PreToolUse", BLOCKS, tool()),
        case(dialect, "PreToolUse", prints(&json!({ "continue": false, "stopReason": "over" })), tool()),
        case(dialect, "PreToolUse", "true", tool()),
        case(
            dialect,
            "PostToolUse",
            specific(&json!({ "hookEventName": "PostToolUse", "additionalContext": "mind the lockfile" })),
            response.clone(),
        ),
        case(dialect, "PostToolUse", BLOCKS, response),
        case(dialect, "UserPromptSubmit", "echo be kind", prompt.clone()),
        case(dialect, "UserPromptSubmit", BLOCKS, prompt),
        case(dialect, "SessionStart", "echo branch main", json!({ "source": "startup" })),
        case(
            dialect,
            "Stop",
            prints(&json!({ "decision": "block", "reason": "tests fail" })),
            json!({ "stop_hook_active": false }),
        ),
        case(dialect, "PreCompact", BLOCKS, json!({ "trigger": "auto", "custom_instructions": "" })),
        case(dialect, "SessionEnd", BLOCKS, json!({ "reason": "exit" })),
    ]
}

fn of_gemini() -> Vec<Case> {
    let request = json!({ "llm_request": { "model": "m", "messages": [{ "role": "user", "content": "hi" }], "config": {} } });
    let mut response = request.clone();
    response["llm_response"] = json!({ "text": "hi", "candidates": [] });
    let output = after("tool_response", json!({ "llmContent": "a", "returnDisplay": "a" }));
    vec![
        case("gemini", "BeforeTool", prints(&json!({ "decision": "allow" })), tool()),
        case("gemini", "BeforeTool", prints(&json!({ "decision": "ask", "reason": "sure?" })), tool()),
        case("gemini", "BeforeTool", specific(&json!({ "tool_input": { "command": "npm ci" } })), tool()),
        case("gemini", "BeforeTool", BLOCKS, tool()),
        case("gemini", "BeforeTool", "echo nice", tool()),
        case("gemini", "BeforeTool", "true", tool()),
        case("gemini", "BeforeTool", prints(&json!({ "continue": false, "stopReason": "over" })), tool()),
        case(
            "gemini",
            "AfterTool",
            specific(&json!({ "additionalContext": "mind the lockfile" })),
            output.clone(),
        ),
        case("gemini", "AfterTool", BLOCKS, output),
        case(
            "gemini",
            "BeforeAgent",
            specific(&json!({ "additionalContext": "be kind" })),
            json!({ "prompt": "tidy up" }),
        ),
        case(
            "gemini",
            "AfterAgent",
            BLOCKS,
            json!({ "prompt": "p", "prompt_response": "r", "stop_hook_active": false }),
        ),
        case(
            "gemini",
            "BeforeModel",
            specific(&json!({ "llm_request": { "config": { "temperature": 0 } } })),
            request.clone(),
        ),
        case("gemini", "AfterModel", specific(&json!({ "llm_response": { "text": "ho" } })), response),
        case(
            "gemini",
            "BeforeToolSelection",
            specific(&json!({ "toolConfig": { "mode": "NONE" } })),
            request,
        ),
        case(
            "gemini",
            "SessionStart",
            specific(&json!({ "additionalContext": "branch main" })),
            json!({ "source": "startup" }),
        ),
        case("gemini", "PreCompress", "echo '{\"systemMessage\":\"short\"}'", json!({ "trigger": "auto" })),
        case("gemini", "SessionEnd", BLOCKS, json!({ "reason": "exit" })),
    ]
}

fn of_clawd() -> Vec<Case> {
    let output = after("tool_response", json!("a"));
    vec![
        case("clawd", "PreToolUse", prints(&json!({ "permissionDecision": "allow" })), tool()),
        case(
            "clawd",
            "PreToolUse",
            prints(&json!({ "permissionDecision": "ask", "permissionDecisionReason": "sure?" })),
            tool(),
        ),
        case(
            "clawd",
            "PreToolUse",
            prints(&json!({ "permissionDecision": "allow", "updatedInput": { "command": "npm ci" } })),
            tool(),
        ),
        case("clawd", "PreToolUse", BLOCKS, tool()),
        case("clawd", "PreToolUse", "true", tool()),
        case("clawd", "PermissionRequest", prints(&json!({ "decision": "approve" })), tool()),
        case("clawd", "PostToolUse", prints(&json!({ "additionalContext": "mind the lockfile" })), output),
        case(
            "clawd",
            "UserPromptSubmit",
            prints(&json!({ "additionalContext": "be kind" })),
            json!({ "prompt": "tidy up" }),
        ),
        case("clawd", "Stop", prints(&json!({ "continue": true, "reason": "tests fail" })), json!({})),
        case(
            "clawd",
            "Compaction",
            prints(&json!({ "prevent": true, "reason": "not now" })),
            json!({ "trigger": "auto" }),
        ),
        case("clawd", "SessionEnd", BLOCKS, json!({ "reason": "exit" })),
    ]
}

fn of_openharness() -> Vec<Case> {
    let request = json!({ "model_ref": "m", "model_request": { "messages": [] } });
    vec![
        case("openharness", "before_tool_dispatch", "true", tool()),
        case("openharness", "before_tool_dispatch", BLOCKS, tool()),
        case(
            "openharness",
            "before_tool_dispatch",
            specific(&json!({ "patch": { "tool_input": { "command": "npm ci" } } })),
            tool(),
        ),
        case(
            "openharness",
            "before_tool_dispatch",
            specific(&json!({ "additionalContext": "be kind" })),
            tool(),
        ),
        case(
            "openharness",
            "before_tool_dispatch",
            prints(&json!({ "continue": false, "stopReason": "over" })),
            tool(),
        ),
        case(
            "openharness",
            "after_tool_dispatch",
            specific(&json!({ "additionalContext": "mind the lockfile" })),
            after("tool_output", json!("a")),
        ),
        case(
            "openharness",
            "before_model_call",
            specific(&json!({ "patch": { "model_request": { "temperature": 0 } } })),
            request,
        ),
        case(
            "openharness",
            "run_completed",
            BLOCKS,
            json!({ "trigger_type": "user", "run_status": "completed" }),
        ),
    ]
}

/// The event as the agent sends it, in a session of its own.
pub(super) fn sent(case: &Case, directory: &Path, session: &str) -> Value {
    let (place, run) = match case.dialect {
        "clawd" => ("project_dir", "hook_execution_id"),
        "openharness" => ("cwd", "run_id"),
        _ => ("cwd", "transcript_path"),
    };
    let mut event =
        json!({ "session_id": session, run: session, place: directory, "hook_event_name": case.event });
    event.as_object_mut().unwrap().extend(case.sends.as_object().unwrap().clone());
    event
}

/// The file with the hook of a case.
fn file(case: &Case) -> (&'static str, String) {
    match case.dialect {
        "openharness" => {
            let mut file: Value = serde_json::from_str(&hook("h", case.event, &case.command)).unwrap();
            if case.command.contains("patch") {
                let target = if case.event.contains("tool") {
                    "rewrite_tool_request"
                } else {
                    "rewrite_model_request"
                };
                file["capabilities"] = json!([target]);
            }
            (".openharness/hooks/h.yaml", file.to_string())
        }
        "clawd" => (".clawdcode/settings.json", hooks(case.event, &case.command)),
        "gemini" => (".gemini/settings.json", hooks(case.event, &case.command)),
        "codebuddy" => (".codebuddy/settings.json", hooks(case.event, &case.command)),
        _ => (".claude/settings.json", hooks(case.event, &case.command)),
    }
}

/// Sends every case through a daemon and without one, and wants the same said. Returns how many had an opinion.
fn agree(cases: &[Case]) -> usize {
    let mut setting = DaemonSetup::new().settings("workspaces:");
    for (number, case) in cases.iter().enumerate() {
        let (path, text) = file(case);
        setting = setting
            .file(&format!("w{number}/{path}"), &text)
            .settings(&format!("  w{number}: {{ root: $DIR/w{number} }}"));
    }
    let daemon = setting.serve();
    let mut opinions = 0;
    for (number, case) in cases.iter().enumerate() {
        let directory = daemon.path().join(format!("w{number}"));
        let event = sent(case, &directory, &format!("s{number}")).to_string();
        let root = directory.to_str().unwrap();
        let fire = ["fire", "--native", "--dialect", case.dialect, "--event", "-", "--workspace", root];
        let fired = said(hookyard(&daemon, &fire), &event);
        let relayed = said(hookyard(&daemon, &["relay", "--dialect", case.dialect]), &event);
        assert_eq!(relayed, fired, "{} {} {}", case.dialect, case.event, case.command);
        opinions += usize::from(
            !matches!(fired.out.trim(), "" | "{}" | r#"{"continue":true}"#) || fired.code != Some(0),
        );
    }
    opinions
}

#[test]
fn codebuddy_gets_the_same_answer_with_and_without_the_daemon() {
    assert_eq!(agree(&of_claude("codebuddy", "modifiedInput")), 13);
}

#[test]
fn claude_gets_the_same_answer_with_and_without_the_daemon() {
    assert_eq!(agree(&of_claude("claude", "updatedInput")), 13);
}

#[test]
fn gemini_gets_the_same_answer_with_and_without_the_daemon() {
    assert_eq!(agree(&of_gemini()), 16);
}

#[test]
fn clawd_gets_the_same_answer_with_and_without_the_daemon() {
    assert_eq!(agree(&of_clawd()), 9);
}

#[test]
fn openharness_gets_the_same_answer_with_and_without_the_daemon() {
    assert_eq!(agree(&of_openharness()), 6);
}
