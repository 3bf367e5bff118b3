//! Limits of connections, requests and time, and what they cost.

use std::{
    fs,
    net::TcpStream,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;

use crate::{
    http_server::events::{event, slow},
    http_server::raw_connection::{RawConnection, get, post},
    support::daemon::{Daemon, DaemonSetup},
    support::wait::{LONGEST_WAIT, wait_until},
};

/// How many descriptors the daemon has open, by its own account: others may not look.
fn descriptors(daemon: &Daemon) -> usize {
    let metrics = daemon.send("GET", "/metrics", None);
    let text = String::from_utf8_lossy(&metrics.body);
    let line = text.lines().find_map(|line| line.strip_prefix("process_open_fds "));
    line.expect("a metric").parse().expect("a number")
}

/// How much memory it has, in mebibytes.
fn memory(daemon: &Daemon) -> usize {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.pid())).expect("a process");
    let line = status.lines().find(|line| line.starts_with("VmRSS")).expect("a line");
    line.split_whitespace().nth(1).expect("a number").parse::<usize>().expect("a number") >> 10
}

/// How many descriptors this process may have.
fn raise_own_limit() -> usize {
    let maximum = getrlimit(Resource::Nofile).maximum;
    // It fails only where it is as high as it gets.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    getrlimit(Resource::Nofile)
        .current
        .map_or(usize::MAX, |limit| usize::try_from(limit).unwrap_or(usize::MAX))
}

#[test]
fn a_request_beyond_the_limit_is_refused_at_once() {
    let daemon = slow("limits: { requests: 2 }");
    let mut busy = [RawConnection::unix(&daemon), RawConnection::unix(&daemon)];
    for (n, wire) in busy.iter_mut().enumerate() {
        wire.send(post("/v1/events", event(&format!("r{n}")).as_bytes()));
    }
    wait_until("both hooks run", || daemon.get("/v1/status")["events_in_flight"] == 2);
    let since = Instant::now();
    let mut wire = RawConnection::unix(&daemon);
    let reply = wire.send(post("/v1/events", event("r3").as_bytes())).reply();
    assert_eq!((reply.status, &*reply.code()), (503, "overloaded"));
    assert_eq!(reply.header("retry-after"), Some("1"));
    assert!(since.elapsed() < LONGEST_WAIT / 2);
    // The connection stays, and those who ask how it is, and what fills it, are told.
    for path in
        ["/healthz", "/readyz", "/v1/status", "/metrics", "/v1/openapi.json", "/v1/runs", "/v1/runs/r0"]
    {
        assert_eq!(wire.send(get(path)).reply().status, 200, "{path}");
    }
    assert_eq!(wire.send(get("/v1/hooks")).reply().status, 503);
    assert_eq!(daemon.send("DELETE", "/v1/runs/r0", None).status, 200, "a way out");
    assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    drop(busy);
    wait_until("there is room again", || daemon.send("GET", "/v1/hooks", None).status == 200);
    daemon.finish();
}

#[test]
fn a_connection_beyond_the_limit_is_refused_and_closed() {
    let daemon = DaemonSetup::new()
        .settings("limits: { connections: 3, tcp_connections: 1 }")
        .argument("--tcp")
        .argument("127.0.0.1:0")
        .serve();
    let address = daemon.tcp();
    wait_until("the places are free", || {
        let mut open: Vec<_> = (0..3).map(|_| RawConnection::unix(&daemon)).collect();
        open.iter_mut().all(|wire| wire.send(get("/healthz")).reply().status == 200)
    });
    let mut open: Vec<RawConnection> = Vec::new();
    wait_until("all places are taken", || {
        let mut wire = RawConnection::unix(&daemon);
        if wire.send(get("/healthz")).reply().status == 200 {
            open.push(wire);
        }
        open.len() == 3
    });
    let mut of_tcp = RawConnection::tcp(&address);
    assert_eq!(of_tcp.send(get("/healthz")).reply().status, 200, "TCP has places of its own");
    for mut wire in [RawConnection::unix(&daemon), RawConnection::tcp(&address)] {
        wire.try_send(get("/healthz").as_bytes());
        let reply = wire.reply();
        assert_eq!((reply.status, &*reply.code()), (503, "overloaded"));
        assert_eq!((reply.header("retry-after"), reply.header("connection")), (Some("1"), Some("close")));
        assert!(wire.ends());
    }
    // Those inside are served on, and whoever goes makes room.
    assert_eq!(open[0].send(get("/healthz")).reply().status, 200);
    assert_eq!(daemon.control().send("GET", "/healthz", None).unwrap().status, 200, "so has control");
    open.pop();
    wait_until("there is room", || RawConnection::unix(&daemon).send(get("/healthz")).reply().status == 200);
    drop(open);
    daemon.finish();
}

