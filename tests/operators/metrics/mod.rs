//! The metrics of the daemon: a scripted session yields the samples of `expected.txt`; `UPDATE_CASES=1` rewrites it.

#![allow(clippy::float_cmp, reason = "what is counted in whole numbers is compared")]

mod scrape;

use std::{cell::RefCell, collections::HashMap, fs, path::PathBuf, thread};

use crate::support::daemon::{Daemon, DaemonSetup, read};
use crate::support::servers::{
    Server,
    models::{KEY, ModelServer, Protocol, words},
};
use crate::support::wait::wait_until;
use axum::{Router, http::StatusCode, routing::post};
use hookyard::{NativeHook, Orchestrator, model::EventKind, model::Reply, telemetry::METRICS};
use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use scrape::Scrape;
use serde_json::{Value, json};

thread_local! {
    /// How often each daemon was asked whether it lives.
    static ASKED: RefCell<HashMap<u32, f64>> = RefCell::default();
}

/// What is written of a command hook for calls of the tool that has its name.
fn command(name: &str, line: &str, keys: &Value) -> (String, Value) {
    hook(name, &json!({ "type": "command", "command": line }), keys)
}

fn hook(name: &str, handler: &Value, keys: &Value) -> (String, Value) {
    let mut file = json!({
        "name": name,
        "events": ["before_tool_dispatch"],
        "matcher": format!("^{}$", name.replace('.', "\\.")),
        "handler": handler,
    });
    for (key, value) in keys.as_object().unwrap() {
        match key.as_str() {
            "mode" | "timeout_seconds" => file["handler"][key] = value.clone(),
            "events" => {
                file.as_object_mut().unwrap().remove("matcher");
                file[key] = value.clone();
            }
            _ => file[key] = value.clone(),
        }
    }
    // Every JSON text is YAML.
    (format!("shop/.openharness/hooks/{name}.yaml"), file)
}

fn with_hooks(setting: DaemonSetup, hooks: impl IntoIterator<Item = (String, Value)>) -> DaemonSetup {
    hooks.into_iter().fold(setting, |setting, (path, file)| setting.file(&path, &file.to_string()))
}

fn call(run: &str, tool: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "tool_name": tool,
            "tool_input": { "command": "ls" } })
}

/// What is said from now on: a rendering is good for a moment, so one is awaited that has counted a later request.
fn scrape(daemon: &Daemon) -> Scrape {
    let route = [("route", "/healthz"), ("status_class", "2xx")];
    let now = || Scrape::read(&daemon.send("GET", "/metrics", None));
    let asked = |scrape: &Scrape| scrape.value("hookyard_api_requests_total", &route);
    // A rendering older than this request has at most this count.
    daemon.send("GET", "/healthz", None);
    let known = ASKED.with(|asked| {
        let mut asked = asked.borrow_mut();
        let count = asked.entry(daemon.pid()).or_insert(0.0);
        *count += 1.0;
        *count
    });
    let mut scrape = now();
    wait_until("a later rendering", || {
        let is_later = asked(&scrape) >= known;
        if !is_later {
            scrape = now();
        }
        is_later
    });
    scrape
}

const WORKER: &str = r#"echo '{"hookyard":1}'
while read -r line; do
  case "$line" in
    '{"ping"'*) echo '{"pong":1}' ;;
    *) id="${line#*\"id\":\"}"; echo "{\"id\":\"${id%%\"*}\",\"output\":{}}" ;;
  esac
done"#;

const PATCH: &str = r#"echo '{"hookSpecificOutput":{"patch":{"tool_input":{"command":"ls -l"}}}}'"#;

