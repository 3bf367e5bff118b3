//! What the modes of command hooks cost: workers beside the same interpreter without us, spares beside a process
//! for each event. The hooks are the examples of `config/workers`; what they need has to be installed.

use std::{process::Stdio, time::Duration};

use hookyard::{
    Orchestrator,
    config::Settings,
    model::{Event, Json, Target},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    time::{Instant, MissedTickBehavior},
};

use super::{
    PAIRS, calls,
    common::{tool_event, with_hook},
    median,
};

/// An interpreter, its example hook, and the least program that answers JSON lines in it: it parses each line and writes one
/// for it, as a worker has to, and nothing else.
struct Language {
    name: &'static str,
    program: &'static str,
    guard: &'static str,
    flag: &'static str,
    bare: &'static str,
}

const PYTHON: Language = Language {
    name: "Python",
    program: "python3",
    guard: "guard.py",
    flag: "-c",
    bare: "import json, sys\nfor line in sys.stdin.buffer:\n  message = json.loads(line)\n  \
           sys.stdout.buffer.write(json.dumps({'id': message['id'], 'output': {}}).encode() + b'\\n')\n  \
           sys.stdout.buffer.flush()",
};

const NODE: Language = Language {
    name: "Node",
    program: "node",
    guard: "guard.mjs",
    flag: "-e",
    bare: "let rest = '';\nprocess.stdin.on('data', (chunk) => {\n  const lines = (rest + chunk).split('\\n');\n  \
           rest = lines.pop();\n  for (const line of lines)\n    \
           process.stdout.write(JSON.stringify({ id: JSON.parse(line).id, output: {} }) + '\\n');\n});",
};

/// The calls that are under way at once where many are.
const AT_ONCE: usize = 64;

/// The events of one round where a rate counts.
const ROUND: usize = 10_000;

/// The time between two events where they come steadily: five in a second.
const STEADY: Duration = Duration::from_millis(200);

/// Prints the rows.
pub(crate) async fn print() {
    worker(&PYTHON).await;
    worker(&NODE).await;
    busy_worker(&NODE, "≥ 0.65").await;
    busy_worker(&PYTHON, "≥ 0.45").await;
    prespawn(&NODE).await;
}

/// A hook of an example in a mode, and its workspace.
async fn guard(language: &Language, mode: &str) -> (TempDir, Orchestrator) {
    let (root, Language { program, guard, .. }) = (env!("CARGO_MANIFEST_DIR"), language);
    let hook = format!(
        "name: guard\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  \
         command: exec {program} {root}/config/workers/examples/{guard}\n  mode: {mode}\n"
    );
    with_hook(&hook, Settings::default()).await
}

/// A tool call with a payload that makes an envelope of a kilobyte.
fn event(run: usize) -> Event {
    let mut event = tool_event(run);
    event.targets.set(Target::ToolInput, Json::parse(&input()).expect("JSON"));
    event
}

