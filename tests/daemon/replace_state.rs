//! `serve --replace`: what is known of runs goes over to the daemon that takes over.

use std::{fs, os::unix::net::UnixStream};

use rustix::process::Signal;
use serde_json::json;

use crate::{
    http_server::raw_connection::{RawConnection, get},
    replace::{bytes, event, late_event, serves, setting, successor_of},
    support::{
        daemon::{Daemon, DaemonSetup},
        wait::wait_until,
    },
};

#[test]
fn halts_hold_in_the_daemon_that_takes_over() {
    for data in ["data: $DIR/data", "data: null"] {
        halts_hold(setting().settings(data));
    }
}

fn halts_hold(setting: DaemonSetup) {
    let mut daemon = setting.serve();
    assert_eq!(daemon.post("/v1/events", &event("early", "Halts"))["verdict"], "halt");
    // Its hook is at work during the handover, and halts the run after it.
    let mut late = late_event(&daemon);
    let mut open = RawConnection::unix(&daemon);
    assert_eq!(open.send(get("/healthz")).reply().status, 200);

    let successor = successor_of(&daemon);
    assert_eq!(successor.post("/v1/events", &event("early", "Read"))["verdict"], "halt");
    assert_eq!(successor.post("/v1/events", &event("late", "Read"))["verdict"], "proceed", "not yet");
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    let outcome = late.reply().json();
    assert_eq!((&outcome["verdict"], &outcome["reason"]), (&json!("halt"), &json!("budget spent")));
    let held = successor.post("/v1/events", &event("late", "Read"));
    assert_eq!((&held["verdict"], &held["reason"]), (&json!("halt"), &json!("budget spent")));
    // A connection to the daemon that was replaced leads to the other one.
    assert_eq!(successor.post("/v1/events", &event("new", "Halts"))["verdict"], "halt");
    let reply = open.send(bytes("new", "Read")).reply();
    assert_eq!((&reply.json()["verdict"], reply.header("connection")), (&json!("halt"), Some("close")));
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    // A third one knows all of it.
    let third = successor_of(&successor);
    for run in ["early", "late", "new"] {
        assert_eq!(third.post("/v1/events", &event(run, "Read"))["verdict"], "halt", "{run}");
    }
    let mut successor = successor;
    assert_eq!(successor.wait().code(), Some(0), "{}", successor.log());
    third.finish();
}

#[test]
fn a_halt_that_the_replaced_daemon_answers_is_on_disk() {
    let mut daemon = setting().serve();
    let mut late = late_event(&daemon);
    let mut successor = successor_of(&daemon);
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(late.reply().json()["verdict"], "halt");
    successor.signal(Signal::KILL);
    successor.wait();
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    let third = successor.again().serve();
    assert_eq!(third.post("/v1/events", &event("late", "Read"))["verdict"], "halt");
    third.finish();
}

#[test]
fn a_halt_of_the_replaced_daemon_outlives_the_one_that_has_taken_over() {
    let mut daemon = setting().serve();
    let mut late = late_event(&daemon);
    let mut successor = successor_of(&daemon);
    successor.signal(Signal::KILL);
    successor.wait();
    wait_until("the replaced daemon does not listen", || UnixStream::connect(daemon.socket()).is_err());
    // The next one waits for the one that finishes its events.
    let next = successor.again().spawn();
    wait_until("it says so", || next.log().contains("another hookyard still finishes its events"));
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(late.reply().json()["verdict"], "halt");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    serves(&next, next.pid());
    assert_eq!(next.post("/v1/events", &event("late", "Read"))["verdict"], "halt");
    assert!(!next.log().contains("forgotten"), "{}", next.log());
    next.finish();
}

#[test]
fn a_halt_that_nobody_can_store_is_reported_with_its_run() {
    let mut daemon = setting().settings("data: null").serve();
    let mut late = late_event(&daemon);
    let mut successor = successor_of(&daemon);
    successor.signal(Signal::KILL);
    successor.wait();
    wait_until("it is noticed", || daemon.log().contains("stores the halts of its last events itself"));
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(late.reply().json()["verdict"], "halt");
    let log = daemon.log();
    let line = log.lines().find(|line| line.contains("the halt is forgotten when this daemon ends"));
    assert!(line.is_some_and(|line| line.contains("late") && line.contains("shop")), "{log}");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
}

