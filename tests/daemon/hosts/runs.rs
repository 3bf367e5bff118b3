//! Runs that are listed, cancelled, and abandoned by their client.

use std::{io::Write, os::unix::net::UnixStream, thread};

use super::*;

#[test]
fn a_run_is_listed_with_its_hook_and_what_waits_and_cancelled() {
    let (daemon, directory) = hanging_guard();
    thread::scope(|scope| {
        let first = scope.spawn(|| daemon.post("/v1/events", &call("shop", "r")));
        let pid = hanging(&directory);
        let second = scope.spawn(|| daemon.post("/v1/events", &call("shop", "r")));
        wait_until("the second event waits", || daemon.get("/v1/runs/r")["pending"] == 1);
        let list = daemon.get("/v1/runs");
        let run = &list["runs"][0];
        assert_eq!((&run["run_id"], &run["workspace_id"]), (&json!("r"), &json!("shop")));
        let under_way = &run["under_way"][0];
        assert_eq!(under_way["event"], "before_tool_dispatch");
        assert_eq!(under_way["hooks"], json!(["slow"]));
        let cancelled = daemon::read(&daemon.send("DELETE", "/v1/runs/r", None));
        assert_eq!(cancelled, json!({ "events": 2 }));
        for event in [first, second] {
            assert_eq!(event.join().unwrap()["verdict"], "halt");
        }
        gone(&pid);
    });
    assert_eq!(daemon.send("GET", "/v1/runs/r", None).status, 404, "it is forgotten");
}

#[test]
fn a_client_that_closes_its_connection_cancels_its_event() {
    let (daemon, directory) = hanging_guard();
    for path in ["/v1/events", "/v1/events/claude"] {
        let mut event = call("shop", "r");
        if path.ends_with("claude") {
            event = json!({ "session_id": "c", "hook_event_name": "PreToolUse", "tool_name": "Bash",
                            "tool_input": {}, "cwd": directory.join("shop") });
        }
        let body = event.to_string();
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: h\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let pid = hanging(&directory);
        drop(stream);
        gone(&pid);
        wait_until("nothing is under way", || daemon.get("/v1/status")["events_in_flight"] == 0);
    }
}

#[test]
fn an_event_that_is_sent_again_gets_the_first_answer() {
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file(
            "shop/.openharness/hooks/count.yaml",
            &hook("count", "before_tool_dispatch", "echo x >> count; wc -l < count >&2; exit 2"),
        )
        .serve();
    let mut event = call("shop", "r");
    event["event_id"] = json!("e1");
    let first = daemon.post("/v1/events", &event);
    assert_eq!(daemon.post("/v1/events", &event), first);
    event["event_id"] = json!("e2");
    let third = daemon.post("/v1/events", &event);
    assert_eq!((&first["reason"], &third["reason"]), (&json!("1"), &json!("2")));
}

#[test]
fn an_event_whose_connection_was_lost_may_be_sent_again() {
    let setting = DaemonSetup::new();
    let directory = setting.path();
    let second = format!("test -e second && echo again >&2 && exit 2; touch second; {}", hangs(&directory));
    let daemon = setting
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/slow.yaml", &hook("slow", "before_tool_dispatch", &second))
        .serve();
    let mut event = call("shop", "r");
    event["event_id"] = json!("e1");
    let mut relay = hookyard(&daemon, &["relay", "--dialect", "canonical"]).spawn().unwrap();
    relay.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    let pid = hanging(&directory);
    relay.kill().unwrap();
    relay.wait().unwrap();
    gone(&pid);
    assert_eq!(daemon.post("/v1/events", &event)["reason"], "again");
}
