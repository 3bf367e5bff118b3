//! Traces as an OTLP collector receives them, and collectors that fail.

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::unix::net::UnixStream,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU16, AtomicUsize, Ordering},
    },
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::support::daemon::{Daemon, DaemonSetup};
use crate::support::servers::{Server, Then, misbehaving};
use crate::support::wait::wait_until;
use axum::{Router, extract::State, http::HeaderMap, http::StatusCode, routing::post};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::{runtime::Runtime, time::Instant};

/// Stands in every payload, and must not stand in a span.
const PAYLOAD: &str = "p4yl0ad-of-the-host";

/// Stands in a reason.
const REASON: &str = "r34son-of-a-hook";

const SECRET: &str = "k3y-0001-of-the-shop";

const HOST_TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const HOST_SPAN: &str = "00f067aa0ba902b7";

/// Less than five events take if an export that fails, after five seconds, holds each of them up.
const NOT_HELD_UP: Duration = Duration::from_secs(20);

/// What a collector has got, and what it answers.
#[derive(Default)]
struct Got {
    bodies: Mutex<Vec<String>>,
    /// How many requests are yet to be answered with `status`.
    troubles: AtomicUsize,
    status: AtomicU16,
    requests: AtomicUsize,
    /// How many spans of each request it says it refuses.
    rejects: AtomicUsize,
}

/// An OTLP collector.
struct Collector {
    got: Arc<Got>,
    url: String,
    _runtime: Runtime,
}

impl Collector {
    fn start() -> Self {
        let runtime = Runtime::new().unwrap();
        let got = Arc::<Got>::default();
        let router = Router::new().route("/v1/traces", post(take)).with_state(Arc::clone(&got));
        let server = runtime.block_on(Server::start(router));
        Self { got, url: server.url("/v1/traces"), _runtime: runtime }
    }

    fn troubled(status: u16, requests: usize) -> Self {
        let collector = Self::start();
        collector.got.status.store(status, Ordering::Relaxed);
        collector.got.troubles.store(requests, Ordering::Relaxed);
        collector
    }

    fn bodies(&self) -> Vec<String> {
        self.got.bodies.lock().unwrap().clone()
    }

    /// All spans it has taken, with their attributes as a plain object.
    fn spans(&self) -> Vec<Value> {
        let bodies = self.bodies();
        let requests = bodies.iter().map(|body| serde_json::from_str::<Value>(body).unwrap());
        requests.flat_map(|request| spans_of(&request)).collect()
    }

    /// Waits for so many spans of a run: that of an event and those below it.
    fn of_run(&self, run: &str, count: usize) -> (Value, Vec<Value>) {
        let mut found = Vec::new();
        wait_until("the spans of a run", || {
            let spans = self.spans();
            let event = spans.iter().find(|span| span["attributes"]["hookyard.run"] == run);
            let Some(event) = event.cloned() else { return false };
            let below = spans.iter().filter(|span| span["parentSpanId"] == event["spanId"]).cloned();
            found = std::iter::once(event.clone()).chain(below).collect();
            found.len() >= count
        });
        assert_eq!(found.len(), count, "{found:#?}");
        let event = found.remove(0);
        (event, found)
    }
}

async fn take(State(got): State<Arc<Got>>, headers: HeaderMap, body: String) -> (StatusCode, String) {
    assert_eq!(headers["content-type"], "application/json");
    got.requests.fetch_add(1, Ordering::Relaxed);
    let less = |left: usize| left.checked_sub(1);
    if got.troubles.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok() {
        return (StatusCode::from_u16(got.status.load(Ordering::Relaxed)).unwrap(), String::new());
    }
    got.bodies.lock().unwrap().push(body);
    let rejected = got.rejects.load(Ordering::Relaxed);
    let answer = match rejected {
        0 => json!({}),
        _ => json!({ "partialSuccess": { "rejectedSpans": rejected.to_string() } }),
    };
    (StatusCode::OK, answer.to_string())
}

