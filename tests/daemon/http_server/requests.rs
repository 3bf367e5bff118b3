//! HTTP that is valid, unusual, too slow, too large or invalid.

use std::{io::Read, process::Command, thread};

use flate2::read::GzDecoder;

use crate::{
    http_server::raw_connection::{RawConnection, Reply, get, post},
    support::daemon::{Daemon, DaemonSetup},
    support::wait::LONGEST_WAIT,
};

pub(super) const EVENT: &str =
    r#"{"event":"before_tool_dispatch","session_id":"s","run_id":"r","tool_name":"Bash","tool_input":{}}"#;

pub(super) fn daemon() -> Daemon {
    DaemonSetup::new()
        .file("shop/x", "")
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("limits: { payload: 64KiB, body_timeout: 1s, header_timeout: 1s }")
        .serve()
}

pub(super) fn say(daemon: &Daemon, bytes: impl AsRef<[u8]>) -> Reply {
    RawConnection::unix(daemon).send(bytes).reply()
}

#[test]
fn one_connection_carries_many_requests() {
    let daemon = daemon();
    let mut wire = RawConnection::unix(&daemon);
    for _ in 0..100 {
        assert_eq!(wire.send(post("/v1/events", EVENT.as_bytes())).reply().json()["verdict"], "proceed");
    }
    let pipelined: Vec<_> = (0..50).flat_map(|n| get(&format!("/v1/runs/r{n}")).into_bytes()).collect();
    wire.send(pipelined);
    for n in 0..50 {
        let message = wire.reply().json()["error"]["message"].to_string();
        assert!(message.contains(&format!("unknown run r{n}\"")), "{message}");
    }
    daemon.finish();
}

#[test]
fn requests_before_an_invalid_one_are_answered() {
    let daemon = daemon();
    for nonsense in
        ["\0\0\0\0\r\n\r\n", "GET\r\n\r\n", "hello there\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    {
        let mut wire = RawConnection::unix(&daemon);
        wire.send(get("/healthz") + nonsense);
        assert_eq!(wire.reply().body, b"alive\n", "{nonsense:?}");
        // It may be told what is wrong with the rest, and has to be told nothing else.
        let rest = wire.rest();
        assert!(rest.is_empty() || rest.starts_with("HTTP/1.1 400"), "{nonsense:?} {rest}");
    }
    daemon.finish();
}

#[test]
fn an_answer_does_not_wait_for_the_next_request() {
    let daemon = daemon();
    let mut wire = RawConnection::unix(&daemon);
    wire.send(get("/healthz") + "GET /healthz HTT");
    assert_eq!(wire.reply().status, 200);
    assert_eq!(wire.send("P/1.1\r\nhost: localhost\r\n\r\n").reply().status, 200);
    daemon.finish();
}

#[test]
fn http2_is_spoken_without_an_upgrade() {
    let daemon = daemon();
    let curl = |arguments: &[&str]| {
        let output = Command::new("curl")
            .args(["-sS", "--max-time", "20", "--http2-prior-knowledge", "--unix-socket"])
            .arg(daemon.socket())
            .args(arguments)
            .output();
        output.map(|output| {
            assert!(output.status.success(), "{output:?}");
            String::from_utf8_lossy(&output.stdout).into_owned()
        })
    };
    let Ok(version) = Command::new("curl").arg("--version").output() else {
        eprintln!("NOT RUN: this needs curl");
        return;
    };
    if !String::from_utf8_lossy(&version.stdout).contains("HTTP2") {
        eprintln!("NOT RUN: this needs a curl that speaks HTTP/2");
        return;
    }
    let url = "http://localhost/v1/events";
    let told = curl(&["--json", EVENT, "-w", " %{http_version}", url]).unwrap();
    assert!(told.contains("proceed") && told.ends_with(" 2"), "{told}");
    daemon.finish();
}

