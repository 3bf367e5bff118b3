//! Requests that say of which run their event is, for balancers, and events that say something else.

use std::{
    fmt::Write as _,
    io::{Read, Write},
    os::unix::net::UnixStream,
};

use serde_json::{Value, json};

use crate::support::daemon::{Daemon, DaemonSetup};

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler:\n  type: command\n  \
                     command: cat >> seen; echo >> seen; exit 2\non_error: deny\n";

fn setup() -> Daemon {
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .serve()
}

fn event(run: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
            "tool_name": "Bash", "tool_input": {} })
}

/// Sends an event with more headers. Returns the status and the body.
pub(super) fn send(daemon: &Daemon, path: &str, headers: &[(&str, &str)], event: &Value) -> (u16, Value) {
    let body = event.to_string();
    let mut more = String::new();
    for (name, value) in headers {
        write!(more, "{name}: {value}\r\n").unwrap();
    }
    let request = format!(
        "POST {path} HTTP/1.1\r\nhost: hookyard\r\ncontent-type: application/json\r\nconnection: close\r\n{more}content-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
}

/// How often the guard has run.
fn runs(daemon: &Daemon) -> usize {
    std::fs::read_to_string(daemon.path().join("shop/seen")).map_or(0, |text| text.lines().count())
}

#[test]
fn a_request_may_say_what_its_event_says() {
    let daemon = setup();
    for (run, encoded) in [("r-1", "r-1"), ("a/b ü", "a%2Fb%20%C3%BC"), ("a/b ü", "a%2fb%20%c3%bc")] {
        let header = [("X-Hookyard-Run", encoded)];
        assert_eq!(send(&daemon, "/v1/events", &header, &event(run)).1["verdict"], "block", "{run}");
        let path = format!("/v1/runs/{encoded}/events");
        assert_eq!(send(&daemon, &path, &header, &event(run)).1["verdict"], "block", "{run}");
    }
    daemon.finish();
}

#[test]
fn an_event_of_another_run_is_not_judged() {
    let daemon = setup();
    for (path, headers) in [
        ("/v1/events", &[("X-Hookyard-Run", "r-2")][..]),
        ("/v1/events", &[("X-Hookyard-Run", "r-1"), ("X-Hookyard-Run", "r-2")]),
        ("/v1/events", &[("X-Hookyard-Run", "")]),
        ("/v1/events", &[("X-Hookyard-Run", "r-1%FF")]),
        ("/v1/runs/r-2/events", &[]),
        ("/v1/runs/r-1/events", &[("X-Hookyard-Run", "r-2")]),
    ] {
        let (status, answer) = send(&daemon, path, headers, &event("r-1"));
        assert_eq!((status, &answer["error"]["code"]), (400, &json!("other_run")), "{path} {headers:?}");
        assert_eq!(answer["error"]["retry"], "never");
    }
    assert_eq!(runs(&daemon), 0);
    daemon.finish();
}

#[test]
fn an_agents_event_of_another_session_is_blocked_in_its_words() {
    let daemon = setup();
    let event = json!({ "hook_event_name": "PreToolUse", "session_id": "s-1", "cwd": daemon.path().join("shop"),
        "tool_name": "Bash", "tool_input": { "command": "ls" } });
    let (status, answer) = send(&daemon, "/v1/events/claude", &[("X-Hookyard-Run", "s-1")], &event);
    assert_eq!((status, runs(&daemon)), (200, 1), "{answer}");
    let (_, answer) = send(&daemon, "/v1/events/claude", &[("X-Hookyard-Run", "s-2")], &event);
    assert_eq!(answer["hookSpecificOutput"]["permissionDecision"], "deny", "{answer}");
    assert_eq!(runs(&daemon), 1);
    daemon.finish();
}

#[test]
fn the_id_of_an_event_may_be_beside_it() {
    let daemon = setup();
    let header = [("X-Hookyard-Event-Id", "e%201")];
    let (_, first) = send(&daemon, "/v1/events", &header, &event("r-1"));
    let (_, again) = send(&daemon, "/v1/events", &header, &event("r-1"));
    assert_eq!((&first["verdict"], &first["decision_id"]), (&json!("block"), &again["decision_id"]));
    assert_eq!(runs(&daemon), 1, "the same event runs no hook twice");
    let mut with_id = event("r-1");
    with_id["event_id"] = json!("e 1");
    assert_eq!(send(&daemon, "/v1/events", &header, &with_id).1["decision_id"], first["decision_id"]);
    with_id["event_id"] = json!("e-2");
    let (status, answer) = send(&daemon, "/v1/events", &header, &with_id);
    assert_eq!((status, &answer["error"]["code"]), (400, &json!("other_event")));
    let long = "x".repeat(5000);
    let (_, answer) = send(&daemon, "/v1/events", &[("X-Hookyard-Event-Id", &long)], &event("r-1"));
    assert_eq!(answer["verdict"], "block", "what cannot be read is blocked where a hook fails closed");
    assert!(
        answer["reason"].as_str().unwrap().contains("`x-hookyard-event-id` is 5000 bytes long"),
        "{answer}"
    );
    daemon.finish();
}