fn spans_of(request: &Value) -> Vec<Value> {
    let resource = &request["resourceSpans"][0];
    let service = plain(&resource["resource"]["attributes"]);
    assert_eq!(service, json!({ "service.name": "hookyard", "service.version": env!("CARGO_PKG_VERSION") }));
    let scope = &resource["scopeSpans"][0];
    assert_eq!(scope["scope"]["name"], "hookyard");
    let spans = scope["spans"].as_array().unwrap();
    let plain = |span: &Value| {
        let mut span = span.clone();
        span["attributes"] = plain(&span["attributes"]);
        span
    };
    spans.iter().map(plain).collect()
}

fn plain(attributes: &Value) -> Value {
    let pairs = attributes.as_array().unwrap().iter().map(|attribute| {
        (attribute["key"].as_str().unwrap().to_owned(), attribute["value"]["stringValue"].clone())
    });
    Value::Object(pairs.collect())
}

/// A hook of the workspace `shop` for one tool.
fn hook(name: &str, tool: &str, command: &str) -> (String, String) {
    let path = format!("shop/.openharness/hooks/{name}.yaml");
    let command = command.replace('\'', "''");
    let text = format!(
        "name: {name}\nevents: [before_tool_dispatch]\nmatcher: {tool}\nhandler:\n  type: command\n  \
         environment: {{ KEY: '${{secrets.KEY}}' }}\n  command: '{command}'\n"
    );
    (path, text)
}

/// Answers with the trace it was told of.
fn tells() -> (String, String) {
    hook("tells", "Bash", "echo \"${TRACEPARENT-none}\" >&2; exit 2")
}

fn setting(traces: &str, hooks: &[(String, String)]) -> DaemonSetup {
    let setting = DaemonSetup::new()
        .variable("HOOKYARD_SECRET_KEY", SECRET)
        .variable("OTEL_EXPORTER_OTLP_ENDPOINT", "")
        .variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "")
        .file("shop/.openharness/config", "")
        .settings("workspaces: { shop: { root: $DIR/shop } }")
        .settings(&format!("traces: {{ {traces} }}"));
    hooks.iter().fold(setting, |setting, (path, text)| setting.file(path, text))
}

fn to(collector: &Collector) -> String {
    format!("endpoint: '{}'", collector.url)
}

fn event(run: &str, tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
            "tool_name": tool, "tool_input": { "command": PAYLOAD } })
}

