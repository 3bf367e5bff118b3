//! Denied requests: what the log, the audit and the metrics say of them, and how often they are answered.

use std::{fs, os::unix::fs::PermissionsExt};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    http_server::raw_connection::{RawConnection, Reply},
    support::daemon::{Daemon, DaemonSetup},
    support::wait::wait_until,
};

const TOKEN: &str = "a-token-of-many-letters";

fn daemon() -> Daemon {
    let setup = DaemonSetup::new().file("token", TOKEN);
    fs::set_permissions(setup.path().join("token"), fs::Permissions::from_mode(0o600)).unwrap();
    setup
        .settings("listen: { token_file: $DIR/token }\naudit: { to: $DIR/audit.jsonl }")
        .argument("--tcp")
        .argument("127.0.0.1:0")
        .serve()
}

fn ask(address: &str, token: &str) -> Reply {
    let request = format!("GET /v1/status HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {token}\r\n\r\n");
    RawConnection::tcp(address).send(request).reply()
}

/// The value of a series of denied requests.
fn denied(daemon: &Daemon, listener: &str, code: &str) -> Option<String> {
    let metrics = daemon.send("GET", "/metrics", None);
    let text = String::from_utf8_lossy(&metrics.body).into_owned();
    let series = format!("hookyard_api_denied_total{{listener=\"{listener}\",code=\"{code}\"}} ");
    text.lines().find_map(|line| line.strip_prefix(&series).map(str::to_owned))
}

#[test]
fn requests_without_a_valid_token_are_reported_and_slowed_down() {
    let mut daemon = daemon();
    let address = daemon.tcp();
    assert_eq!(
        denied(&daemon, "tcp", "unauthorized").as_deref(),
        Some("0"),
        "its rate is known from the start"
    );
    for attempt in 0..110 {
        let reply = ask(&address, "a-token-that-is-wrong");
        let expected = if attempt < 100 { (401, "unauthorized") } else { (429, "too_many_attempts") };
        assert_eq!((reply.status, &*reply.code()), expected, "{attempt}");
        assert_eq!(reply.header("retry-after"), (expected.0 == 429).then_some("60"));
        assert_eq!(ask(&address, TOKEN).status, 200, "a valid token is served");
    }
    let is_counted = || denied(&daemon, "tcp", "unauthorized").as_deref() == Some("110");
    wait_until("all of them are counted", is_counted);
    // At once, not when a minute is over.
    let lines = daemon.log().matches("requests denied").count();
    assert_eq!(lines, 1, "{}", daemon.log());
    assert!(!daemon.log().contains("a-token-that-is-wrong") && !daemon.log().contains(TOKEN));
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    let audit = fs::read_to_string(daemon.path().join("audit.jsonl")).unwrap();
    let lines: Vec<Value> = audit.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let details = |count: u64| {
        json!({ "peer": "127.0.0.1", "listener": "tcp", "status": 401, "code": "unauthorized", "method": "GET",
                "route": "/v1/status", "count": count })
    };
    let denied: Vec<_> = lines.iter().map(|line| &line["denied"]).collect();
    assert_eq!(denied, [&details(1), &details(109)], "{audit}");
    assert!(lines.iter().all(|line| line["at"].is_string()));
}

#[test]
fn an_attempt_to_control_over_the_event_socket_is_reported() {
    let daemon = daemon();
    for _ in 0..3 {
        assert_eq!(daemon.client().send("DELETE", "/v1/workspaces/shop", None).unwrap().status, 403);
    }
    let is_counted = || denied(&daemon, "event_socket", "needs_control").as_deref() == Some("3");
    wait_until("all of them are counted", is_counted);
    let log = daemon.log();
    assert_eq!(log.matches("requests denied").count(), 1, "{log}");
    assert!(log.contains("needs_control") && log.contains("/v1/workspaces/{id}"), "{log}");
    daemon.finish();
}
