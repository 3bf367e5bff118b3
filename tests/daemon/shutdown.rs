//! Shutdown: in peace, at the deadline, at a second signal and by force; nothing is left.

#![allow(clippy::disallowed_methods, reason = "strangers are processes that hookyard did not start")]

use std::{
    fs,
    io::Write,
    os::unix::{net::UnixDatagram, process::CommandExt},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use crate::support::daemon::{self, Daemon, DaemonSetup, read};
use crate::support::python::python;
use crate::support::wait::{LONGEST_WAIT, wait_until};
use hookyard::daemon::ClientResponse;
use rustix::{
    process::{Pid, Signal, kill_process_group},
    time::{ClockId, clock_gettime},
};
use serde_json::{Value, json};

fn hook(tool: &str, command: &str, keys: &str) -> String {
    format!(
        "name: {tool}\nevents: [before_tool_dispatch]\nmatcher: {tool}\nhandler:\n  type: command\n  \
         command: {}\n{keys}",
        json!(command)
    )
}

/// A hook that goes on until it is told, one that never ends, one that is a worker and one with spares.
fn setting() -> DaemonSetup {
    let worker = format!("{} {}/tests/support/worker.py good", python(), env!("CARGO_MANIFEST_DIR"));
    DaemonSetup::new()
        .file(
            "shop/.openharness/hooks/waits.yaml",
            &hook("Waits", "until [ -e go ]; do sleep 0.02; done", ""),
        )
        .file("shop/.openharness/hooks/slow.yaml", &hook("Slow", "sleep 1000 & sleep 1000; true", ""))
        .file("shop/.openharness/hooks/worker.yaml", &hook("Worker", &worker, "  mode: worker\n"))
        .file(
            "shop/.openharness/hooks/spare.yaml",
            &hook("Spare", "cat >&2", "  mode: prespawn\n  spares: 2\n"),
        )
        .settings("workspaces: { shop: { root: $DIR/shop } }")
}

fn event(tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": tool, "tool_name": tool,
            "tool_input": { "command": "fine" } })
}

/// Sends an event, whose answer comes when it comes.
fn send(daemon: &Daemon, tool: &str) -> thread::JoinHandle<Option<ClientResponse>> {
    let (client, event) = (daemon.client(), event(tool).to_string());
    let waiting = thread::spawn(move || client.send("POST", "/v1/events", Some(event.as_bytes())).ok());
    wait_until("the hook runs", || under_way(daemon).iter().any(|run| run == tool));
    waiting
}

/// The runs that have an event in hand.
fn under_way(daemon: &Daemon) -> Vec<String> {
    let runs = daemon.get("/v1/runs")["runs"].take();
    let busy = |run: &&Value| run["under_way"].as_array().is_some_and(|events| !events.is_empty());
    let name = |run: &Value| run["run_id"].as_str().expect("an id").to_owned();
    runs.as_array().expect("runs").iter().filter(busy).map(name).collect()
}

/// Has a worker and spares standing by.
fn stand_by(daemon: &Daemon) {
    daemon.post("/v1/events", &event("Worker"));
    daemon.post("/v1/events", &event("Spare"));
    wait_until("a worker and spares stand by", || daemon.processes().len() >= 4);
}

/// How many of its processes sleep, as the children of the slow hook do.
fn sleeping(daemon: &Daemon) -> usize {
    let is_sleep =
        |pid: &u32| fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name == "sleep\n");
    daemon.processes().iter().filter(|pid| is_sleep(pid)).count()
}

fn drain(daemon: &Daemon) {
    daemon.signal(Signal::TERM);
    wait_until("it drains", || daemon.send("GET", "/readyz", None).status == 503);
}

fn nothing_is_left(daemon: &Daemon) {
    wait_until("nothing is left", || daemon.processes().is_empty());
}

#[test]
fn running_events_finish_and_new_ones_are_refused() {
    let mut daemon = setting().serve();
    stand_by(&daemon);
    let waiting = send(&daemon, "Waits");
    drain(&daemon);
    assert_eq!(daemon.get("/v1/status")["phase"], "draining");
    assert_eq!(daemon.send("GET", "/healthz", None).status, 200);
    for path in ["/v1/events", "/v1/events/canonical"] {
        let refused = daemon.send("POST", path, Some(&event("Waits")));
        let body: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!((refused.status, &body["error"]["code"]), (503, &json!("shutting_down")), "{path}");
    }
    fs::write(daemon.path().join("shop/go"), "").unwrap();
    let outcome = read(&waiting.join().unwrap().expect("an answer"));
    assert_eq!(outcome["verdict"], "proceed", "{outcome}");
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(!daemon.socket().exists());
    nothing_is_left(&daemon);
}

#[test]
fn events_beyond_the_shutdown_deadline_are_cancelled() {
    let mut daemon = setting().settings("shutdown_deadline: 300ms").serve();
    stand_by(&daemon);
    let waiting = send(&daemon, "Slow");
    let since = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(since.elapsed() < LONGEST_WAIT / 2, "{:?}", since.elapsed());
    assert!(daemon.log().contains("were cancelled"), "{}", daemon.log());
    assert!(waiting.join().unwrap().is_some(), "who waited is told");
    nothing_is_left(&daemon);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut daemon = setting().settings("shutdown_deadline: 5m").serve();
    stand_by(&daemon);
    let waiting = send(&daemon, "Slow");
    assert!(daemon.processes().len() >= 6, "a daemon, a worker, spares, a shell and its children");
    drain(&daemon);
    let since = Instant::now();
    daemon.signal(Signal::TERM);
    let status = daemon.wait();
    assert!(since.elapsed() < LONGEST_WAIT / 2, "{:?}", since.elapsed());
    assert_ne!(status.code(), Some(0));
    nothing_is_left(&daemon);
    assert!(!daemon.socket().exists());
    drop(waiting.join());
}

