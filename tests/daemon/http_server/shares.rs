//! Each listener has a share of connections, requests, bodies, runs and events of its own.

use std::{fs, os::unix::fs::PermissionsExt};

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::{
    http_server::{
        events::{self, SLOW},
        raw_connection::{RawConnection, Reply, get, post},
    },
    support::daemon::{Daemon, DaemonSetup},
    support::wait::wait_until,
};

/// A hook that is soon done.
const QUICK: &str = "name: quick\nevents: [before_tool_dispatch]\nmatcher: Read\nhandler:\n  type: command\n  \
                     command: 'true'\n";

/// A hook of an event that its host need not wait for. It goes on until there is the file `go`.
const LATE: &str = "name: late\nevents: [run_failed]\nhandler:\n  type: command\n  \
                    command: 'until [ -e go ]; do sleep 0.02; done'\n";

/// A daemon with a slow hook of one tool and a quick one of another, at the sockets and at a TCP address.
fn daemon(settings: &str) -> Daemon {
    DaemonSetup::new()
        .file("shop/.openharness/hooks/slow.yaml", SLOW)
        .file("shop/.openharness/hooks/quick.yaml", QUICK)
        .file("shop/.openharness/hooks/late.yaml", LATE)
        .file("more/x", "")
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings(settings)
        .argument("--tcp")
        .argument("127.0.0.1:0")
        .serve()
}

/// An event that only the slow hook wants.
fn event(run: &str) -> String {
    // Another workspace may be registered by then.
    events::event(run).replacen('{', r#"{"workspace_id":"shop","#, 1)
}

/// An event that only the quick hook wants.
fn quick(run: &str) -> String {
    event(run).replace("Bash", "Read")
}

fn sent(mut wire: RawConnection, event: &str) -> Reply {
    wire.send(post("/v1/events", event.as_bytes())).reply()
}

/// The number of refusals of a listener at one of its limits.
fn refusals(daemon: &Daemon, listener: &str, limit: &str) -> u64 {
    value_of(
        daemon,
        &format!("hookyard_listener_refusals_total{{listener=\"{listener}\",limit=\"{limit}\"}} "),
    )
}

/// What a series says, which is named with its labels and a space.
fn value_of(daemon: &Daemon, series: &str) -> u64 {
    let metrics = daemon.control().send("GET", "/metrics", None).unwrap();
    let text = String::from_utf8(metrics.body).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix(series));
    line.unwrap_or_else(|| panic!("no {series}: {text}")).parse().unwrap()
}

/// Registers a workspace at the control socket.
fn is_registered(daemon: &Daemon) -> bool {
    let body = json!({ "root": daemon.path().join("more") });
    daemon.send("PUT", "/v1/workspaces/more", Some(&body)).status < 300
}

#[test]
fn requests_of_one_listener_take_no_places_of_another() {
    let daemon = daemon("limits: { requests: 2, tcp_requests: 2, control_requests: 2 }");
    let address = daemon.tcp();
    let mut busy: Vec<_> = (0..2).map(|_| RawConnection::tcp(&address)).collect();
    for (number, wire) in busy.iter_mut().enumerate() {
        wire.send(post("/v1/events", event(&format!("tcp{number}")).as_bytes()));
    }
    wait_until("both hooks run", || daemon.get("/v1/status")["events_in_flight"] == 2);
    let reply = sent(RawConnection::tcp(&address), &quick("r"));
    assert_eq!((reply.status, &*reply.code()), (503, "overloaded"));
    assert!(reply.json()["error"]["message"].as_str().unwrap().contains("`limits.tcp_requests`"));
    assert_eq!(sent(RawConnection::unix(&daemon), &quick("r")).status, 200, "the event socket has its own");
    let mut of_socket: Vec<_> = (0..2).map(|_| RawConnection::unix(&daemon)).collect();
    for (number, wire) in of_socket.iter_mut().enumerate() {
        wire.send(post("/v1/events", event(&format!("unix{number}")).as_bytes()));
    }
    wait_until("all hooks run", || daemon.get("/v1/status")["events_in_flight"] == 4);
    assert_eq!(sent(RawConnection::unix(&daemon), &quick("r")).status, 503);
    assert!(is_registered(&daemon), "the control socket has its own");
    let counted = ["tcp", "event_socket", "control_socket"].map(|name| refusals(&daemon, name, "requests"));
    assert_eq!(counted, [1, 1, 0]);
    drop((busy, of_socket));
    wait_until("there is room again", || sent(RawConnection::tcp(&address), &quick("r")).status == 200);
    daemon.finish();
}

