//! How the daemon ends: in peace, in time, at once, and by force; and that nothing of it is left in any case.

#![allow(clippy::disallowed_methods, reason = "strangers are processes that hookyard did not start")]

use std::{
    fs,
    io::Write,
    os::unix::{net::UnixDatagram, process::CommandExt},
    process::{Child, Command},
    thread,
    time::{Duration, Instant},
};

use crate::support::served::{self, PATIENCE, Served, Setting, read, until};
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
fn setting() -> Setting {
    let worker = format!("python3 {}/tests/support/worker.py good", env!("CARGO_MANIFEST_DIR"));
    Setting::new()
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
fn send(served: &Served, tool: &str) -> thread::JoinHandle<Option<ClientResponse>> {
    let (client, event) = (served.client(), event(tool).to_string());
    let waiting = thread::spawn(move || client.send("POST", "/v1/events", Some(event.as_bytes())).ok());
    until("the hook runs", || under_way(served).iter().any(|run| run == tool));
    waiting
}

/// The runs that have an event in hand.
fn under_way(served: &Served) -> Vec<String> {
    let runs = served.get("/v1/runs")["runs"].take();
    let busy = |run: &&Value| run["under_way"].as_array().is_some_and(|events| !events.is_empty());
    let name = |run: &Value| run["run_id"].as_str().expect("an id").to_owned();
    runs.as_array().expect("runs").iter().filter(busy).map(name).collect()
}

/// Has a worker and spares standing by.
fn stand_by(served: &Served) {
    served.post("/v1/events", &event("Worker"));
    served.post("/v1/events", &event("Spare"));
    until("a worker and spares stand by", || served.processes().len() >= 4);
}

fn drain(served: &Served) {
    served.signal(Signal::TERM);
    until("it drains", || served.send("GET", "/readyz", None).status == 503);
}

fn nothing_is_left(served: &Served) {
    until("nothing is left", || served.processes().is_empty());
}

#[test]
fn what_is_under_way_is_finished_and_nothing_new_begins() {
    let mut served = setting().serve();
    stand_by(&served);
    let waiting = send(&served, "Waits");
    drain(&served);
    assert_eq!(served.get("/v1/status")["phase"], "draining");
    assert_eq!(served.send("GET", "/healthz", None).status, 200);
    for path in ["/v1/events", "/v1/events/canonical"] {
        let refused = served.send("POST", path, Some(&event("Waits")));
        let body: Value = serde_json::from_slice(&refused.body).unwrap();
        assert_eq!((refused.status, &body["error"]["code"]), (503, &json!("shutting_down")), "{path}");
    }
    fs::write(served.path().join("shop/go"), "").unwrap();
    let outcome = read(&waiting.join().unwrap().expect("an answer"));
    assert_eq!(outcome["verdict"], "proceed", "{outcome}");
    assert_eq!(served.wait().code(), Some(0), "{}", served.log());
    assert!(!served.socket().exists());
    nothing_is_left(&served);
}

#[test]
fn what_takes_too_long_is_cancelled() {
    let mut served = setting().settings("shutdown_deadline: 300ms").serve();
    stand_by(&served);
    let waiting = send(&served, "Slow");
    let begun = Instant::now();
    served.signal(Signal::TERM);
    assert_eq!(served.wait().code(), Some(0), "{}", served.log());
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    assert!(served.log().contains("were cancelled"), "{}", served.log());
    assert!(waiting.join().unwrap().is_some(), "who waited is told");
    nothing_is_left(&served);
}

#[test]
fn a_second_signal_ends_it_at_once() {
    let mut served = setting().settings("shutdown_deadline: 60s").serve();
    stand_by(&served);
    let waiting = send(&served, "Slow");
    assert!(served.processes().len() >= 6, "a daemon, a worker, spares, a shell and its children");
    drain(&served);
    let begun = Instant::now();
    served.signal(Signal::TERM);
    let status = served.wait();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_ne!(status.code(), Some(0));
    nothing_is_left(&served);
    assert!(!served.socket().exists());
    drop(waiting.join());
}

#[test]
fn who_is_connected_does_not_keep_it() {
    use std::os::unix::net::UnixStream;
    let mut served = setting().serve();
    let connect = |text: &str| {
        let mut stream = UnixStream::connect(served.socket()).unwrap();
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
    until("the stream is read", || served.get("/v1/status")["streams"] == 1);
    let begun = Instant::now();
    served.signal(Signal::TERM);
    assert_eq!(served.wait().code(), Some(0), "{}", served.log());
    assert!(begun.elapsed() < Duration::from_secs(6), "{:?}", begun.elapsed());
    nothing_is_left(&served);
}

#[test]
fn a_signal_while_it_starts_ends_it() {
    for pause in [0, 5, 20, 60] {
        let mut served = setting().spawn();
        thread::sleep(Duration::from_millis(pause));
        served.signal(Signal::TERM);
        served.wait();
        nothing_is_left(&served);
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
fn what_a_killed_one_left_ends_with_it_or_at_the_next_start() {
    let mut served = setting().serve();
    stand_by(&served);
    let waiting = send(&served, "Slow");
    served.signal(Signal::KILL);
    served.wait();
    drop(waiting.join());
    // The worker and the spares end with their standard input; the shell and its two children go on.
    let begun = Instant::now();
    until("those who stand by end", || served.processes().len() <= 3);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    assert_eq!(served.processes().len(), 3);

    // A stranger got a number that was a hook's, and in another group only strangers are left.
    let before = boot_clock();
    let stranger = Stranger::start("sleep 1000; true");
    let mut orphans = Stranger::start("sleep 1000 & exit");
    orphans.0.wait().unwrap();
    until("the strangers are there", || members(stranger.0.id()) == 2 && members(orphans.0.id()) == 1);
    let mut record =
        fs::File::options().append(true).open(served.path().join("hookyard.sock.groups")).expect("a record");
    let lines = line(stranger.0.id(), 1, 2) + &line(orphans.0.id(), before, boot_clock());
    record.write_all(lines.as_bytes()).unwrap();

    let served = served.again().serve();
    assert_eq!(served.processes(), [served.pid()], "{}", served.log());
    assert!(served.log().contains("left behind"), "{}", served.log());
    assert_eq!((members(stranger.0.id()), members(orphans.0.id())), (2, 1));
    served.finish();
}

#[test]
fn a_hangup_has_files_read_again() {
    let served = setting().settings("watch: false").serve();
    assert_eq!(served.get("/v1/status")["hooks"], 4);
    served::write(&served.path().join("shop/.openharness/hooks/more.yaml"), &hook("More", "true", ""));
    served.signal(Signal::HUP);
    until("there is one more", || served.get("/v1/status")["hooks"] == 5);
    // A broken file takes nothing away, and does not end it.
    served::write(&served.path().join("shop/.openharness/hooks/more.yaml"), "name: [");
    served.signal(Signal::HUP);
    until("its mistake is told", || served.get("/v1/status")["broken"] != json!([]));
    assert_eq!(served.get("/v1/status")["hooks"], 5);
    served.finish();
}

#[test]
fn who_started_it_is_told_how_far_it_is() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("notify");
    let told = UnixDatagram::bind(&path).unwrap();
    told.set_read_timeout(Some(PATIENCE)).unwrap();
    let next = || {
        let mut text = [0; 256];
        let length = told.recv(&mut text).expect("a word");
        String::from_utf8_lossy(&text[..length]).into_owned()
    };
    let served = setting().variable("NOTIFY_SOCKET", path.to_str().unwrap()).spawn();
    assert_eq!(next(), "READY=1");
    assert_eq!(served.send("GET", "/readyz", None).status, 200);
    served.finish();
    assert_eq!(next(), "STOPPING=1");
    // With nobody there it serves all the same.
    drop(told);
    setting().variable("NOTIFY_SOCKET", path.to_str().unwrap()).serve().finish();
    setting().variable("NOTIFY_SOCKET", "@").serve().finish();
}
