//! Claude Code, whose http hooks post events and obey the body of the answer.

use std::net::TcpStream;

use rustix::process::Signal;

use super::*;

const TOKEN: &str = "a-token-of-thirty-two-characters";

/// What Claude Code sends of an event in a directory, as the `hooks` of its settings would have it sent.
fn event(name: &str, directory: &str, session: &str) -> Value {
    let mut event = json!({ "session_id": session, "transcript_path": "/t/s.jsonl", "cwd": directory,
                            "permission_mode": "default", "hook_event_name": name });
    let own = match name {
        "PreToolUse" => json!({ "tool_name": "Bash", "tool_use_id": "t1",
                                "tool_input": { "command": "npm install", "timeout": 5 } }),
        "PostToolUse" => json!({ "tool_name": "Bash", "tool_use_id": "t1", "tool_input": { "command": "ls" },
                                 "tool_response": { "stdout": "a" } }),
        "UserPromptSubmit" => json!({ "prompt": "tidy up" }),
        "SessionStart" => json!({ "source": "startup" }),
        "Stop" => json!({ "stop_hook_active": false }),
        "TaskCreated" => json!({ "task_id": "1", "task_subject": "x" }),
        _ => json!({}),
    };
    event.as_object_mut().unwrap().extend(own.as_object().unwrap().clone());
    event
}

fn about_tool(words: &Value) -> Value {
    let mut specific = json!({ "hookEventName": "PreToolUse" });
    specific.as_object_mut().unwrap().extend(words.as_object().unwrap().clone());
    json!({ "hookSpecificOutput": specific })
}

/// A hook for an event and the body that Claude Code is answered with.
fn cases() -> Vec<(&'static str, &'static str, String, Value)> {
    let allow = about_tool(&json!({ "permissionDecision": "allow", "permissionDecisionReason": "fine" }));
    let ask = about_tool(&json!({ "permissionDecision": "ask", "permissionDecisionReason": "sure?" }));
    let deny = about_tool(&json!({ "permissionDecision": "deny", "permissionDecisionReason": "never" }));
    let changed =
        about_tool(&json!({ "permissionDecision": "allow", "updatedInput": { "command": "npm ci" } }));
    let context = |event: &str, text: &str| json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": text } });
    let after = context("PostToolUse", "mind the lockfile");
    let blocked = json!({ "decision": "block", "reason": "never" });
    let kept = json!({ "decision": "block", "reason": "tests fail" });
    let halted = json!({ "continue": false, "stopReason": "over" });
    let failure = "hook `claude.project.PreToolUse.1.1` failed: exit code 1: broken";
    let failed = json!({ "systemMessage": failure });
    let blocks = "echo never >&2; exit 2".to_owned();
    vec![
        ("allow", "PreToolUse", prints(&allow), allow),
        ("ask", "PreToolUse", prints(&ask), ask),
        ("deny", "PreToolUse", prints(&deny), deny.clone()),
        ("exit-2", "PreToolUse", blocks.clone(), deny),
        ("changed", "PreToolUse", prints(&changed), changed),
        ("prompt-context", "UserPromptSubmit", "echo be kind".into(), context("UserPromptSubmit", "be kind")),
        (
            "session-context",
            "SessionStart",
            "echo branch main".into(),
            context("SessionStart", "branch main"),
        ),
        ("tool-context", "PostToolUse", prints(&after), after),
        ("prompt-blocked", "UserPromptSubmit", blocks.clone(), blocked),
        ("stop-refused", "Stop", prints(&kept), kept),
        ("halt", "PreToolUse", prints(&halted), halted),
        ("task-refused", "TaskCreated", blocks, json!({ "decision": "block", "reason": "never" })),
        ("no-opinion", "PreToolUse", "true".into(), json!({})),
        ("failed", "PreToolUse", "echo broken >&2; exit 1".into(), failed),
        ("unwanted", "SessionEnd", "exit 2".into(), json!({})),
    ]
}

