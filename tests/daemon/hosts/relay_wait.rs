//! `relay --wait`: an agent does not notice that its daemon restarts, and no event runs twice.

use std::{
    os::unix::{fs::PermissionsExt, net::UnixListener},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use rustix::process::Signal;
use tokio::time::Instant;

use super::*;

const GUARD: &str = "echo 'not here' >&2; exit 2";

fn setting() -> DaemonSetup {
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .file("shop/.openharness/hooks/no.yaml", &hook("no", "before_tool_dispatch", GUARD))
}

/// A daemon that has ended.
fn ended(setting: DaemonSetup) -> Daemon {
    let mut daemon = setting.serve();
    daemon.signal(Signal::TERM);
    daemon.wait();
    daemon
}

/// A tool call of Claude Code, with or without an id.
fn tool_call(id: Option<&str>) -> String {
    let mut event = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "transcript_path": "/x",
                            "tool_name": "Bash", "tool_input": { "command": "ls" } });
    if let Some(id) = id {
        event["tool_use_id"] = id.into();
    }
    event.to_string()
}

const RELAY: [&str; 5] = ["relay", "--dialect", "claude", "--if-down", "block"];

#[test]
fn a_guard_waits_for_a_daemon_that_restarts() {
    let daemon = ended(setting());
    let relay = hookyard(&daemon, &[&RELAY[..], &["--wait", "50s"]].concat());
    let relayed = thread::spawn(move || said(relay, &tool_call(None)));
    let daemon = daemon.again().serve();
    let relayed = relayed.join().unwrap();
    assert!(relayed.out.contains("not here"), "{relayed:?}");
    daemon.finish();
}

#[test]
fn a_guard_blocks_if_its_daemon_does_not_answer_in_time() {
    let daemon = setting().serve();
    daemon.signal(Signal::STOP);
    let in_time = ["--timeout", "100ms", "--wait", "0"];
    let relayed = said(hookyard(&daemon, &[&RELAY[..], &in_time].concat()), &tool_call(None));
    daemon.signal(Signal::CONT);
    assert!(relayed.out.contains("no hook could be asked"), "{relayed:?}");
    daemon.finish();
}

#[test]
fn a_guard_waits_while_its_daemon_drains() {
    let waits = "touch begun; until [ -e go ]; do sleep 0.02; done";
    let mut daemon = setting()
        .file("shop/.openharness/hooks/waits.yaml", &hook("waits", "after_tool_dispatch", waits))
        .settings("shutdown_deadline: 50s")
        .serve();
    let shop = daemon.path().join("shop");
    let mut after: Value = serde_json::from_str(&tool_call(None)).unwrap();
    after["hook_event_name"] = "PostToolUse".into();
    after["tool_response"] = "done".into();
    let slow = hookyard(&daemon, &RELAY);
    let slow = thread::spawn(move || said(slow, &after.to_string()));
    wait_until("the hook runs", || shop.join("begun").exists());
    daemon.signal(Signal::TERM);
    wait_until("it drains", || daemon.send("GET", "/readyz", None).status == 503);
    let relay = hookyard(&daemon, &[&RELAY[..], &["--wait", "50s"]].concat());
    let relayed = thread::spawn(move || said(relay, &tool_call(None)));
    // Turned away at least once.
    wait_until("it is asked", || daemon.log().contains("shutting_down"));
    std::fs::write(shop.join("go"), "").unwrap();
    assert_eq!(slow.join().unwrap().code, Some(0));
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    let daemon = daemon.again().serve();
    let relayed = relayed.join().unwrap();
    assert!(relayed.out.contains("not here"), "{relayed:?}");
    daemon.finish();
}

#[test]
fn the_wait_ends() {
    let daemon = ended(setting());
    for (wait, longest) in [("0", Duration::from_secs(20)), ("300ms", Duration::from_secs(20))] {
        let since = Instant::now();
        let said = said(hookyard(&daemon, &[&RELAY[..], &["--wait", wait]].concat()), &tool_call(None));
        assert!(said.out.contains("no hookyard listens on") && said.out.contains("deny"), "{said:?}");
        assert!(since.elapsed() < longest, "{wait}: {:?}", since.elapsed());
    }
    // Agents that are let go on wait for nothing.
    let since = Instant::now();
    let said = said(hookyard(&daemon, &["relay", "--dialect", "claude"]), &tool_call(None));
    assert_eq!((said.out.as_str(), said.code), ("", Some(0)));
    assert!(since.elapsed() < Duration::from_secs(4), "{:?}", since.elapsed());
}

/// A server in the place of a daemon, which reads requests, sends this and ends their connections. Returns the number of
/// its connections, as it grows. Its thread ends with the test's process.
fn broken_server(daemon: &Daemon, sends: String) -> Arc<AtomicUsize> {
    let listener = UnixListener::bind(daemon.socket()).unwrap();
    std::fs::set_permissions(daemon.socket(), PermissionsExt::from_mode(0o600)).unwrap();
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            drop(stream.read(&mut [0; 4096]));
            counted.fetch_add(1, Ordering::SeqCst);
            drop(stream.write_all(sends.as_bytes()));
        }
    });
    count
}

#[test]
fn an_event_that_may_have_run_is_sent_again_only_with_an_id() {
    let refused = |code: &str, status: u16| {
        let body =
            json!({ "error": { "code": code, "retry": "safe", "message": "no", "hint": "no" } }).to_string();
        format!("HTTP/1.1 {status} No\r\ncontent-length: {}\r\n\r\n{body}", body.len())
    };
    for (sends, id, is_repeated) in [
        (String::new(), Some("call-1"), true),
        (String::new(), None, false),
        (refused("starting", 503), None, true),
        (refused("shutting_down", 503), None, true),
        (refused("not_started", 503), None, true),
        (refused("interrupted", 503), None, false),
        (refused("overloaded", 503), Some("call-1"), false),
        (refused("bad_event", 400), Some("call-1"), false),
    ] {
        for program in PROGRAMS {
            let daemon = ended(setting());
            let requests = broken_server(&daemon, sends.clone());
            let arguments = [&RELAY[..], &["--wait", "300ms"]].concat();
            let said = said(started(Path::new(program), &daemon, &arguments), &tool_call(id));
            assert!(said.out.contains("deny"), "{program}: {sends}: {said:?}");
            let requests = requests.load(Ordering::SeqCst);
            assert_eq!(requests > 1, is_repeated, "{program}: {sends} {id:?}: {requests} requests");
        }
    }
}