#[test]
fn open_connections_do_not_delay_shutdown() {
    use std::os::unix::net::UnixStream;
    let mut daemon = setting().settings("shutdown_deadline: 5m").serve();
    let connect = |text: &str| {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        stream
    };
    let get = |path: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n");
    let _connected = [
        connect(""),
        connect(&get("/healthz")),
        connect(&get("/v1/stream")),
        connect("GET /healthz HTT"),
        connect("POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\n{"),
        // More than fits, and nobody reads it.
        connect(&get("/v1/openapi.json").repeat(100)),
        connect("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    ];
    wait_until("the stream is read", || daemon.get("/v1/status")["streams"] == 1);
    let since = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    assert!(since.elapsed() < LONGEST_WAIT / 2, "{:?}", since.elapsed());
    nothing_is_left(&daemon);
}

#[test]
fn a_signal_while_it_starts_ends_it() {
    for pause in [0, 5, 20, 60] {
        let mut daemon = setting().spawn();
        thread::sleep(Duration::from_millis(pause));
        daemon.signal(Signal::TERM);
        daemon.wait();
        nothing_is_left(&daemon);
    }
}

/// A process of nobody's concern, as the leader of its group.
struct Stranger(Child);

impl Stranger {
    fn start(script: &str) -> Self {
        Self(Command::new("sh").args(["-c", script]).process_group(0).spawn().expect("a shell"))
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        // Some of the group may live on without their leader.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        drop(self.0.wait());
    }
}

/// A line as the record of groups has them, with the time between which its leader was started.
fn line(group: u32, from: u64, until: u64) -> String {
    format!("{:<63}\n", format!("{group:>10} {from:>20} {until:>20}"))
}

fn boot_clock() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec).unwrap() * 1_000_000_000 + u64::try_from(time.tv_nsec).unwrap()
}

fn members(group: u32) -> usize {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let is_member = |stat: &String| {
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        fields.first() != Some(&"Z") && fields.get(2) == Some(&group.to_string().as_str())
    };
    entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok()).filter(is_member).count()
}

#[test]
fn processes_of_a_killed_daemon_end_with_it_or_at_the_next_start() {
    let mut daemon = setting().serve();
    stand_by(&daemon);
    let waiting = send(&daemon, "Slow");
    wait_until("the shell and its children run", || sleeping(&daemon) == 2);
    daemon.signal(Signal::KILL);
    daemon.wait();
    drop(waiting.join());
    // The worker and the spares end with their standard input; the shell and its two children go on.
    let since = Instant::now();
    wait_until("only the shell and its children are left", || daemon.processes().len() == 3);
    assert!(since.elapsed() < LONGEST_WAIT / 2, "{:?}", since.elapsed());

    // A stranger got a number that was a hook's, and in another group only strangers are left.
    let before = boot_clock();
    let stranger = Stranger::start("sleep 1000; true");
    let mut orphans = Stranger::start("sleep 1000 & exit");
    orphans.0.wait().unwrap();
    wait_until("the strangers are there", || members(stranger.0.id()) == 2 && members(orphans.0.id()) == 1);
    let mut record =
        fs::File::options().append(true).open(daemon.path().join("hookyard.sock.groups")).expect("a record");
    let lines = line(stranger.0.id(), 1, 2) + &line(orphans.0.id(), before, boot_clock());
    record.write_all(lines.as_bytes()).unwrap();

    let daemon = daemon.again().serve();
    assert_eq!(daemon.processes(), [daemon.pid()], "{}", daemon.log());
    assert!(daemon.log().contains("left behind"), "{}", daemon.log());
    assert_eq!((members(stranger.0.id()), members(orphans.0.id())), (2, 1));
    daemon.finish();
}

#[test]
fn sighup_reloads() {
    let daemon = setting().settings("watch: false").serve();
    assert_eq!(daemon.get("/v1/status")["hooks"], 4);
    daemon::write(&daemon.path().join("shop/.openharness/hooks/more.yaml"), &hook("More", "true", ""));
    daemon.signal(Signal::HUP);
    wait_until("there is one more", || daemon.get("/v1/status")["hooks"] == 5);
    // A broken file takes nothing away, and does not end it.
    daemon::write(&daemon.path().join("shop/.openharness/hooks/more.yaml"), "name: [");
    daemon.signal(Signal::HUP);
    wait_until("its mistake is told", || daemon.get("/v1/status")["broken"] != json!([]));
    assert_eq!(daemon.get("/v1/status")["hooks"], 5);
    daemon.finish();
}

#[test]
fn the_service_manager_is_notified() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let notifications = UnixDatagram::bind(&path).unwrap();
    notifications.set_read_timeout(Some(LONGEST_WAIT)).unwrap();
    let next = || {
        let mut text = [0; 256];
        let length = notifications.recv(&mut text).expect("a word");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let daemon = setting().variable("NOTIFY_SOCKET", path.to_str().unwrap()).spawn();
    assert_eq!(next(), "READY=1");
    assert_eq!(daemon.send("GET", "/readyz", None).status, 200);
    daemon.finish();
    assert_eq!(next(), "STOPPING=1");
    // With nobody there it serves all the same.
    drop(notifications);
    setting().variable("NOTIFY_SOCKET", path.to_str().unwrap()).serve().finish();
    setting().variable("NOTIFY_SOCKET", "@").serve().finish();
}
