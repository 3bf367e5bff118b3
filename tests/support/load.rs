//! A daemon whose hooks do everything that hooks do, and hosts that keep it busy.
#![allow(clippy::disallowed_methods, reason = "the clock is that of the daemon and of Prometheus")]

use std::{
    fs,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use axum::{Router, http::StatusCode, routing::post};
use serde_json::{Value, json};

use crate::support::{
    daemon::{Daemon, DaemonSetup, write},
    servers::{
        Server,
        models::{KEY, ModelServer, Protocol, words},
    },
};

/// Hooks of commands: the tool they want, what they run, and more keys.
const COMMANDS: [(&str, &str, &str, &str); 9] = [
    (
        "no-force-push",
        "Bash",
        "if grep -q -e --force; then echo no force >&2; exit 2; fi",
        "on_error: deny\non_timeout: deny\n",
    ),
    ("flaky", "Flaky", "exit 1", ""),
    ("strict", "Strict", "exit 1", "on_error: deny\n"),
    ("slow", "Slow", "sleep 9", "on_timeout: ask\n"),
    ("gone", "Gone", "exec /nowhere/at/all", ""),
    ("babbler", "Babble", "echo no object", ""),
    ("chatty", "Chatty", "head -c 2000000 /dev/zero; head -c 200000 /dev/zero >&2", ""),
    ("leaky", "Leaky", "sleep 60 >/dev/null 2>&1 & exit 0", ""),
    ("clingy", "Clingy", "sleep 60 & exit 0", ""),
];

/// Tools of events that go well, over and over.
const FINE: [&str; 8] = ["Bash", "Edit", "Edit", "Search", "Edit", "Read", "Search", "Push"];

/// Tools of events that do not.
const BAD: [&str; 9] = ["Flaky", "Strict", "Slow", "Gone", "Babble", "Chatty", "Leaky", "Clingy", "Break"];

/// How many hosts there are.
const HOSTS: usize = 6;

/// When what happens.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    length: Duration,
    /// Between which shares of the time things go wrong.
    bad: (f64, f64),
    /// How long a host does nothing between two events.
    pause: Duration,
}

impl Plan {
    /// Everything, all the time.
    pub(crate) fn everything(length: Duration) -> Self {
        Self { length, bad: (0.0, 1.0), pause: Duration::from_millis(20) }
    }

    /// Things go well but for a while.
    pub(crate) fn with_a_bad_minute(length: Duration) -> Self {
        Self { length, bad: (0.5, 0.8), pause: Duration::from_millis(200) }
    }
}

/// The daemon, and what its hooks ask.
pub(crate) struct Load {
    daemon: Arc<Daemon>,
    /// Whether things go wrong at the moment.
    trouble: Arc<AtomicBool>,
    _guard: Server,
    _model: ModelServer,
}

/// A hook file.
fn hook(name: &str, events: &str, matcher: &str, handler: &str, more: &str) -> String {
    let matcher = if matcher.is_empty() { String::new() } else { format!("matcher: ^{matcher}$\n") };
    format!("name: {name}\nevents: [{events}]\n{matcher}{more}handler: {handler}\n")
}

fn command(line: &str, more: &str) -> String {
    format!("{{ type: command, command: {}, timeout_seconds: 0.4{more} }}", json!(line))
}

impl Load {
    /// Starts the daemon with its hooks, and the servers that they ask.
    pub(crate) async fn start() -> Self {
        let trouble = Arc::new(AtomicBool::new(false));
        let guard = Server::start(policy_server(Arc::clone(&trouble))).await;
        let model = ModelServer::start(Protocol::OpenAi, [words("{}")]).await;
        let mut setting = DaemonSetup::new()
            .settings(
                "listen: { tcp: '127.0.0.1:0' }\nworkspaces: { shop: { root: $DIR/shop } }\nwatch: false\nhttp: { allow: [127.0.0.0/8] }",
            )
            .settings("pools: { command: { concurrency: 8, queue: 8 } }\nlimits: { pending_per_run: 4 }")
            .settings("run_idle: 2s")
            .settings(&format!(
                "models: {{ small: {{ api: openai, base_url: '{}', model: m-1, key: '{KEY}' }} }}",
                model.base_url()
            ));
        for (name, text) in hooks(&guard) {
            setting = setting.file(&format!("shop/.openharness/hooks/{name}.yaml"), &text);
        }
        let daemon = tokio::task::spawn_blocking(|| setting.serve()).await.unwrap();
        Self { daemon: Arc::new(daemon), trouble, _guard: guard, _model: model }
    }