/// Sends an event as part of a trace.
fn send_in(daemon: &Daemon, traceparent: &str, event: &Value) -> Value {
    let body = event.to_string();
    let mut connection = UnixStream::connect(daemon.socket()).unwrap();
    let length = body.len();
    let head = format!(
        "POST /v1/events HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
         traceparent: {traceparent}\r\ncontent-length: {length}\r\n\r\n{body}"
    );
    connection.write_all(head.as_bytes()).unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

fn end(daemon: &mut Daemon) -> Duration {
    let since = Instant::now();
    daemon.signal(Signal::TERM);
    assert_eq!(daemon.wait().code(), Some(0), "{}", daemon.log());
    since.elapsed()
}

/// How many spans were lost for a reason.
fn dropped(daemon: &Daemon, reason: &str) -> u64 {
    let answer = daemon.send("GET", "/metrics", None);
    let text = String::from_utf8(answer.body).unwrap();
    let series = format!("hookyard_trace_spans_dropped_total{{reason=\"{reason}\"}} ");
    let line = text.lines().find_map(|line| line.strip_prefix(&series)).expect("the counter is there");
    line.parse().unwrap()
}

fn nanoseconds(span: &Value, key: &str) -> u64 {
    span[key].as_str().unwrap().parse().unwrap()
}

fn is_id(value: &Value, length: usize) -> bool {
    let text = value.as_str().unwrap();
    text.len() == length
        && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
        && text.bytes().any(|b| b != b'0')
}

#[test]
fn an_event_is_a_span_and_its_invocations_are_below_it() {
    let collector = Collector::start();
    let hooks = [
        hook("fine", "Bash", "sleep 0.05"),
        hook("broken", "Bash", "exit 1"),
        hook("wrong", "Bash", &format!("echo {REASON} >&2; exit 2")),
    ];
    let daemon = setting(&to(&collector), &hooks).serve();
    let before = SystemTime::now();
    let outcome = daemon.post("/v1/events", &event("r-1", "Bash"));
    let (event, below) = collector.of_run("r-1", outcome["hooks"].as_array().unwrap().len() + 1);
    assert!(is_id(&event["traceId"], 32) && is_id(&event["spanId"], 16), "{event:#}");
    assert!(event["parentSpanId"].is_null() && event["status"].is_null(), "{event:#}");
    assert_eq!((&event["name"], &event["kind"]), (&json!("event before_tool_dispatch"), &json!(2)));
    assert_eq!(
        event["attributes"],
        json!({
            "hookyard.workspace": "shop", "hookyard.session": "s", "hookyard.run": "r-1",
            "hookyard.decision_id": outcome["decision_id"], "hookyard.event": "before_tool_dispatch",
            "hookyard.verdict": outcome["verdict"], "hookyard.by": outcome["by"],
        })
    );
    let (start, end) = (nanoseconds(&event, "startTimeUnixNano"), nanoseconds(&event, "endTimeUnixNano"));
    let since =
        |time: SystemTime| u64::try_from(time.duration_since(UNIX_EPOCH).unwrap().as_nanos()).unwrap();
    assert!(since(before) <= start + 1_000_000 && start < end && end <= since(SystemTime::now()));
    for report in outcome["hooks"].as_array().unwrap() {
        let is_of = |span: &&Value| span["attributes"]["hookyard.hook"] == report["hook"];
        let span = below.iter().find(is_of).unwrap();
        assert_eq!((&span["traceId"], &span["kind"]), (&event["traceId"], &json!(1)));
        assert_eq!(span["name"], format!("hook {}", report["hook"].as_str().unwrap()));
        assert!(is_id(&span["spanId"], 16) && span["spanId"] != event["spanId"]);
        assert_eq!(span["attributes"]["hookyard.handler"], "command");
        assert_eq!(span["attributes"]["hookyard.ended"], report["ended"]);
        let verdict = report["verdict"].as_str().unwrap_or("proceed");
        assert_eq!(span["attributes"]["hookyard.verdict"], verdict);
        let failed = if report["ended"] == "completed" { Value::Null } else { json!({ "code": 2 }) };
        assert_eq!(span["status"], failed, "{span:#}");
        let (began, ended) = (nanoseconds(span, "startTimeUnixNano"), nanoseconds(span, "endTimeUnixNano"));
        assert!(start <= began && began < ended && ended <= end, "{event:#} {span:#}");
        #[allow(clippy::cast_precision_loss, reason = "a few milliseconds")]
        let length = (ended - began) as f64 / 1e6;
        assert!((length - report["duration_ms"].as_f64().unwrap()).abs() < 0.01, "{length} {report}");
    }
    let ended: Vec<_> = outcome["hooks"].as_array().unwrap().iter().map(|hook| &hook["ended"]).collect();
    assert!(ended.contains(&&json!("failed")) && ended.contains(&&json!("completed")), "{outcome:#}");
    let sent = collector.bodies().concat();
    assert!(!sent.contains(PAYLOAD) && !sent.contains(REASON), "{sent}");
}

#[test]
fn hooks_receive_the_span_of_the_event() {
    let collector = Collector::start();
    let daemon = setting(&to(&collector), &[tells()]).serve();
    let reason = daemon.post("/v1/events", &event("own", "Bash"))["reason"].clone();
    let (span, below) = collector.of_run("own", 2);
    let named = |span: &Value| {
        format!("00-{}-{}-01", span["traceId"].as_str().unwrap(), span["spanId"].as_str().unwrap())
    };
    assert_eq!(reason, named(&span));
    assert_eq!(below[0]["attributes"]["hookyard.hook"], "tells");

    let host = format!("00-{HOST_TRACE}-{HOST_SPAN}-01");
    let reason = send_in(&daemon, &host, &event("hosts", "Bash"))["reason"].clone();
    let (span, below) = collector.of_run("hosts", 2);
    assert_eq!((&span["traceId"], &span["parentSpanId"]), (&json!(HOST_TRACE), &json!(HOST_SPAN)));
    assert!(reason == named(&span) && reason != host.as_str());
    assert_eq!((&below[0]["traceId"], &below[0]["parentSpanId"]), (&json!(HOST_TRACE), &span["spanId"]));

    // One that is no trace is as good as none.
    let reason = send_in(&daemon, "00-nonsense", &event("nonsense", "Bash"))["reason"].clone();
    let (span, _) = collector.of_run("nonsense", 2);
    assert!(reason == named(&span) && span["parentSpanId"].is_null());
}

#[test]
fn unsampled_events_are_not_exported_and_hooks_see_the_flag() {
    let collector = Collector::start();
    let mut daemon = setting(&format!("{}, sample: 0.0", to(&collector)), &[tells()]).serve();
    let host = format!("00-{HOST_TRACE}-{HOST_SPAN}-00");
    assert_eq!(send_in(&daemon, &host, &event("unsampled", "Bash"))["reason"], host.as_str());
    let own = daemon.post("/v1/events", &event("own", "Bash"))["reason"].clone();
    let own = own.as_str().unwrap();
    assert!(own.starts_with("00-") && own.ends_with("-00") && !own.contains(HOST_TRACE), "{own}");
    send_in(&daemon, &format!("00-{HOST_TRACE}-{HOST_SPAN}-01"), &event("sampled", "Bash"));
    end(&mut daemon);
    let runs: Vec<Value> =
        collector.spans().iter().map(|span| span["attributes"]["hookyard.run"].clone()).collect();
    assert_eq!(runs, [json!("sampled"), Value::Null]);
}

#[test]
fn no_span_has_a_secret_of_any_hook_of_its_workspace() {
    let collector = Collector::start();
    let mut daemon = setting(&to(&collector), &[tells()]).serve();
    daemon.post("/v1/events", &event(&format!("run-{SECRET}"), "Bash"));
    end(&mut daemon);
    let sent = collector.bodies().concat();
    assert!(sent.contains("run-***") && !sent.contains(SECRET), "{sent}");
}

#[test]
fn a_shutdown_exports_queued_spans() {
    let collector = Collector::start();
    let mut daemon = setting(&to(&collector), &[tells()]).serve();
    for number in 0..20 {
        daemon.post("/v1/events", &event(&format!("r-{number}"), "Bash"));
    }
    let took = end(&mut daemon);
    assert_eq!(collector.spans().len(), 40, "{}", daemon.log());
    assert!(took < NOT_HELD_UP, "{took:?}");
}

#[test]
fn background_hooks_and_abandoned_events_have_spans() {
    let collector = Collector::start();
    let beside = json!({ "type": "command", "command": "sleep 0.1", "async": true });
    let hooks = json!({ "hooks": { "PreToolUse": [{ "hooks": [beside] }] } });
    let hooks = [
        ("shop/.claude/settings.json".to_owned(), hooks.to_string()),
        hook("slow", "Slow", "touch begun; sleep 60"),
    ];
    let daemon = setting(&to(&collector), &hooks).serve();
    daemon.post("/v1/events", &event("beside", "Bash"));
    let (span, below) = collector.of_run("beside", 2);
    assert_eq!(span["attributes"]["hookyard.verdict"], "proceed");
    assert!(nanoseconds(&span, "endTimeUnixNano") < nanoseconds(&below[0], "endTimeUnixNano"));

    let body = event("gone", "Slow").to_string();
    let mut connection = UnixStream::connect(daemon.socket()).unwrap();
    let length = body.len();
    let head = "POST /v1/events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\n";
    connection.write_all(format!("{head}content-length: {length}\r\n\r\n{body}").as_bytes()).unwrap();
    wait_until("the hook runs", || daemon.path().join("shop/begun").exists());
    drop(connection);
    wait_until("the span of the event", || {
        collector.spans().iter().any(|span| span["attributes"]["hookyard.run"] == "gone")
    });
    let spans = collector.spans();
    let span = spans.iter().find(|span| span["attributes"]["hookyard.run"] == "gone").unwrap();
    let attributes = span["attributes"].as_object().unwrap();
    assert!(!attributes.contains_key("hookyard.verdict") && !attributes.contains_key("hookyard.decision_id"));
    let is_slow = |span: &&Value| span["attributes"]["hookyard.hook"] == "slow";
    let slow = spans.iter().find(is_slow).unwrap();
    assert_eq!(slow["attributes"]["hookyard.ended"], "cancelled");
    assert!(slow["parentSpanId"] == span["spanId"] && slow["status"].is_null(), "{slow:#}");
}

#[test]
fn a_collector_that_is_down_delays_no_event_and_losses_are_counted() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let endpoint = format!("endpoint: 'http://{nobody}/v1/traces?key={SECRET}'");
    let mut daemon = setting(&endpoint, &[tells()]).serve();
    assert_eq!((dropped(&daemon, "queue"), dropped(&daemon, "export")), (0, 0));
    let since = Instant::now();
    for number in 0..5 {
        daemon.post("/v1/events", &event(&format!("r-{number}"), "Bash"));
    }
    assert!(since.elapsed() < NOT_HELD_UP, "{:?}", since.elapsed());
    wait_until("all are lost", || dropped(&daemon, "export") == 10);
    daemon.post("/v1/events", &event("last", "Bash"));
    let took = end(&mut daemon);
    assert!(took < NOT_HELD_UP, "{took:?}");
    let log = daemon.log();
    assert_eq!(log.matches("the collector does not take them").count(), 1, "{log}");
    assert!(!log.contains(SECRET), "{log}");
}

