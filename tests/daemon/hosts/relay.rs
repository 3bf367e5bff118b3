//! `relay` answers as the hooks would, and applies `--if-down` without a daemon.

use std::{os::unix::net::UnixListener, thread};

use rustix::process::Signal;

use super::*;

/// An event of a dialect and the hook that is asked about it.
struct Case {
    dialect: &'static str,
    /// What the hook's file says it is for.
    event: &'static str,
    command: String,
    /// What the agent sends beside the usual.
    sends: Value,
}

fn case(dialect: &'static str, event: &'static str, command: impl Into<String>, sends: Value) -> Case {
    Case { dialect, event, command: command.into(), sends }
}

fn tool() -> Value {
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

const BLOCKS: &str = "echo 'not here' >&2; exit 2";

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
fn sent(case: &Case, directory: &Path, session: &str) -> Value {
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

/// A tool call and the end of a session in the words of a dialect, of an agent that does not say where it is.
fn words(dialect: &'static str) -> (Value, Value) {
    let (before, end) = match dialect {
        "gemini" => ("BeforeTool", "SessionEnd"),
        "openharness" => ("before_tool_dispatch", "run_completed"),
        _ => ("PreToolUse", "SessionEnd"),
    };
    let last = match dialect {
        "openharness" => json!({ "trigger_type": "user", "run_status": "completed" }),
        _ => json!({ "reason": "exit" }),
    };
    let nowhere = |event, sends| {
        let mut event = sent(&case(dialect, event, "", sends), Path::new("/"), "s");
        event.as_object_mut().unwrap().retain(|name, _| name != "cwd" && name != "project_dir");
        event
    };
    (nowhere(before, tool()), nowhere(end, last))
}

/// Whether a dialect's agent is told to leave a tool call be.
fn is_blocked(dialect: &str, said: &Said) -> bool {
    let answer: Value = serde_json::from_str(&said.out).unwrap_or_default();
    match dialect {
        "openharness" => answer["decision"] == "block",
        "gemini" | "clawd" => answer["decision"] == "deny",
        _ => answer["hookSpecificOutput"]["permissionDecision"] == "deny",
    }
}

const DIALECTS: [&str; 5] = ["openharness", "claude", "codebuddy", "gemini", "clawd"];

/// What a relay whose daemon gives no outcome says: nothing and a note, or a block; never one of the end of a session.
fn without_an_outcome(daemon: &Daemon, why: &str) {
    for dialect in DIALECTS {
        let (tool, end) = words(dialect);
        let relay = |arguments: &[&str], event: &Value| {
            let arguments = [&["relay", "--dialect", dialect], arguments].concat();
            said(hookyard(daemon, &arguments), &event.to_string())
        };
        for arguments in [&[][..], &["--if-down", "allow"]] {
            let said = relay(arguments, &tool);
            assert_eq!((said.out.as_str(), said.code), ("", Some(0)), "{dialect}");
            assert!(said.err.starts_with("note: ") && said.err.contains(why), "{}", said.err);
            assert_eq!(said.err.lines().count(), 1);
        }
        let block = ["--if-down", "block", "--wait", "0"];
        let said = relay(&block, &tool);
        assert!(is_blocked(dialect, &said), "{dialect}: {said:?}");
        assert!(said.out.contains(why), "{dialect}: {said:?}");
        let said = relay(&block, &end);
        assert_eq!((said.out.as_str(), said.code), ("", Some(0)), "{dialect}");
    }
}

#[test]
fn with_no_daemon_the_agent_goes_on_or_is_blocked() {
    let mut daemon =
        DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }").file("shop/a", "").serve();
    daemon.signal(Signal::TERM);
    daemon.wait();
    without_an_outcome(&daemon, "no hookyard listens on");
}

#[test]
fn a_daemon_that_rejects_events_counts_as_unreachable() {
    let mut daemon =
        DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }").file("shop/a", "").serve();
    daemon.signal(Signal::TERM);
    daemon.wait();
    let listener = UnixListener::bind(daemon.socket()).unwrap();
    // Ends with the test's process.
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            drop(stream.read(&mut [0; 4096]));
            let body = r#"{"error":{"code":"overloaded","message":"too much to do","hint":"later"}}"#;
            let length = body.len();
            let head = format!("HTTP/1.1 503 Service Unavailable\r\ncontent-length: {length}\r\n\r\n");
            drop(stream.write_all((head + body).as_bytes()));
        }
    });
    without_an_outcome(&daemon, "too much to do");
}