type Stream = (h2::client::ResponseFuture, h2::SendStream<Bytes>);

/// Opens as many requests as a connection may have, and sends no body.
async fn unfinished_requests(mut sender: SendRequest<Bytes>, address: &str) -> Vec<Stream> {
    let mut open = Vec::new();
    for _ in 0..256 {
        sender = sender.ready().await.unwrap();
        let request = axum::http::Request::post(format!("http://{address}/v1/events")).body(()).unwrap();
        open.push(sender.send_request(request, false).unwrap());
    }
    open
}

#[tokio::test(flavor = "multi_thread")]
async fn unfinished_requests_over_http2_keep_no_other_listener_waiting() {
    let daemon = daemon("");
    let address = daemon.tcp();
    let mut open = Vec::new();
    for _ in 0..16 {
        let stream = TcpStream::connect(&address).await.unwrap();
        let (sender, connection) = h2::client::handshake(stream).await.unwrap();
        let task = tokio::spawn(async move { drop(connection.await) });
        open.push((unfinished_requests(sender.clone(), &address).await, sender, task));
    }
    wait_until("all places of the address are taken", || refusals(&daemon, "tcp", "requests") > 0);
    assert_eq!(sent(RawConnection::tcp(&address), &quick("r")).status, 503);
    for _ in 0..20 {
        assert_eq!(sent(RawConnection::unix(&daemon), &quick("r")).status, 200);
        assert!(is_registered(&daemon));
    }
    drop(open);
    daemon.finish();
}

/// A request whose body is announced and not finished.
fn unfinished(size: usize, sent: usize) -> String {
    let head = format!("POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: {size}\r\n\r\n");
    head + &" ".repeat(sent)
}

#[test]
fn bodies_of_one_listener_take_no_room_of_another() {
    let daemon =
        daemon("limits: { request_bodies: 1MiB, tcp_request_bodies: 1MiB, control_request_bodies: 1MiB }");
    let address = daemon.tcp();
    let padded = |run: &str| quick(run) + &" ".repeat(700_000);
    let mut slow = None;
    wait_until("the room of the address is taken", || {
        // Which of the two gets the room is not known.
        slow.insert(RawConnection::tcp(&address)).send(unfinished(900_000, 800_000));
        sent(RawConnection::tcp(&address), &padded("r")).status == 503
    });
    wait_until("it is counted", || refusals(&daemon, "tcp", "bodies") > 0);
    assert_eq!(sent(RawConnection::unix(&daemon), &padded("r")).status, 200);
    assert_eq!(sent(RawConnection::unix_at(&daemon.control_socket()), &padded("r")).status, 200);
    assert!(is_registered(&daemon));
    assert_eq!(refusals(&daemon, "event_socket", "bodies"), 0);
    drop(slow);
    daemon.finish();
}

#[test]
fn without_a_token_a_quarter_of_the_runs_is_kept_for_the_sockets() {
    let daemon = daemon("limits: { runs: 4 }");
    let address = daemon.tcp();
    let statuses = ["a", "b", "c", "d"].map(|run| sent(RawConnection::tcp(&address), &quick(run)).status);
    assert_eq!(statuses, [200, 200, 200, 503]);
    assert_eq!(sent(RawConnection::tcp(&address), &quick("a")).status, 200, "a run that has begun goes on");
    let statuses = ["d", "e"].map(|run| sent(RawConnection::unix(&daemon), &quick(run)).status);
    assert_eq!(statuses, [200, 503]);
    daemon.finish();
}

