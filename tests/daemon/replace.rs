//! `serve --replace`: another daemon takes over, and no client notices.
#![allow(
    clippy::disallowed_methods,
    reason = "programs are started, and waits measured, as their users see them"
)]

use std::{
    fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::Instant,
};

use rustix::process::Signal;
use serde_json::{Value, json};

use crate::{
    http_server::raw_connection::{RawConnection, get, post},
    support::{
        daemon::{Daemon, DaemonSetup, read},
        wait::wait_until,
    },
};

pub(super) fn hook(tool: &str, command: &str) -> String {
    format!(
        "name: {tool}\nevents: [before_tool_dispatch]\nmatcher: {tool}\nhandler:\n  type: command\n  command: {}\n",
        json!(command)
    )
}

pub(super) const HALTS: &str = r#"echo '{"continue":false,"stopReason":"budget spent"}'"#;

/// A daemon with a guard, a hook that halts, and one that halts when it is told.
pub(super) fn setting() -> DaemonSetup {
    let late = format!("touch begun; until [ -e go ]; do sleep 0.02; done; {HALTS}");
    DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", &hook("Bash", "echo 'no shells here' >&2; exit 2"))
        .file("shop/.openharness/hooks/halts.yaml", &hook("Halts", HALTS))
        .file("shop/.openharness/hooks/late.yaml", &hook("Late", &late))
        .settings("workspaces: { shop: { root: $DIR/shop } }")
}

pub(super) fn event(run: &str, tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "tool_name": tool, "tool_input": {} })
}

pub(super) fn bytes(run: &str, tool: &str) -> Vec<u8> {
    post("/v1/events", event(run, tool).to_string().as_bytes())
}

/// A guard that fails closed.
const CLOSED: &str = "name: closed\nevents: [before_tool_dispatch]\nmatcher: Guarded\non_error: deny\nhandler:\n  \
                      type: command\n  command: 'true'\n";

/// Waits until the daemon at the socket is the one with this process id.
pub(super) fn serves(daemon: &Daemon, pid: u32) {
    wait_until("the other daemon serves", || {
        let status = daemon.client().send("GET", "/v1/status", None);
        status.is_ok_and(|answer| read(&answer)["pid"] == pid)
    });
}

/// The daemon that takes over from another one, once it serves, and the other one knows that it does: until then, the other
/// one would go on if its successor ended.
pub(super) fn successor_of(daemon: &Daemon) -> Daemon {
    let successor = daemon.replace();
    serves(&successor, successor.pid());
    wait_until("the replaced daemon knows it", || daemon.log().contains("another daemon has taken over"));
    successor
}

/// An event of the run `late`, whose hook is at work until there is the file `shop/go`.
pub(super) fn late_event(daemon: &Daemon) -> RawConnection {
    let mut late = RawConnection::unix(daemon);
    late.send(bytes("late", "Late"));
    wait_until("the hook runs", || daemon.path().join("shop/begun").exists());
    late
}

/// The files in the directory of the sockets.
pub(super) fn files(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Ends the other clients when one fails.
struct EndOnPanic<'a>(&'a AtomicBool);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}