/// A daemon whose only workspaces are those that turn up below a root, and a token.
fn daemon() -> Daemon {
    let mut setting = DaemonSetup::new()
        .file("token", TOKEN)
        .argument("--tcp=127.0.0.1:0")
        .settings("workspace_roots: [$DIR/projects]\nlisten: { token_file: $DIR/token }");
    for (name, event, command, _) in cases() {
        let on = if name == "unwanted" { "PreToolUse" } else { event };
        setting = setting.file(&format!("projects/{name}/.claude/settings.json"), &hooks(on, &command));
    }
    let token = setting.path().join("token");
    fs::set_permissions(token, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    setting.serve()
}

fn tcp(daemon: &Daemon) -> TcpStream {
    TcpStream::connect(daemon.get("/v1/status")["tcp"].as_str().unwrap()).unwrap()
}

#[test]
fn an_http_hook_of_claude_code_gets_the_answer_in_the_body() {
    let daemon = daemon();
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("content-type", "application/json"), ("authorization", bearer.as_str())];
    for (name, kind, _, expected) in cases() {
        let directory = daemon.path().join("projects").join(name);
        let event = event(kind, directory.to_str().unwrap(), name);
        let answer = ask(tcp(&daemon), "POST /v1/events/claude", &headers, &event.to_string());
        assert_eq!(answer.status, 200, "{name}: {}", answer.body);
        assert!(answer.head.contains("content-type: application/json"), "{}", answer.head);
        assert_eq!(serde_json::from_str::<Value>(&answer.body).unwrap(), expected, "{name}");
    }
}

#[test]
fn tcp_needs_the_token() {
    let daemon = daemon();
    let event = event("PreToolUse", daemon.path().join("projects/deny").to_str().unwrap(), "s").to_string();
    for (headers, code) in [
        (vec![], "unauthorized"),
        (vec![("authorization", "Bearer another-token-of-some-length")], "unauthorized"),
        (vec![("authorization", "Basic YTpi")], "unauthorized"),
    ] {
        let headers: Vec<_> = [("content-type", "application/json")].into_iter().chain(headers).collect();
        let answer = ask(tcp(&daemon), "POST /v1/events/claude", &headers, &event);
        let error: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!((answer.status, error["error"]["code"].as_str()), (401, Some(code)));
    }
}

#[test]
fn a_halt_lasts_until_the_next_prompt_or_the_end_of_the_session() {
    let daemon = daemon();
    let directory = daemon.path().join("projects/halt");
    let path = "/v1/events/claude";
    let send = |kind, session| daemon.post(path, &event(kind, directory.to_str().unwrap(), session));
    let halted = json!({ "continue": false, "stopReason": "over" });
    assert_eq!(send("PreToolUse", "a"), halted);
    daemon::write(&directory.join(".claude/settings.json"), &hooks("PreToolUse", "true"));
    let reloaded = daemon.send("POST", "/v1/reload", None);
    assert_eq!(reloaded.status, 200);
    assert_eq!(send("PreToolUse", "a"), halted);
    assert_eq!(send("PreToolUse", "b"), json!({}));
    send("SessionEnd", "a");
    assert_eq!(send("PreToolUse", "a"), json!({}));
    let halts = hooks("PreToolUse", &prints(&halted));
    daemon::write(&directory.join(".claude/settings.json"), &halts);
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    assert_eq!(send("PreToolUse", "c"), halted);
    assert_eq!(send("Stop", "c"), halted);
    assert_eq!(send("UserPromptSubmit", "c"), json!({}));
    assert_eq!(send("Stop", "c"), json!({}));
    assert_eq!(send("PreToolUse", "c"), halted);
    // Where no hook of the agent reports prompts, events of another prompt show that there was one.
    let stop = |prompt: &str| {
        let mut event = event("PreToolUse", directory.to_str().unwrap(), "d");
        event["prompt_id"] = json!(prompt);
        event["tool_use_id"] = json!(prompt);
        let first = daemon.post(path, &event);
        event["hook_event_name"] = json!("Stop");
        (first, daemon.post(path, &event))
    };
    assert_eq!(stop("one"), (halted.clone(), halted.clone()));
    daemon::write(&directory.join(".claude/settings.json"), &hooks("PreToolUse", "true"));
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    assert_eq!(stop("one"), (halted.clone(), halted));
    assert_eq!(stop("two"), (json!({}), json!({})));
}

