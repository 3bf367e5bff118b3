//! Http hooks against servers on this machine: requests, answers, retries and deadlines.

mod limits;
mod retries;
mod sockets;
mod tls;

use std::{
    fs,
    io::Write,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use crate::support::{
    servers::{Server, Then, misbehaving},
    trust::{self, orchestrator_with},
};
use axum::{
    Router,
    body::Bytes,
    extract::Request,
    http::{HeaderMap, Method, StatusCode, header},
    response::IntoResponse,
    routing::{any, post},
};
use hookyard::{
    Orchestrator,
    config::{HttpSettings, Settings},
    model::{DialectName, Ended, Event, EventKind, Json, Outcome, RunId, SessionId, Target, Verdict},
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{sync::Notify, time::Instant};

const BLOCK: &str = r#"{"decision":"block","reason":"no"}"#;

/// Long enough for a machine under load, and far shorter than anything that never ends.
const SOON: Duration = Duration::from_mins(1);

/// A workspace whose only hook, on tool calls and finished runs, asks this address.
fn workspace(url: &str, handler: &Value) -> TempDir {
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let mut file = json!({
        "name": "hook",
        "events": ["before_tool_dispatch", "run_completed"],
        "capabilities": ["rewrite_tool_request"],
        "handler": { "type": "http", "url": url },
    });
    file["handler"].as_object_mut().unwrap().extend(handler.as_object().unwrap().clone());
    // Every JSON text is YAML.
    fs::write(hooks.join("hook.yaml"), file.to_string()).unwrap();
    workspace
}

/// The servers of these tests are on this machine.
fn allowing_this_machine(settings: Settings) -> Settings {
    let allow = ["127.0.0.0/8", "::1", "localhost"].map(|target| target.parse().unwrap()).to_vec();
    Settings { http: HttpSettings { allow }, ..settings }
}

async fn start(workspace: &TempDir, settings: Settings) -> Orchestrator {
    let settings = allowing_this_machine(settings);
    let orchestrator = orchestrator_with(workspace.path(), settings).await;
    for report in orchestrator.load_reports().values() {
        assert_eq!(report.hooks, 1, "{:?}", report.diagnostics);
    }
    orchestrator
}

fn event(kind: EventKind) -> Event {
    let mut event = Event::new(kind, SessionId::new("session").unwrap(), RunId::new("run").unwrap());
    if kind == EventKind::BeforeToolDispatch {
        event.attributes.tool_name = Some("Bash".into());
        event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"npm run lint"}"#).unwrap());
    }
    event
}

/// The outcome of one event whose hook asks this address.
async fn ask(url: &str, handler: Value, kind: EventKind) -> Outcome {
    let workspace = workspace(url, &handler);
    let orchestrator = start(&workspace, Settings::default()).await;
    orchestrator.dispatch(event(kind)).await.unwrap()
}

async fn tool_call(url: &str) -> Outcome {
    ask(url, json!({}), EventKind::BeforeToolDispatch).await
}

fn ended(outcome: &Outcome) -> (Ended, &str) {
    let report = &outcome.hooks[0];
    (report.ended, report.error.as_deref().unwrap_or_default())
}

/// An answer as it is sent.
fn answer(length: usize, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{body}").into_bytes()
}

/// A server that fails so many times before it answers, and how often it was asked.
async fn failing(times: usize) -> (Server, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let answer = async move || match count.fetch_add(1, Ordering::Relaxed) {
        earlier if earlier < times => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::NO_CONTENT,
    };
    (Server::start(Router::new().route("/", any(answer))).await, asked)
}

#[tokio::test]
async fn an_answer_is_read_by_the_rules_of_its_dialect() {
    let answer = |status: u16, body: &'static str| {
        any(async move || (StatusCode::from_u16(status).unwrap(), body).into_response())
    };
    let patch = r#"{"hookSpecificOutput":{"patch":{"tool_input":{"command":"true"}}}}"#;
    let cases = [
        ("/block", 200, BLOCK, Ended::Completed, Verdict::Block, ""),
        ("/created", 201, BLOCK, Ended::Completed, Verdict::Block, ""),
        ("/patch", 200, patch, Ended::Completed, Verdict::Proceed, ""),
        ("/empty", 200, "", Ended::Completed, Verdict::Proceed, ""),
        ("/nothing", 204, "", Ended::Completed, Verdict::Proceed, ""),
        ("/text", 200, "all is well", Ended::InvalidOutput, Verdict::Proceed, "no JSON object"),
        ("/html", 200, "<html></html>", Ended::InvalidOutput, Verdict::Proceed, "no JSON object"),
        ("/null", 200, "null", Ended::InvalidOutput, Verdict::Proceed, "no JSON object"),
        ("/list", 200, "[]", Ended::InvalidOutput, Verdict::Proceed, "no JSON object"),
        ("/string", 200, r#""x""#, Ended::InvalidOutput, Verdict::Proceed, "no JSON object"),
        ("/word", 200, r#"{"decision":"deny"}"#, Ended::Completed, Verdict::Proceed, ""),
        ("/bad", 400, BLOCK, Ended::Failed, Verdict::Proceed, "status 400"),
        ("/missing", 404, BLOCK, Ended::Failed, Verdict::Proceed, "status 404"),
        ("/error", 500, BLOCK, Ended::Failed, Verdict::Proceed, "status 500"),
        ("/busy", 503, BLOCK, Ended::Failed, Verdict::Proceed, "status 503"),
    ];
    let router = cases
        .iter()
        .fold(Router::new(), |router, (path, status, body, ..)| router.route(path, answer(*status, body)));
    let server = Server::start(router).await;
    for (path, _, _, end, verdict, error) in cases {
        let outcome = tool_call(&server.url(path)).await;
        assert_eq!((ended(&outcome).0, outcome.verdict), (end, verdict), "{path}: {outcome:?}");
        assert!(ended(&outcome).1.contains(error), "{path}: {outcome:?}");
    }
    let outcome = tool_call(&server.url("/patch")).await;
    assert_eq!(outcome.patched.get(Target::ToolInput).unwrap().as_str(), r#"{"command":"true"}"#);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let asked = Arc::new(AtomicUsize::new(0));
    let elsewhere = Arc::clone(&asked);
    let router = Router::new()
        .route("/", any(async || (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/elsewhere")])))
        .route("/elsewhere", any(async move || elsewhere.fetch_add(1, Ordering::Relaxed).to_string()));
    let server = Server::start(router).await;
    let outcome = tool_call(&server.url("/")).await;
    assert_eq!(ended(&outcome), (Ended::Failed, "the server answered with status 307"));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

/// What a server was sent.
type Sent = (Method, HeaderMap, Bytes);

async fn recorder() -> (Server, Arc<Mutex<Vec<Sent>>>) {
    let sent = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&sent);
    let record = async move |method: Method, headers: HeaderMap, body: Bytes| {
        kept.lock().unwrap().push((method, headers, body));
    };
    (Server::start(Router::new().route("/hook", any(record))).await, sent)
}

#[tokio::test]
async fn every_method_carries_the_envelope_except_get() {
    let (server, sent) = recorder().await;
    for method in ["POST", "PUT", "PATCH", "DELETE", "GET"] {
        let handler = json!({ "method": method });
        let outcome = ask(&server.url("/hook"), handler, EventKind::BeforeToolDispatch).await;
        assert_eq!(ended(&outcome), (Ended::Completed, ""), "{method}");
        let (found, headers, body) = sent.lock().unwrap().pop().unwrap();
        assert_eq!(found.as_str(), method);
        assert_eq!(headers["x-hookyard-event"], "before_tool_dispatch");
        assert!(headers["user-agent"].to_str().unwrap().starts_with("hookyard/"));
        if method == "GET" {
            assert!(body.is_empty() && !headers.contains_key("content-type"), "{headers:?}");
            continue;
        }
        assert_eq!(headers["content-type"], "application/json");
        let envelope: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(envelope["hook_event_name"], "before_tool_dispatch");
        assert_eq!(envelope["tool_input"], json!({ "command": "npm run lint" }));
    }
}

#[tokio::test]
async fn the_trace_of_an_event_goes_with_it_unless_the_hook_names_another() {
    let trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    let (server, sent) = recorder().await;
    let (plain, own) = (json!({}), json!({ "headers": { "Traceparent": "own" } }));
    for (handler, trace, told) in
        [(&plain, None, None), (&plain, Some(trace), Some(trace)), (&own, Some(trace), Some("own"))]
    {
        let workspace = workspace(&server.url("/hook"), handler);
        let orchestrator = start(&workspace, Settings::default()).await;
        let mut event = event(EventKind::BeforeToolDispatch);
        event.trace = trace.map(|trace| trace.parse().unwrap());
        assert_eq!(ended(&orchestrator.dispatch(event).await.unwrap()), (Ended::Completed, ""));
        let (_, headers, _) = sent.lock().unwrap().pop().unwrap();
        let found: Vec<_> =
            headers.get_all("traceparent").iter().map(|value| value.to_str().unwrap()).collect();
        assert_eq!(found, Vec::from_iter(told));
    }
}

#[tokio::test]
async fn headers_are_sent_with_their_references_replaced() {
    let (server, sent) = recorder().await;
    let headers =
        json!({ "X-Name": "name=${env.CARGO_PKG_NAME}", "content-type": "application/cloudevents+json" });
    ask(&server.url("/hook"), json!({ "headers": headers }), EventKind::BeforeToolDispatch).await;
    let (_, headers, _) = sent.lock().unwrap().pop().unwrap();
    assert_eq!(headers["x-name"].to_str().unwrap(), "name=hookyard");
    let types: Vec<_> = headers.get_all("content-type").iter().collect();
    assert_eq!(types, ["application/cloudevents+json"]);
}

/// An address at which nobody listens.
async fn nobody() -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}/?key=k3y", listener.local_addr().unwrap())
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_failure_that_says_so() {
    let outcome = tool_call(&nobody().await).await;
    let (end, error) = ended(&outcome);
    assert_eq!(end, Ended::Failed);
    assert!(error.starts_with("no connection to 127.0.0.1:") && error.contains("refused"), "{error}");
    assert!(!error.contains("k3y"), "an address may hold a key: {error}");

    let outcome = tool_call("http://no-such-host.invalid/").await;
    let (end, error) = ended(&outcome);
    assert_eq!(end, Ended::Failed);
    assert!(error.contains("the name of no-such-host.invalid cannot be resolved"), "{error}");
}

#[tokio::test]
async fn a_server_that_cannot_prove_who_it_is_is_not_asked() {
    let (server, sent) = recorder().await;
    let outcome = tool_call(&server.url("/hook").replace("http:", "https:")).await;
    let (end, error) = ended(&outcome);
    assert_eq!(end, Ended::Failed);
    assert!(error.starts_with("no trusted connection to 127.0.0.1:"), "{error}");
    assert!(sent.lock().unwrap().is_empty());
}

#[tokio::test]
async fn calls_one_after_the_other_share_a_connection() {
    let server = Server::start(Router::new().route("/", post(async || "{}"))).await;
    let workspace = workspace(&server.url("/"), &json!({}));
    let orchestrator = start(&workspace, Settings::default()).await;
    for _ in 0..50 {
        let outcome = orchestrator.dispatch(event(EventKind::BeforeToolDispatch)).await.unwrap();
        assert_eq!(ended(&outcome), (Ended::Completed, ""));
    }
    assert_eq!(server.connections(), 1);
}

/// Tells that it was dropped.
struct Gone(Arc<Notify>);

impl Drop for Gone {
    fn drop(&mut self) {
        self.0.notify_one();
    }
}

#[tokio::test]
async fn dropping_the_event_aborts_the_request() {
    let (arrived, gone) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (here, left) = (Arc::clone(&arrived), Arc::clone(&gone));
    let wait = async move |_: Request| {
        let _gone = Gone(left);
        here.notify_one();
        std::future::pending::<()>().await;
    };
    let server = Server::start(Router::new().route("/", any(wait))).await;
    let workspace = workspace(&server.url("/"), &json!({}));
    let orchestrator = start(&workspace, Settings::default()).await;
    tokio::select! {
        outcome = orchestrator.dispatch(event(EventKind::BeforeToolDispatch)) => panic!("{outcome:?}"),
        () = arrived.notified() => {}
    }
    tokio::time::timeout(SOON, gone.notified()).await.expect("the server sees the connection end");
}

#[tokio::test]
async fn every_request_is_counted_by_how_it_ended() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (server, _) = failing(1).await;
    ask(&server.url("/"), json!({}), EventKind::RunCompleted).await;
    tool_call(&nobody().await).await;
    tool_call(&server.url("/").replace("http:", "https:")).await;
    tool_call(&misbehaving(answer(9, ""), Then::Reset).await).await;
    let slow = misbehaving(Vec::new(), Then::Silence).await;
    ask(&slow, json!({ "timeout_seconds": 0.3 }), EventKind::BeforeToolDispatch).await;
    let expected = [("2xx", 1), ("5xx", 1), ("broken", 1), ("refused", 1), ("timeout", 1), ("tls", 1)];
    assert_eq!(counted(&snapshotter), expected.map(|(class, count)| (class.to_owned(), count)));
}

/// How many requests ended in which way.
fn counted(snapshotter: &Snapshotter) -> Vec<(String, u64)> {
    let mut counted: Vec<(String, u64)> = Vec::new();
    for (key, .., value) in snapshotter.snapshot().into_vec() {
        let key = key.key();
        let DebugValue::Counter(count) = value else { continue };
        if key.name() == "hookyard_http_requests_total" && count > 0 {
            let labels: Vec<_> = key.labels().map(|label| (label.key(), label.value())).collect();
            assert_eq!(labels[0], ("hook", "hook"));
            counted.push((labels[1].1.to_owned(), count));
        }
    }
    counted.sort();
    counted
}

/// The outcome of a tool call in the program, whose environment has these variables too.
async fn fire(workspace: &TempDir, variables: &[(&str, &str)]) -> Value {
    let event = workspace.path().join("event.json");
    let text = json!({
        "hook_event_name": "before_tool_dispatch", "session_id": "s", "run_id": "r",
        "tool_name": "Bash", "tool_input": {},
    });
    fs::write(&event, text.to_string()).unwrap();
    let mut hookyard = assert_cmd::Command::cargo_bin("hookyard").unwrap();
    hookyard.envs(variables.iter().copied());
    hookyard.args(["fire", "--json", "--dialect", "openharness", "--event"]).arg(event);
    hookyard.arg("--workspace").arg(workspace.path()).args(trust::OFF);
    hookyard.args(["--set", "http.allow=[127.0.0.0/8, localhost]"]);
    let output = tokio::task::spawn_blocking(move || hookyard.output().unwrap()).await.unwrap();
    serde_json::from_slice(&output.stdout).unwrap()
}

#[tokio::test]
async fn a_proxy_of_the_environment_is_not_used() {
    let server = Server::start(Router::new().route("/", any(async || BLOCK))).await;
    let workspace = workspace(&server.url("/"), &json!({}));
    let proxy = nobody().await;
    let variables = ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"].map(|name| (name, &*proxy));
    let outcome = fire(&workspace, &variables).await;
    assert_eq!(outcome["verdict"], "block", "{outcome}");
}

/// What a hook gets that asks a server which the settings do not allow.
async fn refused(url: &str, settings: Settings) -> Outcome {
    let workspace = workspace(url, &json!({}));
    let file = workspace.path().join(".openharness/hooks/hook.yaml");
    let guard = fs::read_to_string(&file).unwrap().replacen('{', r#"{"on_error":"deny","#, 1);
    fs::write(file, guard).unwrap();
    let orchestrator = orchestrator_with(workspace.path(), settings).await;
    orchestrator.dispatch(event(EventKind::BeforeToolDispatch)).await.unwrap()
}

/// Spellings of addresses of this machine.
const THIS_MACHINE: [&str; 17] = [
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0x7f.1",
    "0177.0.0.1",
    "017700000001",
    "0",
    "0.0.0.0",
    "①②⑦.0.0.1",
    "localhost",
    "LOCALHOST",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
];

#[tokio::test]
async fn hooks_of_a_workspace_do_not_reach_this_machine_unless_the_settings_allow_it() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let answer = any(async move || {
        count.fetch_add(1, Ordering::Relaxed);
        BLOCK
    });
    let server = Server::start(Router::new().fallback(answer)).await;
    let url = server.url("/");
    let port = url.trim_end_matches('/').rsplit(':').next().unwrap();
    for host in THIS_MACHINE {
        let outcome = refused(&format!("http://{host}:{port}/"), Settings::default()).await;
        let (end, error) = ended(&outcome);
        assert_eq!((end, outcome.verdict), (Ended::Failed, Verdict::Block), "{host}: {outcome:?}");
        assert!(error.contains("are not allowed") && error.contains("`http.allow`"), "{host}: {error}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    // A listener of hookyard's own is refused whatever is allowed.
    let mut own = allowing_this_machine(Settings::default());
    own.listen.metrics = Some(format!("127.0.0.1:{port}").parse().unwrap());
    for host in THIS_MACHINE {
        let outcome = refused(&format!("http://{host}:{port}/"), own.clone()).await;
        assert!(ended(&outcome).1.contains("hookyard itself listens there"), "{host}: {outcome:?}");
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let allowed = allowing_this_machine(Settings::default());
    let outcome = refused(&format!("http://localhost:{port}/"), allowed).await;
    assert_eq!((ended(&outcome).0, asked.load(Ordering::Relaxed)), (Ended::Completed, 1), "{outcome:?}");
}