#[test]
fn metrics_are_packed_for_who_accepts_it() {
    let daemon = daemon();
    let ask = |coding: &str| {
        let mut wire = RawConnection::unix(&daemon);
        let request =
            format!("GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept-encoding: {coding}\r\n\r\n");
        wire.send(request).reply()
    };
    let plain = ask("identity");
    assert_eq!((plain.status, plain.header("content-encoding")), (200, None));
    assert!(String::from_utf8_lossy(&plain.body).contains("hookyard_build_info{"));
    let packed = ask("gzip");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    let mut text = String::new();
    GzDecoder::new(&packed.body[..]).read_to_string(&mut text).unwrap();
    assert!(text.contains("hookyard_build_info{"), "{text}");
    daemon.finish();
}

#[test]
fn half_a_request_times_out() {
    let daemon = daemon();
    let halves = [
        "",
        "G",
        "GET /healthz HTTP/1.1\r\n",
        "GET /healthz HTTP/1.1\r\nhost: localhost\r\n",
        "PRI * HTTP/2.0",
    ];
    thread::scope(|scope| {
        for half in halves {
            let daemon = &daemon;
            scope.spawn(move || {
                let mut wire = RawConnection::unix(daemon);
                let took = wire.send(half).ends_within();
                assert!(took.as_millis() >= 900 && took < LONGEST_WAIT, "{half:?} {took:?}");
            });
        }
    });
    let mut wire = RawConnection::unix(&daemon);
    let took = std::time::Instant::now();
    wire.send("POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{");
    let reply = wire.reply();
    assert_eq!((reply.status, &*reply.code()), (408, "too_slow"));
    assert!(took.elapsed() < LONGEST_WAIT);
    assert!(wire.ends());
    daemon.finish();
}

#[test]
fn a_request_sent_byte_by_byte_times_out() {
    let daemon = daemon();
    let mut wire = RawConnection::unix(&daemon);
    // Nobody reads them any more after the first second.
    let is_cut = get("/healthz").as_bytes().iter().any(|byte| {
        // The pace of the sender, not a wait for something.
        std::thread::sleep(std::time::Duration::from_millis(300));
        !wire.try_send(&[*byte])
    });
    assert!(is_cut, "the whole head was taken");
    assert!(wire.ends());
    daemon.finish();
}

#[test]
fn a_request_that_is_too_large_is_not_read() {
    let daemon = daemon();
    let mut wire = RawConnection::unix(&daemon);
    wire.send("POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 100000000000\r\n\r\n{");
    let reply = wire.reply();
    assert_eq!((reply.status, &*reply.code()), (413, "too_large"));
    // One that goes on sending gets its answer all the same.
    let mut wire = RawConnection::unix(&daemon);
    wire.send("POST /v1/events HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n");
    let chunk = [b"1000\r\n".as_slice(), &[b' '; 4096], b"\r\n"].concat();
    let sent = (0..1000).take_while(|_| wire.try_send(&chunk)).count();
    assert!(sent > 16, "{sent}");
    assert_eq!(wire.reply().status, 413);
    let large = vec![b' '; 1 << 20];
    let answer = daemon.client().send("POST", "/v1/events", Some(&large)).unwrap();
    assert_eq!(answer.status, 413);
    let small = format!("{EVENT}{}", " ".repeat((64 << 10) - EVENT.len()));
    assert_eq!(say(&daemon, post("/v1/events", small.as_bytes())).status, 200);
    assert_eq!(say(&daemon, post("/v1/events", format!("{small} ").as_bytes())).status, 413);
    daemon.finish();
}

#[test]
fn a_body_that_is_too_large_names_the_limit_that_it_has() {
    let daemon = daemon();
    let large = serde_json::json!({ "root": "x".repeat(1 << 20) });
    for (method, path, hint) in [
        ("POST", "/v1/events", "raise `limits.payload`"),
        ("PUT", "/v1/workspaces/shop", "this limit is fixed"),
    ] {
        let answer = daemon.send(method, path, Some(&large));
        let body: serde_json::Value = serde_json::from_slice(&answer.body).unwrap();
        assert_eq!((answer.status, &body["error"]["code"]), (413, &serde_json::json!("too_large")), "{path}");
        let error = body["error"].to_string();
        assert!(error.contains(hint), "{error}");
        assert_eq!(error.contains("the event"), path == "/v1/events", "{error}");
    }
    daemon.finish();
}