/// The hooks of the session, each of known behaviour.
fn cast(web: &Server) -> Vec<(String, Value)> {
    let none = json!({});
    let http = |path: &str| json!({ "type": "http", "url": web.url(path) });
    let nobody = json!({ "type": "http", "url": "http://127.0.0.1:1/" });
    let judge = json!({ "type": "prompt", "prompt": { "inline": "Is it safe?" }, "model_ref": "small" });
    let waits = ": > held; while [ ! -e go ]; do sleep 0.02; done";
    vec![
        command("pass", "exit 0", &none),
        command("guard", "echo no >&2; exit 2", &none),
        command("closed", "exit 1", &json!({ "on_error": "deny" })),
        command("open", "exit 1", &none),
        command("slow", "exec sleep 60", &json!({ "timeout_seconds": 1, "on_timeout": "deny" })),
        command("loud", "head -c 3000000 /dev/zero", &none),
        command("patch", PATCH, &json!({ "capabilities": ["rewrite_tool_request"], "priority": 1 })),
        command("meek", PATCH, &json!({ "matcher": "^patch$", "priority": 2 })),
        command("worker", WORKER, &json!({ "mode": "worker" })),
        command("spare", "echo >> spares; cat > /dev/null", &json!({ "mode": "prespawn" })),
        command("a.b-c", "exit 0", &none),
        command("hold", waits, &none),
        command("long", ": > long; exec sleep 60", &none),
        command("seen", "exit 0", &json!({ "events": ["run_completed"] })),
        command("also-seen", "exit 1", &json!({ "events": ["run_completed"] })),
        command("off", "exit 0", &json!({ "enabled": false })),
        hook("web", &http("/ok"), &none),
        hook("web-busy", &http("/busy"), &json!({ "on_error": "deny" })),
        hook("web-gone", &nobody, &none),
        hook("judge", &judge, &none),
    ]
}

/// Plays the session.
fn play(daemon: &Daemon) {
    let send = |tool: &str| daemon.post("/v1/events", &call("run", tool))["verdict"].clone();
    let verdicts = [
        ("pass", "proceed"),
        ("pass", "proceed"),
        ("guard", "block"),
        ("closed", "block"),
        ("open", "proceed"),
        ("slow", "block"),
        ("loud", "proceed"),
        ("patch", "proceed"),
        ("worker", "proceed"),
        ("worker", "proceed"),
        ("spare", "proceed"),
        ("a.b-c", "proceed"),
        ("web", "proceed"),
        ("web-busy", "block"),
        ("web-gone", "proceed"),
        ("judge", "proceed"),
        ("off", "proceed"),
        ("nobody", "proceed"),
    ];
    for (tool, verdict) in verdicts {
        assert_eq!(send(tool), verdict, "{tool}");
    }
    let spares = daemon.path().join("shop/spares");
    wait_until("a spare is started", || {
        fs::read_to_string(&spares).is_ok_and(|text| text.lines().count() == 2)
    });
    assert_eq!(send("spare"), "proceed");
    shed(daemon);
    cancel(daemon);
    let end = json!({ "event": "run_completed", "session_id": "s", "run_id": "run" });
    assert_eq!(daemon.post("/v1/events", &end)["verdict"], "proceed");
}

/// A second event for a run that may have one in hand.
fn shed(daemon: &Daemon) {
    let shop = daemon.path().join("shop");
    thread::scope(|scope| {
        let first = scope.spawn(|| daemon.post("/v1/events", &call("held", "hold")));
        wait_until("the hook runs", || shop.join("held").exists());
        let answer = daemon.send("POST", "/v1/events", Some(&call("held", "pass")));
        assert!(matches!(answer.status, 429 | 503), "{}", answer.status);
        let busy = scrape(daemon);
        assert_eq!(busy.value("hookyard_processes", &[("state", "running")]), 2.0, "with the worker");
        assert_eq!(busy.value("hookyard_pool_slots", &[("pool", "command"), ("state", "used")]), 1.0);
        assert_eq!(busy.value("hookyard_runs", &[("state", "active")]), 2.0);
        assert_eq!(busy.value("hookyard_sessions", &[("state", "active")]), 1.0);
        fs::write(shop.join("go"), "").unwrap();
        assert_eq!(first.join().unwrap()["verdict"], "proceed");
    });
}

/// An event of a run that is cancelled.
fn cancel(daemon: &Daemon) {
    thread::scope(|scope| {
        let long = scope.spawn(|| daemon.post("/v1/events", &call("doomed", "long")));
        wait_until("the hook runs", || daemon.path().join("shop/long").exists());
        assert_eq!(daemon.send("DELETE", "/v1/runs/doomed", None).status, 200);
        assert_eq!(long.join().unwrap()["verdict"], "halt");
        let running = [("state", "running")];
        wait_until("its process is gone", || scrape(daemon).value("hookyard_processes", &running) == 1.0);
    });
}

async fn servers() -> (Server, ModelServer) {
    let router = Router::new()
        .route("/ok", post(|| async { "{}" }))
        .route("/busy", post(|| async { StatusCode::SERVICE_UNAVAILABLE }));
    (Server::start(router).await, ModelServer::start(Protocol::OpenAi, [words("{}")]).await)
}

