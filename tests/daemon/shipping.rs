//! Audit lines and the state of the daemon on their way to the server of an organisation, whatever happens on the way.

use std::{
    collections::BTreeSet,
    io::Read,
    net::SocketAddr,
    os::unix::fs::PermissionsExt,
    sync::{Arc, Mutex},
};

use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::{HeaderMap, StatusCode},
    routing::post,
};
use flate2::read::GzDecoder;
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::{net::TcpListener, runtime::Runtime};

use crate::support::{
    daemon::{Daemon, DaemonSetup},
    wait::wait_until,
};

/// The server of an organisation.
struct Collector {
    address: SocketAddr,
    received: Arc<Received>,
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct Received {
    requests: Mutex<Vec<Request>>,
    /// What it answers; it takes only what it answers with 200.
    answer: Mutex<u16>,
    /// The most lines that it takes at once.
    most: Mutex<Option<usize>>,
}

#[derive(Clone)]
struct Request {
    headers: HeaderMap,
    text: String,
    taken: bool,
}

async fn take(State(received): State<Arc<Received>>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let mut text = String::new();
    GzDecoder::new(&body[..]).read_to_string(&mut text).unwrap();
    let answer = *received.answer.lock().unwrap();
    let is_too_large = received.most.lock().unwrap().is_some_and(|most| text.lines().count() > most);
    let answer = if is_too_large { 413 } else { answer };
    received.requests.lock().unwrap().push(Request { headers, text, taken: answer == 200 });
    StatusCode::from_u16(answer).unwrap()
}

impl Collector {
    fn start() -> Self {
        let mut collector = Self::nowhere();
        collector.listen();
        collector
    }

    /// An address where nobody listens yet.
    fn nowhere() -> Self {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let received = Arc::new(Received { answer: Mutex::new(200), ..Received::default() });
        Self { address: free.local_addr().unwrap(), received, runtime: None }
    }

    fn listen(&mut self) {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind(self.address)).unwrap();
        let router = Router::new().route("/v1/lines", post(take)).layer(DefaultBodyLimit::disable());
        let router = router.with_state(Arc::clone(&self.received));
        runtime.spawn(async move { axum::serve(listener, router).await });
        self.runtime = Some(runtime);
    }

    fn url(&self) -> String {
        format!("http://{}/v1/lines", self.address)
    }

    fn answers(&self, status: u16) {
        *self.received.answer.lock().unwrap() = status;
    }

    fn requests(&self) -> Vec<Request> {
        self.received.requests.lock().unwrap().clone()
    }

    /// The lines that it has taken.
    fn lines(&self) -> Vec<Value> {
        let taken = self.requests().into_iter().filter(|request| request.taken);
        let text: Vec<_> = taken.map(|request| request.text).collect();
        text.iter().flat_map(|text| text.lines()).map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The decisions of the events in the lines that it has taken, in their order.
    fn decisions(&self) -> Vec<String> {
        let lines = self.lines();
        lines.iter().filter_map(|line| line["decision_id"].as_str().map(str::to_owned)).collect()
    }
}

const GUARD: &str =
    "name: guard\nevents: [before_tool_dispatch]\nmatcher: ^Bash$\nhandler: { type: rule, deny: \"true\" }\n";

fn setup(collector: &Collector, more: &str) -> DaemonSetup {
    DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }\nnode: edge-7\naudit: { required: true }")
        .settings(&format!("ship: {{ url: '{}', max_age: 10ms{more} }}", collector.url()))
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
}

fn decide(daemon: &Daemon, number: usize) -> String {
    let event = json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": "r", "workspace_id": "shop",
        "tool_call_id": format!("call-{number}"), "tool_name": "Bash", "tool_input": {} });
    let outcome = daemon.post("/v1/events", &event);
    assert_eq!(outcome["verdict"], "block", "{outcome}");
    outcome["decision_id"].as_str().unwrap().to_owned()
}

fn shipping(daemon: &Daemon) -> Value {
    daemon.get("/v1/status")["audit"]["shipping"].clone()
}

