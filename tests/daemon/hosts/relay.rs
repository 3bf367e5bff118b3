//! `relay` applies `--if-down` without a daemon, and answers inside a hook.

use std::{os::unix::net::UnixListener, thread};

use rustix::process::Signal;

use super::{
    relay_answers::{BLOCKS, case, sent, tool},
    *,
};

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
        "gemini" => answer["decision"] == "deny",
        "clawd" => answer["permissionDecision"] == "deny",
        _ => answer["hookSpecificOutput"]["permissionDecision"] == "deny",
    }
}

const DIALECTS: [&str; 5] = ["openharness", "claude", "codebuddy", "gemini", "clawd"];

/// What a relay whose daemon gives no outcome says: nothing and a note, or a block; never one of the end of a session.
fn without_an_outcome(daemon: &Daemon, why: &str) {
    for (dialect, program) in DIALECTS.into_iter().zip(PROGRAMS.into_iter().cycle()) {
        let (tool, end) = words(dialect);
        let relay = |arguments: &[&str], event: &Value| {
            let arguments = [&["relay", "--dialect", dialect], arguments].concat();
            said(started(Path::new(program), daemon, &arguments), &event.to_string())
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

/// A daemon whose hook runs a program as a relay to it, and notes that it ran, with its mark.
fn relaying_hook(dialect: &'static str, program: &str) -> Daemon {
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
    for (dialect, program) in DIALECTS.into_iter().zip(PROGRAMS.into_iter().cycle()) {
        let daemon = relaying_hook(dialect, program);
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

/// In a line of Gemini's, a variable is one word.
#[test]
fn hooks_get_the_variables_of_their_agent() {
    let agents = [
        ("gemini", "BeforeTool", "GEMINI_PLANS_DIR", "$GEMINI_PLANS_DIR"),
        ("codebuddy", "PreToolUse", "CODEBUDDY_SERVICE_PROXY_URL", "\"$CODEBUDDY_SERVICE_PROXY_URL\""),
    ];
    for (dialect, event, variable, word) in agents {
        let command = format!("cat > /dev/null; printf '<%s>' {word} > seen");
        let daemon = DaemonSetup::new()
            .settings("workspaces: { shop: { root: $DIR/shop } }")
            .file(&format!("shop/.{dialect}/settings.json"), &hooks(event, &command))
            .serve();
        let shop = daemon.path().join("shop");
        let mut relay = hookyard(&daemon, &["relay", "--dialect", dialect]);
        relay.env(variable, "/tmp/a b");
        let said = said(relay, &sent(&case(dialect, event, "", tool()), &shop, "s").to_string());
        assert_eq!(said.code, Some(0), "{dialect}: {said:?}");
        assert_eq!(fs::read_to_string(shop.join("seen")).unwrap(), "</tmp/a b>", "{dialect}");
        daemon.finish();
    }
}
