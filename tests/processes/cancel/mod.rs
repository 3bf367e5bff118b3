//! Cancelling runs. The clock is paused where no process runs.

mod listing;

use crate::support::{
    child_processes,
    events::{call, event, settle, tool},
    native_hooks::counting,
    trust::orchestrator_in,
};
use std::{
    fs,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc,
    },
    time::Duration,
};

use futures_util::FutureExt;
use hookyard::{
    CancelSummary, DispatchError, NativeHook, Notice, Orchestrator, RunFilter, RunPhase,
    model::{Delivery, Ended, Event, EventKind, FailurePolicy, Outcome, Reply, RunId, Verdict, WorkspaceId},
};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    sync::watch::channel,
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

const SECOND: Duration = Duration::from_secs(1);
const REASON: Option<&str> = Some("the run was cancelled");

/// How many runs and events were cancelled.
fn counts(cancelled: CancelSummary) -> (usize, usize) {
    (cancelled.runs, cancelled.events)
}

fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

fn workspace(id: &str) -> WorkspaceId {
    WorkspaceId::new(id).unwrap()
}

fn slow(name: &str, kind: EventKind) -> NativeHook {
    counting(name, kind, 30 * SECOND).0
}

fn halting() -> NativeHook {
    NativeHook::inline("budget", [EventKind::AfterModelCall], |_| Ok(Reply::halt("over budget")))
}

async fn orchestrator(hooks: impl IntoIterator<Item = NativeHook>) -> Orchestrator {
    let builder = hooks.into_iter().fold(Orchestrator::builder(), hookyard::Builder::native_hook);
    builder.start().await.expect("it starts")
}

/// Two workspaces, `a` and `b`, without hooks of their own.
async fn two_workspaces(hooks: impl IntoIterator<Item = NativeHook>) -> (Orchestrator, [TempDir; 2]) {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let builder = Orchestrator::builder()
        .trust(hookyard::config::TrustPolicy::Off)
        .workspace_as(workspace("a"), folders[0].path())
        .workspace_as(workspace("b"), folders[1].path());
    let builder = hooks.into_iter().fold(builder, hookyard::Builder::native_hook);
    (builder.start().await.unwrap(), folders)
}

fn in_workspace(id: &str, event: Event) -> Event {
    Event { workspace_id: Some(workspace(id)), ..event }
}

type Answer = JoinHandle<Result<Outcome, DispatchError>>;

/// Sends an event, and returns once nothing more happens without the clock.
async fn send(orchestrator: &Orchestrator, event: Event) -> Answer {
    let orchestrator = orchestrator.clone();
    let answer = tokio::spawn(async move { orchestrator.dispatch(event).await });
    settle().await;
    answer
}

async fn answered(answer: Answer) -> Outcome {
    answer.await.unwrap().unwrap()
}

