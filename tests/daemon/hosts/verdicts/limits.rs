//! Events that come too slowly, or beyond a limit.

use super::*;

#[test]
fn a_body_that_does_not_come_gets_a_verdict() {
    for policy in ["on_error: deny", ""] {
        let daemon = daemon(policy, "limits: { body_timeout: 1s }");
        let shop = daemon.path().join("shop");
        thread::scope(|scope| {
            for dialect in DIALECTS {
                let (daemon, shop) = (&daemon, &shop);
                scope.spawn(move || {
                    let body = tool(dialect, shop);
                    let whole = post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes());
                    let told = answer(daemon, &whole[..whole.len() - 2], false);
                    assert_answer(&told, dialect, !policy.is_empty(), "slow");
                });
                scope.spawn(move || {
                    let body = tool(dialect, shop);
                    let whole = post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes());
                    let mut stream = UnixStream::connect(daemon.socket()).unwrap();
                    stream.write_all(&whole[..whole.len() - 2]).unwrap();
                    stream.shutdown(std::net::Shutdown::Write).unwrap();
                    let mut text = String::new();
                    // A host that has gone away gets no answer; one that only stopped sending may.
                    if stream.read_to_string(&mut text).is_ok() && !text.is_empty() {
                        assert_answer(&read_answer(&text, false), dialect, !policy.is_empty(), "incomplete");
                    }
                });
            }
        });
        daemon.finish();
    }
}

#[test]
fn an_event_beyond_a_limit_gets_a_verdict() {
    for (limits, policy) in [
        ("limits: { requests: 1 }", "on_error: deny"),
        ("limits: { requests: 1 }", ""),
        ("limits: { in_flight: 1 }", "on_error: deny"),
        ("limits: { in_flight: 1 }", ""),
    ] {
        let setup = DaemonSetup::new();
        let directory = setup.path();
        let slow = hook("slow", "before_tool_dispatch", &hangs(&directory));
        let mut slow: Value = serde_json::from_str(&slow).unwrap();
        if let Some((key, value)) = policy.split_once(": ") {
            slow[key] = json!(value);
        }
        let daemon = setup
            .settings("workspaces: { shop: { root: $DIR/shop } }")
            .settings(limits)
            .file("shop/.openharness/hooks/slow.yaml", &slow.to_string())
            .serve();
        let mut busy = UnixStream::connect(daemon.socket()).unwrap();
        busy.write_all(&post("/v1/events", JSON, call("shop", "busy").to_string().as_bytes())).unwrap();
        let pid = hanging(&directory);
        for dialect in DIALECTS {
            let body = tool(dialect, &directory.join("shop"));
            let told = answer(&daemon, &post(&format!("/v1/events/{dialect}"), JSON, body.as_bytes()), false);
            assert_answer(&told, dialect, !policy.is_empty(), limits);
            let refused = daemon.send("POST", "/v1/events", Some(&call("shop", "other")));
            assert_eq!(refused.status, 503, "canonical hosts get the error");
        }
        drop(busy);
        gone(&pid);
        daemon.finish();
    }
}

/// A connection that keeps the only place of the event socket.
fn taken_place(daemon: &Daemon) -> UnixStream {
    let mut held = None;
    wait_until("the place is taken", || {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").unwrap();
        let mut text = [0; 12];
        let is_served = stream.read_exact(&mut text).is_ok() && &text == b"HTTP/1.1 200";
        held = Some(stream);
        is_served
    });
    held.unwrap()
}

#[test]
fn an_event_on_a_connection_beyond_the_limit_gets_a_verdict() {
    for policy in ["on_error: deny", ""] {
        let daemon = daemon(policy, "limits: { connections: 1, idle_timeout: 10m }");
        let shop = daemon.path().join("shop");
        let held = taken_place(&daemon);
        for dialect in DIALECTS {
            let body = tool(dialect, &shop);
            for is_process in [false, true] {
                let form = if is_process { "?as=process" } else { "" };
                let request = post(&format!("/v1/events/{dialect}{form}"), JSON, body.as_bytes());
                let told = answer(&daemon, &request, is_process);
                assert_answer(&told, dialect, !policy.is_empty(), "beyond the limit");
            }
            let relayed = said(hookyard(&daemon, &["relay", "--dialect", dialect]), &body);
            let code = u8::try_from(relayed.code.unwrap()).unwrap();
            let told = Answer { out: relayed.out, err: relayed.err, code };
            assert_answer(&told, dialect, !policy.is_empty(), "relayed beyond the limit");
        }
        let refused =
            daemon.client().send("POST", "/v1/events", Some(call("shop", "r").to_string().as_bytes()));
        assert_eq!(refused.unwrap().status, 503, "canonical hosts get the error");
        assert!(!shop.join("ran").exists(), "the hook was asked");
        drop(held);
        daemon.finish();
    }
}
