//! Requests that say nothing that can be used: no JSON, no event, too deep, to no route, with names that are none.

use serde_json::json;

use super::requests::{EVENT, daemon, say};
use crate::{
    http_server::raw_connection::{RawConnection, Reply, get, post, post_as},
    support::daemon::DaemonSetup,
};

#[test]
fn invalid_json_is_refused() {
    let daemon = daemon();
    for (headers, status) in [
        ("content-type: text/plain\r\n", 415),
        ("content-type: application/x-www-form-urlencoded\r\n", 415),
        ("content-type: application/jsonx\r\n", 415),
        ("content-type: \u{fc}\r\n", 415),
        ("content-type: application/json\r\ncontent-encoding: gzip\r\n", 415),
        ("content-type: application/json\r\ncontent-encoding: identity\r\ncontent-encoding: gzip\r\n", 415),
        ("content-type: application/json\r\ncontent-encoding: Identity\r\n", 200),
        ("content-type: application/json; charset=utf-8\r\n", 200),
        ("content-type: APPLICATION/vnd.x+JSON\r\n", 200),
        ("", 200),
    ] {
        assert_eq!(
            say(&daemon, post_as("/v1/events", headers, EVENT.as_bytes())).status,
            status,
            "{headers}"
        );
    }
    daemon.finish();
}

#[test]
fn json_that_is_no_event_is_refused() {
    let daemon = daemon();
    let with = |name: &str, value: &str| {
        let mut event: serde_json::Value = serde_json::from_str(EVENT).unwrap();
        event[name] = json!("here");
        event.to_string().replace("\"here\"", value).into_bytes()
    };
    let long = format!("\"{}\"", "x".repeat(300));
    let mut events: Vec<Vec<u8>> = vec![
        b"".to_vec(),
        b"null".to_vec(),
        b"[]".to_vec(),
        b"\"x\"".to_vec(),
        b"{}".to_vec(),
        EVENT.as_bytes()[..EVENT.len() - 1].to_vec(),
        format!("{EVENT} x").into_bytes(),
        format!("{EVENT}{EVENT}").into_bytes(),
        EVENT.replace("Bash", "\\ud800").into_bytes(),
        EVENT.replace("{}", "{\"a\":\"\\ud800\"}").into_bytes(),
        EVENT.replace("{}", "[").into_bytes(),
        EVENT.replace("\"session_id\":\"s\",", "").into_bytes(),
        EVENT.replace("\"tool_name\":\"Bash\",", "").into_bytes(),
        with("run_id", "\"\""),
        with("run_id", "\"a\\u0000b\""),
        with("session_id", "\"a\\nb\""),
        with("run_id", &long),
        with("run_id", "7"),
        with("event", "\"no_such_event\""),
        [b"\xef\xbb\xbf", EVENT.as_bytes()].concat(),
        EVENT.encode_utf16().flat_map(u16::to_le_bytes).collect(),
    ];
    let mut torn = EVENT.replace("Bash", "?").into_bytes();
    let at = torn.iter().position(|byte| *byte == b'?').unwrap();
    torn[at] = 0xff;
    events.push(torn);
    for event in events {
        let reply = say(&daemon, post("/v1/events", &event));
        assert_eq!((reply.status, &*reply.code()), (400, "bad_event"), "{}", String::from_utf8_lossy(&event));
    }
    // Depth is bounded however it is built, and a number beyond all numbers is a refusal or is passed on.
    let brackets = "[".repeat(30_000);
    for deep in [brackets.clone(), format!("{brackets}{}", "]".repeat(30_000)), "{\"a\":".repeat(12_000)] {
        for event in [deep.clone(), EVENT.replace("{}", &deep)] {
            assert_eq!(say(&daemon, post("/v1/events", event.as_bytes())).status, 400);
            assert_note(&say(&daemon, post("/v1/events/claude", event.as_bytes())));
        }
        let mut control = RawConnection::unix_at(&daemon.control_socket());
        assert_eq!(control.send(put("/v1/workspaces/w", deep.as_bytes())).reply().status, 400);
    }
    let huge = say(&daemon, post("/v1/events", EVENT.replace("{}", "{\"a\":1e400}").as_bytes()));
    assert!([200, 400].contains(&huge.status));
    assert_eq!(say(&daemon, get("/v1/status")).status, 200);
    daemon.finish();
}

/// An agent's answer without an opinion, which says to the person that no hook ran.
fn assert_note(reply: &Reply) {
    let body = reply.json();
    let note = body["systemMessage"].as_str().unwrap_or_default();
    assert!(reply.status == 200 && note.starts_with("hookyard ran no hooks for this event: "), "{reply:?}");
}