#[test]
fn each_verdict_and_the_state_arrive_once() {
    let collector = Collector::start();
    let daemon = setup(&collector, ", token_file: $DIR/token").file("token", "a-token-of-an-edge\n");
    std::fs::set_permissions(daemon.path().join("token"), PermissionsExt::from_mode(0o600)).unwrap();
    let daemon = daemon.serve();
    let decided: Vec<_> = (0..20).map(|number| decide(&daemon, number)).collect();
    wait_until("all lines have arrived", || collector.decisions().len() == 20);
    assert_eq!(collector.decisions(), decided, "in their order");
    let lines = collector.lines();
    assert!(lines.iter().all(|line| line["node"] == "edge-7"), "{lines:?}");
    wait_until("the state has arrived", || collector.lines().iter().any(|line| line["state"].is_object()));
    let states: Vec<_> = collector.lines().into_iter().filter(|line| line["state"].is_object()).collect();
    assert_eq!(states.len(), 1);
    let state = &states[0]["state"];
    assert_eq!((&state["hooks"], &state["failed_open"]), (&json!(1), &json!(0)), "{state}");
    let request = &collector.requests()[0];
    assert_eq!(request.headers["authorization"], "Bearer a-token-of-an-edge");
    assert_eq!(request.headers["content-type"], "application/x-ndjson");
    assert_eq!(request.headers["x-hookyard-node"], "edge-7");
    wait_until("the answers are noted", || shipping(&daemon)["waiting"] == 0);
    assert_eq!(shipping(&daemon)["shipped"], 21);
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    assert!(metrics.contains("hookyard_shipped_lines_total 21\n"), "{metrics}");
    daemon.finish();
}

#[test]
fn a_server_that_is_away_gets_everything_later_also_after_a_restart() {
    let mut collector = Collector::nowhere();
    let daemon = setup(&collector, "").serve();
    let mut decided = vec![decide(&daemon, 1)];
    wait_until("the request has failed", || shipping(&daemon)["error"].is_string());
    let why = shipping(&daemon)["error"].as_str().unwrap().to_owned();
    assert!(why.contains("refused"), "the last cause is there: {why}");
    assert!(daemon.log().contains("lines wait: the server does not take them"), "{}", daemon.log());
    let mut daemon = daemon;
    daemon.signal(Signal::TERM);
    daemon.wait();
    let daemon = daemon.again().serve();
    decided.push(decide(&daemon, 2));
    collector.listen();
    wait_until("both have arrived", || collector.decisions().len() == 2);
    assert_eq!(collector.decisions(), decided);
    wait_until("it is noted", || shipping(&daemon)["error"].is_null());
    daemon.finish();
}

#[test]
fn no_verdict_that_was_answered_is_lost_when_the_daemon_is_killed() {
    let collector = Collector::start();
    let mut daemon = setup(&collector, "").serve();
    let mut decided = BTreeSet::new();
    for number in 0..200 {
        decided.insert(decide(&daemon, 2 * number));
        decided.insert(decide(&daemon, 2 * number + 1));
        daemon.signal(Signal::KILL);
        daemon.wait();
        daemon = daemon.again().serve();
    }
    let missing = || {
        let arrived: BTreeSet<_> = collector.decisions().into_iter().collect();
        decided.difference(&arrived).count()
    };
    wait_until("all have arrived", || missing() == 0);
    let twice = collector.decisions().len() - decided.len();
    println!("{} verdicts over 200 kills: none lost, {twice} twice", decided.len());
    daemon.finish();
}

#[test]
fn what_has_no_room_is_dropped_from_the_oldest_on_and_said() {
    let mut collector = Collector::nowhere();
    let daemon = setup(&collector, ", max_size: 4KiB").serve();
    let decided: Vec<_> = (0..100).map(|number| decide(&daemon, number)).collect();
    let status = shipping(&daemon);
    let dropped = status["dropped"].as_u64().unwrap();
    assert!(dropped > 50 && status["waiting_bytes"].as_u64().unwrap() <= 8 << 10, "{status}");
    let metrics = String::from_utf8(daemon.send("GET", "/metrics", None).body).unwrap();
    assert!(
        metrics.contains(&format!("hookyard_ship_dropped_total{{reason=\"full\"}} {dropped}\n")),
        "{metrics}"
    );
    assert!(daemon.log().contains("`ship.max_size` is used up"), "{}", daemon.log());
    collector.listen();
    wait_until("the rest has arrived", || shipping(&daemon)["waiting"] == 0);
    let arrived = collector.decisions();
    assert_eq!(arrived, decided[decided.len() - arrived.len()..]);
    daemon.finish();
}