#[test]
fn the_size_of_a_head_is_limited() {
    let daemon = daemon();
    let many = "x: y\r\n".repeat(200);
    let long = format!("x: {}\r\n", "y".repeat(1 << 20));
    for headers in [many, long] {
        let mut wire = RawConnection::unix(&daemon);
        wire.try_send(format!("GET /healthz HTTP/1.1\r\nhost: x\r\n{headers}\r\n").as_bytes());
        assert_eq!(wire.reply().status, 431);
    }
    let mut wire = RawConnection::unix(&daemon);
    wire.try_send(get(&format!("/{}", "a".repeat(1 << 20))).as_bytes());
    assert!([414, 431].contains(&wire.reply().status));
    for (bad, status) in [
        ("GET /healthz HTTP/1.1\r\nhost: x\r\nbad header: 1\r\n\r\n", 400),
        ("GET /healthz HTTP/9.9\r\nhost: x\r\n\r\n", 400),
        ("POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: x\r\n\r\n", 400),
        ("POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n", 400),
        ("POST /v1/events HTTP/1.1\r\nhost: x\r\ntransfer-encoding: gzip\r\n\r\n", 400),
    ] {
        let mut wire = RawConnection::unix(&daemon);
        assert_eq!(wire.send(bad).reply().status, status, "{bad}");
        assert!(wire.ends());
    }
    daemon.finish();
}

#[test]
fn a_request_with_both_length_and_chunks_is_refused() {
    let daemon = daemon();
    let mut wire = RawConnection::unix(&daemon);
    let smuggled = get("/v1/nowhere");
    wire.send(format!(
        "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 4\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
    ));
    assert_eq!(wire.reply().status, 400);
    daemon.finish();
}

#[test]
fn expect_continue_is_answered() {
    let daemon = daemon();
    let mut wire = RawConnection::unix(&daemon);
    let head = |length: usize| {
        format!(
            "POST /v1/events HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: {length}\r\n\r\n"
        )
    };
    assert_eq!(wire.send(head(EVENT.len())).reply().status, 100);
    assert_eq!(wire.send(EVENT).reply().status, 200);
    // Or not to, before it has sent anything.
    assert_eq!(wire.send(head(1 << 30)).reply().status, 413);
    assert!(wire.ends());
    daemon.finish();
}

#[test]
fn nothing_is_upgraded() {
    let daemon = daemon();
    let upgrade = |to: &str, path: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: {to}\r\n\
                 sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\nsec-websocket-version: 13\r\n\r\n"
        )
    };
    assert_eq!(say(&daemon, upgrade("websocket", "/healthz")).status, 200);
    assert_eq!(say(&daemon, upgrade("h2c", "/v1/status")).status, 200);
    let reply = say(&daemon, "CONNECT example.com:443 HTTP/1.1\r\nhost: example.com\r\n\r\n");
    assert!((400..500).contains(&reply.status), "{reply:?}");
    daemon.finish();
}

#[test]
fn every_answer_has_the_id_of_its_request() {
    let daemon = daemon();
    let id = |headers: &str, path: &str| {
        let request = get(path).replace("\r\n\r\n", &format!("\r\n{headers}\r\n"));
        say(&daemon, request).header("x-request-id").unwrap_or_default().to_owned()
    };
    for path in ["/healthz", "/nowhere", "/v1/events", "/v1/runs/%00", "/v1/runs/%ff"] {
        assert_eq!(id("x-request-id: mine-7\r\n", path), "mine-7", "{path}");
        let (first, second) = (id("", path), id("", path));
        assert!(!first.is_empty() && first != second);
    }
    let long = format!("x-request-id: {}\r\n", "x".repeat(129));
    for odd in ["x-request-id: \r\n", "x-request-id: a b\r\n", "x-request-id: \u{fc}\r\n", &long] {
        let given = id(odd, "/healthz");
        assert!(!given.is_empty() && given.len() < 64 && given.is_ascii() && !given.contains(' '), "{given}");
    }
    daemon.finish();
}