fn put(path: &str, body: &[u8]) -> Vec<u8> {
    let mut request = post(path, body);
    request.splice(..4, *b"PUT");
    request
}

#[test]
fn deeply_nested_json_is_refused() {
    let daemon =
        DaemonSetup::new().file("shop/x", "").settings("workspaces: { shop: { root: $DIR/shop } }").serve();
    let brackets = "[".repeat(100_000);
    for event in [brackets.clone(), EVENT.replace("{}", &brackets), "{\"a\":".repeat(100_000)] {
        assert_eq!(say(&daemon, post("/v1/events", event.as_bytes())).status, 400);
        for dialect in ["openharness", "claude", "gemini"] {
            assert_note(&say(&daemon, post(&format!("/v1/events/{dialect}"), event.as_bytes())));
        }
        assert_eq!(say(&daemon, post("/v1/events/clawd", event.as_bytes())).status, 200);
    }
    daemon.finish();
}

#[test]
fn undeclared_paths_and_methods_are_refused() {
    let daemon = daemon();
    for path in [
        "/index.html",
        "/page/",
        "/v1",
        "/v1/",
        "/v1//events",
        "/v1/EVENTS",
        "/healthz/",
        "/../etc/passwd",
        "//",
        "/v1/runs/a/b",
        "/v1/runs/",
    ] {
        let reply = say(&daemon, get(path));
        assert_eq!((reply.status, &*reply.code()), (404, "no_route"), "{path}");
        assert_eq!(reply.header("content-type"), Some("application/json"));
    }
    for (method, path, allow) in [
        ("GET", "/v1/events", "POST"),
        ("PATCH", "/v1/workspaces/x", "PUT,GET,HEAD,DELETE"),
        ("OPTIONS", "/v1/status", "GET,HEAD"),
        ("TRACE", "/healthz", "GET,HEAD"),
        ("BREW", "/v1/reload", "POST"),
        ("HEAD", "/v1/events", "POST"),
    ] {
        let request = format!("{method} {path} HTTP/1.1\r\nhost: x\r\n\r\n");
        let reply = RawConnection::unix(&daemon).send(request).reply_to(method);
        assert_eq!((reply.status, reply.header("allow")), (405, Some(allow)), "{method} {path}");
        assert!(method == "HEAD" || reply.code() == "no_method");
    }
    let mut wire = RawConnection::unix(&daemon);
    let head = wire.send("HEAD /v1/status HTTP/1.1\r\nhost: x\r\n\r\n").reply_to("HEAD");
    assert_eq!(head.status, 200);
    assert_eq!(wire.send(get("/healthz")).reply().body, b"alive\n");
    daemon.finish();
}

#[test]
fn names_in_paths_are_checked() {
    let daemon = daemon();
    for (path, status, code) in [
        ("/v1/runs/..", 404, "unknown_run"),
        ("/v1/runs/%2e%2e%2fetc", 404, "unknown_run"),
        ("/v1/runs/%00", 400, "bad_id"),
        ("/v1/runs/a%0ab", 400, "bad_id"),
        ("/v1/runs/%ff", 400, "bad_path"),
        ("/v1/workspaces/%ff%fe", 400, "bad_path"),
        ("/v1/workspaces/..", 404, "unknown_workspace"),
        ("/v1/workspaces/%F0%9F%A6%80", 404, "unknown_workspace"),
        ("/v1/runs?limit=0", 400, "bad_query"),
        ("/v1/runs?limit=-1", 400, "bad_query"),
        ("/v1/runs?limit=99999999999999999999", 400, "bad_query"),
        ("/v1/runs?x=1", 400, "bad_query"),
        ("/v1/runs?workspace_id=%00", 400, "bad_id"),
        ("/v1/hooks?workspace_id=", 400, "bad_id"),
        ("/v1/stream?event=nothing", 400, "bad_query"),
    ] {
        let reply = say(&daemon, get(path));
        assert_eq!((reply.status, &*reply.code()), (status, code), "{path}");
    }
    let long = say(&daemon, get(&format!("/v1/runs/{}", "a".repeat(257))));
    assert_eq!((long.status, &*long.code()), (400, "bad_id"));
    assert_eq!(say(&daemon, get("/v1/%73tatus")).status, 404);
    assert_eq!(say(&daemon, get("http://localhost/v1/status")).status, 200);
    let reply = say(&daemon, "GET /v1/runs/a\u{fc} HTTP/1.1\r\nhost: x\r\n\r\n");
    assert!([400, 404].contains(&reply.status));
    daemon.finish();
}
