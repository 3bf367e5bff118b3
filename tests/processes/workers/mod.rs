//! Workers: the protocol, its violations, and that none is left. They are `worker.py` and those of `config/workers`.

mod check;
mod lifetime;
mod modes;
mod pipeline;
mod protocol_only;
mod sdks;
mod waiting;

use crate::support::child_processes;
use crate::support::python::python;
use crate::support::trust::orchestrator_in;
use crate::support::wait::wait_until_async;
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use futures_util::future::join_all;
use hookyard::{
    Orchestrator,
    model::{Ended, Event, EventKind, Json, Outcome, RunId, SessionId, Target, Verdict},
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::{Instant, timeout};

/// Generous: nothing here waits so long unless it hangs.
const LONG: Duration = Duration::from_mins(1);

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// A workspace with one hook.
struct Fixture {
    orchestrator: Orchestrator,
    workspace: TempDir,
}

impl Fixture {
    /// A hook of this command, in a mode with more keys.
    async fn of(command: &str, keys: &str) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        write_hook(workspace.path(), command, keys);
        let orchestrator = orchestrator_in(workspace.path()).await;
        for report in orchestrator.load_reports().values() {
            assert_eq!(report.hooks, 1, "{:?}", report.diagnostics);
        }
        Self { orchestrator, workspace }
    }

    /// A worker that behaves so.
    async fn worker(how: &str, keys: &str) -> Self {
        Self::of(&script(how), &format!("mode: worker\n  {}", keys.replace('\n', "\n  "))).await
    }

    async fn ask(&self, command: &str) -> Outcome {
        self.ask_as("run", json!({ "command": command }).to_string()).await
    }

    async fn ask_as(&self, run: &str, input: String) -> Outcome {
        timeout(LONG, self.orchestrator.dispatch(event(run, &input))).await.unwrap().unwrap()
    }

    /// Waits until a file of the workspace has so many lines.
    async fn lines(&self, file: &str, count: usize) {
        let path = self.workspace.path().join(file);
        let lines = || fs::read_to_string(&path).unwrap_or_default().lines().count();
        wait_until_async(&format!("{count} lines in {file}"), || lines() >= count).await;
    }
}

fn script(how: &str) -> String {
    format!("exec {} {} {how}", python(), root().join("tests/support/worker.py").display())
}

fn write_hook(workspace: &Path, command: &str, keys: &str) {
    let hooks = workspace.join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let file = format!(
        "name: hook\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: {}\n  {keys}\n",
        json!(command)
    );
    fs::write(hooks.join("hook.yaml"), file).unwrap();
}

fn event(run: &str, input: &str) -> Event {
    let id = |text: &str| SessionId::new(text).unwrap();
    let mut event = Event::new(EventKind::BeforeToolDispatch, id(run), RunId::new(run).unwrap());
    event.attributes.tool_name = Some("Bash".into());
    event.targets.set(Target::ToolInput, Json::parse(input).unwrap());
    event
}

fn ended(outcome: &Outcome) -> (Ended, &str) {
    (outcome.hooks[0].ended, outcome.hooks[0].error.as_deref().unwrap_or_default())
}

fn reason(outcome: &Outcome) -> &str {
    outcome.reason.as_deref().unwrap_or_default()
}

/// The process that answered, and which of its events this was.
fn worker_of(outcome: &Outcome) -> (u32, usize) {
    let mut words = reason(outcome).split(' ').map(str::parse);
    match (words.next(), words.next()) {
        (Some(Ok(pid)), Some(Ok(number))) => (pid, usize::try_from(number).unwrap()),
        _ => panic!("no worker answered: {outcome:?}"),
    }
}

/// Asks until a worker answers again: after one failed there is a pause, in which processes of their own answer.
async fn next_worker(fixture: &Fixture) -> (u32, usize) {
    let asked = async {
        loop {
            let outcome = fixture.ask("fine").await;
            if reason(&outcome) != "oneshot fine" {
                return worker_of(&outcome);
            }
        }
    };
    timeout(LONG, asked).await.unwrap()
}