#[test]
fn clients_of_a_daemon_that_is_replaced_three_times_notice_nothing() {
    let mut daemon = setting().argument("--tcp").argument("127.0.0.1:0").serve();
    let tcp = daemon.tcp();
    let done = AtomicBool::new(false);
    let (answered, worst, begun) = (AtomicUsize::new(0), AtomicUsize::new(0), Instant::now());
    let socket = daemon.socket().to_owned();
    let ask = |connection: &mut RawConnection, client: usize| {
        let since = Instant::now();
        // A hook runs for the events of some; those of the others come as fast as they are answered.
        let (tool, verdict) = if client < 3 { ("Bash", "block") } else { ("Read", "proceed") };
        let reply = connection.send(bytes(&format!("r{client}"), tool)).reply();
        assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
        assert_eq!(reply.json()["verdict"], verdict);
        answered.fetch_add(1, Ordering::Relaxed);
        let waited = usize::try_from(since.elapsed().as_millis()).unwrap();
        worst.fetch_max(waited, Ordering::Relaxed);
        reply.header("connection") == Some("close")
    };
    thread::scope(|scope| {
        for client in 0..6 {
            let (ask, done, socket, tcp) = (&ask, &done, &socket, &tcp);
            scope.spawn(move || {
                let _end = EndOnPanic(done);
                let connect =
                    || if client == 0 { RawConnection::tcp(tcp) } else { RawConnection::unix_at(socket) };
                let mut connection = connect();
                while !done.load(Ordering::Relaxed) {
                    // Half of them keep their connection as long as the daemon does.
                    if ask(&mut connection, client) || client % 2 == 1 {
                        connection = connect();
                    }
                }
            });
        }
        // An agent whose hook is the program itself.
        scope.spawn(|| {
            let _end = EndOnPanic(&done);
            while !done.load(Ordering::Relaxed) {
                assert_eq!(relay(&socket), (0, "no shells here".to_owned()));
                answered.fetch_add(1, Ordering::Relaxed);
            }
        });
        let _end = EndOnPanic(&done);
        for _ in 0..3 {
            let before = answered.load(Ordering::Relaxed);
            wait_until("events are answered", || answered.load(Ordering::Relaxed) > before + 20);
            let successor = successor_of(&daemon);
            assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
            daemon = successor;
        }
        let before = answered.load(Ordering::Relaxed);
        wait_until("events are answered", || answered.load(Ordering::Relaxed) > before + 20);
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(daemon.tcp(), tcp, "the port is the same");
    eprintln!("{answered:?} events in {:?}, worst wait {worst:?} ms", begun.elapsed());
    let directory = daemon.path();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert_eq!(
        files(&directory),
        ["home", "hookyard.yaml", "log", "shop"],
        "nothing is left beside the sockets"
    );
}

/// Passes an event of an agent to the daemon, without `--wait`. Returns the exit code and the reason of the block.
fn relay(socket: &Path) -> (i32, String) {
    let event = json!({ "hook_event_name": "PreToolUse", "session_id": "relayed", "tool_name": "Bash", "tool_input": {},
                        "cwd": socket.with_file_name("shop") });
    let mut program = Command::new(env!("CARGO_BIN_EXE_hookyard"));
    program
        .args(["relay", "--dialect", "claude", "--if-down", "block", "--wait", "0", "--socket"])
        .arg(socket);
    let mut child = program.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(event.to_string().as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
    let reason = answer["hookSpecificOutput"]["permissionDecisionReason"].as_str().unwrap_or_default();
    (output.status.code().unwrap(), reason.to_owned())
}

#[test]
fn an_agent_on_an_open_connection_gets_the_verdict_of_the_daemon_that_has_taken_over() {
    let mut daemon = setting().serve();
    let mut open: Vec<_> = (0..3).map(|_| RawConnection::unix(&daemon)).collect();
    let first_id = open[0].send(bytes("r", "Read")).reply().json()["decision_id"].clone();
    for connection in &mut open[1..] {
        assert_eq!(connection.send(get("/healthz")).reply().status, 200);
    }
    let successor = successor_of(&daemon);
    let status = open[0].send(get("/v1/status")).reply();
    assert_eq!(status.json()["pid"], successor.pid());
    assert_eq!(
        (status.header("connection"), status.header("x-hookyard-node").is_some()),
        (Some("close"), true)
    );
    let native = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {},
                         "cwd": daemon.path().join("shop") });
    let reply = open[1].send(post("/v1/events/claude", native.to_string().as_bytes())).reply();
    assert_eq!(reply.json()["hookSpecificOutput"]["permissionDecision"], "deny", "{}", reply.json());
    assert!(successor.post("/v1/events", &event("r", "Read"))["decision_id"] != first_id);
    // What needs control is sent again to the daemon itself.
    let refused = open[2].send("POST /v1/reload HTTP/1.1\r\nhost: x\r\ncontent-length: 0\r\n\r\n").reply();
    assert!([403, 503].contains(&refused.status), "{}", refused.status);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    let metrics = String::from_utf8(successor.send("GET", "/metrics", None).body).unwrap();
    assert!(metrics.contains("hookyard_"), "{metrics}");
    successor.finish();
}

#[test]
fn a_verdict_is_given_when_the_daemon_that_has_taken_over_is_gone() {
    let mut daemon = setting().file("shop/.openharness/hooks/closed.yaml", CLOSED).serve();
    let [mut open, mut canonical, mut status] = [(); 3].map(|()| RawConnection::unix(&daemon));
    for connection in [&mut open, &mut canonical, &mut status] {
        assert_eq!(connection.send(get("/healthz")).reply().status, 200);
    }
    let mut successor = successor_of(&daemon);
    // The replaced daemon knows that its successor has begun: without it, it would go on itself.
    assert_eq!(status.send(get("/v1/status")).reply().json()["pid"], successor.pid());
    successor.signal(Signal::KILL);
    successor.wait();
    let native = json!({ "hook_event_name": "PreToolUse", "session_id": "s", "tool_name": "Guarded", "tool_input": {},
                         "cwd": daemon.path().join("shop") });
    let reply = open.send(post("/v1/events/claude", native.to_string().as_bytes())).reply();
    assert_eq!(reply.json()["hookSpecificOutput"]["permissionDecision"], "deny", "{}", reply.json());
    assert_eq!(reply.header("x-hookyard-retry"), Some("safe"));
    let reply = canonical.send(bytes("r", "Guarded")).reply();
    assert_eq!((reply.status, &reply.json()["error"]["retry"]), (503, &json!("safe")));
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    successor.again().serve().finish();
}

#[test]
fn the_replaced_daemon_ends_within_its_deadline() {
    let mut daemon = setting().settings("shutdown_deadline: 1s").serve();
    let mut late = late_event(&daemon);
    let successor = successor_of(&daemon);
    // Its hook is never told to go on.
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    let reply = late.reply();
    assert_eq!((reply.status, &reply.json()["error"]["retry"]), (503, &json!("may_repeat")));
    assert_eq!(successor.post("/v1/events", &event("r", "Bash"))["verdict"], "block");
    successor.finish();
}

#[test]
fn a_hook_of_the_replaced_daemon_controls_no_daemon() {
    let program = env!("CARGO_BIN_EXE_hookyard");
    let ask = |name: &str, arguments: &str| {
        format!("env -i {program} {arguments} > ../{name}.txt 2>&1; echo $? > ../{name}.code; ")
    };
    // It leaves its group and its environment behind, and has only its parents.
    let script = format!(
        "until [ -e go ]; do sleep 0.02; done; {}{}touch ../asked",
        ask("reload", "reload --socket ../hookyard.sock"),
        ask("replace", "serve --socket ../hookyard.sock --config ../hookyard.yaml --replace"),
    );
    let hides = hook("Hides", "touch begun; setsid --wait env -i sh ../script.sh");
    let daemon =
        setting().file("shop/.openharness/hooks/hides.yaml", &hides).file("script.sh", &script).serve();
    let mut late = RawConnection::unix(&daemon);
    late.send(bytes("r", "Hides"));
    wait_until("the hook runs", || daemon.path().join("shop/begun").exists());
    let successor = successor_of(&daemon);
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    wait_until("it has asked", || daemon.path().join("asked").exists());
    for name in ["reload", "replace"] {
        let read = |ending: &str| fs::read_to_string(daemon.path().join(format!("{name}.{ending}"))).unwrap();
        assert!(read("txt").contains("hook"), "{name}: {}", read("txt"));
        assert_ne!(read("code").trim(), "0", "{name}");
    }
    assert_eq!(late.reply().status, 200);
    assert_eq!(successor.get("/v1/status")["pid"], successor.pid());
    let mut daemon = daemon;
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    successor.finish();
}

#[test]
fn workspaces_that_clients_have_registered_stay() {
    let mut daemon = setting().file("more/.openharness/hooks/no.yaml", &hook("Bash", "exit 2")).serve();
    let root = json!({ "root": daemon.path().join("more") });
    assert_eq!(daemon.send("PUT", "/v1/workspaces/more", Some(&root)).status, 201);
    assert_eq!(
        daemon.send("PUT", "/v1/workspaces/gone", Some(&json!({ "root": daemon.path() }))).status,
        201
    );
    assert_eq!(daemon.send("DELETE", "/v1/workspaces/gone", None).status, 204);
    for _ in 0..2 {
        let successor = successor_of(&daemon);
        let mut there = event("r", "Bash");
        there["workspace_id"] = "more".into();
        assert_eq!(successor.post("/v1/events", &there)["verdict"], "block");
        assert_eq!(successor.get("/v1/status")["workspaces"], 2);
        assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
        daemon = successor;
    }
    // One that cannot be loaded any more is there and broken, and given to no other workspace.
    fs::rename(daemon.path().join("more"), daemon.path().join("away")).unwrap();
    let successor = successor_of(&daemon);
    let mut there = event("r", "Bash");
    there["workspace_id"] = "more".into();
    let refused = successor.send("POST", "/v1/events", Some(&there));
    let answer: Value = serde_json::from_slice(&refused.body).unwrap();
    assert_eq!((refused.status, &answer["error"]["code"]), (503, &json!("workspace_not_loaded")));
    fs::rename(daemon.path().join("away"), daemon.path().join("more")).unwrap();
    wait_until("it is loaded", || successor.send("POST", "/v1/events", Some(&there)).status == 200);
    assert_eq!(successor.post("/v1/events", &there)["verdict"], "block");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    successor.finish();
}