#[test]
fn a_daemon_that_is_killed_during_an_event_counts_as_unreachable() {
    for dialect in DIALECTS {
        for if_down in ["allow", "block"] {
            let (mut daemon, directory) = hanging_guard();
            let (tool, _) = words(dialect);
            let relay = hookyard(&daemon, &["relay", "--dialect", dialect, "--if-down", if_down]);
            let (relayed, pid) = thread::scope(|scope| {
                let relayed = scope.spawn(|| said(relay, &tool.to_string()));
                let pid = hanging(&directory);
                daemon.signal(Signal::KILL);
                daemon.wait();
                (relayed.join().unwrap(), pid)
            });
            if if_down == "allow" {
                assert_eq!((relayed.out.as_str(), relayed.code), ("", Some(0)), "{dialect}");
                assert!(relayed.err.starts_with("note: "), "{}", relayed.err);
            } else {
                assert!(is_blocked(dialect, &relayed), "{dialect}: {relayed:?}");
            }
            let _next = daemon.again().serve();
            gone(&pid);
        }
    }
}

#[test]
fn killing_a_relay_cancels_the_hook() {
    let (daemon, directory) = hanging_guard();
    for dialect in DIALECTS {
        let (tool, _) = words(dialect);
        let mut relay = hookyard(&daemon, &["relay", "--dialect", dialect]).spawn().unwrap();
        relay.stdin.take().unwrap().write_all(tool.to_string().as_bytes()).unwrap();
        let pid = hanging(&directory);
        relay.kill().unwrap();
        relay.wait().unwrap();
        gone(&pid);
    }
}

/// A daemon whose hook runs a relay to it, and notes that it ran, with its mark.
fn relaying_hook(dialect: &'static str) -> Daemon {
    let program = env!("CARGO_BIN_EXE_hookyard");
    let relay = format!("{program} relay --dialect {dialect} --if-down block --socket ../hookyard.sock");
    let (event, _) = words(dialect);
    let command = format!(
        "cat > /dev/null; echo ran >> runs; echo $HOOKYARD_LIFE > life\ncat <<'END' | {relay} > out.txt 2> err.txt\n{event}\nEND\necho $? > code.txt"
    );
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/nested.yaml", &hook("nested", "before_tool_dispatch", &command))
        .serve()
}

#[test]
fn a_relay_inside_a_hook_has_no_opinion() {
    for dialect in DIALECTS {
        let daemon = relaying_hook(dialect);
        let outcome = daemon.post("/v1/events", &call("shop", "r"));
        let ended = (&outcome["verdict"], &outcome["hooks"][0]["ended"]);
        assert_eq!(ended, (&json!("proceed"), &json!("completed")), "{outcome}");
        let text = |file: &str| fs::read_to_string(daemon.path().join("shop").join(file)).unwrap();
        assert_eq!((text("runs").as_str(), text("code.txt").as_str()), ("ran\n", "0\n"), "{dialect}");
        assert_eq!((text("out.txt").as_str(), text("err.txt").as_str()), ("", ""), "some dialects read both");
        // One that has left its hook behind is known by the daemon's mark.
        let mut relay = hookyard(&daemon, &["relay", "--dialect", dialect, "--if-down", "block"]);
        relay.env("HOOKYARD_HOOK", "1").env("HOOKYARD_LIFE", text("life").trim());
        let left = said(relay, &words(dialect).0.to_string());
        assert_eq!((left.out.as_str(), left.err.as_str(), left.code), ("", "", Some(0)), "{dialect}");
        assert_eq!(text("runs"), "ran\n", "{dialect}");
        daemon.finish();
    }
}

#[test]
fn a_variable_alone_makes_no_relay_part_of_a_hook() {
    let (guard, _) = words("claude");
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/no.yaml", &hook("no", "before_tool_dispatch", BLOCKS))
        .serve();
    let forged: [&[(&str, &str)]; 5] = [
        &[("HOOKYARD_HOOK", "")],
        &[("HOOKYARD_HOOK", "1")],
        &[("HOOKYARD_HOOK", "yes"), ("HOOKYARD_LIFE", "1-1")],
        &[("HOOKYARD_HOOK", "1"), ("HOOKYARD_LIFE", "1-1")],
        &[("HOOKYARD_HOOK", "1"), ("HOOKYARD_LIFE", "1\r\nx-hookyard-event: 1")],
    ];
    for variables in forged {
        let mut relay = hookyard(&daemon, &["relay", "--dialect", "claude", "--if-down", "block"]);
        relay.envs(variables.iter().copied());
        let said = said(relay, &guard.to_string());
        assert!(is_blocked("claude", &said), "{variables:?}: {said:?}");
    }
    daemon.finish();
}