#[test]
fn halts_and_last_good_rules_go_over_to_another_directory() {
    for other in ["data=$DIR/other", "data=null"] {
        let mut daemon = setting().settings("data: $DIR/data").serve();
        assert_eq!(daemon.post("/v1/events", &event("early", "Halts"))["verdict"], "halt");
        let moves = other == "data=$DIR/other";
        if moves {
            fs::write(daemon.path().join("shop/.openharness/hooks/guard.yaml"), "a: [").unwrap();
        }
        let other = other.replace("$DIR", daemon.path().to_str().unwrap());
        let mut successor = daemon.replace_with(&["--set", &other]);
        serves(&successor, successor.pid());
        assert_eq!(successor.post("/v1/events", &event("early", "Read"))["verdict"], "halt");
        assert_eq!(successor.post("/v1/events", &event("new", "Halts"))["verdict"], "halt");
        assert_eq!(successor.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        assert!(daemon.log().contains("has another `data`"), "{}", daemon.log());
        successor.signal(Signal::TERM);
        assert_eq!(successor.wait().code(), Some(0), "{}", successor.log());
        if moves {
            let next = successor.again().argument("--set").argument(&other).serve();
            for run in ["early", "new"] {
                assert_eq!(next.post("/v1/events", &event(run, "Read"))["verdict"], "halt", "{run}");
            }
            assert_eq!(next.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
            next.finish();
        }
    }
}

/// Hooks of CodeBuddy: one that runs once in a run, and one that keeps the agent from stopping.
fn claude_settings() -> String {
    let once = json!({ "type": "command", "command": "true", "once": true });
    let slow = json!({ "type": "command", "command": "touch begun; until [ -e go ]; do sleep 0.02; done", "once": true });
    let stop = json!({ "type": "command", "command": "echo go on >&2; exit 2" });
    json!({ "hooks": { "PreToolUse": [{ "matcher": "Read", "hooks": [once] }, { "matcher": "Slow", "hooks": [slow] }],
                       "Stop": [{ "hooks": [stop] }] } })
    .to_string()
}

#[test]
fn hooks_that_had_their_turn_and_stops_are_counted_on() {
    for data in ["data: $DIR/data", "data: null"] {
        counted_on(setting().settings(data).file("shop/.codebuddy/settings.json", &claude_settings()));
    }
}

fn counted_on(setting: DaemonSetup) {
    let daemon = setting.serve();
    let hooks = |daemon: &Daemon, tool: &str| {
        let outcome = daemon.post("/v1/events", &event("r", tool));
        outcome["hooks"].as_array().unwrap().len()
    };
    let stop = json!({ "event": "agent_stopping", "session_id": "s", "run_id": "r" });
    let stops = |daemon: &Daemon| daemon.post("/v1/events", &stop)["verdict"].clone();
    assert_eq!(hooks(&daemon, "Read"), 1);
    for _ in 0..5 {
        assert_eq!(stops(&daemon), "block");
    }
    // A hook that has its turn while the daemon is replaced.
    let mut slow = RawConnection::unix(&daemon);
    slow.send(bytes("other", "Slow"));
    wait_until("the hook runs", || daemon.path().join("shop/begun").exists());
    let successor = successor_of(&daemon);
    let other = successor.post("/v1/events", &event("other", "Slow"));
    assert_eq!(other["hooks"], json!([]), "it has its turn in the other daemon");
    for _ in 0..3 {
        assert_eq!(stops(&successor), "block");
    }
    assert_eq!(stops(&successor), "proceed", "the ninth time in a row");
    assert_eq!(hooks(&successor, "Read"), 0, "it has had its turn");
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(slow.reply().status, 200);
    let mut daemon = daemon;
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    successor.finish();
}