#[test]
fn stops_are_counted_from_the_last_tool_event_on() {
    let daemon = daemon();
    let directory = daemon.path().join("projects/halt");
    daemon::write(&directory.join(".claude/settings.json"), &hooks("Stop", "echo go on >&2; exit 2"));
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    let send = |kind| daemon.post("/v1/events/claude", &event(kind, directory.to_str().unwrap(), "s"));
    let stopped_after = || (0..20).position(|_| send("Stop")["decision"] != "block");
    assert_eq!(stopped_after(), Some(8));
    for _ in 0..3 {
        for _ in 0..5 {
            assert_eq!(send("Stop")["decision"], "block");
        }
        // No hook wants it.
        assert_eq!(send("PostToolUse"), json!({}));
    }
    assert_eq!(stopped_after(), Some(8));
}

#[test]
fn hooks_of_other_dialects_apply_to_claude_code() {
    let clawd = json!({ "hooks": { "PreToolUse": [{ "hooks": [{ "type": "command", "command": "echo clawd >&2; exit 2" }] }] } });
    let daemon = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/projects]")
        .file(
            "projects/openharness/.openharness/hooks/guard.yaml",
            &hook("guard", "before_tool_dispatch", "echo openharness >&2; exit 2"),
        )
        .file("projects/gemini/.gemini/settings.json", &hooks("BeforeTool", "echo gemini >&2; exit 2"))
        .file(
            "projects/codebuddy/.codebuddy/settings.json",
            &hooks("PreToolUse", "echo codebuddy >&2; exit 2"),
        )
        .file("projects/clawd/.clawdcode/settings.json", &clawd.to_string())
        .serve();
    for dialect in ["openharness", "gemini", "codebuddy", "clawd"] {
        let directory = daemon.path().join("projects").join(dialect);
        let answer = daemon.post("/v1/events/claude", &event("PreToolUse", directory.to_str().unwrap(), "s"));
        let deny = json!({ "permissionDecision": "deny", "permissionDecisionReason": dialect });
        assert_eq!(answer, about_tool(&deny));
    }
}

#[test]
fn an_event_that_cannot_be_read_is_blocked_where_a_guard_fails_closed() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler: { type: command, command: 'true' }\n\
                 on_error: deny\n";
    let daemon = DaemonSetup::new()
        .settings("workspaces: { open: { root: $DIR/open }, closed: { root: $DIR/closed } }")
        .file("open/.openharness/hooks/h.yaml", &hook("h", "before_tool_dispatch", "true"))
        .file("closed/.openharness/hooks/guard.yaml", guard)
        .serve();
    let broken = |directory: &str| {
        let cwd = daemon.path().join(directory);
        format!(
            r#"{{"session_id":"s","hook_event_name":"PreToolUse","cwd":"{}","tool_name":7}}"#,
            cwd.display()
        )
    };
    let send =
        |body: String| daemon.client().send("POST", "/v1/events/claude", Some(body.as_bytes())).unwrap();
    let answer = daemon::read(&send(broken("closed")));
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    let daemon = DaemonSetup::new()
        .settings("workspaces: { open: { root: $DIR/open } }")
        .file("open/.openharness/hooks/h.yaml", &hook("h", "before_tool_dispatch", "true"))
        .serve();
    let answer = daemon.client().send("POST", "/v1/events/claude", Some(broken("open").as_bytes())).unwrap();
    let answer = daemon::read(&answer);
    let note = answer["systemMessage"].as_str().unwrap();
    assert!(note.starts_with("hookyard ran no hooks for this event: field `tool_name`"), "{answer}");
    assert_eq!(answer.as_object().unwrap().len(), 1, "{answer}");
}

