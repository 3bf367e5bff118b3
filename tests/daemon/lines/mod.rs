//! The socket of lines: events and answers as lines of JSON, many at the same time on one connection.

mod bad_lines;
mod dialects;
mod equal_to_http;
mod flow;
mod lifecycle;

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Write},
    net::Shutdown,
    os::unix::net::UnixStream,
    path::Path,
};

use serde_json::{Value, json};

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    wait::{LONGEST_WAIT, wait_until},
};

/// One connection of a host.
pub(super) struct LineHost {
    stream: UnixStream,
    reader: BufReader<UnixStream>,
}

impl LineHost {
    pub(super) fn of(daemon: &Daemon) -> Self {
        Self::at(&daemon.path().join("lines.sock"))
    }

    pub(super) fn at(path: &Path) -> Self {
        let stream = UnixStream::connect(path).expect("a daemon");
        stream.set_read_timeout(Some(LONGEST_WAIT)).expect("a timeout");
        stream.set_write_timeout(Some(LONGEST_WAIT)).expect("a timeout");
        let reader = BufReader::new(stream.try_clone().expect("a descriptor"));
        Self { stream, reader }
    }

    /// Sends bytes as they are.
    pub(super) fn raw(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        self.stream.write_all(bytes.as_ref()).expect("a daemon that reads");
        self
    }

    /// Sends a line.
    pub(super) fn send(&mut self, line: &Value) -> &mut Self {
        self.raw(format!("{line}\n"))
    }

    /// Sends no more.
    pub(super) fn end(&mut self) -> &mut Self {
        self.stream.shutdown(Shutdown::Write).expect("a connection");
        self
    }

    /// The next line; nothing at the end.
    pub(super) fn next(&mut self) -> Option<Value> {
        let mut line = String::new();
        match self.reader.read_line(&mut line) {
            Ok(0) => None,
            Ok(_) => Some(serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))),
            // Lines that were not read make an end a hard one.
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => None,
            Err(error) => panic!("{error}"),
        }
    }

    pub(super) fn line(&mut self) -> Value {
        self.next().expect("a line")
    }

    pub(super) fn ask(&mut self, line: &Value) -> Value {
        self.send(line).line()
    }

    /// So many answers, by their ids.
    pub(super) fn lines(&mut self, number: usize) -> BTreeMap<String, Value> {
        let mut answers = BTreeMap::new();
        for _ in 0..number {
            let answer = self.line();
            let id = answer["id"].to_string();
            assert!(answers.insert(id, answer).is_none(), "two answers have one id");
        }
        answers
    }

    /// What comes until the end.
    pub(super) fn rest(&mut self) -> Vec<Value> {
        std::iter::from_fn(|| self.next()).collect()
    }
}

/// A daemon with a guard against Bash, a hook that waits for the file `go`, and a socket of lines.
pub(super) fn setting() -> DaemonSetup {
    let hook = |name: &str, command: &str| {
        let command = json!(command);
        format!(
            "name: {name}\nevents: [before_tool_dispatch]\nmatcher: ^{name}$\nhandler:\n  type: command\n  command: {command}\n"
        )
    };
    DaemonSetup::new()
        .file("shop/.openharness/hooks/guard.yaml", &hook("Bash", "echo 'no shells here' >&2; exit 2"))
        .file(
            "shop/.openharness/hooks/waits.yaml",
            &hook("Waits", "touch begun; until [ -e go ]; do sleep 0.02; done"),
        )
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings("listen: { lines: $DIR/lines.sock }")
}

pub(super) fn event(run: &str, tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "tool_name": tool, "tool_input": {} })
}

#[test]
fn many_events_on_one_connection_are_answered_in_any_order() {
    let daemon = setting().serve();
    let mut host = LineHost::of(&daemon);
    host.send(&json!({ "id": "slow", "event": event("slow", "Waits") }));
    for number in 0..300 {
        let tool = if number % 100 == 0 { "Bash" } else { "Read" };
        host.send(&json!({ "id": number, "event": event(&format!("r{number}"), tool) }));
    }
    let answers = host.lines(300);
    for number in 0..300 {
        let verdict = if number % 100 == 0 { "block" } else { "proceed" };
        assert_eq!(answers[&number.to_string()]["outcome"]["verdict"], verdict, "{number}");
    }
    assert_eq!(daemon.get("/v1/status")["events_in_flight"], 1, "the slow one holds up nothing");
    std::fs::write(daemon.path().join("shop/go"), "").unwrap();
    let slow = host.line();
    assert_eq!((&slow["id"], &slow["outcome"]["verdict"]), (&json!("slow"), &json!("proceed")));
    assert_eq!(host.end().next(), None);
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    assert!(
        metrics.contains("hookyard_api_requests_total{route=\"lines\",status_class=\"2xx\"} 301"),
        "{metrics}"
    );
    daemon.finish();
}

#[test]
fn the_event_of_a_line_is_taken_as_the_body_of_a_request_is() {
    let daemon = setting()
        .settings("audit: { to: $DIR/audit.jsonl }")
        .file(
            "shop/.openharness/hooks/note.yaml",
            "name: note\nevents: [notification]\nhandler: { type: command, command: 'sleep 1000' }\n",
        )
        .serve();
    let mut host = LineHost::of(&daemon);
    // A workspace by its id, a delivery that is recognised, and an event that nobody waits for.
    let mut guarded = event("r", "Bash");
    guarded["workspace_id"] = json!("shop");
    guarded["event_id"] = json!("e1");
    let first = host.ask(&json!({ "id": 1, "event": guarded }));
    let again = host.ask(&json!({ "id": 2, "event": guarded }));
    assert_eq!(first["outcome"]["verdict"], "block");
    assert_eq!(first["outcome"], again["outcome"], "hooks ran once");
    guarded["workspace_id"] = json!("nowhere");
    let unknown = host.ask(&json!({ "id": 3, "event": guarded }));
    assert_eq!(
        (&unknown["error"]["code"], &unknown["error"]["status"]),
        (&json!("unknown_workspace"), &json!(404))
    );
    let detached = json!({ "event": "notification", "session_id": "s", "run_id": "r", "wait": false, "notification_type": "idle", "message": "m" });
    assert_eq!(host.ask(&json!({ "id": 4, "event": detached }))["outcome"]["verdict"], "proceed");
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let traced = json!({ "id": 5, "headers": { "traceparent": trace }, "event": event("r2", "Bash") });
    assert_eq!(host.ask(&traced)["outcome"]["verdict"], "block");
    // A hook of hookyard that asks hookyard would loop.
    let own = json!({ "id": 6, "headers": { "x-hookyard-event": "x" }, "event": event("r3", "Bash") });
    let own = host.ask(&own);
    assert_eq!((&own["error"]["code"], &own["error"]["retry"]), (&json!("own_hook"), &json!("never")));
    let audit = daemon.path().join("audit.jsonl");
    let lines = || std::fs::read_to_string(&audit).unwrap_or_default();
    wait_until("both blocks are recorded", || lines().matches("no shells here").count() == 2);
    for line in lines().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["client"]["listener"], "lines_socket", "{line}");
    }
    daemon.finish();
}