#[test]
fn ten_thousand_idle_connections_delay_nobody() {
    let allowed = raise_own_limit();
    let number = 10_000.min(allowed.saturating_sub(500));
    if number < 10_000 {
        eprintln!(
            "NOT RUN in full: this process may have {allowed} descriptors only, so {number} connections"
        );
    }
    let daemon = DaemonSetup::new()
        .settings("limits: { connections: 12000, header_timeout: 3s, idle_timeout: 3s }")
        .serve();
    let before = memory(&daemon);
    let descriptors_before = descriptors(&daemon);
    let mut peaks = Vec::new();
    for _ in 0..2 {
        // A third of them have sent nothing, a third half a request, a third a whole one.
        let open: Vec<UnixStream> = (0..number)
            .map(|n| {
                let mut stream = UnixStream::connect(daemon.socket()).expect("room");
                let text = get("/healthz");
                let part = [0, 20, text.len()][n % 3];
                std::io::Write::write_all(&mut stream, &text.as_bytes()[..part]).expect("a listener");
                stream
            })
            .collect();
        let since = Instant::now();
        assert_eq!(daemon.send("GET", "/readyz", None).status, 200);
        assert!(since.elapsed() < LONGEST_WAIT / 2, "{:?}", since.elapsed());
        peaks.push(memory(&daemon));
        wait_until("they are gone", || descriptors(&daemon) <= descriptors_before + 8);
        drop(open);
    }
    let after = memory(&daemon);
    assert!(peaks[0] < before + 400, "{before} {peaks:?}");
    assert!(peaks[1] < peaks[0] + 60 && after < peaks[0] + 60, "{before} {peaks:?} {after}");
    daemon.finish();
}

#[test]
fn silent_tcp_peers_take_no_places_of_the_sockets() {
    let number = 10_300.min(raise_own_limit().saturating_sub(500));
    if number < 10_300 {
        eprintln!("NOT RUN in full: {number} connections, since this process may open no more files");
    }
    let daemon = DaemonSetup::new().argument("--tcp").argument("127.0.0.1:0").serve();
    let address = daemon.tcp();
    let open: Vec<_> = (0..number).map(|_| TcpStream::connect(&address).expect("a backlog")).collect();
    for _ in 0..20 {
        assert_eq!(daemon.send("GET", "/readyz", None).status, 200);
        assert_eq!(daemon.send("POST", "/v1/reload", None).status, 200);
    }
    drop(open);
    daemon.finish();
}

#[test]
fn a_listener_without_descriptors_logs_one_line() {
    let daemon = DaemonSetup::new().open_files(64).serve();
    let open: Vec<_> = (0..100).map(|_| UnixStream::connect(daemon.socket()).expect("a backlog")).collect();
    let lines = || daemon.log().matches("cannot accept a connection").count();
    wait_until("it has no descriptors left", || lines() > 0);
    // Peers that are gone make room, so that this is answered after many attempts to accept.
    drop(open);
    assert_eq!(daemon.send("GET", "/healthz", None).status, 200);
    assert_eq!(lines(), 1, "{}", daemon.log());
    daemon.finish();
}

/// The head of an event with a body of this size, and the first bytes of the body.
fn unfinished(size: usize, sent: usize) -> String {
    let head = format!("POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: {size}\r\n\r\n");
    head + &" ".repeat(sent)
}

#[test]
fn a_required_hook_that_is_shed_blocks_and_says_why() {
    let setup = DaemonSetup::new();
    let directory = setup.path();
    let guard = format!(
        "name: guard\nevents: [before_tool_dispatch]\non_error: ignore\nhandler:\n  type: command\n  command: 'echo >> \
         {0}/ran; until [ -e {0}/go ]; do sleep 0.02; done'\n",
        directory.display()
    );
    let daemon = setup
        .file("shop/.openharness/hooks/guard.yaml", &guard)
        .settings("workspaces: { shop: { root: $DIR/shop } }\nrequired: [guard]")
        .settings("pools: { command: { concurrency: 1, queue: 1 } }")
        .serve();
    let event = |run: &str| {
        json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
                "tool_name": "Bash", "tool_input": {} })
        .to_string()
    };
    let depth = |number: usize| {
        let metrics =
            String::from_utf8(daemon.control().send("GET", "/metrics", None).unwrap().body).unwrap();
        metrics.contains(&format!("hookyard_queue_depth{{pool=\"command\"}} {number}\n"))
    };
    let mut wires: Vec<_> = (0..2).map(|_| RawConnection::unix(&daemon)).collect();
    wires[0].send(post("/v1/events", event("first").as_bytes()));
    wait_until("the only place is taken", || directory.join("ran").exists());
    wires[1].send(post("/v1/events", event("second").as_bytes()));
    wait_until("the queue is full", || depth(1));
    let shed =
        RawConnection::unix(&daemon).send(post("/v1/events", event("third").as_bytes())).reply().json();
    assert_eq!((&shed["verdict"], &shed["by"]), (&json!("block"), &json!("guard")), "{shed}");
    assert_eq!(shed["hooks"][0]["ended"], "shed", "{shed}");
    let reason = shed["reason"].as_str().unwrap();
    assert!(reason.contains("the queue of the command pool is full (required: deny)"), "{reason}");
    fs::write(directory.join("go"), "").unwrap();
    for wire in &mut wires {
        assert_eq!(wire.reply().json()["verdict"], "proceed");
    }
    daemon.finish();
}

