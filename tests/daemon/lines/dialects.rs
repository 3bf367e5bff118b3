//! Agents' events on lines: the agent's own JSON in, the agent's own answer out, also where no hook can be asked.

use super::*;

fn claude(tool: &str) -> Value {
    json!({ "hook_event_name": "PreToolUse", "session_id": tool, "tool_name": tool, "tool_input": {}, "cwd": "/nowhere" })
}

fn in_shop(daemon: &Daemon, tool: &str) -> Value {
    let mut event = claude(tool);
    event["cwd"] = json!(daemon.path().join("shop"));
    event
}

#[test]
fn an_agents_event_is_answered_in_its_own_words() {
    let daemon = setting().serve();
    let mut host = LineHost::of(&daemon);
    let blocked = in_shop(&daemon, "Bash");
    let body = host.ask(&json!({ "id": 1, "dialect": "claude", "event": blocked }));
    assert_eq!(body["answer"]["hookSpecificOutput"]["permissionDecision"], "deny", "{body}");
    assert_eq!(body["exit_code"], 0);
    let process = host.ask(&json!({ "id": 2, "dialect": "codebuddy", "as": "process", "event": blocked }));
    assert_eq!(
        process["answer"]["exit_code"].as_u64().is_some(),
        process["answer"]["stdout"].is_string(),
        "{process}"
    );
    let canonical = host.ask(&json!({ "id": 3, "dialect": "canonical", "event": event("r", "Bash") }));
    assert_eq!(canonical["outcome"]["verdict"], "block", "{canonical}");
    daemon.finish();
}

#[test]
fn an_agents_event_has_a_verdict_whatever_is_wrong_with_its_line() {
    let closed = "name: closed\nevents: [before_tool_dispatch]\nmatcher: ^Guarded$\non_error: deny\nhandler: { type: command, command: 'true' }\n";
    let daemon = setting()
        .file("shop/.openharness/hooks/closed.yaml", closed)
        .settings("limits: { payload: 64KiB }")
        .serve();
    let mut host = LineHost::of(&daemon);
    let event = in_shop(&daemon, "Guarded").to_string();
    let padded = format!("{},\"pad\":\"{}\"}}", &event[..event.len() - 1], "x".repeat(200 << 10));
    for (line, code) in [
        (format!("{{\"id\":1,\"dialect\":\"claude\",\"event\":{event},\"extra\":1}}"), "bad_line"),
        (format!("{{\"id\":1,\"dialect\":\"latin\",\"event\":{event}}}"), "bad_line"),
        (format!("{{\"id\":1,\"dialect\":\"claude\",\"as\":\"page\",\"event\":{event}}}"), "bad_line"),
        (format!("{{\"id\":1,\"dialect\":\"claude\",\"event\":{}", &event[..event.len() - 1]), "bad_line"),
        (
            "{\"id\":1,\"dialect\":\"claude\",\"event\":{\"hook_event_name\":\"PreToolUse\"}}".to_owned(),
            "bad_event",
        ),
        (format!("{{\"id\":1,\"dialect\":\"claude\",\"event\":{padded}}}"), "too_large"),
    ] {
        let answer = host.raw(format!("{line}\n")).line();
        let shown = &line[..line.len().min(120)];
        assert_eq!(answer["answer"]["hookSpecificOutput"]["permissionDecision"], "deny", "{shown}: {answer}");
        assert_eq!(answer["unasked"], json!({ "code": code, "retry": "never" }), "{shown}");
        assert_eq!(answer.get("error"), None);
    }
    // A directory in no workspace has no guards.
    let outside = host.ask(&json!({ "id": 2, "dialect": "claude", "event": claude("Bash") }));
    assert_eq!(outside["unasked"]["code"], "no_workspace", "{outside}");
    assert!(outside["answer"]["systemMessage"].is_string(), "{outside}");
    daemon.finish();
}