#[test]
fn a_collector_that_never_answers_delays_neither_events_nor_shutdown() {
    let runtime = Runtime::new().unwrap();
    let url = runtime.block_on(misbehaving(Vec::new(), Then::Silence));
    let mut daemon = setting(&format!("endpoint: '{url}'"), &[tells()]).serve();
    let since = Instant::now();
    for number in 0..5 {
        daemon.post("/v1/events", &event(&format!("r-{number}"), "Bash"));
    }
    assert!(since.elapsed() < NOT_HELD_UP, "{:?}", since.elapsed());
    let took = end(&mut daemon);
    assert!(took < NOT_HELD_UP, "{took:?}");
    assert!(daemon.log().contains("spans are lost"), "{}", daemon.log());
}

#[test]
fn a_request_is_retried_once_where_that_may_help() {
    for (status, troubles, requests, taken) in [(503, 1, 2, 2), (503, 2, 2, 0), (400, 1, 1, 0)] {
        let collector = Collector::troubled(status, troubles);
        let daemon = setting(&to(&collector), &[tells()]).serve();
        daemon.post("/v1/events", &event("r", "Bash"));
        wait_until("it is decided", || !collector.spans().is_empty() || dropped(&daemon, "export") == 2);
        assert_eq!(collector.got.requests.load(Ordering::Relaxed), requests, "{status} {troubles}");
        assert_eq!(collector.spans().len(), taken, "{status} {troubles}");
        assert_eq!(dropped(&daemon, "export"), 2 - taken as u64, "{status} {troubles}");
    }
}

