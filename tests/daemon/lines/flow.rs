//! How much a connection may have under way, and what becomes of events that nobody waits for any more.

use std::{fs, thread, time::Duration};

use super::*;

fn in_flight(daemon: &Daemon) -> u64 {
    daemon.get("/v1/status")["events_in_flight"].as_u64().expect("a number")
}

#[test]
fn an_event_is_cancelled_by_its_id() {
    let daemon = setting().serve();
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": "a", "event": event("r1", "Waits") }));
    host.send(&json!({ "id": "b", "event": event("r2", "Waits") }));
    wait_until("both are in flight", || in_flight(&daemon) == 2);
    host.send(&json!({ "cancel": "unknown" }));
    let told = host.ask(&json!({ "cancel": "a" }));
    assert_eq!((&told["id"], &told["error"]["code"]), (&json!("a"), &json!("cancelled")));
    wait_until("its hook has ended", || in_flight(&daemon) == 1);
    // Its id is free at once, and its answer does not come.
    let again = host.ask(&json!({ "id": "a", "event": event("r3", "Bash") }));
    assert_eq!((&again["id"], &again["outcome"]["verdict"]), (&json!("a"), &json!("block")));
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(host.line()["id"], "b");
    assert_eq!(host.end().rest(), [] as [Value; 0]);
    daemon.finish();
}

#[test]
fn a_host_that_goes_away_cancels_its_events_and_one_that_only_ends_its_side_does_not() {
    let daemon = setting().serve();
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": 1, "event": event("r1", "Waits") }));
    wait_until("it is in flight", || in_flight(&daemon) == 1);
    drop(host);
    wait_until("it is cancelled", || in_flight(&daemon) == 0);
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": 2, "event": event("r2", "Waits") })).end();
    wait_until("it is in flight", || in_flight(&daemon) == 1);
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    let answers = host.rest();
    assert_eq!((answers.len(), &answers[0]["outcome"]["verdict"]), (1, &json!("proceed")));
    // One that has ended its side and goes away is noticed as well.
    fs::remove_file(daemon.path().join("shop/go")).unwrap();
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": 3, "event": event("r3", "Waits") })).end();
    wait_until("it is in flight", || in_flight(&daemon) == 1);
    drop(host);
    wait_until("it is cancelled", || in_flight(&daemon) == 0);
    daemon.finish();
}

#[test]
fn beyond_the_events_in_flight_of_a_connection_no_more_lines_are_read() {
    let daemon = setting().settings("limits: { lines_in_flight: 2 }").serve();
    let mut host = LineHost::of(&daemon);
    for number in 0..4 {
        host.send(&json!({ "id": number, "event": event(&format!("r{number}"), "Waits") }));
    }
    wait_until("two are in flight", || in_flight(&daemon) == 2);
    // Another connection has places of its own.
    let mut other = LineHost::of(&daemon);
    assert_eq!(other.ask(&json!({ "id": 1, "event": event("o", "Bash") }))["outcome"]["verdict"], "block");
    assert_eq!(in_flight(&daemon), 2, "the others wait in the connection");
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(host.lines(4).len(), 4);
    daemon.finish();
}

#[test]
fn beyond_the_limits_of_the_listener_events_and_connections_are_refused() {
    let daemon = setting().settings("limits: { lines_requests: 1, lines_connections: 1 }").serve();
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": 1, "event": event("r1", "Waits") }));
    wait_until("it is in flight", || in_flight(&daemon) == 1);
    let shed = host.ask(&json!({ "id": 2, "event": event("r2", "Read") }));
    assert_eq!((&shed["error"]["code"], &shed["error"]["retry"]), (&json!("overloaded"), &json!("safe")));
    assert_eq!((&shed["error"]["status"], &shed["error"]["retry_after"]), (&json!(503), &json!(1)));
    assert!(shed["error"]["message"].as_str().unwrap().contains("`limits.lines_requests`"), "{shed}");
    let mut beyond = LineHost::of(&daemon);
    let refused = beyond.ask(&json!({ "id": 3, "event": event("r3", "Read") }));
    assert_eq!(refused["error"]["code"], "overloaded");
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("`limits.lines_connections`"),
        "{refused}"
    );
    assert_eq!(beyond.rest(), [] as [Value; 0]);
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    for limit in ["connections", "requests"] {
        let series =
            format!("hookyard_listener_refusals_total{{listener=\"lines_socket\",limit=\"{limit}\"}} 1");
        assert!(metrics.contains(&series), "{metrics}");
    }
    // The event socket has limits of its own.
    assert_eq!(daemon.post("/v1/events", &event("r4", "Bash"))["verdict"], "block");
    drop(host);
    daemon.finish();
}

#[test]
fn a_host_that_never_reads_is_not_read_from_and_loses_its_connection() {
    let daemon = setting().settings("limits: { body_timeout: 1s }").serve();
    let mut host = LineHost::of(&daemon);
    let line = json!({ "id": 1, "event": event("r", "Read") }).to_string() + "\n";
    let lines = line.repeat(1000);
    let mut sent = 0;
    let ended = loop {
        use std::io::Write;
        match host.stream.write_all(lines.as_bytes()) {
            Ok(()) => sent += lines.len(),
            Err(error) => break error,
        }
        assert!(sent < 100 << 20, "everything is read, and held");
    };
    assert_eq!(ended.kind(), std::io::ErrorKind::BrokenPipe);
    assert_eq!(daemon.post("/v1/events", &event("r4", "Bash"))["verdict"], "block");
    daemon.finish();
}

#[test]
fn an_idle_connection_is_closed() {
    let daemon = setting().settings("limits: { idle_timeout: 300ms }").serve();
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": 1, "event": event("r", "Waits") }));
    thread::sleep(Duration::from_secs(1));
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    assert_eq!(host.line()["outcome"]["verdict"], "proceed", "one that waits for an answer is not idle");
    assert_eq!(host.rest(), [] as [Value; 0]);
    daemon.finish();
}