#[test]
fn a_scripted_session_yields_exactly_these_samples() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (web, model) = runtime.block_on(servers());
    let models = format!(
        "models: {{ small: {{ api: openai, base_url: '{}', model: m-1, key: '{KEY}' }} }}",
        model.base_url()
    );
    let daemon = with_hooks(DaemonSetup::new(), cast(&web))
        .settings("workspaces: { shop: { root: $DIR/shop } }\nwatch: false\nlimits: { pending_per_run: 1 }\nhttp: { allow: [127.0.0.0/8] }")
        .settings(&models)
        .serve();
    let fresh = scrape(&daemon);
    assert_eq!(
        fresh.value("hookyard_hooks_loaded", &[("dialect", "openharness"), ("state", "enabled")]),
        19.0
    );
    assert_eq!(fresh.value("hookyard_config_last_reload_successful", &[]), 1.0);
    let idle: Vec<_> = fresh.counts().into_iter().filter(|line| !line.contains("spawn")).collect();
    assert_eq!(idle, [""; 0], "nothing has happened yet");
    play(&daemon);
    let before = scrape(&daemon);
    daemon.send("POST", "/v1/reload", None);
    let text = "name: broken\nevents: [never]\n";
    fs::write(daemon.path().join("shop/.openharness/hooks/broken.yaml"), text).unwrap();
    read(&daemon.send("POST", "/v1/reload", None));
    let after = scrape(&daemon);
    let expected = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/operators/metrics/expected.txt");
    let counts = after.counts();
    if std::env::var_os("UPDATE_CASES").is_some() {
        fs::write(&expected, counts.join("\n") + "\n").unwrap();
    }
    let expected = fs::read_to_string(&expected).unwrap();
    assert_same(&expected.lines().map(str::to_owned).collect::<Vec<_>>(), &counts);
    told_of_the_reloads(&before, &after);
    times_add_up(&after);
    says_all_that_the_docs_say(&after);
}

fn assert_same(expected: &[String], counts: &[String]) {
    let missing: Vec<_> = expected.iter().filter(|line| !counts.contains(line)).collect();
    let unexpected: Vec<_> = counts.iter().filter(|line| !expected.contains(line)).collect();
    assert!(
        missing.is_empty() && unexpected.is_empty(),
        "missing: {missing:#?}\nunexpected: {unexpected:#?}"
    );
}

/// A reload leaves all counts, and a broken file is told.
fn told_of_the_reloads(before: &Scrape, after: &Scrape) {
    let rest = |scrape: &Scrape| -> Vec<_> {
        scrape.counts().into_iter().filter(|line| !line.contains("config_errors")).collect()
    };
    assert_same(&rest(before), &rest(after));
    assert_eq!(before.value("hookyard_config_last_reload_successful", &[]), 1.0);
    assert_eq!(after.value("hookyard_config_last_reload_successful", &[]), 0.0);
    let when = "hookyard_config_last_reload_success_timestamp_seconds";
    assert!(after.value(when, &[]) >= before.value(when, &[]) && before.value(when, &[]) > 1e9);
    let state = |state| [("dialect", "openharness"), ("state", state)];
    let loaded = |name| after.value("hookyard_hooks_loaded", &state(name));
    assert_eq!(["enabled", "disabled", "untrusted", "invalid"].map(loaded), [19.0, 1.0, 0.0, 1.0]);
    let idle = [("hook", "worker"), ("state", "idle")];
    assert_eq!(after.value("hookyard_workers", &idle), 1.0, "a reload leaves the worker of the same hook");
}

/// A host waits for hooks, and the overhead is what is left.
fn times_add_up(scrape: &Scrape) {
    let event = [("event", "before_tool_dispatch")];
    let waited = scrape.sum("hookyard_event_duration_seconds_sum", &event);
    let overhead = scrape.sum("hookyard_overhead_duration_seconds_sum", &event);
    let hooks = scrape.sum("hookyard_hook_duration_seconds_sum", &event);
    assert!(waited > 1.0 && overhead > 0.0, "a hook takes a second: {waited} {overhead}");
    assert!(overhead + hooks <= waited + 0.01, "{overhead} + {hooks} > {waited}");
}

/// What the metrics begin with that only a node of a cluster has.
const OF_A_CLUSTER: &str = "hookyard_cluster_";