#[test]
fn what_a_collector_refuses_of_a_request_is_counted() {
    let collector = Collector::start();
    collector.got.rejects.store(1, Ordering::Relaxed);
    let daemon = setting(&to(&collector), &[tells()]).serve();
    daemon.post("/v1/events", &event("r", "Bash"));
    wait_until("one is refused", || dropped(&daemon, "export") == 1);
}

#[test]
fn the_standard_variable_replaces_the_setting() {
    let collector = Collector::start();
    let base = collector.url.trim_end_matches("/v1/traces");
    let setting = setting("", &[tells()]).variable("OTEL_EXPORTER_OTLP_ENDPOINT", base);
    let daemon = setting.serve();
    daemon.post("/v1/events", &event("r", "Bash"));
    collector.of_run("r", 2);

    // It may be meant for other programs, and must not keep a daemon from its hooks.
    let daemon =
        self::setting("", &[tells()]).variable("OTEL_EXPORTER_OTLP_ENDPOINT", "nowhere:4317").serve();
    assert_eq!(daemon.post("/v1/events", &event("r", "Bash"))["reason"], "none");
    let log = daemon.log();
    assert!(log.contains("no traces: ") && log.contains("variable=OTEL_EXPORTER_OTLP_ENDPOINT"), "{log}");
}

#[test]
fn without_an_endpoint_hooks_receive_the_trace_of_the_host() {
    let daemon = setting("", &[tells()]).serve();
    let host = format!("00-{HOST_TRACE}-{HOST_SPAN}-01");
    assert_eq!(send_in(&daemon, &host, &event("a", "Bash"))["reason"], host.as_str());
    assert_eq!(daemon.post("/v1/events", &event("b", "Bash"))["reason"], "none");
    assert_eq!((dropped(&daemon, "queue"), dropped(&daemon, "export")), (0, 0));
}
