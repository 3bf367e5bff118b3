//! `record` and `GET /v1/recording`: what agents send, as they send it, for who may control the daemon.

use std::process::Child;

use rustix::process::{Pid, Signal, kill_process};

use super::*;

/// What a recorder prints.
const PRINTED: &str = "printed.jsonl";

const SECRET: &str = "k3y-0002-of-the-shop";

fn shop() -> Daemon {
    let guard = json!({
        "name": "guard", "events": ["before_tool_dispatch"],
        "handler": { "type": "command", "command": "exit 0", "environment": { "KEY": "${secrets.KEY}" } },
    });
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .variable("HOOKYARD_SECRET_KEY", SECRET)
        .file("shop/.openharness/hooks/guard.yaml", &guard.to_string())
        .serve()
}

/// An event of Claude Code over two lines, as no shell prints it.
fn native(session: &str, command: &str) -> String {
    format!(
        "{{\"hook_event_name\": \"PreToolUse\", \"session_id\": \"{session}\",\n \"tool_name\": \"Bash\", \
         \"cwd\": \"/\", \"tool_input\": {{\"command\": \"{command}\"}}}}"
    )
}

fn send(daemon: &Daemon, dialect: &str, text: &str) {
    let path = format!("/v1/events/{dialect}");
    let event = serde_json::from_str(text).unwrap();
    assert_eq!(daemon.send("POST", &path, Some(&event)).status, 200);
}

/// A recorder that the daemon has answered.
fn recorder(daemon: &Daemon, arguments: &[&str]) -> Child {
    let before = daemon.get("/v1/status")["streams"].as_u64().unwrap();
    let mut program = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    program.args(["record", "--socket"]).arg(daemon.socket()).args(arguments).current_dir(daemon.path());
    let out = fs::File::create(daemon.path().join(PRINTED)).unwrap();
    let child = program.stdout(out).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("it records", || daemon.get("/v1/status")["streams"].as_u64().unwrap() > before);
    child
}

#[test]
fn the_events_of_an_agent_are_recorded_and_can_be_replayed() {
    let daemon = shop();
    let recording = recorder(&daemon, &["claude", "--output", "session.jsonl", "--events", "2"]);
    send(&daemon, "claude", &native("one", "ls"));
    send(
        &daemon,
        "gemini",
        r#"{"hook_event_name": "BeforeTool", "session_id": "g", "tool_name": "x", "tool_input": {}}"#,
    );
    send(&daemon, "claude", &native("two", &format!("echo {SECRET}")));
    let file = daemon.path().join("session.jsonl");
    wait_until("both events are recorded", || {
        fs::read_to_string(&file).is_ok_and(|text| text.lines().count() == 2)
    });
    let output = recording.wait_with_output().unwrap();
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{err}");
    assert_eq!(fs::read_to_string(daemon.path().join(PRINTED)).unwrap(), "");
    assert!(err.contains("recording events of claude into session.jsonl"), "{err}");
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let commands: Vec<_> = lines.iter().map(|line| line["tool_input"]["command"].as_str().unwrap()).collect();
    assert_eq!(commands, ["ls", "echo ***"], "{text}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600);
    let mut replay = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    replay.args(without_trust(&[
        "replay",
        "session.jsonl",
        "--dialect",
        "claude",
        "--json",
        "--workspace",
        "shop",
    ]));
    let replay = replay.env("HOOKYARD_SECRET_KEY", "x").current_dir(daemon.path()).output().unwrap();
    let report: Value = serde_json::from_slice(&replay.stdout).unwrap();
    assert_eq!(
        (&report["totals"]["events"], &report["totals"]["failures"]),
        (&json!(2), &json!(0)),
        "{report}"
    );
    // What is there is not written over.
    let again = Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(["record", "claude", "--output", "session.jsonl", "--socket"])
        .arg(daemon.socket())
        .current_dir(daemon.path())
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&again.stderr).contains("session.jsonl cannot be written"));
    assert_eq!(fs::read_to_string(&file).unwrap(), text);
}

#[test]
fn one_session_is_recorded_to_standard_output_until_it_is_ended() {
    let daemon = shop();
    let recording = recorder(&daemon, &["claude", "--session", "two"]);
    for session in ["one", "two", "three"] {
        send(&daemon, "claude", &native(session, "ls"));
    }
    let printed = || fs::read_to_string(daemon.path().join(PRINTED)).unwrap();
    wait_until("the event is printed", || printed().ends_with('\n'));
    let id = Pid::from_raw(i32::try_from(recording.id()).unwrap()).unwrap();
    kill_process(id, Signal::TERM).unwrap();
    drop(recording.wait_with_output());
    let sessions: Vec<Value> = printed().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(sessions.len(), 1, "only one event was of the session");
    assert_eq!(sessions[0]["session_id"], "two");
    wait_until("nobody records", || daemon.get("/v1/status")["streams"] == 0);
    send(&daemon, "claude", &native("two", "ls"));
}

#[test]
fn only_who_controls_the_daemon_sees_what_agents_send() {
    let daemon = shop();
    let refused = daemon.client().send("GET", "/v1/recording", None).unwrap();
    assert_eq!(refused.status, 403, "{}", String::from_utf8_lossy(&refused.body));
    for query in ["dialect=klingon", "colour=red"] {
        let answer = daemon.control().send("GET", &format!("/v1/recording?{query}"), None).unwrap();
        assert_eq!(answer.status, 400, "{query}");
    }
    let absent = Command::new(env!("CARGO_BIN_EXE_hookyard"))
        .args(["record", "claude", "--socket", "/nowhere/hookyard.sock"])
        .output()
        .unwrap();
    assert_eq!(absent.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&absent.stderr).contains("hookyard-control.sock"), "{absent:?}");
}