/// Every metric of the documentation is there, of the type it says, with words and samples; and no other is. Those of a cluster
/// are not there, and are what the library says of them.
fn says_all_that_the_docs_say(scrape: &Scrape) {
    let docs = include_str!("../../../docs/metrics.md");
    let mut documented = Vec::new();
    for row in docs.lines().filter(|line| line.starts_with("| `") && line.matches('|').count() == 5) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (name, kind, help) = (cells[1].trim_matches('`'), cells[2], cells[4]);
        documented.push(name);
        if name.starts_with(OF_A_CLUSTER) {
            let known = METRICS.iter().find(|metric| metric.name == name).unwrap();
            let labels: Vec<_> = known.labels.iter().map(|label| format!("`{label}`")).collect();
            let labels = if labels.is_empty() { "–".to_owned() } else { labels.join(", ") };
            assert_eq!((kind, cells[3], help), (known.kind.as_str(), &*labels, known.help), "{name}");
            assert!(!scrape.has(name), "{name} has samples");
            continue;
        }
        assert_eq!(scrape.types.get(name).map(String::as_str), Some(kind), "{name}");
        assert_eq!(scrape.help.get(name).map(String::as_str), Some(help), "{name}");
        assert!(scrape.has(name), "{name} has no samples");
        let labels: Vec<_> = cells[3].split(", ").map(|label| label.trim_matches('`')).collect();
        for found in scrape.labels(name) {
            let found: Vec<_> = found.iter().map(String::as_str).filter(|label| *label != "le").collect();
            assert_eq!(if found.is_empty() { vec!["–"] } else { found }, labels, "{name}");
        }
    }
    let unknown: Vec<_> = scrape.types.keys().filter(|name| !documented.contains(&name.as_str())).collect();
    assert!(unknown.is_empty() && documented.len() > 40, "not in docs/metrics.md: {unknown:?}");
}

#[test]
fn a_full_pool_shows_queued_and_shed_jobs() {
    let hold = command("hold", ": > held; while [ ! -e go ]; do sleep 0.02; done", &json!({}));
    let daemon = with_hooks(DaemonSetup::new(), [hold])
        .settings("workspaces: { shop: { root: $DIR/shop } }\nwatch: false\nhttp: { allow: [127.0.0.0/8] }")
        .settings("pools: { command: { concurrency: 1, queue: 1 } }")
        .serve();
    let pool = [("pool", "command")];
    let slots = |scrape: &Scrape, state| scrape.value("hookyard_pool_slots", &[pool[0], ("state", state)]);
    thread::scope(|scope| {
        let runs = scope.spawn(|| daemon.post("/v1/events", &call("runs", "hold")));
        wait_until("it runs", || daemon.path().join("shop/held").exists());
        let waits = scope.spawn(|| daemon.post("/v1/events", &call("waits", "hold")));
        wait_until("another waits", || scrape(&daemon).value("hookyard_queue_depth", &pool) == 1.0);
        assert_eq!(daemon.post("/v1/events", &call("late", "hold"))["verdict"], "proceed");
        let full = scrape(&daemon);
        assert_eq!((slots(&full, "used"), slots(&full, "limit")), (1.0, 1.0));
        assert_eq!(full.value("hookyard_queue_limit", &pool), 1.0);
        fs::write(daemon.path().join("shop/go"), "").unwrap();
        for event in [runs, waits] {
            assert_eq!(event.join().unwrap()["verdict"], "proceed");
        }
    });
    let after = scrape(&daemon);
    assert_eq!((slots(&after, "used"), after.value("hookyard_queue_depth", &pool)), (0.0, 0.0));
    assert_eq!(after.value("hookyard_shed_total", &[("where", "pool"), ("reason", "full")]), 1.0);
    let waits = |class| after.value("hookyard_queue_wait_seconds_count", &[pool[0], ("class", class)]);
    assert_eq!((waits("interceptor"), waits("lifecycle")), (2.0, 0.0));
    let ended = |ended| after.value("hookyard_hook_runs_total", &[("ended", ended)]);
    let open = after.value("hookyard_hook_fail_open_total", &[("ended", "shed")]);
    assert_eq!((ended("completed"), ended("shed"), open), (2.0, 1.0, 1.0));
}