fn assert_halted(outcome: &Outcome) {
    assert_eq!((outcome.verdict, outcome.reason.as_deref()), (Verdict::Halt, REASON));
    assert_eq!(outcome.by, None);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_halts_the_event_under_way_and_those_that_wait() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, 30 * SECOND);
    let hook = hook.on_error(FailurePolicy::Deny);
    let orchestrator = orchestrator([hook]).await;
    let since = Instant::now();
    let first = send(&orchestrator, tool("run")).await;
    let waiting = [send(&orchestrator, tool("run")).await, send(&orchestrator, tool("run")).await];
    let other = send(&orchestrator, tool("other")).await;
    let mut notices = orchestrator.subscribe();
    tokio::time::advance(SECOND).await;
    let cancelled = orchestrator.cancel_run(None, &run("run")).await;
    assert_eq!(counts(cancelled), (1, 3));
    let first = answered(first).await;
    assert_halted(&first);
    let report = &first.hooks[0];
    assert_eq!((report.ended, report.error.as_deref()), (Ended::Cancelled, REASON));
    assert_eq!(report.duration, SECOND);
    for outcome in waiting {
        let outcome = answered(outcome).await;
        assert_halted(&outcome);
        assert!(outcome.hooks.is_empty());
    }
    assert_eq!((orchestrator.run_count().known, since.elapsed()), (1, SECOND), "the other stays");
    let mut verdicts = Vec::new();
    while let Some(Some(Ok(notice))) = notices.next().now_or_never() {
        verdicts.push(match notice {
            Notice::Invocation { report, .. } => report.ended.to_string(),
            Notice::Outcome { outcome, .. } => outcome.verdict.to_string(),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(verdicts, ["cancelled", "halt", "halt", "halt"]);
    assert_eq!(answered(other).await.hooks[0].ended, Ended::Completed);
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_answers_proceed_to_lifecycle_events() {
    let orchestrator = orchestrator([slow("watcher", EventKind::Notification)]).await;
    let mut notices = orchestrator.subscribe();
    let attached = send(&orchestrator, event(EventKind::Notification, "run")).await;
    let detached = Event { delivery: Delivery::Detached, ..event(EventKind::Notification, "run") };
    answered(send(&orchestrator, detached).await).await;
    let cancelled = orchestrator.cancel_run(None, &run("run")).await;
    assert_eq!(counts(cancelled), (1, 2));
    let outcome = answered(attached).await;
    assert_eq!((outcome.verdict, outcome.hooks[0].ended), (Verdict::Proceed, Ended::Cancelled));
    for _ in 0..2 {
        let first = notices.next().await.unwrap().unwrap();
        assert!(matches!(first, Notice::Invocation { report, .. } if report.ended == Ended::Cancelled));
        assert!(matches!(notices.next().await.unwrap().unwrap(), Notice::Outcome { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn all_who_sent_the_same_event_are_answered_and_it_is_one_event() {
    let orchestrator = orchestrator([slow("hook", EventKind::BeforeToolDispatch)]).await;
    let both = [send(&orchestrator, call("run", "1")).await, send(&orchestrator, call("run", "1")).await];
    assert_eq!(orchestrator.cancel_run(None, &run("run")).await.events, 1);
    for outcome in both {
        assert_halted(&answered(outcome).await);
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_repeated_after_the_cancel_runs_its_hooks() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, SECOND);
    let orchestrator = orchestrator([hook]).await;
    let known = answered(send(&orchestrator, call("run", "1")).await).await;
    let cut_short = send(&orchestrator, call("run", "2")).await;
    orchestrator.cancel_run(None, &run("run")).await;
    assert_halted(&answered(cut_short).await);
    let repeated = orchestrator.dispatch(call("run", "2")).await.unwrap();
    assert_eq!((repeated.verdict, repeated.hooks[0].ended), (Verdict::Proceed, Ended::Completed));
    let again = orchestrator.dispatch(call("run", "1")).await.unwrap();
    assert_ne!(again.decision_id, known.decision_id, "its answers are forgotten too");
    assert_eq!(ran.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_run_without_an_actor_is_cancelled_too() {
    let orchestrator = orchestrator([halting()]).await;
    orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
    sleep(120 * SECOND).await;
    let status = &orchestrator.run_status(None, &run("run")).await[0];
    assert_eq!((status.phase, status.events, &status.in_hand), (RunPhase::Passivated, 1, &None));
    assert_eq!((status.age.as_secs(), status.idle.as_secs()), (120, 120));
    assert_eq!(status.halted.as_ref().unwrap().reason.as_deref(), Some("over budget"));
    let cancelled = orchestrator.cancel_run(None, &run("run")).await;
    assert_eq!(counts(cancelled), (1, 0));
    assert_eq!(orchestrator.run_count().known, 0);
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Proceed);
    assert_eq!(counts(orchestrator.cancel_run(None, &run("run")).await), (0, 0), "it is gone");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_halted_run_resets_it() {
    let orchestrator = orchestrator([halting(), slow("hook", EventKind::BeforeToolDispatch)]).await;
    orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Halt);
    assert_eq!(counts(orchestrator.cancel_run(None, &run("run")).await), (1, 0));
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Proceed);
}

#[tokio::test(start_paused = true)]
async fn an_unknown_run_cannot_be_cancelled() {
    let orchestrator = orchestrator([halting()]).await;
    orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
    assert_eq!(counts(orchestrator.cancel_run(None, &run("other")).await), (0, 0));
    assert_eq!(counts(orchestrator.cancel_run(Some(&workspace("nowhere")), &run("run")).await), (0, 0));
    assert_eq!(counts(orchestrator.cancel_runs_of(&workspace("nowhere")).await), (0, 0));
    assert!(orchestrator.run_status(None, &run("other")).await.is_empty());
    assert_eq!(orchestrator.run_count().known, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_that_meets_the_end_of_an_event_loses_no_answer() {
    let (highest_round, (open, gate)) = (Arc::new(AtomicUsize::new(0)), channel(0));
    let latest = Arc::clone(&highest_round);
    let hook = NativeHook::task("hook", [EventKind::BeforeToolDispatch], move |draft| {
        let round: usize = draft.event().run_id.as_str().parse().unwrap();
        latest.fetch_max(round, Ordering::SeqCst);
        let mut gate = gate.clone();
        async move {
            gate.wait_for(|opened| *opened >= round).await.unwrap();
            Ok(Reply::proceed())
        }
    });
    let orchestrator = orchestrator([hook]).await;
    let mut halted = 0;
    for round in 1..=1000 {
        let id = round.to_string();
        let answers = [tool(&id), tool(&id)].map(|event| {
            let orchestrator = orchestrator.clone();
            tokio::spawn(async move { orchestrator.dispatch(event).await })
        });
        while highest_round.load(Ordering::SeqCst) < round {
            tokio::task::yield_now().await;
        }
        // The hook ends and the run is cancelled at the same time, now one a little earlier, now the other.
        let cancelling = tokio::spawn({
            let (orchestrator, id) = (orchestrator.clone(), run(&id));
            async move { orchestrator.cancel_run(None, &id).await }
        });
        for _ in 0..round % 20 {
            tokio::task::yield_now().await;
        }
        open.send(round).unwrap();
        let cancelled = cancelling.await.unwrap();
        let mut cut_short = 0;
        for answer in answers {
            let outcome = timeout(60 * SECOND, answered(answer)).await.expect("an answer");
            if outcome.verdict == Verdict::Halt {
                assert_halted(&outcome);
                cut_short += 1;
            } else {
                assert_eq!((outcome.verdict, outcome.hooks[0].ended), (Verdict::Proceed, Ended::Completed));
            }
        }
        assert_eq!(counts(cancelled), (1, cut_short), "in round {round}");
        halted += cut_short;
    }
    assert!((1..2000).contains(&halted), "{halted} of 2000 were cut short");
}

#[tokio::test(start_paused = true)]
async fn runs_of_one_id_in_two_workspaces_are_two_runs() {
    let (orchestrator, _folders) = two_workspaces([slow("hook", EventKind::BeforeToolDispatch)]).await;
    let answers = [
        send(&orchestrator, in_workspace("a", tool("run"))).await,
        send(&orchestrator, in_workspace("b", tool("run"))).await,
    ];
    assert_eq!(orchestrator.run_status(None, &run("run")).await.len(), 2);
    let only = RunFilter { workspace: Some(workspace("b")), ..RunFilter::default() };
    let list = orchestrator.runs(only).await;
    assert_eq!((list.runs.len(), list.runs[0].workspace_id.as_str()), (1, "b"));
    let cancelled = orchestrator.cancel_run(Some(&workspace("a")), &run("run")).await;
    assert_eq!(counts(cancelled), (1, 1));
    let [a, b] = answers;
    assert_halted(&answered(a).await);
    assert_eq!(answered(b).await.verdict, Verdict::Proceed);
    send(&orchestrator, in_workspace("a", tool("run"))).await;
    assert_eq!(counts(orchestrator.cancel_run(None, &run("run")).await), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn all_runs_of_a_workspace_are_cancelled_and_forgotten() {
    let hooks = [halting(), slow("hook", EventKind::BeforeToolDispatch)];
    let (orchestrator, _folders) = two_workspaces(hooks).await;
    for id in ["a", "b"] {
        let halt = in_workspace(id, event(EventKind::AfterModelCall, "halted"));
        orchestrator.dispatch(halt).await.unwrap();
    }
    sleep(120 * SECOND).await;
    let mut under_way = Vec::new();
    for number in 0..600 {
        for id in ["a", "b"] {
            under_way.push(send(&orchestrator, in_workspace(id, tool(&format!("run-{number}")))).await);
        }
    }
    let cancelled = orchestrator.cancel_runs_of(&workspace("a")).await;
    assert_eq!(counts(cancelled), (601, 600));
    assert_eq!(orchestrator.run_count().known, 601);
    for (number, answer) in under_way.into_iter().enumerate() {
        let expected = if number % 2 == 0 { Verdict::Halt } else { Verdict::Proceed };
        assert_eq!(answered(answer).await.verdict, expected);
    }
    let verdict = async |id| {
        let event = in_workspace(id, event(EventKind::PromptSubmitted, "halted"));
        orchestrator.dispatch(event).await.unwrap().verdict
    };
    assert_eq!((verdict("a").await, verdict("b").await), (Verdict::Proceed, Verdict::Halt));
}

#[tokio::test(start_paused = true)]
async fn a_run_of_a_former_runs_id_is_kept_its_full_time() {
    let orchestrator = orchestrator([halting()]).await;
    let halt = || orchestrator.dispatch(event(EventKind::AfterModelCall, "run"));
    halt().await.unwrap();
    sleep(120 * SECOND).await;
    orchestrator.cancel_run(None, &run("run")).await;
    sleep(3400 * SECOND).await;
    assert_eq!(halt().await.unwrap().hooks.len(), 1, "a new run");
    // The time of the first one is over.
    sleep(600 * SECOND).await;
    assert_eq!(orchestrator.run_count().known, 1);
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Halt);
}

#[tokio::test]
async fn a_cancel_kills_the_processes_of_its_run_and_of_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = folder.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let (doomed, spared) = (child_processes::tag("doomed"), child_processes::tag("spared"));
    let command = format!(
        r#"case "$(cat)" in *'"doomed-run"'*) TAG={doomed} exec sleep 60;; *) TAG={spared} exec sleep 60;; esac"#
    );
    let hook = format!(
        "name: hook\nevents: [before_tool_dispatch]\non_error: deny\nhandler:\n  type: command\n  command: {}\n",
        json!(command)
    );
    fs::write(hooks.join("hook.yaml"), hook).unwrap();
    let orchestrator = orchestrator_in(folder.path()).await;
    let cut_short = send(&orchestrator, tool("doomed-run")).await;
    let other = send(&orchestrator, tool("spared-run")).await;
    let (_, survivor) = (child_processes::started("doomed").await, child_processes::started("spared").await);
    assert_eq!(counts(orchestrator.cancel_run(None, &run("doomed-run")).await), (1, 1));
    let outcome =
        timeout(20 * SECOND, answered(cut_short)).await.expect("it does not wait for the processes");
    assert_halted(&outcome);
    assert_eq!(outcome.hooks[0].ended, Ended::Cancelled);
    assert!(
        child_processes::gone(|process| process.alive() && child_processes::is_tagged(process, "doomed"))
            .await
            .is_empty()
    );
    let lives = child_processes::processes(|process| process.alive() && process.pid == survivor);
    assert_eq!(lives.len(), 1, "the other run's hook goes on");
    assert!(!other.is_finished());
    orchestrator.shutdown(Duration::ZERO).await;
    assert_eq!(other.await.unwrap(), Err(DispatchError::Interrupted));
}
