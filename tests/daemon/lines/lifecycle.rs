//! The socket itself: who may use it, what it is beside the others, and how it ends and is taken over.

use std::{
    fs,
    os::unix::fs::{FileTypeExt, MetadataExt},
};

use rustix::process::Signal;

use super::*;
use crate::replace::{serves, successor_of};

#[test]
fn it_is_the_users_own_and_takes_events_only() {
    let daemon = setting().serve();
    let path = daemon.path().join("lines.sock");
    let file = fs::symlink_metadata(&path).unwrap();
    assert!(file.file_type().is_socket());
    assert_eq!(file.mode() & 0o777, 0o600);
    assert_eq!(daemon.get("/v1/status")["lines"], path.to_str().unwrap());
    daemon.finish();
    assert!(!path.exists());
}

#[test]
fn without_the_setting_there_is_none() {
    let daemon = DaemonSetup::new().serve();
    assert_eq!(daemon.get("/v1/status")["lines"], Value::Null);
    daemon.finish();
}

#[test]
fn it_has_a_path_of_its_own() {
    for other in ["hookyard.sock", "hookyard-control.sock"] {
        let mut daemon = DaemonSetup::new().settings(&format!("listen: {{ lines: $DIR/{other} }}")).spawn();
        assert_eq!(daemon.wait().code(), Some(1));
        let log = daemon.log();
        assert!(log.contains("`listen.lines` are both") && log.contains(other), "{log}");
    }
}

#[test]
fn a_daemon_that_is_about_to_stop_says_so_and_takes_events() {
    let mut daemon = setting().argument("--set").argument("listen.lameduck=5m").serve();
    let mut host = LineHost::of(&daemon);
    assert_eq!(host.ask(&json!({ "id": 1, "event": event("r1", "Bash") }))["outcome"]["verdict"], "block");
    daemon.signal(Signal::TERM);
    assert_eq!(host.line(), json!({ "draining": true }));
    assert_eq!(host.ask(&json!({ "id": 2, "event": event("r2", "Bash") }))["outcome"]["verdict"], "block");
    let mut later = LineHost::of(&daemon);
    assert_eq!(later.line(), json!({ "draining": true }), "it is said to those who come later, too");
    daemon.signal(Signal::TERM);
    daemon.wait();
}

#[test]
fn events_in_flight_are_answered_before_the_end_and_later_ones_are_refused() {
    let mut daemon = setting().settings("shutdown_deadline: 1m").serve();
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": 1, "event": event("r1", "Waits") }));
    wait_until("the hook runs", || daemon.path().join("shop/begun").exists());
    daemon.signal(Signal::TERM);
    assert_eq!(host.line(), json!({ "draining": true }));
    let mut number = 2;
    wait_until("events are refused", || {
        number += 1;
        let answer = host.ask(&json!({ "id": number, "event": event("r2", "Bash") }));
        answer["error"]["code"] == "shutting_down" && answer["error"]["retry"] == "safe"
    });
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    let rest = host.rest();
    assert_eq!((rest.len(), &rest[0]["outcome"]["verdict"]), (1, &json!("proceed")), "{rest:?}");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
}

#[test]
fn a_daemon_that_takes_over_has_the_socket_and_decides_what_comes_on_open_connections() {
    let mut daemon = setting().serve();
    let mut host = LineHost::of(&daemon);
    assert_eq!(host.ask(&json!({ "id": 0, "event": event("r0", "Bash") }))["outcome"]["verdict"], "block");
    host.send(&json!({ "id": 1, "event": event("r1", "Waits") }));
    wait_until("the hook runs", || daemon.path().join("shop/begun").exists());
    let successor = successor_of(&daemon);
    assert_eq!(host.line(), json!({ "draining": true }));
    // On the connection to the former daemon, and on one to the new one.
    let forwarded = host.ask(&json!({ "id": 2, "event": event("r2", "Bash") }));
    assert_eq!((&forwarded["id"], &forwarded["outcome"]["verdict"]), (&json!(2), &json!("block")));
    let native = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {},
        "cwd": daemon.path().join("shop") });
    let body = host.ask(&json!({ "id": 3, "dialect": "claude", "event": native }));
    assert_eq!(body["answer"]["hookSpecificOutput"]["permissionDecision"], "deny", "{body}");
    let process = host.ask(&json!({ "id": 4, "dialect": "claude", "as": "process", "event": native }));
    assert!(process["answer"]["stdout"].is_string(), "{process}");
    let unknown = host.ask(&json!({ "id": 5, "event": { "event": "before_tool_dispatch" } }));
    assert_eq!(unknown["error"]["code"], "bad_event", "{unknown}");
    let mut other = LineHost::of(&successor);
    assert_eq!(other.ask(&json!({ "id": 1, "event": event("r3", "Bash") }))["outcome"]["verdict"], "block");
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(host.line()["id"], 1);
    assert_eq!(host.end().rest(), [] as [Value; 0]);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert_eq!(other.ask(&json!({ "id": 2, "event": event("r4", "Bash") }))["outcome"]["verdict"], "block");
    let path = successor.path().join("lines.sock");
    successor.finish();
    assert!(!path.exists(), "it is the successor's to remove");
}

#[test]
fn a_daemon_that_takes_over_without_the_setting_closes_the_socket() {
    let daemon = setting().serve();
    fs::write(daemon.path().join("hookyard.yaml"), "workspaces: {}").unwrap();
    let successor = daemon.replace();
    serves(&successor, successor.pid());
    wait_until("nobody listens", || {
        let path = daemon.path().join("lines.sock");
        std::os::unix::net::UnixStream::connect(path).is_err()
    });
    successor.finish();
}