    /// A directory beside the daemon's.
    pub(crate) fn directory(&self, name: &str) -> PathBuf {
        let directory = self.daemon.path().join(name);
        fs::create_dir(&directory).unwrap();
        directory
    }

    /// Where its metrics are to be had over TCP.
    pub(crate) fn address(&self) -> String {
        self.daemon.get("/v1/status")["tcp"].as_str().unwrap().to_owned()
    }

    /// Its metrics.
    pub(crate) fn metrics(&self) -> Vec<u8> {
        self.daemon.send("GET", "/metrics", None).body
    }

    /// Keeps the daemon busy.
    pub(crate) async fn run(&self, plan: Plan) {
        let start = Instant::now();
        let mut hosts: Vec<_> = (0..HOSTS)
            .map(|number| {
                let (daemon, trouble) = (Arc::clone(&self.daemon), Arc::clone(&self.trouble));
                thread::spawn(move || host(&daemon, &trouble, number, plan, start))
            })
            .collect();
        let daemon = Arc::clone(&self.daemon);
        hosts.push(thread::spawn(move || operator(&daemon, plan, start)));
        tokio::task::spawn_blocking(|| hosts.into_iter().for_each(|host| host.join().unwrap()))
            .await
            .unwrap();
    }
}

/// A server that is down now and then while things go wrong.
fn policy_server(trouble: Arc<AtomicBool>) -> Router {
    let asked = Arc::new(AtomicUsize::new(0));
    let answer = move || {
        let number = asked.fetch_add(1, Ordering::Relaxed);
        let is_down = number.is_multiple_of(20) && trouble.load(Ordering::Relaxed);
        async move { if is_down { (StatusCode::BAD_GATEWAY, "") } else { (StatusCode::OK, "{}") } }
    };
    Router::new().route("/check", post(answer))
}

fn hooks(guard: &Server) -> Vec<(String, String)> {
    let dispatch = "before_tool_dispatch";
    let mut all: Vec<_> = COMMANDS
        .iter()
        .map(|(name, tool, line, more)| {
            ((*name).to_owned(), hook(name, dispatch, tool, &command(line, ""), more))
        })
        .collect();
    let mut add = |name: &str, events: &str, matcher: &str, handler: &str, more: &str| {
        all.push((name.to_owned(), hook(name, events, matcher, handler, more)));
    };
    let worker = concat!("exec python3 ", env!("CARGO_MANIFEST_DIR"), "/config/workers/examples/guard.py");
    add("no-rm", dispatch, "Edit", &command(worker, ", mode: worker").replace("0.4", "5"), "");
    let fragile = concat!("exec python3 ", env!("CARGO_MANIFEST_DIR"), "/tests/support/worker.py plain");
    add("fragile", dispatch, "Break", &command(fragile, ", mode: worker").replace("0.4", "5"), "");
    // Long enough that a scrape sees what waits behind it.
    add("stalled", dispatch, "Stall", &command("sleep 9", "").replace("0.4", "1.2"), "on_timeout: ask\n");
    let patch =
        r#"cat >/dev/null; echo '{"hookSpecificOutput":{"patch":{"tool_input":{"command":"npm ci"}}}}'"#;
    add(
        "pin-versions",
        dispatch,
        "Search",
        &command(patch, ", mode: prespawn"),
        "capabilities: [rewrite_tool_request]\n",
    );
    let server = format!("{{ type: http, url: '{}', timeout_seconds: 2 }}", guard.url("/check"));
    add("policy-server", &format!("{dispatch}, run_completed"), "", &server, "");
    let question =
        "{ type: prompt, prompt: { inline: May this be pushed? }, model_ref: small, timeout_seconds: 2 }";
    add("reviewer", dispatch, "Push", question, "");
    add("audit", "run_completed, run_failed", "", &command("cat >/dev/null", ""), "");
    add("forgetful", "run_failed", "", &command("exit 1", ""), "");
    // Long enough that a scrape sees its event in the outbox.
    add("archive", "run_failed", "", &command("sleep 1.2", "").replace("0.4", "5"), "");
    all
}

