//! Which right each operation needs, and which rights each socket, address and token grants.

use std::{fs, os::unix::fs::PermissionsExt};

use serde_json::Value;

use crate::{
    http_server::raw_connection::{RawConnection, Reply},
    support::daemon::{Daemon, DaemonSetup},
};

const TOKEN: &str = "a-token-for-events-and-reads";
const CONTROL_TOKEN: &str = "a-token-for-everything";

/// An operation of the API description.
struct Operation {
    method: String,
    path: String,
    right: String,
}

/// Every operation of a daemon, as it describes them.
fn operations(daemon: &Daemon) -> Vec<Operation> {
    let description = daemon.get("/v1/openapi.json");
    let mut operations = Vec::new();
    for (path, item) in description["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("methods") {
            let path = path.replace("{id}", "x").replace("{dialect}", "claude");
            // Streams would not end.
            let path = match path.as_str() {
                "/v1/stream" => "/v1/stream?verdict=none".to_owned(),
                "/v1/now" => "/v1/now?more=1".to_owned(),
                "/v1/recording" => "/v1/recording?dialect=none".to_owned(),
                _ => path,
            };
            let right = operation["x-required-right"].as_str().expect("a right").to_owned();
            operations.push(Operation { method: method.to_uppercase(), path, right });
        }
    }
    operations
}

fn ask(mut connection: RawConnection, operation: &Operation, headers: &str) -> Reply {
    let Operation { method, path, .. } = operation;
    connection
        .send(format!("{method} {path} HTTP/1.1\r\nhost: localhost\r\n{headers}content-length: 0\r\n\r\n"))
        .reply_to(method)
}

/// The code of a refusal, or `None` if the operation was permitted.
fn refusal(reply: &Reply) -> Option<String> {
    [401, 403].contains(&reply.status).then(|| reply.code())
}

fn daemon(settings: &str) -> Daemon {
    let setup = DaemonSetup::new().file("token", TOKEN).file("control-token", CONTROL_TOKEN);
    for file in ["token", "control-token"] {
        fs::set_permissions(setup.path().join(file), fs::Permissions::from_mode(0o600)).unwrap();
    }
    let setup = setup.settings(settings).argument("--tcp").argument("127.0.0.1:0");
    // One of the operations stops the daemon.
    setup.argument("--set").argument("listen.lameduck=10m").serve()
}

/// Ends a daemon that stays a lame duck for long.
fn finish(daemon: Daemon) {
    assert_eq!(daemon.control().send("POST", "/v1/drain", None).unwrap().status, 202);
    daemon.finish();
}

/// Whether each operation is permitted exactly up to a right.
fn assert_granted(
    daemon: &Daemon,
    up_to: &str,
    code: impl Fn(&str) -> &'static str,
    ask: impl Fn(&Operation) -> Reply,
) {
    const RIGHTS: [&str; 6] = ["page", "health", "metrics", "events", "read", "control"];
    let place = |right: &str| RIGHTS.iter().position(|known| *known == right).expect("a right");
    let operations = operations(daemon);
    assert!(RIGHTS.iter().all(|right| operations.iter().any(|operation| operation.right == *right)));
    for operation in &operations {
        let Operation { method, path, right } = operation;
        let expected = (place(right) > place(up_to)).then(|| code(right).to_owned());
        assert_eq!(refusal(&ask(operation)), expected, "{method} {path} needs {right}");
    }
}

#[test]
fn the_event_socket_grants_no_control_and_the_control_socket_everything() {
    let daemon = daemon("");
    let needs_control = |_: &str| "needs_control";
    assert_granted(&daemon, "read", needs_control, |operation| {
        ask(RawConnection::unix(&daemon), operation, "")
    });
    assert_granted(&daemon, "control", needs_control, |operation| {
        ask(RawConnection::unix_at(&daemon.control_socket()), operation, "")
    });
    let answer = daemon.client().send("POST", "/v1/reload", None).unwrap();
    let error: Value = serde_json::from_slice(&answer.body).unwrap();
    let hint = error["error"]["hint"].as_str().unwrap();
    assert!(hint.contains(daemon.control_socket().to_str().unwrap()), "{hint}");
    finish(daemon);
}