#[test]
fn a_guard_below_the_roots_is_asked_about_the_first_event_also_if_it_cannot_be_read() {
    let guard = "name: guard\nevents: [before_tool_dispatch]\nhandler: { type: command, command: 'true' }\n\
                 on_error: deny\n";
    let daemon = DaemonSetup::new()
        .settings("workspace_roots: [$DIR/projects]")
        .file("projects/shop/.openharness/hooks/guard.yaml", guard)
        .serve();
    let directory = daemon.path().join("projects/shop");
    for (dialect, place, kind) in [
        ("claude", "cwd", "PreToolUse"),
        ("clawd", "project_dir", "PreToolUse"),
        ("gemini", "cwd", "BeforeTool"),
    ] {
        let event = json!({ "session_id": "s", "hook_event_name": kind, place: directory, "tool_name": 7 });
        let answer = daemon.post(&format!("/v1/events/{dialect}"), &event);
        assert!(answer.to_string().contains("\"deny\""), "{dialect}: {answer}");
        assert_eq!(daemon.send("DELETE", &workspace_of(&daemon), None).status, 204, "{dialect} registers it");
    }
}

/// The route of the only workspace.
fn workspace_of(daemon: &Daemon) -> String {
    let id = daemon.get("/v1/workspaces")[0]["id"].as_str().unwrap().replace('/', "%2F");
    format!("/v1/workspaces/{id}")
}

#[test]
fn the_trace_of_the_host_reaches_its_hooks() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.claude/settings.json", &hooks("PreToolUse", "echo \"${TRACEPARENT-none}\" >&2; exit 2"))
        .serve();
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    // A session each, or the second event would get the first one's answer.
    for (session, sent, told) in [("a", trace, trace), ("b", "00-nonsense", "none")] {
        let body = event("PreToolUse", daemon.path().join("shop").to_str().unwrap(), session).to_string();
        let connection = std::os::unix::net::UnixStream::connect(daemon.socket()).unwrap();
        let headers = [("content-type", "application/json"), ("traceparent", sent)];
        let answer = ask(connection, "POST /v1/events/claude", &headers, &body);
        let answer: Value = serde_json::from_str(&answer.body).unwrap();
        assert_eq!(answer["hookSpecificOutput"]["permissionDecisionReason"], told);
        // An agent that only runs commands has it in a variable.
        let mut relay = hookyard(&daemon, &["relay", "--dialect", "claude"]);
        relay.env("TRACEPARENT", sent);
        let said = said(relay, &body.replace(&format!("{session:?}"), &format!("\"{session}-relayed\"")));
        assert!(said.out.contains(told), "{}", said.out);
    }
}