#[test]
fn without_a_token_a_quarter_of_the_workspaces_is_kept_for_the_sockets() {
    let daemon = daemon("limits: { workspaces: 5 }\nworkspace_roots: [$DIR/srv]");
    let address = daemon.tcp();
    // One of the five is `shop`.
    let statuses = ["a", "b", "c", "d"].map(|name| {
        let hooks = daemon.path().join(format!("srv/{name}/.openharness/hooks"));
        fs::create_dir_all(&hooks).unwrap();
        let event = json!({ "event": "run_failed", "session_id": "s", "run_id": name, "trigger_type": "user",
                            "run_status": "failed", "cwd": daemon.path().join("srv").join(name) });
        let over_tcp = sent(RawConnection::tcp(&address), &event.to_string()).status;
        (over_tcp, event.to_string())
    });
    assert_eq!(statuses.each_ref().map(|(status, _)| *status), [200, 200, 200, 503]);
    assert_eq!(sent(RawConnection::unix(&daemon), &statuses[3].1).status, 200);
    assert_eq!(value_of(&daemon, r#"hookyard_shed_total{where="admission",reason="full"} "#), 1);
    daemon.finish();
}

#[test]
fn without_a_token_a_quarter_of_the_events_in_flight_is_kept_for_the_sockets() {
    let daemon = daemon("limits: { in_flight: 4 }");
    let address = daemon.tcp();
    let detached = |run: &str| {
        let event = json!({ "event": "run_failed", "session_id": "s", "run_id": run, "workspace_id": "shop",
                            "trigger_type": "user", "run_status": "failed", "wait": false });
        event.to_string()
    };
    let statuses = ["a", "b", "c", "d"].map(|run| sent(RawConnection::tcp(&address), &detached(run)).status);
    assert_eq!(statuses, [200, 200, 200, 503]);
    assert_eq!(sent(RawConnection::unix(&daemon), &quick("e")).status, 200);
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    wait_until("there is room again", || sent(RawConnection::tcp(&address), &quick("d")).status == 200);
    daemon.finish();
}

/// Follows the stream of a listener that takes anybody's or this token.
fn stream(mut wire: RawConnection, token: &str) -> (RawConnection, u16) {
    let request =
        format!("GET /v1/stream HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {token}\r\n\r\n");
    wire.send(request);
    while !wire.text().contains("\r\n\r\n") {
        wire.more().unwrap();
    }
    let status = wire.text().split(' ').nth(1).unwrap().parse().unwrap();
    (wire, status)
}

#[test]
fn streams_of_one_listener_take_no_places_of_another() {
    let daemon = DaemonSetup::new()
        .file("token", "control-token-of-a-test-0123456789\n")
        .settings("listen: { tcp: 127.0.0.1:0, control_token_file: $DIR/token }\nlimits: { streams: 2 }");
    fs::set_permissions(daemon.path().join("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let daemon = daemon.serve();
    let token = "control-token-of-a-test-0123456789";
    let address = daemon.tcp();
    let mut open = Vec::new();
    for (number, expected) in [200, 200, 503].into_iter().enumerate() {
        let (wire, status) = stream(RawConnection::tcp(&address), token);
        assert_eq!(status, expected, "{number}");
        open.push(wire);
    }
    for expected in [200, 200, 503] {
        let (wire, status) = stream(RawConnection::unix_at(&daemon.control_socket()), token);
        assert_eq!(status, expected);
        open.push(wire);
    }
    assert_eq!(daemon.get("/v1/status")["streams"], 4);
    let counted = ["tcp", "event_socket", "control_socket"].map(|name| refusals(&daemon, name, "streams"));
    assert_eq!(counted, [1, 0, 1]);
    drop(open);
    wait_until("the places are free", || daemon.get("/v1/status")["streams"] == 0);
    daemon.finish();
}

#[test]
fn without_a_token_events_wait_in_a_pool_behind_those_of_the_sockets() {
    let setup = DaemonSetup::new();
    let directory = setup.path();
    // Each run of the hook keeps its event, and goes on until there is the file `go`.
    let turn = format!(
        "name: turn\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: 'cat >> {0}/ran; echo >> \
         {0}/ran; until [ -e {0}/go ]; do sleep 0.02; done'\n",
        directory.display()
    );
    let daemon = setup
        .file("shop/.openharness/hooks/turn.yaml", &turn)
        .settings(
            "workspaces: { shop: { root: $DIR/shop } }\npools: { command: { concurrency: 1, queue: 2 } }",
        )
        .argument("--tcp")
        .argument("127.0.0.1:0")
        .serve();
    let address = daemon.tcp();
    let ran = || {
        let text = fs::read_to_string(directory.join("ran")).unwrap_or_default();
        let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        events.map(|event| event["run_id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let waiting = |number: usize| {
        let metrics = daemon.control().send("GET", "/metrics", None).unwrap();
        let text = String::from_utf8(metrics.body).unwrap();
        text.contains(&format!("hookyard_queue_depth{{pool=\"command\"}} {number}\n"))
    };
    let mut wires = Vec::new();
    let mut send = |mut wire: RawConnection, run: &str| {
        wire.send(post("/v1/events", event(run).as_bytes()));
        wires.push(wire);
    };
    send(RawConnection::tcp(&address), "first");
    wait_until("the only place is taken", || ran() == ["first"]);
    send(RawConnection::tcp(&address), "tcp1");
    wait_until("one waits", || waiting(1));
    send(RawConnection::tcp(&address), "tcp2");
    wait_until("the queue is full", || waiting(2));
    // Each takes the place of one of the others in the queue.
    send(RawConnection::unix(&daemon), "unix1");
    let shed = wires[2].reply().json();
    assert_eq!(shed["hooks"][0]["ended"], "shed", "{shed}");
    wires.push(RawConnection::unix(&daemon));
    wires[4].send(post("/v1/events", event("unix2").as_bytes()));
    let shed = wires[1].reply().json();
    assert_eq!(shed["hooks"][0]["ended"], "shed", "{shed}");
    fs::write(directory.join("go"), "").unwrap();
    for number in [0, 3, 4] {
        assert_eq!(wires[number].reply().json()["hooks"][0]["ended"], "completed", "{number}");
    }
    assert_eq!(ran(), ["first", "unix1", "unix2"]);
    daemon.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_that_are_not_read_keep_the_places_of_their_own_address_only() {
    let daemon = DaemonSetup::new()
        .settings("listen: { metrics: 127.0.0.1:0, tcp: 127.0.0.1:0 }")
        .settings("limits: { metrics_requests: 1, tcp_requests: 1 }")
        .serve();
    for listener in ["metrics", "tcp"] {
        let address = daemon.get("/v1/status")[listener].as_str().unwrap().to_owned();
        let stream = TcpStream::connect(&address).await.unwrap();
        let (sender, connection) = Builder::new().initial_window_size(0).handshake(stream).await.unwrap();
        let task = tokio::spawn(async move { drop(connection.await) });
        let mut sender: SendRequest<Bytes> = sender.ready().await.unwrap();
        let request = axum::http::Request::get(format!("http://{address}/metrics")).body(()).unwrap();
        let (answer, _) = sender.send_request(request, true).unwrap();
        let unread = answer.await.unwrap();
        assert_eq!(unread.status().as_u16(), 200);
        let refused = RawConnection::tcp(&address).send(get("/metrics")).reply();
        assert_eq!((refused.status, &*refused.code()), (503, "overloaded"), "{listener}");
        wait_until("it is counted", || refusals(&daemon, listener, "requests") == 1);
        drop((unread, sender));
        task.abort();
        wait_until("the place is free", || {
            RawConnection::tcp(&address).send(get("/metrics")).reply().status == 200
        });
    }
    daemon.finish();
}