#[test]
fn an_event_beyond_the_limits_is_rejected_at_admission() {
    let hold = command("hold", ": > held; while [ ! -e go ]; do sleep 0.02; done", &json!({}));
    let daemon = with_hooks(DaemonSetup::new(), [hold])
        .settings("workspaces: { shop: { root: $DIR/shop } }\nwatch: false\nlimits: { requests: 1 }")
        .serve();
    thread::scope(|scope| {
        let first = scope.spawn(|| daemon.post("/v1/events", &call("runs", "hold")));
        wait_until("it runs", || daemon.path().join("shop/held").exists());
        assert!(daemon.send("POST", "/v1/events", Some(&call("late", "hold"))).status >= 429);
        assert!(daemon.send("GET", "/v1/hooks", None).status >= 429, "which is no event");
        fs::write(daemon.path().join("shop/go"), "").unwrap();
        assert_eq!(first.join().unwrap()["verdict"], "proceed");
    });
    let shed = scrape(&daemon).value("hookyard_shed_total", &[("where", "admission"), ("reason", "full")]);
    assert_eq!(shed, 1.0);
}

/// So many hooks as people have them: guards, some for two kinds of event, observers, requests.
fn typical(count: usize) -> impl Iterator<Item = (String, Value)> {
    (0..count).map(|number| {
        let name = format!("hook-{number:03}");
        let events = |kinds: Value| json!({ "events": kinds });
        match number % 4 {
            0 => command(&name, "exit 0", &json!({ "on_error": "deny" })),
            1 => command(&name, "exit 0", &events(json!(["before_tool_dispatch", "after_tool_dispatch"]))),
            2 => command(&name, "exit 0", &events(json!(["run_completed", "run_failed"]))),
            _ => hook(&name, &json!({ "type": "http", "url": "http://127.0.0.1:1/" }), &json!({})),
        }
    })
}

fn serve(hooks: impl Iterator<Item = (String, Value)>) -> Daemon {
    with_hooks(DaemonSetup::new(), hooks)
        .settings("workspaces: { shop: { root: $DIR/shop } }\nwatch: false\nhttp: { allow: [127.0.0.0/8] }")
        .serve()
}

#[test]
fn the_number_of_series_of_hooks_is_bounded() {
    for (hooks, most) in [(20, 2_100), (200, 15_000)] {
        let series = scrape(&serve(typical(hooks))).series();
        println!("{hooks} hooks make {series} series");
        assert!(series <= most, "{hooks} hooks make {series} series");
    }
}

#[test]
fn names_beyond_two_hundred_share_a_label() {
    let daemon = serve(typical(300));
    let all = scrape(&daemon);
    let series = all.series();
    assert_eq!(all.values("hook").len(), 201);
    assert_eq!(all.value("hookyard_label_overflow_total", &[]), 100.0);
    assert_eq!(daemon.post("/v1/events", &call("run", "hook-296"))["verdict"], "proceed");
    read(&daemon.send("POST", "/v1/reload", None));
    let all = scrape(&daemon);
    assert_eq!(all.value("hookyard_label_overflow_total", &[]), 100.0, "each name counts once");
    let shared = [("hook", "__other__"), ("event", "before_tool_dispatch"), ("ended", "completed")];
    assert!(all.sum("hookyard_hook_runs_total", &shared) >= 1.0);
    assert!(series < 16_000, "300 hooks make {series} series");
}

#[test]
fn a_hundred_scrapes_at_once_get_one_whole_answer_each() {
    let daemon = serve(typical(100));
    let once = || Scrape::read(&daemon.send("GET", "/metrics", None)).series();
    let bodies: Vec<_> = thread::scope(|scope| {
        let all: Vec<_> = (0..100).map(|_| scope.spawn(once)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert!(bodies.iter().all(|series| bodies[0].abs_diff(*series) < 10), "{bodies:?}");
}

#[tokio::test]
async fn two_orchestrators_of_one_process_add_up() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let start = async || {
        let hook = NativeHook::inline("one", [EventKind::Notification], |_| Ok(Reply::proceed()));
        Orchestrator::builder().native_hook(hook).start().await.unwrap()
    };
    let (one, other) = (start().await, start().await);
    for _ in 0..3 {
        one.update_gauges();
        other.update_gauges();
    }
    let enabled = snapshotter.snapshot().into_vec().into_iter().find_map(|(key, .., value)| {
        let is_it = key.key().name() == "hookyard_hooks_loaded"
            && key.key().labels().any(|label| label.value() == "enabled");
        is_it.then_some(value)
    });
    assert_eq!(enabled, Some(DebugValue::Gauge(2.0.into())));
}
