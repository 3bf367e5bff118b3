//! The event stream: filters, slow readers and its end.

use std::{
    io::{BufRead, BufReader, Write},
    os::unix::net::UnixStream,
};

use super::*;

/// A reader of the stream that has been heard.
struct Reader(BufReader<UnixStream>);

impl Reader {
    fn of(daemon: &Daemon, query: &str) -> Self {
        let mut stream = UnixStream::connect(daemon.socket()).unwrap();
        stream.set_read_timeout(Some(LONGEST_WAIT)).unwrap();
        write!(stream, "GET /v1/stream{query} HTTP/1.1\r\nhost: h\r\n\r\n").unwrap();
        let mut reader = Self(BufReader::new(stream));
        while reader.line() != ": hookyard" {}
        reader
    }

    /// The next line; lengths of chunks are lines as well.
    fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.0.read_line(&mut line).unwrap(), 0, "the stream ended");
        line.trim_end().to_owned()
    }

    /// The next event, with its name.
    fn next(&mut self) -> (String, Value) {
        loop {
            if let Some(name) = self.line().strip_prefix("event: ").map(str::to_owned) {
                let data = self.line();
                return (name, serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap());
            }
        }
    }
}

fn run(told: &Value) -> (&str, &str) {
    (told["workspace_id"].as_str().unwrap(), told["run_id"].as_str().unwrap())
}

#[test]
fn each_filter_selects_what_it_names() {
    let guard = hook("guard", "before_tool_dispatch", "grep -q deploy && echo no >&2 && exit 2; exit 0");
    let daemon = DaemonSetup::new()
        .settings("workspaces: { a: { root: $DIR/a }, b: { root: $DIR/b } }")
        .file("a/.openharness/hooks/guard.yaml", &guard)
        .file("a/.openharness/hooks/audit.yaml", &hook("audit", "run_completed", "true"))
        .file("b/.openharness/hooks/guard.yaml", &guard)
        .serve();
    let mut everything = Reader::of(&daemon, "");
    let mut only_b = Reader::of(&daemon, "?workspace_id=b");
    let mut only_ends = Reader::of(&daemon, "?event=run_completed");
    let mut only_blocks = Reader::of(&daemon, "?verdict=block&workspace_id=a");
    assert_eq!(daemon.get("/v1/status")["streams"], 4);

    let mut deploy = call("a", "deploy");
    deploy["tool_input"]["command"] = json!("deploy");
    for event in [call("a", "ls"), deploy, call("b", "b")] {
        daemon.post("/v1/events", &event);
    }
    let end = json!({ "event": "run_completed", "session_id": "s", "run_id": "ls", "workspace_id": "a",
                      "trigger_type": "user", "run_status": "completed" });
    daemon.post("/v1/events", &end);

    let (name, told) = everything.next();
    assert_eq!((name.as_str(), run(&told)), ("invocation", ("a", "ls")));
    assert_eq!((&told["hook"]["hook"], &told["event"]), (&json!("guard"), &json!("before_tool_dispatch")));
    let (name, told) = everything.next();
    assert_eq!((name.as_str(), &told["outcome"]["verdict"]), ("outcome", &json!("proceed")));
    assert_eq!(run(&only_b.next().1), ("b", "b"));
    let (name, told) = only_ends.next();
    assert_eq!((name.as_str(), &told["hook"]["hook"]), ("invocation", &json!("audit")));
    for expected in ["invocation", "outcome"] {
        let (name, told) = only_blocks.next();
        assert_eq!((name.as_str(), run(&told)), (expected, ("a", "deploy")));
    }

    for query in ["?event=sunrise", "?verdict=perhaps", "?colour=red", "?workspace_id="] {
        assert_eq!(daemon.send("GET", &format!("/v1/stream{query}"), None).status, 400, "{query}");
    }
    drop((everything, only_b, only_ends, only_blocks));
}

/// How many hooks an event of the busy daemon has.
const HOOKS: u32 = 200;

/// A daemon whose every event has much to tell.
fn busy(limits: &str) -> Daemon {
    let mut setting =
        DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }").settings(limits);
    setting = setting.settings("http: { allow: ['127.0.0.1:9'] }");
    // Nobody listens there, so each hook fails at once.
    let handler = json!({ "type": "http", "url": "http://127.0.0.1:9/" });
    for number in 0..HOOKS {
        let name = format!("h{number:03}");
        let file = json!({ "name": name, "events": ["before_tool_dispatch"], "handler": handler });
        setting = setting.file(&format!("shop/.openharness/hooks/{name}.yaml"), &file.to_string());
    }
    setting.serve()
}

#[test]
fn a_slow_reader_learns_how_much_it_missed_and_delays_nobody() {
    let daemon = busy("limits: { body_timeout: 5m }");
    let mut reader = Reader::of(&daemon, "");
    let mut sent = 0;
    // What is on its way to the reader is not lost: the buffers of the connection hold some hundreds.
    for number in 0..40 {
        let outcome = daemon.post("/v1/events", &call("shop", &format!("r{number}")));
        assert_eq!(outcome["hooks"].as_array().unwrap().len(), HOOKS as usize);
        sent += u64::from(HOOKS) + 1;
        assert_eq!(daemon.get("/v1/status")["phase"], "ready");
    }
    let (mut told, mut dropped) = (0, 0);
    while told + dropped < sent {
        let (name, data) = reader.next();
        if name == "dropped" {
            dropped += data["dropped"].as_u64().unwrap();
        } else {
            told += 1;
        }
    }
    assert!(dropped > 0, "all {told} were told");
    assert_eq!(told + dropped, sent, "what is not told is counted");
    daemon.post("/v1/events", &call("shop", "later"));
    assert_eq!(run(&reader.next().1), ("shop", "later"));
}

#[test]
fn a_reader_that_reads_nothing_is_disconnected() {
    let daemon = busy("limits: { body_timeout: 300ms }");
    let reader = Reader::of(&daemon, "");
    let mut number = 0;
    wait_until("the reader is gone", || {
        number += 1;
        daemon.post("/v1/events", &call("shop", &format!("r{number}")));
        daemon.get("/v1/status")["streams"] == 0
    });
    drop(reader);
}

#[test]
fn the_stream_ends_with_the_daemon() {
    let mut daemon =
        DaemonSetup::new().settings("workspaces: { shop: { root: $DIR/shop } }").file("shop/a", "").serve();
    let mut reader = Reader::of(&daemon, "");
    daemon.signal(rustix::process::Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0));
    let mut rest = Vec::new();
    reader.0.read_to_end(&mut rest).unwrap();
}