async fn assert_gone(pid: u32) {
    let left = child_processes::gone(|process| process.pid == pid && process.alive()).await;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn one_process_serves_many_events() {
    let fixture = Fixture::worker("good", "").await;
    let (pid, first) = worker_of(&fixture.ask("fine").await);
    let (again, second) = worker_of(&fixture.ask("fine").await);
    assert_eq!((pid, first, second), (again, 1, 2));
    let outcome = fixture.ask("error").await;
    assert_eq!(ended(&outcome), (Ended::Failed, "the worker reports: no idea"));
    assert_eq!(worker_of(&fixture.ask("fine").await), (pid, 4), "an error is the event's, not the worker's");
}

#[tokio::test]
async fn a_payload_over_several_lines_is_sent_on_one() {
    let fixture = Fixture::worker("good", "").await;
    let input = "{\n \"command\" : \"lines\",\r\n\t\"text\":\"a  \\\" \u{2028} b\"\n}".to_owned();
    assert_eq!(reason(&fixture.ask_as("run", input).await), "a  \" \u{2028} b");
}

#[tokio::test]
async fn without_a_hello_events_get_processes_of_their_own() {
    for how in ["exits", "future", "chatter"] {
        let fixture = Fixture::worker(how, "").await;
        for _ in 0..3 {
            let outcome = fixture.ask("fine").await;
            assert_eq!(reason(&outcome), "oneshot fine", "{how}");
            let [warning] = &outcome.hooks[0].warnings[..] else { panic!("{outcome:?}") };
            assert!(
                warning.starts_with("no worker: it ") || warning.starts_with("no worker: a line"),
                "{warning}"
            );
            assert!(
                warning.ends_with("; each event gets a process, and a worker is tried again later"),
                "{warning}"
            );
        }
    }
}

#[tokio::test]
async fn the_hello_deadline_is_half_the_hooks_timeout() {
    let fixture = Fixture::worker("silent", "timeout_seconds: 8").await;
    let since = Instant::now();
    assert_eq!(reason(&fixture.ask("fine").await), "oneshot fine");
    assert!(since.elapsed() >= Duration::from_secs(3));
    // Five seconds after its start the worker is given up for good. Until then each event gets a process.
    let lives = |process: &child_processes::Process| {
        process.alive() && is_silent(process) && runs_in(process, fixture.workspace.path())
    };
    while !child_processes::processes(lives).is_empty() {
        assert_eq!(reason(&fixture.ask("fine").await), "oneshot fine");
        assert!(since.elapsed() < LONG, "the worker is never given up");
    }
    assert_eq!(reason(&fixture.ask("fine").await), "oneshot fine");
    let workers =
        child_processes::gone(|process| process.alive() && runs_in(process, fixture.workspace.path())).await;
    assert!(workers.is_empty(), "{workers:?}");
}

/// Whether it is the worker that says no hello.
fn is_silent(process: &child_processes::Process) -> bool {
    let line = fs::read(format!("/proc/{}/cmdline", process.pid)).unwrap_or_default();
    line.split(|byte| *byte == 0).any(|argument| argument == b"silent")
}

fn runs_in(process: &child_processes::Process, directory: &Path) -> bool {
    fs::read_link(format!("/proc/{}/cwd", process.pid)).is_ok_and(|cwd| cwd == directory)
}

#[tokio::test]
async fn a_protocol_error_fails_the_event_and_kills_the_worker() {
    let cases = [
        ("garbage", Ended::InvalidOutput, "a line is not a message: invalid JSON at column 1: `"),
        ("unknown", Ended::InvalidOutput, "an id that is not open"),
        ("flood", Ended::InvalidOutput, "a line is longer than"),
        ("half", Ended::InvalidOutput, "within a line"),
        ("die", Ended::Failed, "the worker ended"),
    ];
    let all = cases.map(|(command, end, why)| async move {
        let fixture = Fixture::worker("good", "").await;
        let (pid, _) = worker_of(&fixture.ask("fine").await);
        let outcome = fixture.ask(command).await;
        let (found, error) = ended(&outcome);
        assert_eq!(found, end, "{command}: {error}");
        assert!(error.contains(why), "{command}: {error}");
        // The next event waits through the pause for the next worker.
        let (next, number) = worker_of(&fixture.ask("fine").await);
        assert!(next != pid && number == 1, "{command}");
        assert_gone(pid).await;
    });
    join_all(all).await;
}

#[tokio::test]
async fn a_second_reply_kills_the_worker() {
    let fixture = Fixture::worker("good", "").await;
    let (pid, _) = worker_of(&fixture.ask("twice").await);
    assert_gone(pid).await;
    assert_ne!(worker_of(&fixture.ask("fine").await).0, pid);
}

#[tokio::test]
async fn a_deadline_kills_the_worker() {
    let fixture = Fixture::worker("good", "timeout_seconds: 10").await;
    let (pid, _) = worker_of(&fixture.ask("fine").await);
    let since = Instant::now();
    assert_eq!(ended(&fixture.ask("sleep").await).0, Ended::TimedOut);
    assert!(since.elapsed() < LONG / 2, "{:?}", since.elapsed());
    assert_gone(pid).await;
    assert_ne!(worker_of(&fixture.ask("fine").await).0, pid);
}

#[tokio::test]
async fn a_worker_gets_one_event_at_a_time() {
    let fixture = Fixture::worker("good", "").await;
    let (pid, _) = worker_of(&fixture.ask("fine").await);
    let runs: Vec<_> = (0..8).map(|run| format!("run-{run}")).collect();
    let input = || json!({ "command": "fine" }).to_string();
    let outcomes = join_all(runs.iter().map(|run| fixture.ask_as(run, input()))).await;
    let mut requests: Vec<_> = outcomes.iter().map(worker_of).collect();
    requests.sort_unstable();
    assert_eq!(requests, (2..10).map(|number| (pid, number)).collect::<Vec<_>>());
}

#[tokio::test]
async fn two_workers_serve_two_events_at_once_and_a_third_waits() {
    let fixture = Fixture::worker("good", "workers: 2").await;
    let hold = || json!({ "command": "until go" }).to_string();
    let go = async {
        fixture.lines("held.txt", 2).await;
        fs::write(fixture.workspace.path().join("go"), "").unwrap();
    };
    let (a, b, c, ()) = tokio::join!(
        fixture.ask_as("a", hold()),
        fixture.ask_as("b", hold()),
        fixture.ask_as("c", hold()),
        go
    );
    let order = fs::read_to_string(fixture.workspace.path().join("held.txt")).unwrap();
    assert_eq!(order.lines().take(3).collect::<Vec<_>>(), ["held", "held", "done"]);
    let mut requests = [&a, &b, &c].map(worker_of);
    requests.sort_unstable_by_key(|(_, number)| *number);
    let [(first, 1), (second, 1), (third, 2)] = requests else { panic!("{requests:?}") };
    assert!(first != second && [first, second].contains(&third), "{requests:?}");
    assert!(fixture.orchestrator.shutdown(LONG).await);
    assert_gone(first).await;
    assert_gone(second).await;
}

#[tokio::test]
async fn a_multiplexing_worker_gets_many_events_at_once() {
    let fixture = Fixture::worker("multiplex", "").await;
    worker_of(&fixture.ask("fine").await);
    let hold = || json!({ "command": "hold" }).to_string();
    let release = async {
        fixture.lines("held.txt", 2).await;
        fixture.ask_as("c", json!({ "command": "release" }).to_string()).await
    };
    let (a, b, c) = tokio::join!(fixture.ask_as("a", hold()), fixture.ask_as("b", hold()), release);
    assert_eq!((reason(&a), reason(&b)), ("released", "released"));
    assert_eq!(worker_of(&c).1, 4);
}

#[tokio::test]
async fn multiplexing_workers_share_the_events() {
    let fixture = Fixture::worker("multiplex", "workers: 2").await;
    let (first, _) = worker_of(&fixture.ask("fine").await);
    let other = async {
        fixture.lines("held.txt", 1).await;
        loop {
            let (pid, _) =
                worker_of(&fixture.ask_as("other", json!({ "command": "fine" }).to_string()).await);
            if pid != first {
                return;
            }
        }
    };
    tokio::select! {
        outcome = fixture.ask("hold") => panic!("{outcome:?}"),
        shared = timeout(LONG, other) => shared.unwrap(),
    }
}

#[tokio::test]
async fn a_worker_is_told_of_a_cancelled_event() {
    let fixture = Fixture::worker("multiplex", "").await;
    let (pid, _) = worker_of(&fixture.ask("fine").await);
    tokio::select! {
        outcome = fixture.ask("hold") => panic!("{outcome:?}"),
        () = fixture.lines("held.txt", 1) => {}
    }
    fixture.lines("cancelled.txt", 1).await;
    assert_eq!(worker_of(&fixture.ask("fine").await), (pid, 3), "it goes on");
}