fn input() -> String {
    format!(r#"{{"command":"{}"}}"#, "x".repeat(850))
}

/// A request line about as long as ours.
fn request() -> Vec<u8> {
    let envelope = format!(r#"{{"tool_input":{},"rest":"{}"}}"#, input(), "x".repeat(120));
    format!("{{\"id\":\"1\",\"deadline_ms\":1,\"envelope\":{envelope}}}\n").into_bytes()
}

async fn ask(orchestrator: &Orchestrator, event: Event) {
    let outcome = orchestrator.dispatch(event).await.expect("an outcome");
    let report = &outcome.hooks[0];
    assert!(report.error.is_none() && report.warnings.is_empty(), "{outcome:?}");
}

/// The median time of so many calls, in microseconds.
async fn call_p50<F: Future<Output = ()>>(mut call: impl FnMut() -> F) -> f64 {
    let mut times = Vec::new();
    for _ in 0..1_000 {
        let begun = Instant::now();
        call().await;
        times.push(begun.elapsed().as_secs_f64() * 1e6);
    }
    median(times)
}

/// An interpreter that answers JSON lines, and what the two ends of its pipes are.
struct Bare {
    _child: tokio::process::Child,
    stdin: tokio::process::ChildStdin,
    stdout: BufReader<tokio::process::ChildStdout>,
    line: String,
}

impl Bare {
    #[allow(clippy::disallowed_methods, reason = "the floor is measured without our own code")]
    fn start(language: &Language) -> Self {
        let mut child = tokio::process::Command::new(language.program)
            .args([language.flag, language.bare])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("a process");
        let stdin = child.stdin.take().expect("a pipe");
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        Self { _child: child, stdin, stdout, line: String::new() }
    }

    async fn call(&mut self, request: &[u8]) {
        self.stdin.write_all(request).await.expect("it reads");
        self.line.clear();
        self.stdout.read_line(&mut self.line).await.expect("it answers");
        assert!(self.line.contains("output"), "{}", self.line);
    }

    /// Keeps so many requests under way; returns how many were answered in a second.
    async fn rate(&mut self, request: &[u8]) -> f64 {
        let begun = Instant::now();
        let (mut asked, mut answered) = (AT_ONCE, 0);
        self.stdin.write_all(&request.repeat(AT_ONCE)).await.expect("it reads");
        let mut chunk = vec![0; 64 << 10];
        while answered < ROUND {
            let read = self.stdout.read(&mut chunk).await.expect("it answers");
            let lines = chunk[..read].split(|byte| *byte == b'\n').count() - 1;
            answered += lines;
            let more = lines.min(ROUND - asked);
            asked += more;
            self.stdin.write_all(&request.repeat(more)).await.expect("it reads");
        }
        ROUND as f64 / begun.elapsed().as_secs_f64()
    }
}

/// A worker, beside the same interpreter without us: the whole way of an event, not only the call of the worker.
async fn worker(language: &Language) {
    let (_workspace, orchestrator) = guard(language, "worker").await;
    let (orchestrator, event, request) = (&orchestrator, &event(1), &request()[..]);
    let bare = &tokio::sync::Mutex::new(Bare::start(language));
    let (mut ours, mut floor, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..PAIRS {
        let a = call_p50(|| ask(orchestrator, event.clone())).await;
        let b = call_p50(|| async { bare.lock().await.call(request).await }).await;
        ours.push(a);
        floor.push(b);
        ratios.push(a / b);
    }
    let (ours, floor, ratio) = (median(ours), median(floor), median(ratios));
    let name = language.name;
    println!(
        "| worker hook ({name}), 1 KB envelope | p50 {ours:.0} µs | bare JSON lines: {floor:.0} µs | {ratio:.2} | ≤ 2.0 |"
    );
}

/// One worker under the events of many runs, beside the same interpreter with as many requests under way.
async fn busy_worker(language: &Language, goal: &str) {
    let (_workspace, orchestrator) = guard(language, "worker\n  max_requests: 10000000").await;
    // A reference that lives as long as the program makes the closure `Copy`.
    let orchestrator: &'static Orchestrator = Box::leak(Box::new(orchestrator));
    let events: &'static [Event] = Box::leak((0..AT_ONCE).map(event).collect());
    let ours = move |run: usize| ask(orchestrator, events[run].clone());
    let (mut bare, request) = (Bare::start(language), request());
    let (mut hookyard, mut floor, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    calls(ROUND, AT_ONCE, ours).await;
    bare.rate(&request).await;
    for _ in 0..PAIRS {
        let a = calls(ROUND, AT_ONCE, ours).await;
        let b = bare.rate(&request).await;
        hookyard.push(a);
        floor.push(b);
        ratios.push(a / b);
    }
    let (hookyard, floor, ratio) = (median(hookyard), median(floor), median(ratios));
    let name = language.name;
    println!(
        "| one worker ({name}), {AT_ONCE} runs at once, 1 KB envelopes | {hookyard:.0} events/s | bare JSON lines: {floor:.0}/s | {ratio:.2} | {goal} |"
    );
    assert!(orchestrator.shutdown(Duration::from_secs(5)).await);
}

/// The times of five events in a second's steady distances, in milliseconds.
async fn steady(orchestrator: &Orchestrator, times: &mut Vec<f64>) {
    let mut ticks = tokio::time::interval(STEADY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for _ in 0..5 {
        ticks.tick().await;
        let begun = Instant::now();
        ask(orchestrator, event(1)).await;
        times.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    ticks.tick().await;
}

/// A process that was started before its event, beside one that is started for it.
async fn prespawn(language: &Language) {
    let (_spare, spare) = guard(language, "prespawn").await;
    let (_fresh, fresh) = guard(language, "oneshot").await;
    // The first event finds no spare.
    ask(&spare, event(1)).await;
    ask(&fresh, event(1)).await;
    tokio::time::sleep(STEADY).await;
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        steady(&spare, &mut with).await;
        steady(&fresh, &mut without).await;
    }
    let (with, without) = (median(with), median(without));
    let (name, ratio) = (language.name, with / without);
    println!(
        "| prespawn hook ({name}), 5 events a second | p50 {with:.1} ms | oneshot: {without:.1} ms | {ratio:.2} | ≤ 0.2 |"
    );
}