#[test]
fn a_server_that_takes_few_lines_at_once_gets_few() {
    let mut collector = Collector::nowhere();
    *collector.received.most.lock().unwrap() = Some(3);
    let daemon = setup(&collector, "").serve();
    let decided: Vec<_> = (0..40).map(|number| decide(&daemon, number)).collect();
    collector.listen();
    wait_until("all have arrived", || collector.decisions().len() >= 40);
    assert_eq!(collector.decisions(), decided);
    daemon.finish();
}

#[test]
fn lines_wait_for_others_before_each_request() {
    let collector = Collector::start();
    let daemon = DaemonSetup::new()
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings(&format!("ship: {{ url: '{}', max_age: 2s }}", collector.url()))
        .file("shop/.openharness/hooks/guard.yaml", GUARD)
        .serve();
    for round in 0..3 {
        for number in 0..5 {
            decide(&daemon, 5 * round + number);
        }
        wait_until("the round has arrived", || collector.decisions().len() == 5 * (round + 1));
    }
    assert!(collector.requests().len() <= 4, "one for each round, and one with the state");
    daemon.finish();
}

#[test]
fn a_server_that_takes_no_line_at_all_gets_all_of_them_later() {
    let collector = Collector::start();
    *collector.received.most.lock().unwrap() = Some(0);
    let daemon = setup(&collector, "").serve();
    let decided: Vec<_> = (0..5).map(|number| decide(&daemon, number)).collect();
    wait_until("it has refused", || {
        shipping(&daemon)["error"].as_str().is_some_and(|why| why.contains("too large"))
    });
    assert_eq!(shipping(&daemon)["dropped"], 0);
    *collector.received.most.lock().unwrap() = None;
    wait_until("all have arrived", || collector.decisions().len() == 5);
    assert_eq!(collector.decisions(), decided);
    daemon.finish();
}

#[test]
fn a_server_that_refuses_gets_the_same_lines_until_it_takes_them() {
    let collector = Collector::start();
    collector.answers(403);
    let daemon = setup(&collector, "").serve();
    let decided = decide(&daemon, 1);
    wait_until("it has refused twice", || collector.requests().len() >= 2);
    assert!(shipping(&daemon)["error"].as_str().unwrap().contains("403"));
    let places: BTreeSet<_> = collector
        .requests()
        .iter()
        .map(|request| request.headers["x-hookyard-batch"].clone())
        .map(|it| format!("{it:?}"))
        .collect();
    assert_eq!(places.len(), 1, "the same place");
    collector.answers(200);
    wait_until("it has arrived", || collector.decisions() == [decided.clone()]);
    daemon.finish();
}

#[test]
fn a_token_that_others_can_read_is_not_sent() {
    let collector = Collector::start();
    let setup = setup(&collector, ", token_file: $DIR/token").file("token", "a-token-of-an-edge\n");
    std::fs::set_permissions(setup.path().join("token"), PermissionsExt::from_mode(0o644)).unwrap();
    let daemon = setup.serve();
    decide(&daemon, 1);
    wait_until("it is noted", || shipping(&daemon)["error"].is_string());
    assert!(shipping(&daemon)["error"].as_str().unwrap().contains("open to others"), "{}", shipping(&daemon));
    assert!(collector.requests().is_empty());
    daemon.finish();
}

#[test]
fn logs_in_otlp_have_a_record_for_each_line() {
    let collector = Collector::start();
    let daemon = setup(&collector, ", format: otlp").serve();
    decide(&daemon, 1);
    let records = || {
        let bodies = collector.lines().into_iter();
        let all = bodies.flat_map(|body| {
            body["resourceLogs"][0]["scopeLogs"][0]["logRecords"].as_array().unwrap().clone()
        });
        all.filter(|record| record["severityText"] == "WARN").collect::<Vec<_>>()
    };
    wait_until("the record has arrived", || records().len() == 1);
    let line: Value = serde_json::from_str(records()[0]["body"]["stringValue"].as_str().unwrap()).unwrap();
    assert_eq!(line["verdict"], "block");
    daemon.finish();
}

#[test]
fn a_daemon_that_replaces_another_ships_what_that_has_left() {
    let mut collector = Collector::nowhere();
    let mut first = setup(&collector, "").serve();
    let mut decided = vec![decide(&first, 1)];
    let second = first.replace();
    decided.push(decide(&second, 2));
    first.wait();
    collector.listen();
    wait_until("both have arrived", || collector.decisions().len() >= 2);
    let arrived: BTreeSet<_> = collector.decisions().into_iter().collect();
    assert_eq!(arrived, decided.into_iter().collect());
    second.finish();
}
