//! Tokens that are replaced while the daemon runs.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use assert_cmd::Command;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    http_server::raw_connection::RawConnection,
    support::{
        daemon::{Daemon, DaemonSetup, read},
        wait::wait_until,
    },
};

const EVENTS: &str = "the-first-token-for-events";
const CONTROL: &str = "the-first-token-for-everything";
const NEW_EVENTS: &str = "the-second-token-for-events";
const NEW_CONTROL: &str = "the-second-token-for-everything";

fn put(directory: &Path, file: &str, text: &str, mode: u32) {
    let path = directory.join(file);
    let new = directory.join("new-token");
    fs::write(&new, text).unwrap();
    fs::set_permissions(&new, fs::Permissions::from_mode(mode)).unwrap();
    fs::rename(new, path).unwrap();
}

fn daemon() -> Daemon {
    let setup = DaemonSetup::new();
    put(&setup.path(), "token", EVENTS, 0o600);
    put(&setup.path(), "control-token", CONTROL, 0o600);
    let files = "listen: { token_file: $DIR/token, control_token_file: $DIR/control-token }";
    setup.settings(files).argument("--tcp").argument("127.0.0.1:0").serve()
}

/// The status of a request with a token, on a connection that may have had others.
fn status(connection: &mut RawConnection, method: &str, path: &str, token: &str) -> u16 {
    let head = format!("{method} {path} HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {token}\r\n");
    connection.send(format!("{head}content-length: 0\r\n\r\n")).reply().status
}

fn reload(daemon: &Daemon) -> Value {
    read(&daemon.send("POST", "/v1/reload", None))
}

#[test]
fn a_replaced_token_is_valid_at_once_and_the_former_one_no_longer() {
    let daemon = daemon();
    let mut connection = RawConnection::tcp(&daemon.tcp());
    let mut ask = |token| status(&mut connection, "GET", "/v1/status", token);
    assert_eq!((ask(EVENTS), ask(CONTROL), ask(NEW_EVENTS)), (200, 200, 401));

    put(&daemon.path(), "token", NEW_EVENTS, 0o600);
    assert_eq!(
        (ask(EVENTS), ask(NEW_EVENTS)),
        (200, 401),
        "nothing is read again before somebody asks for it"
    );
    assert_eq!(reload(&daemon)["token_errors"], json!([]));
    assert_eq!((ask(EVENTS), ask(NEW_EVENTS), ask(CONTROL)), (401, 200, 200));

    put(&daemon.path(), "control-token", NEW_CONTROL, 0o600);
    daemon.signal(Signal::HUP);
    wait_until("the token is replaced", || ask(CONTROL) == 401);
    assert_eq!((ask(EVENTS), ask(NEW_EVENTS), ask(NEW_CONTROL)), (401, 200, 200));

    // Over TCP as well, with the token that the reload replaces.
    put(&daemon.path(), "control-token", CONTROL, 0o600);
    let mut control = RawConnection::tcp(&daemon.tcp());
    assert_eq!(status(&mut control, "POST", "/v1/reload", NEW_EVENTS), 403);
    assert_eq!(status(&mut control, "POST", "/v1/reload", NEW_CONTROL), 200);
    assert_eq!(status(&mut control, "POST", "/v1/reload", NEW_CONTROL), 401);
    assert_eq!(status(&mut control, "POST", "/v1/reload", CONTROL), 200);
    let log = daemon.log();
    assert!(log.contains("tokens were replaced"), "{log}");
    for token in [EVENTS, CONTROL, NEW_EVENTS, NEW_CONTROL] {
        assert!(!log.contains(token), "{log}");
    }
    daemon.finish();
}

#[test]
fn a_stream_ends_when_its_token_is_replaced() {
    let daemon = daemon();
    let open = |token| {
        let mut reader = RawConnection::tcp(&daemon.tcp());
        reader.send(format!("GET /v1/stream HTTP/1.1\r\nhost: h\r\nauthorization: Bearer {token}\r\n\r\n"));
        while !reader.text().contains(": hookyard") {
            assert!(reader.more().unwrap() > 0, "{}", reader.text());
        }
        reader
    };
    let mut reader = open(EVENTS);
    assert_eq!(daemon.get("/v1/status")["streams"], 1);
    reload(&daemon);
    assert_eq!(daemon.get("/v1/status")["streams"], 1, "no token was replaced");
    put(&daemon.path(), "token", NEW_EVENTS, 0o600);
    reload(&daemon);
    while !reader.text().ends_with("\r\n0\r\n\r\n") {
        assert!(reader.more().unwrap() > 0, "{}", reader.text());
    }
    wait_until("no reader is left", || daemon.get("/v1/status")["streams"] == 0);
    drop(open(NEW_EVENTS));
    daemon.finish();
}

#[test]
fn a_token_that_cannot_be_read_again_stays_and_is_reported() {
    let daemon = daemon();
    let mut connection = RawConnection::tcp(&daemon.tcp());
    let mut ask = |token| status(&mut connection, "GET", "/v1/status", token);
    for (text, mode, why) in [(NEW_EVENTS, 0o644, "is open to others"), ("", 0o600, "has no token")] {
        put(&daemon.path(), "token", text, mode);
        put(&daemon.path(), "control-token", NEW_CONTROL, 0o600);
        let reported = reload(&daemon)["token_errors"].clone();
        let [error] = &reported.as_array().unwrap()[..] else { panic!("{reported}") };
        let error = error.as_str().unwrap();
        assert!(
            error.contains(why) && error.ends_with("the token that was read before stays valid"),
            "{error}"
        );
        assert_eq!((ask(EVENTS), ask(NEW_EVENTS)), (200, 401));
        assert_eq!((ask(CONTROL), ask(NEW_CONTROL)), (401, 200), "the other one is replaced");
        assert_eq!(daemon.get("/v1/status")["token_errors"], reported);
        assert!(daemon.log().contains(error), "{}", daemon.log());
    }
    let command = |name: &str| {
        let mut command = Command::cargo_bin("hookyard").unwrap();
        command.arg(name).arg("--socket").arg(daemon.socket());
        if name == "reload" {
            command.arg("--control-socket").arg(daemon.control_socket());
        }
        command.output().unwrap()
    };
    let output = command("reload");
    let shown = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.code() == Some(1) && shown.contains("token the token file "), "{output:?}");
    let shown = String::from_utf8(command("status").stdout).unwrap();
    assert!(shown.contains("token the token file "), "{shown}");

    put(&daemon.path(), "token", NEW_EVENTS, 0o600);
    assert_eq!(reload(&daemon)["token_errors"], json!([]));
    assert_eq!((ask(EVENTS), ask(NEW_EVENTS)), (401, 200));
    assert_eq!(daemon.get("/v1/status")["token_errors"], json!([]));
    daemon.finish();
}

#[test]
fn a_token_for_events_never_becomes_one_for_control() {
    let daemon = daemon();
    put(&daemon.path(), "control-token", EVENTS, 0o600);
    let reported = reload(&daemon)["token_errors"].clone();
    assert!(reported[0].as_str().unwrap().contains("hold the same token"), "{reported}");
    let mut connection = RawConnection::tcp(&daemon.tcp());
    let mut ask = |token| status(&mut connection, "POST", "/v1/reload", token);
    assert_eq!((ask(EVENTS), ask(CONTROL)), (403, 200));
    daemon.finish();
}