fn tool_event(run: &str, tool: &str, text: &str) -> Value {
    json!({ "event": "before_tool_dispatch", "session_id": "s", "run_id": run, "workspace_id": "shop",
            "tool_name": tool, "tool_input": { "command": text } })
}

fn run_event(kind: &str, run: &str) -> Value {
    json!({ "event": kind, "session_id": "s", "run_id": run, "workspace_id": "shop", "trigger_type": "user" })
}

/// Sends runs of events, one after the other. What is turned away is part of it.
fn host(daemon: &Daemon, trouble: &AtomicBool, number: usize, plan: Plan, start: Instant) {
    for round in 0.. {
        let run = format!("run-{number}-{round}");
        for (step, fine) in FINE.iter().enumerate() {
            if start.elapsed() >= plan.length {
                return;
            }
            let share = start.elapsed().div_duration_f64(plan.length);
            let is_trouble = plan.bad.0 <= share && share < plan.bad.1;
            trouble.store(is_trouble, Ordering::Relaxed);
            let is_bad = is_trouble && step % 4 == number % 4;
            let tool = if is_bad { BAD[(round + step + number) % BAD.len()] } else { fine };
            let text = match tool {
                "Break" => "die",
                _ if (round + step) % 7 == 0 => "git push --force; rm -rf /",
                _ => "npm install",
            };
            daemon.send("POST", "/v1/events", Some(&tool_event(&run, tool, text)));
            // Busier and quieter times, as hosts have them.
            thread::sleep(plan.pause.mul_f64(1.6 + (share * 20.0).sin()));
        }
        let kind = if round % 9 == 8 { "run_failed" } else { "run_completed" };
        daemon.send("POST", "/v1/events", Some(&run_event(kind, &run)));
    }
}

/// Does what happens now and then: changes hook files, breaks one, asks for what is not there; and has one run ask too
/// much at once while things go wrong.
fn operator(daemon: &Arc<Daemon>, plan: Plan, start: Instant) {
    let broken = daemon.path().join("shop/.openharness/hooks/broken.yaml");
    let at = |share: f64| thread::sleep(plan.length.mul_f64(share).saturating_sub(start.elapsed()));
    let middle = f64::midpoint(plan.bad.0, plan.bad.1);
    at(0.2);
    daemon.send("POST", "/v1/reload", None);
    at(middle - 0.05);
    daemon.send("GET", "/v1/runs/none", None);
    write(&broken, "name: broken\nevents: [nothing]\n");
    daemon.send("POST", "/v1/reload", None);
    rush(daemon);
    at(middle);
    daemon.send("POST", "/v1/reload", None);
    rush(daemon);
    at(middle + 0.05);
    write(&broken, &hook("broken", "before_tool_dispatch", "Never", &command("true", ""), ""));
    daemon.send("POST", "/v1/reload", None);
    at(1.0);
}

/// Many events at once: of one run, and of many.
fn rush(daemon: &Arc<Daemon>) {
    let rushing = (0..60).map(|number| {
        let daemon = Arc::clone(daemon);
        let run = if number % 2 == 0 { "rush".to_owned() } else { format!("rush-{number}") };
        thread::spawn(move || {
            daemon.send("POST", "/v1/events", Some(&tool_event(&run, "Stall", "npm install")))
        })
    });
    for each in rushing.collect::<Vec<_>>() {
        each.join().unwrap();
    }
}