#[test]
fn an_address_without_a_token_takes_events_only() {
    let daemon = daemon("");
    let address = daemon.tcp();
    let code = |right: &str| if right == "control" { "needs_control" } else { "needs_token" };
    for headers in [String::new(), format!("authorization: Bearer {CONTROL_TOKEN}\r\n")] {
        assert_granted(&daemon, "events", code, |operation| {
            ask(RawConnection::tcp(&address), operation, &headers)
        });
    }
    let head = Operation { method: "HEAD".to_owned(), path: "/v1/status".to_owned(), right: String::new() };
    assert_eq!(ask(RawConnection::tcp(&address), &head, "").status, 403, "HEAD reads as GET does");
    let reload = Operation { method: "POST".to_owned(), path: "/v1/reload".to_owned(), right: String::new() };
    let reply = ask(RawConnection::tcp(&address), &reload, "");
    let text = String::from_utf8_lossy(&reply.body).into_owned();
    assert!(!text.contains(daemon.path().to_str().unwrap()), "no path of this machine: {text}");
    finish(daemon);
}

#[test]
fn each_token_grants_its_own_rights() {
    let daemon = daemon("listen: { token_file: $DIR/token, control_token_file: $DIR/control-token }");
    let address = daemon.tcp();
    let with = |token: &'static str| {
        let address = &address;
        move |operation: &Operation| {
            ask(RawConnection::tcp(address), operation, &format!("authorization: Bearer {token}\r\n"))
        }
    };
    assert_granted(&daemon, "read", |_| "needs_control", with(TOKEN));
    assert_granted(&daemon, "control", |_| "", with(CONTROL_TOKEN));
    assert_granted(&daemon, "health", |_| "unauthorized", with("neither-of-the-two-tokens"));
    assert_granted(
        &daemon,
        "health",
        |_| "unauthorized",
        |operation| ask(RawConnection::tcp(&address), operation, ""),
    );
    finish(daemon);
}

#[test]
fn a_control_token_alone_leaves_events_open_to_this_machine() {
    let daemon = daemon("listen: { control_token_file: $DIR/control-token }");
    let address = daemon.tcp();
    let with = |token: &'static str| {
        let address = &address;
        move |operation: &Operation| {
            ask(RawConnection::tcp(address), operation, &format!("authorization: Bearer {token}\r\n"))
        }
    };
    assert_granted(&daemon, "control", |_| "", with(CONTROL_TOKEN));
    let code = |right: &str| if right == "control" { "unauthorized" } else { "needs_token" };
    assert_granted(&daemon, "events", code, with(TOKEN));
    finish(daemon);
}

#[test]
fn one_token_for_both_rights_is_refused() {
    let setup = DaemonSetup::new().file("token", TOKEN);
    fs::set_permissions(setup.path().join("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let mut daemon =
        setup.settings("listen: { token_file: $DIR/token, control_token_file: $DIR/token }").spawn();
    assert_eq!(daemon.wait().code(), Some(1), "{}", daemon.log());
    assert!(daemon.log().contains("hold the same token"), "{}", daemon.log());
    assert!(!daemon.socket().exists() && !daemon.control_socket().exists());
}

#[test]
fn a_request_of_an_http_hook_controls_nothing() {
    let daemon = daemon("");
    let headers = "x-hookyard-event: before_tool_dispatch\r\n";
    for operation in operations(&daemon).iter().filter(|operation| operation.right == "control") {
        let reply = ask(RawConnection::unix_at(&daemon.control_socket()), operation, headers);
        assert_eq!(
            (reply.status, &*reply.code()),
            (508, "own_hook"),
            "{} {}",
            operation.method,
            operation.path
        );
    }
    finish(daemon);
}