#[test]
fn all_bodies_together_have_a_limit() {
    let daemon = DaemonSetup::new().settings("limits: { request_bodies: 1MiB }").serve();
    // What a peer announces and does not send takes nothing of the budget.
    let mut silent = RawConnection::unix(&daemon);
    silent.send(unfinished(900_000, 0));
    let refused = || {
        let mut wire = RawConnection::unix(&daemon);
        let reply = wire.send(post("/v1/events", " ".repeat(700_000).as_bytes())).reply();
        (reply.status, reply.code(), reply.header("retry-after").map(str::to_owned))
    };
    let overloaded = (503, "overloaded".to_owned(), Some("1".to_owned()));
    let mut slow = None;
    wait_until("the budget is used", || {
        // Which of the two gets the room is not known.
        slow.insert(RawConnection::unix(&daemon)).send(unfinished(900_000, 800_000));
        refused() == overloaded
    });
    assert_eq!(daemon.send("GET", "/healthz", None).status, 200);
    let small = RawConnection::unix(&daemon).send(post("/v1/events", b"{}")).reply();
    assert_eq!(small.status, 400, "what fits is read");
    drop(slow);
    wait_until("the share is given back", || refused().0 == 400);
    // Refused and finished bodies have given theirs back as well.
    for _ in 0..20 {
        assert_eq!(refused().0, 400);
    }
    drop(silent);
    daemon.finish();
}

#[test]
fn short_connections_leak_no_descriptors() {
    let daemon = DaemonSetup::new().argument("--tcp").argument("127.0.0.1:0").serve();
    let address = daemon.tcp();
    let before = descriptors(&daemon);
    for n in 0..3000 {
        let stream = UnixStream::connect(daemon.socket()).expect("a connection");
        if n % 10 == 0 {
            drop(TcpStream::connect(&address).expect("a connection"));
        }
        drop(stream);
    }
    assert_eq!(daemon.send("GET", "/healthz", None).status, 200);
    wait_until("they are gone", || descriptors(&daemon) <= before);
    daemon.finish();
}

#[test]
fn a_client_that_does_not_read_is_disconnected() {
    let daemon = DaemonSetup::new().settings("limits: { body_timeout: 1s }").serve();
    let before = descriptors(&daemon);
    let mut wires: Vec<_> = (0..20).map(|_| RawConnection::unix(&daemon)).collect();
    let many = get("/v1/openapi.json").repeat(200);
    for wire in &mut wires {
        wire.send(&many);
    }
    wait_until("they are let in", || descriptors(&daemon) > before);
    wait_until("they are cut", || descriptors(&daemon) <= before);
    assert!(memory(&daemon) < 300, "{}", memory(&daemon));
    drop(wires);
    daemon.finish();
}

#[test]
fn a_client_that_reads_slowly_is_served() {
    let daemon = DaemonSetup::new()
        .settings("limits: { body_timeout: 2s, idle_timeout: 2s, header_timeout: 2s }")
        .serve();
    let mut wire = RawConnection::unix(&daemon);
    let since = Instant::now();
    wire.send(get("/v1/openapi.json").repeat(60));
    for _ in 0..60 {
        assert_eq!(wire.reply().status, 200);
        // The pace of the reader, not a wait for something.
        thread::sleep(Duration::from_millis(60));
    }
    assert!(since.elapsed() > Duration::from_secs(3), "longer than each of the limits");
    daemon.finish();
}

/// A hook whose answer is long.
const LOUD: &str = "name: loud\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: \
                    'head -c 8000 /dev/zero | tr \"\\0\" x >&2; exit 2'\n";

#[test]
fn a_quiet_stream_stays_open_and_a_full_one_is_closed() {
    let daemon = DaemonSetup::new()
        .file("shop/.openharness/hooks/loud.yaml", LOUD)
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("limits: { body_timeout: 1s, idle_timeout: 1s, header_timeout: 1s, streams: 2 }")
        .serve();
    let mut reader = RawConnection::unix(&daemon);
    reader.send(get("/v1/stream"));
    let mut idler = RawConnection::unix(&daemon);
    idler.send(get("/v1/stream"));
    wait_until("both are heard", || daemon.get("/v1/status")["streams"] == 2);
    assert_eq!(RawConnection::unix(&daemon).send(get("/v1/stream")).reply().status, 503);
    // Connections that came later are cut as idle, twice.
    for _ in 0..2 {
        RawConnection::unix(&daemon).send(get("/healthz")).rest();
    }
    assert_eq!(daemon.get("/v1/status")["streams"], 2, "a stream is quiet as long as nothing happens");
    let reading = thread::spawn(move || {
        while reader.more().is_ok_and(|more| more > 0) {}
        reader.text()
    });
    wait_until("who does not read is cut", || {
        for n in 0..20 {
            daemon.post("/v1/events", &serde_json::from_str(&event(&format!("r{n}"))).unwrap());
        }
        daemon.get("/v1/status")["streams"] == 1
    });
    daemon.finish();
    let told = reading.join().unwrap();
    assert!(told.contains("event: outcome"), "{told}");
}
