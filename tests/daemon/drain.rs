//! How a daemon stops: not ready first, events for a while, an end that its clients see coming.

use std::{
    fs,
    io::{self, ErrorKind},
    thread,
};

use hookyard::daemon::ClientError;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    http_server::raw_connection::{RawConnection, get, post},
    support::{
        daemon::{Daemon, DaemonSetup},
        wait::{LONGEST_WAIT, wait_until},
    },
};

const GUARD: &str = "name: guard\nevents: [before_tool_dispatch]\nmatcher: Bash\nhandler:\n  type: command\n  \
                     command: 'echo \"no shells here\" >&2; exit 2'\n";

/// A daemon with a guard, and a hook that goes on until it is told.
fn setting() -> DaemonSetup {
    let waits = "name: waits\nevents: [before_tool_dispatch]\nmatcher: Waits\nhandler:\n  type: command\n  \
                 command: 'touch begun; until [ -e go ]; do sleep 0.02; done'\n";
    DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .file("shop/.openharness/hooks/waits.yaml", waits)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
}

fn event(tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": tool, "tool_name": tool,
            "tool_input": {} })
}

fn is_ready(daemon: &Daemon) -> bool {
    daemon.send("GET", "/readyz", None).status == 200
}

#[test]
fn a_lame_duck_is_not_ready_and_takes_events() {
    let mut daemon = setting().settings("listen: { lameduck: 5m }").serve();
    let refused = daemon.client().send("POST", "/v1/drain", None).unwrap();
    assert_eq!(refused.status, 403, "the event socket controls nothing");
    assert!(is_ready(&daemon));
    let mut open = RawConnection::unix(&daemon);
    let before = open.send(get("/healthz")).reply();
    assert_eq!((before.status, before.header("connection")), (200, None));

    assert_eq!(daemon.control().send("POST", "/v1/drain", None).unwrap().status, 202);
    let unready = daemon.send("GET", "/readyz", None);
    let body: Value = serde_json::from_slice(&unready.body).unwrap();
    assert_eq!((unready.status, &body["error"]["code"]), (503, &json!("draining")));
    assert_eq!(unready.header("connection"), Some("close"), "also to a balancer's check");
    assert_eq!(daemon.get("/v1/status")["phase"], "draining");
    wait_until("it says so", || daemon.log().contains("about to stop: events are still taken"));
    assert_eq!(daemon.post("/v1/events", &event("Bash"))["verdict"], "block");
    // A connection that is open is answered once more, and ends.
    let last = open.send(post("/v1/events", event("Bash").to_string().as_bytes())).reply();
    assert_eq!((last.status, last.header("connection")), (200, Some("close")));
    assert!(open.ends());

    // The first signal ends the wait, not the events in flight.
    let (client, waits) = (daemon.client(), event("Waits").to_string());
    let waiting = thread::spawn(move || client.send("POST", "/v1/events", Some(waits.as_bytes())).unwrap());
    wait_until("the hook runs", || daemon.path().join("shop/begun").exists());
    daemon.signal(Signal::TERM);
    wait_until("events are refused", || {
        daemon.send("POST", "/v1/events", Some(&event("Bash"))).status == 503
    });
    let refused = daemon.send("POST", "/v1/events", Some(&event("Bash")));
    assert_eq!((refused.status, refused.header("connection")), (503, Some("close")));
    let unready: Value = serde_json::from_slice(&daemon.send("GET", "/readyz", None).body).unwrap();
    assert_eq!(unready["error"]["code"], "shutting_down", "it takes no events any more");
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(waiting.join().unwrap().status, 200);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
}

#[test]
fn a_signal_begins_with_the_lame_duck_phase_and_a_second_one_ends_it_at_once() {
    let mut daemon = setting().settings("listen: { lameduck: 5m }").serve();
    daemon.signal(Signal::TERM);
    wait_until("it is not ready", || !is_ready(&daemon));
    assert_eq!(daemon.post("/v1/events", &event("Bash"))["verdict"], "block");
    daemon.signal(Signal::TERM);
    // No wait of a test is as long as the phase.
    assert_ne!(daemon.wait().code(), Some(0));
}

#[test]
fn a_lame_duck_that_nobody_hurries_stops_by_itself() {
    let mut daemon = setting().settings("listen: { lameduck: 50ms }").serve();
    assert_eq!(daemon.control().send("POST", "/v1/drain", None).unwrap().status, 202);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(!daemon.socket().exists() && !daemon.control_socket().exists());
}