#[test]
fn hooks_get_the_variables_of_their_agent_from_processes_of_their_user_only() {
    let shows = "echo \"${CLAUDE_ENV_FILE-none} ${CLAUDE_EFFORT-none} ${OTHER-none} ${HOME}\" >&2; exit 2";
    let guard = hook("h", "before_tool_dispatch", "echo \"${CLAUDE_EFFORT-none}\" >> seen");
    let daemon = DaemonSetup::new()
        .argument("--tcp=127.0.0.1:0")
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.claude/settings.json", &hooks("PreToolUse", shows))
        .file("shop/.openharness/hooks/h.yaml", &guard)
        .serve();
    let shop = daemon.path().join("shop");
    let home = daemon.path().join("home").display().to_string();
    let body = |session: &str| event("PreToolUse", shop.to_str().unwrap(), session).to_string();
    let reason = |answer: &str| {
        let answer: Value = serde_json::from_str(answer).unwrap();
        answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap().to_owned()
    };
    let relayed = |session, effort: &str| {
        let mut relay = hookyard(&daemon, &["relay", "--dialect", "claude"]);
        relay.env("CLAUDE_ENV_FILE", "/tmp/e d/ä\".sh").env("CLAUDE_EFFORT", effort).env("OTHER", "no");
        reason(&said(relay, &body(session)).out)
    };
    assert_eq!(relayed("a", "high"), format!("/tmp/e d/ä\".sh high none {home}"));
    for (session, unusable) in [("b", "two\nlines"), ("c", "x".repeat(5000).as_str())] {
        assert_eq!(relayed(session, unusable), format!("/tmp/e d/ä\".sh none none {home}"));
    }
    // A hook of another dialect knows nothing of them.
    assert_eq!(fs::read_to_string(shop.join("seen")).unwrap(), "none\n".repeat(3));
    let sent =
        json!({ "CLAUDE_ENV_FILE": "/etc/passwd", "HOME": "/elsewhere", "CLAUDE_EFFORT": 7 }).to_string();
    let good = json!({ "CLAUDE_ENV_FILE": "/etc/passwd", "HOME": "/elsewhere" }).to_string();
    for (session, variables, expected) in [("d", sent, "none"), ("e", good, "/etc/passwd")] {
        let headers = [("content-type", "application/json"), ("hookyard-environment", variables.as_str())];
        let socket = std::os::unix::net::UnixStream::connect(daemon.socket()).unwrap();
        let answer = ask(socket, "POST /v1/events/claude", &headers, &body(session));
        assert_eq!(reason(&answer.body), format!("{expected} none none {home}"));
        let answer = ask(tcp(&daemon), "POST /v1/events/claude", &headers, &body(&format!("{session}-tcp")));
        assert_eq!(reason(&answer.body), format!("none none none {home}"), "anybody could send it there");
    }
}

#[test]
fn a_hook_goes_on_in_the_background_after_a_first_line_that_says_so() {
    let line = json!({ "async": true }).to_string();
    let late = about_tool(&json!({ "permissionDecision": "deny" }));
    // It ends once the test has its answer, and says then what counts no more.
    let goes_on = format!(
        "echo '{line}'; touch begun; until [ -e go ]; do sleep 0.05; done; {}\ntouch ended; exit 2",
        prints(&late)
    );
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.claude/settings.json", &hooks("PreToolUse", &goes_on))
        .serve();
    let shop = daemon.path().join("shop");
    let event = event("PreToolUse", shop.to_str().unwrap(), "s");
    assert_eq!(daemon.post("/v1/events/claude", &event), json!({}));
    wait_until("the hook has begun", || shop.join("begun").exists());
    assert!(!shop.join("ended").exists(), "the answer came before its end");
    daemon::write(&shop.join("go"), "");
    wait_until("the hook ended by itself", || shop.join("ended").exists());
}

#[test]
fn hooks_in_the_background_leave_places_to_guards_and_end_with_the_daemon() {
    let line = json!({ "async": true }).to_string();
    let goes_on = format!("echo $$ >> pids; echo '{line}'; exec sleep 600");
    let mut daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }\npools: { command: { concurrency: 4 } }")
        .file("shop/.claude/settings.json", &hooks("PostToolUse", &goes_on))
        .file("shop/.openharness/hooks/h.yaml", &hook("h", "before_tool_dispatch", "echo no >&2; exit 2"))
        .serve();
    let shop = daemon.path().join("shop");
    let send =
        |kind, session: &str| daemon.post("/v1/events/claude", &event(kind, shop.to_str().unwrap(), session));
    for number in 0..3 {
        assert_eq!(send("PostToolUse", &format!("s{number}")), json!({}));
    }
    let deny = about_tool(&json!({ "permissionDecision": "deny", "permissionDecisionReason": "no" }));
    assert_eq!(send("PreToolUse", "guarded"), deny);
    let pids = fs::read_to_string(shop.join("pids")).unwrap();
    daemon.signal(Signal::TERM);
    daemon.wait();
    assert_eq!(pids.lines().count(), 3);
    for pid in pids.lines() {
        gone(pid);
    }
}
