//! Worker hooks as a host sees them: what the protocol allows, what becomes of events when a worker breaks it, and
//! that no worker stays behind. The workers are `tests/support/worker.py` and the examples of `config/workers`.

use crate::support::child_processes;
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
struct Yard {
    orchestrator: Orchestrator,
    workspace: TempDir,
}

impl Yard {
    /// A hook of this command, in a mode with more keys.
    async fn of(command: &str, keys: &str) -> Self {
        let workspace = tempfile::tempdir().unwrap();
        write_hook(workspace.path(), command, keys);
        let orchestrator = Orchestrator::builder().workspace(workspace.path()).start().await.unwrap();
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
    format!("exec python3 {} {how}", root().join("tests/support/worker.py").display())
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
async fn next_worker(yard: &Yard) -> (u32, usize) {
    let asked = async {
        loop {
            let outcome = yard.ask("fine").await;
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
    let yard = Yard::worker("good", "").await;
    let (pid, first) = worker_of(&yard.ask("fine").await);
    let (again, second) = worker_of(&yard.ask("fine").await);
    assert_eq!((pid, first, second), (again, 1, 2));
    let outcome = yard.ask("error").await;
    assert_eq!(ended(&outcome), (Ended::Failed, "the worker reports: no idea"));
    assert_eq!(worker_of(&yard.ask("fine").await), (pid, 4), "an error is the event's, not the worker's");
}

#[tokio::test]
async fn a_payload_over_several_lines_is_sent_on_one() {
    let yard = Yard::worker("good", "").await;
    let input = "{\n \"command\" : \"lines\",\r\n\t\"text\":\"a  \\\" \u{2028} b\"\n}".to_owned();
    assert_eq!(reason(&yard.ask_as("run", input).await), "a  \" \u{2028} b");
}

#[tokio::test]
async fn without_a_hello_events_get_processes_of_their_own() {
    for how in ["exits", "future", "chatter"] {
        let yard = Yard::worker(how, "").await;
        for _ in 0..3 {
            let outcome = yard.ask("fine").await;
            assert_eq!(reason(&outcome), "oneshot fine", "{how}");
            let [warning] = &outcome.hooks[0].warnings[..] else { panic!("{outcome:?}") };
            assert!(
                warning.starts_with("no worker: it ") || warning.starts_with("no worker: a line"),
                "{warning}"
            );
            assert!(warning.ends_with("until the next reload each event gets a process"), "{warning}");
        }
    }
}

#[tokio::test]
async fn a_hello_is_not_waited_for_longer_than_half_the_hooks_time() {
    let yard = Yard::worker("silent", "timeout_seconds: 8").await;
    let since = Instant::now();
    assert_eq!(reason(&yard.ask("fine").await), "oneshot fine");
    assert!(since.elapsed() >= Duration::from_secs(3));
    // Five seconds after its start the worker is given up for good. Until then each event gets a process.
    let lives = |process: &child_processes::Process| {
        process.alive() && is_silent(process) && runs_in(process, yard.workspace.path())
    };
    while !child_processes::processes(lives).is_empty() {
        assert_eq!(reason(&yard.ask("fine").await), "oneshot fine");
        assert!(since.elapsed() < LONG, "the worker is never given up");
    }
    assert_eq!(reason(&yard.ask("fine").await), "oneshot fine");
    let workers =
        child_processes::gone(|process| process.alive() && runs_in(process, yard.workspace.path())).await;
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
async fn what_breaks_the_protocol_costs_its_event_and_the_worker() {
    let cases = [
        ("garbage", Ended::InvalidOutput, "a line is no message"),
        ("unknown", Ended::InvalidOutput, "an id that is not open"),
        ("flood", Ended::InvalidOutput, "a line is longer than"),
        ("half", Ended::InvalidOutput, "within a line"),
        ("die", Ended::Failed, "the worker ended"),
    ];
    let all = cases.map(|(command, end, why)| async move {
        let yard = Yard::worker("good", "").await;
        let (pid, _) = worker_of(&yard.ask("fine").await);
        let outcome = yard.ask(command).await;
        let (found, error) = ended(&outcome);
        assert_eq!(found, end, "{command}: {error}");
        assert!(error.contains(why), "{command}: {error}");
        let outcome = yard.ask("fine").await;
        assert_eq!(reason(&outcome), "oneshot fine", "{command}: the pause before another");
        let warning = "no worker: one has failed, and there is a pause before the next";
        assert_eq!(outcome.hooks[0].warnings, [warning], "{command}");
        let (next, number) = next_worker(&yard).await;
        assert!(next != pid && number == 1, "{command}");
        assert_gone(pid).await;
    });
    join_all(all).await;
}

#[tokio::test]
async fn a_second_reply_kills_the_worker() {
    let yard = Yard::worker("good", "").await;
    let (pid, _) = worker_of(&yard.ask("twice").await);
    assert_gone(pid).await;
    assert_ne!(next_worker(&yard).await.0, pid);
}

#[tokio::test]
async fn a_deadline_kills_the_worker() {
    let yard = Yard::worker("good", "timeout_seconds: 3").await;
    let (pid, _) = worker_of(&yard.ask("fine").await);
    let since = Instant::now();
    assert_eq!(ended(&yard.ask("sleep").await).0, Ended::TimedOut);
    assert!(since.elapsed() < LONG / 2, "{:?}", since.elapsed());
    assert_gone(pid).await;
    assert_ne!(next_worker(&yard).await.0, pid);
}

#[tokio::test]
async fn a_worker_gets_one_event_at_a_time() {
    let yard = Yard::worker("good", "").await;
    let (pid, _) = worker_of(&yard.ask("fine").await);
    let runs: Vec<_> = (0..8).map(|run| format!("run-{run}")).collect();
    let input = || json!({ "command": "fine" }).to_string();
    let outcomes = join_all(runs.iter().map(|run| yard.ask_as(run, input()))).await;
    let mut requests: Vec<_> = outcomes.iter().map(worker_of).collect();
    requests.sort_unstable();
    assert_eq!(requests, (2..10).map(|number| (pid, number)).collect::<Vec<_>>());
}

#[tokio::test]
async fn two_workers_serve_two_events_at_once_and_a_third_waits() {
    let yard = Yard::worker("good", "workers: 2").await;
    let hold = || json!({ "command": "until go" }).to_string();
    let go = async {
        yard.lines("held.txt", 2).await;
        fs::write(yard.workspace.path().join("go"), "").unwrap();
    };
    let (a, b, c, ()) =
        tokio::join!(yard.ask_as("a", hold()), yard.ask_as("b", hold()), yard.ask_as("c", hold()), go);
    let order = fs::read_to_string(yard.workspace.path().join("held.txt")).unwrap();
    assert_eq!(order.lines().take(3).collect::<Vec<_>>(), ["held", "held", "done"]);
    let mut requests = [&a, &b, &c].map(worker_of);
    requests.sort_unstable_by_key(|(_, number)| *number);
    let [(first, 1), (second, 1), (third, 2)] = requests else { panic!("{requests:?}") };
    assert!(first != second && [first, second].contains(&third), "{requests:?}");
    assert!(yard.orchestrator.shutdown(LONG).await);
    assert_gone(first).await;
    assert_gone(second).await;
}

#[tokio::test]
async fn a_multiplexing_worker_gets_many_events_at_once() {
    let yard = Yard::worker("multiplex", "").await;
    worker_of(&yard.ask("fine").await);
    let hold = || json!({ "command": "hold" }).to_string();
    let release = async {
        yard.lines("held.txt", 2).await;
        yard.ask_as("c", json!({ "command": "release" }).to_string()).await
    };
    let (a, b, c) = tokio::join!(yard.ask_as("a", hold()), yard.ask_as("b", hold()), release);
    assert_eq!((reason(&a), reason(&b)), ("released", "released"));
    assert_eq!(worker_of(&c).1, 4);
}

#[tokio::test]
async fn multiplexing_workers_share_the_events() {
    let yard = Yard::worker("multiplex", "workers: 2").await;
    let (first, _) = worker_of(&yard.ask("fine").await);
    let other = async {
        yard.lines("held.txt", 1).await;
        loop {
            let (pid, _) = worker_of(&yard.ask_as("other", json!({ "command": "fine" }).to_string()).await);
            if pid != first {
                return;
            }
        }
    };
    tokio::select! {
        outcome = yard.ask("hold") => panic!("{outcome:?}"),
        shared = timeout(LONG, other) => shared.unwrap(),
    }
}

#[tokio::test]
async fn a_worker_is_told_that_nobody_waits() {
    let yard = Yard::worker("multiplex", "").await;
    let (pid, _) = worker_of(&yard.ask("fine").await);
    tokio::select! {
        outcome = yard.ask("hold") => panic!("{outcome:?}"),
        () = yard.lines("held.txt", 1) => {}
    }
    yard.lines("cancelled.txt", 1).await;
    assert_eq!(worker_of(&yard.ask("fine").await), (pid, 3), "it goes on");
}

#[tokio::test]
async fn workers_are_replaced_after_their_share() {
    let yard = Yard::worker("good", "max_requests: 2").await;
    let mut seen = Vec::new();
    while seen.len() < 6 {
        seen.push(next_worker(&yard).await);
    }
    assert!(seen.iter().all(|(_, number)| *number <= 2), "{seen:?}");
    assert!(seen.iter().map(|(pid, _)| pid).collect::<std::collections::HashSet<_>>().len() >= 3);
    assert_gone(seen[0].0).await;
}

#[tokio::test]
async fn no_event_gets_a_process_while_the_next_worker_starts() {
    let yard = Yard::worker("multiplex", "max_requests: 5").await;
    worker_of(&yard.ask("fine").await);
    for round in 0..4 {
        let runs: Vec<_> = (0..40).map(|run| format!("run-{round}-{run}")).collect();
        let input = || json!({ "command": "fine" }).to_string();
        let outcomes = join_all(runs.iter().map(|run| yard.ask_as(run, input()))).await;
        assert!(outcomes.iter().all(|outcome| worker_of(outcome).1 > 0));
    }
}

#[tokio::test]
async fn the_next_worker_starts_before_a_share_is_done() {
    let yard = Yard::worker("good", "max_requests: 20").await;
    let directory = yard.workspace.path();
    let workers = || child_processes::processes(|process| runs_in(process, directory)).len();
    let mut seen = Vec::new();
    for _ in 0..19 {
        seen.push(worker_of(&yard.ask("fine").await));
    }
    wait_until_async("the next worker runs beside the first", || workers() == 2).await;
    seen.push(worker_of(&yard.ask("fine").await));
    let first = seen[0].0;
    assert_eq!(seen, (1..=20).map(|number| (first, number)).collect::<Vec<_>>());
    let (second, number) = worker_of(&yard.ask("fine").await);
    assert!(second != first && number == 1);
}

#[tokio::test]
async fn an_old_worker_ends_although_it_always_has_an_event() {
    let yard = Yard::worker("multiplex", "max_age_seconds: 1\nmax_requests: 10000000").await;
    let (first, _) = worker_of(&yard.ask("fine").await);
    let replaced = async {
        yard.lines("held.txt", 1).await;
        while worker_of(&yard.ask_as("other", json!({ "command": "fine" }).to_string()).await).0 == first {}
    };
    tokio::select! {
        outcome = yard.ask("hold") => panic!("{outcome:?}"),
        replaced = timeout(LONG, replaced) => replaced.unwrap(),
    }
}

/// A worker that is given up soon after its first event.
async fn ends_after_one_event(keys: &str) {
    let yard = Yard::worker("good", keys).await;
    assert_gone(worker_of(&yard.ask("fine").await).0).await;
}

#[tokio::test]
async fn an_idle_worker_ends() {
    ends_after_one_event("max_idle_seconds: 1").await;
}

#[tokio::test]
async fn an_old_worker_ends() {
    ends_after_one_event("max_age_seconds: 1").await;
}

#[tokio::test]
async fn a_large_worker_ends() {
    ends_after_one_event("max_rss_mib: 1").await;
}

#[tokio::test]
async fn a_reload_replaces_the_workers_of_changed_hooks_only() {
    let yard = Yard::worker("good", "").await;
    let (pid, _) = worker_of(&yard.ask("fine").await);
    yard.orchestrator.reload().await.unwrap();
    assert_eq!(worker_of(&yard.ask("fine").await), (pid, 2), "nothing has changed");
    write_hook(yard.workspace.path(), &script("good"), "mode: worker\n  environment: { A: b }");
    yard.orchestrator.reload().await.unwrap();
    assert_gone(pid).await;
    assert_eq!(worker_of(&yard.ask("fine").await).1, 1);
}

#[tokio::test]
async fn no_worker_outlives_its_orchestrator() {
    let yard = Yard::worker("good", "").await;
    let (pid, _) = worker_of(&yard.ask("fine").await);
    assert!(yard.orchestrator.shutdown(LONG).await);
    assert_gone(pid).await;
    let yard = Yard::worker("good", "").await;
    let (pid, _) = worker_of(&yard.ask("fine").await);
    drop(yard);
    assert_gone(pid).await;
}

/// What `hookyard check` prints as JSON, and its exit code.
fn check(workspace: &Path, arguments: &[&str]) -> (Value, i32) {
    let mut program = assert_cmd::cargo::cargo_bin_cmd!("hookyard");
    let output = program.current_dir(workspace).args(["check", "--json"]).args(arguments).output().unwrap();
    (serde_json::from_slice(&output.stdout).unwrap(), output.status.code().unwrap())
}

/// Gives a workspace a worker of this command.
fn write_worker(workspace: &Path, name: &str, command: &str) {
    let file = format!(
        "name: {name}\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: {}\n  mode: worker\n",
        json!(command)
    );
    let hooks = workspace.join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    fs::write(hooks.join(format!("{name}.yaml")), file).unwrap();
}

#[tokio::test]
async fn check_warns_of_workers_that_say_no_hello_and_leaves_none_behind() {
    let workspace = tempfile::tempdir().unwrap();
    write_worker(workspace.path(), "good", &script("good"));
    write_worker(workspace.path(), "exits", &script("exits"));
    write_worker(workspace.path(), "future", &script("future"));
    write_worker(workspace.path(), "silent", &script("silent"));
    let since = Instant::now();
    let (report, code) = check(workspace.path(), &[]);
    assert!(since.elapsed() < LONG / 2, "{:?}", since.elapsed());
    let warnings: Vec<_> = report["diagnostics"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            let file = Path::new(found["file"].as_str().unwrap()).file_name().unwrap().to_str().unwrap();
            assert_eq!((&found["code"], &found["severity"]), (&json!("worker-hello"), &json!("warning")));
            assert_eq!((&found["line"], &found["column"]), (&json!(6), &json!(9)));
            format!("{file}: {}", found["message"].as_str().unwrap())
        })
        .collect();
    let expected = [
        "exits.yaml: no hello from the worker: it ended without a hello",
        "future.yaml: no hello from the worker: it speaks version 2 of the protocol",
        "silent.yaml: no hello from the worker: it said no hello within 5s",
    ];
    assert_eq!((warnings.as_slice(), code), (&expected.map(str::to_owned)[..], 0));
    let left = child_processes::gone(|process| process.alive() && runs_in(process, workspace.path())).await;
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn check_starts_nothing_where_it_should_not() {
    let workspace = tempfile::tempdir().unwrap();
    write_worker(workspace.path(), "worker", "echo > ran");
    let (report, code) = check(workspace.path(), &["--no-start"]);
    assert_eq!((&report["diagnostics"], code), (&json!([]), 0));
    assert!(!workspace.path().join("ran").exists());
    check(workspace.path(), &[]);
    assert!(workspace.path().join("ran").exists());
}

/// The example hooks, as far as what they are written in is installed.
fn examples() -> Vec<(&'static str, String)> {
    let examples = [("python3", "guard.py"), ("node", "guard.mjs"), ("jq", "guard.sh")];
    let path = std::env::var_os("PATH").unwrap_or_default();
    let installed =
        |program: &str| std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    let command = |(program, file): (&'static str, &str)| {
        let start = if program == "jq" { "sh" } else { program };
        (program, format!("exec {start} {}", root().join("config/workers/examples").join(file).display()))
    };
    examples.into_iter().filter(|(program, _)| installed(program)).map(command).collect()
}

#[tokio::test]
async fn the_example_hooks_answer_alike_in_every_mode() {
    for (program, command) in examples() {
        for mode in MODES {
            let yard = Yard::of(&command, &format!("mode: {mode}")).await;
            for _ in 0..2 {
                let (good, bad) = (yard.ask("ls").await, yard.ask("rm -rf /").await);
                assert_eq!((ended(&good), good.verdict), ((Ended::Completed, ""), Verdict::Proceed));
                assert_eq!((ended(&bad), bad.verdict), ((Ended::Completed, ""), Verdict::Block));
                assert_eq!(reason(&bad), "this would remove everything", "{program} {mode}");
            }
        }
    }
}

/// The modes that every script of the SDKs runs in.
const MODES: [&str; 3] = ["oneshot", "prespawn", "worker"];

/// A hook that blocks in the name of its process, after it has said on a line of `started.txt` that it runs.
const WAITER: &str =
    r#"echo $$ >> started.txt; read -r envelope; echo "{\"decision\":\"block\",\"reason\":\"$$\"}""#;

fn pid_of(outcome: &Outcome) -> u32 {
    reason(outcome).parse().unwrap_or_else(|_| panic!("{outcome:?}"))
}

#[tokio::test]
async fn spares_wait_for_their_event_and_serve_one() {
    let yard = Yard::of(WAITER, "mode: prespawn\n  spares: 2").await;
    let mut seen = vec![pid_of(&yard.ask("fine").await)];
    for daemon in 1..5 {
        // One for each event so far, and two that wait.
        yard.lines("started.txt", daemon + 2).await;
        let started = fs::read_to_string(yard.workspace.path().join("started.txt")).unwrap();
        let pid = pid_of(&yard.ask("fine").await);
        assert!(started.lines().any(|line| line == pid.to_string()), "{pid} was not there before its event");
        assert!(!seen.contains(&pid), "{pid} served twice");
        seen.push(pid);
    }
    assert!(yard.orchestrator.shutdown(LONG).await);
    let left =
        child_processes::gone(|process| process.alive() && runs_in(process, yard.workspace.path())).await;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_spare_of_a_changed_script_is_not_used() {
    let yard = Yard::of("sh ./script.sh", "mode: prespawn").await;
    let script = yard.workspace.path().join("script.sh");
    let write = |reason: &str| {
        let answer = json!({ "decision": "block", "reason": reason }).to_string();
        fs::write(&script, format!("echo $$ >> started.txt\nread -r envelope\necho '{answer}'\n")).unwrap();
    };
    write("old");
    assert_eq!(reason(&yard.ask("fine").await), "old");
    yard.lines("started.txt", 2).await;
    write("changed");
    assert_eq!(reason(&yard.ask("fine").await), "changed");
}

#[tokio::test]
async fn a_spare_that_did_not_wait_is_not_used() {
    let hook = r#"echo "{\"decision\":\"block\",\"reason\":\"$HOOKYARD_EVENT\"}"; echo $$ >> started.txt"#;
    let yard = Yard::of(hook, "mode: prespawn").await;
    for daemon in 1..=8 {
        assert_eq!(reason(&yard.ask("fine").await), "before_tool_dispatch");
        // A spare for each of the first three events; none is started any more after those.
        yard.lines("started.txt", daemon + daemon.min(3)).await;
    }
    let started = fs::read_to_string(yard.workspace.path().join("started.txt")).unwrap();
    assert_eq!(started.lines().count(), 8 + 3, "{started}");
}

/// Asks about an event in the trace of this number.
async fn ask_in_trace(yard: &Yard, command: &str, number: u64) -> (String, String) {
    let trace = format!("00-0af7651916cd43dd8448eb211c80319c-{number:016x}-01");
    let mut event = event("run", &json!({ "command": command }).to_string());
    event.trace = Some(trace.parse().unwrap());
    let outcome = timeout(LONG, yard.orchestrator.dispatch(event)).await.unwrap().unwrap();
    (reason(&outcome).to_owned(), trace)
}

#[tokio::test]
async fn a_worker_is_told_the_trace_with_each_event() {
    let yard = Yard::worker("good", "").await;
    for number in 1..=2 {
        let (told, trace) = ask_in_trace(&yard, "trace", number).await;
        assert_eq!(told, format!("{trace} none"));
    }
    assert_eq!(reason(&yard.ask("trace").await), "none none");
    assert_eq!(worker_of(&yard.ask("fine").await).1, 4, "one worker is told all of them");
}

#[tokio::test]
async fn a_spare_serves_an_event_of_any_trace_and_is_told_none() {
    let hook = r#"echo $$ >> started.txt; read -r envelope; echo "{\"decision\":\"block\",\"reason\":\"${TRACEPARENT-none}\"}""#;
    let yard = Yard::of(hook, "mode: prespawn").await;
    let (told, trace) = ask_in_trace(&yard, "fine", 1).await;
    assert_eq!(told, trace, "the first event finds no spare");
    for number in 2..=4 {
        yard.lines("started.txt", usize::try_from(number).unwrap()).await;
        assert_eq!(ask_in_trace(&yard, "fine", number).await.0, "none");
    }
}