#[test]
fn http2_announces_the_end() {
    let daemon = setting().settings("listen: { lameduck: 5m }").serve();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::UnixStream::connect(daemon.socket()).await.unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        let connection = tokio::spawn(connection);
        let ask = async |sender: &h2::client::SendRequest<bytes::Bytes>| {
            let request = axum::http::Request::get("http://localhost/healthz").body(()).unwrap();
            let mut sender = sender.clone().ready().await?;
            sender.send_request(request, true)?.0.await.map(|answer| answer.status())
        };
        assert_eq!(ask(&sender).await.unwrap(), 200);
        let drained = daemon.control().send("POST", "/v1/drain", None).unwrap();
        assert_eq!(drained.status, 202);
        // GOAWAY ends a connection on which nothing is under way.
        let ended = tokio::time::timeout(LONGEST_WAIT, connection).await.expect("in time").unwrap();
        // The client answers the server's PING before it says GOAWAY itself: the server may have closed by then.
        if let Err(error) = ended {
            assert_eq!(error.get_io().map(io::Error::kind), Some(ErrorKind::BrokenPipe), "{error}");
        }
        let refused = ask(&sender).await.unwrap_err();
        assert!(refused.is_go_away() && refused.is_remote(), "{refused:?}");
        assert_eq!(refused.reason(), Some(h2::Reason::NO_ERROR));
    });
    daemon.finish();
}

/// What came of events that were sent one after the other, each on a connection of its own.
#[derive(Debug, Default)]
struct Tally {
    answered: usize,
    /// Refused with an error that is safe to retry, or with no listener.
    retryable: usize,
    /// Anything else: the client cannot tell whether hooks ran.
    unclear: Vec<String>,
}

#[test]
fn a_client_can_always_tell_whether_hooks_may_have_run() {
    for _ in 0..8 {
        let mut daemon = setting().serve();
        let tally = thread::scope(|scope| {
            let senders: Vec<_> = (0..4)
                .map(|_| {
                    let client = daemon.client();
                    scope.spawn(move || {
                        let mut tally = Tally::default();
                        let body = event("Read").to_string();
                        loop {
                            match client.send("POST", "/v1/events", Some(body.as_bytes())) {
                                Ok(answer) if answer.status == 200 => tally.answered += 1,
                                Ok(answer) => match answer.error_response() {
                                    ClientError::Refused {
                                        retry: Some(hookyard::daemon::Retry::Safe),
                                        ..
                                    } => {
                                        tally.retryable += 1;
                                    }
                                    other => tally.unclear.push(other.to_string()),
                                },
                                Err(ClientError::Down { .. }) => {
                                    tally.retryable += 1;
                                    return tally;
                                }
                                Err(other) => {
                                    tally.unclear.push(other.to_string());
                                    return tally;
                                }
                            }
                        }
                    })
                })
                .collect();
            wait_until("events come in", || {
                daemon.get("/v1/status")["agents"][0]["events"].as_u64() > Some(8)
            });
            daemon.signal(Signal::TERM);
            senders.into_iter().map(|sender| sender.join().unwrap()).collect::<Vec<_>>()
        });
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        for tally in tally {
            assert!(tally.unclear.is_empty() && tally.retryable > 0, "{tally:?}");
        }
    }
}

#[test]
fn responses_and_decisions_name_the_node() {
    let daemon = setting().settings("node: edge-7").serve();
    let answer = daemon.send("POST", "/v1/events", Some(&event("Bash")));
    assert_eq!(answer.header("x-hookyard-node"), Some("edge-7"));
    let outcome: Value = serde_json::from_slice(&answer.body).unwrap();
    assert!(outcome["decision_id"].as_str().unwrap().starts_with("edge-7-"), "{outcome}");
    let missing = daemon.send("GET", "/nowhere", None);
    assert_eq!((missing.status, missing.header("x-hookyard-node")), (404, Some("edge-7")));
    let body: Value = serde_json::from_slice(&missing.body).unwrap();
    assert_eq!(body["error"]["retry"], "never");
    assert_eq!(daemon.get("/v1/status")["node"], "edge-7");
    daemon.finish();
    let daemon = setting().serve();
    let machine = daemon.get("/v1/status")["node"].as_str().unwrap().to_owned();
    assert!(!machine.is_empty() && machine.len() <= 63, "{machine}");
    daemon.finish();
}
