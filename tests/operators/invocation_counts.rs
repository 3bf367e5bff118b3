//! Metrics of invocations that were cancelled, dropped or abandoned.

use crate::support::wait::wait_until_async;
use std::{fs, time::Duration};

use futures_util::FutureExt;
use hookyard::{
    DispatchError, NativeHook, Notice, NoticeStream, Orchestrator,
    config::Settings,
    model::{Ended, Event, EventKind, FailurePolicy, Reply, RunId, SessionId, Verdict},
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use tokio::time::{sleep, timeout};

fn event(kind: EventKind, run: &str) -> Event {
    Event::new(kind, SessionId::new("session").unwrap(), RunId::new(run).unwrap())
}

/// How often the metric was counted, over the labels that contain all of these values.
fn counted(snapshotter: &Snapshotter, name: &str, values: &[&str]) -> u64 {
    let metrics = snapshotter.snapshot().into_vec();
    let wanted = metrics.into_iter().filter(|(key, ..)| {
        let key = key.key();
        key.name() == name && values.iter().all(|value| key.labels().any(|label| label.value() == *value))
    });
    wanted
        .map(|(.., value)| match value {
            DebugValue::Counter(count) => count,
            DebugValue::Histogram(values) => values.len() as u64,
            DebugValue::Gauge(_) => 0,
        })
        .sum()
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_was_done_counts_as_completed_whatever_becomes_of_its_event() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let kinds = [EventKind::Notification];
    let quick = NativeHook::inline("quick", kinds, |_| Ok(Reply::proceed()));
    let slow = NativeHook::task("slow", kinds, |_| async {
        sleep(Duration::from_secs(30)).await;
        Ok(Reply::proceed())
    });
    let orchestrator = Orchestrator::builder().native_hook(quick).native_hook(slow).start().await.unwrap();
    let dispatch = orchestrator.dispatch(event(EventKind::Notification, "run"));
    assert!(timeout(Duration::from_secs(1), dispatch).await.is_err());
    sleep(Duration::from_secs(1)).await;
    let runs = |values: &[&str]| counted(&snapshotter, "hookyard_hook_runs_total", values);
    assert_eq!(runs(&["quick", "completed"]), 1);
}

#[tokio::test]
async fn a_hook_dropped_in_the_queue_is_neither_started_nor_shed() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let hook = "name: hook\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: 'touch started; until [ -e go ]; do sleep 0.02; done'\n";
    fs::write(hooks.join("hook.yaml"), hook).unwrap();
    let mut settings = Settings::default();
    settings.pools.command.concurrency = 1.try_into().unwrap();
    let builder = Orchestrator::builder()
        .trust(hookyard::config::TrustPolicy::Off)
        .workspace(workspace.path())
        .settings(settings);
    let orchestrator = builder.start().await.unwrap();
    let second = async {
        wait_until_async("the first runs", || workspace.path().join("started").exists()).await;
        let dispatch = orchestrator.dispatch(event(EventKind::BeforeToolDispatch, "second"));
        assert!(timeout(Duration::from_millis(100), dispatch).await.is_err());
        fs::remove_file(workspace.path().join("started")).unwrap();
        fs::write(workspace.path().join("go"), "").unwrap();
    };
    let (first, ()) =
        tokio::join!(orchestrator.dispatch(event(EventKind::BeforeToolDispatch, "first")), second);
    first.unwrap();
    assert!(!workspace.path().join("started").exists(), "the dropped one was not started");
    // Whatever was in the queue before the third has been taken from it.
    orchestrator.dispatch(event(EventKind::BeforeToolDispatch, "third")).await.unwrap();
    assert_eq!(counted(&snapshotter, "hookyard_shed_total", &[]), 0);
}

/// A guard that waits, and a recorder of what becomes of it.
async fn slow_guard(kinds: [EventKind; 1]) -> Orchestrator {
    let slow = NativeHook::task("guard", kinds, |_| async {
        sleep(Duration::from_secs(30)).await;
        Ok(Reply::proceed())
    });
    let guard = slow.on_error(FailurePolicy::Deny).on_timeout(FailurePolicy::Deny);
    Orchestrator::builder().native_hook(guard).start().await.unwrap()
}

/// That the one invocation of the guard ended once, as cancelled, and counts as no failure.
fn assert_cancelled_once(snapshotter: &Snapshotter) {
    let metrics = snapshotter.snapshot().into_vec();
    let counted = |name: &str| {
        let mut all = Vec::new();
        for (key, _, _, value) in &metrics {
            if let DebugValue::Counter(count @ 1..) = value
                && key.key().name() == name
            {
                let ended = key.key().labels().find(|label| label.key() == "ended");
                all.push((ended.map(|label| label.value().to_owned()), *count));
            }
        }
        all
    };
    assert_eq!(counted("hookyard_hook_runs_total"), [(Some("cancelled".to_owned()), 1)]);
    assert_eq!(counted("hookyard_hook_fail_closed_total"), []);
    assert_eq!(counted("hookyard_hook_fail_open_total"), []);
    assert_eq!(counted("hookyard_hook_verdicts_total"), []);
}

/// That those who watch are told of that one invocation, and of nothing else of it.
fn assert_told_once(notices: &mut NoticeStream) {
    let Some(Some(Ok(Notice::Invocation { report, .. }))) = notices.next().now_or_never() else {
        panic!("an invocation comes first")
    };
    assert_eq!(report.ended, Ended::Cancelled);
    assert!(!matches!(notices.next().now_or_never(), Some(Some(Ok(Notice::Invocation { .. })))), "once");
}

#[tokio::test(start_paused = true)]
async fn a_guard_of_a_cancelled_run_ends_once_and_does_not_fail() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let orchestrator = slow_guard([EventKind::BeforeToolDispatch]).await;
    let mut notices = orchestrator.subscribe();
    let cancel = async {
        sleep(Duration::from_secs(1)).await;
        orchestrator.cancel_run(None, &RunId::new("run").unwrap()).await
    };
    let (outcome, cancelled) =
        tokio::join!(orchestrator.dispatch(event(EventKind::BeforeToolDispatch, "run")), cancel);
    assert_eq!((outcome.unwrap().verdict, cancelled.events), (Verdict::Halt, 1));
    sleep(Duration::from_mins(1)).await;
    assert_cancelled_once(&snapshotter);
    assert_told_once(&mut notices);
}

#[tokio::test(start_paused = true)]
async fn a_guard_cut_short_by_a_shutdown_ends_once_and_does_not_fail() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let orchestrator = slow_guard([EventKind::BeforeToolDispatch]).await;
    let mut notices = orchestrator.subscribe();
    let shutdown = async {
        sleep(Duration::from_secs(1)).await;
        orchestrator.shutdown(Duration::from_secs(1)).await
    };
    let (outcome, finished) =
        tokio::join!(orchestrator.dispatch(event(EventKind::BeforeToolDispatch, "run")), shutdown);
    assert_eq!((outcome, finished), (Err(DispatchError::Interrupted), false));
    sleep(Duration::from_mins(1)).await;
    assert_cancelled_once(&snapshotter);
    assert_told_once(&mut notices);
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_nobody_waits_for_ends_once_and_does_not_fail() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let orchestrator = slow_guard([EventKind::BeforeToolDispatch]).await;
    let mut notices = orchestrator.subscribe();
    let dispatch = orchestrator.dispatch(event(EventKind::BeforeToolDispatch, "run"));
    assert!(timeout(Duration::from_secs(1), dispatch).await.is_err());
    sleep(Duration::from_mins(1)).await;
    assert_cancelled_once(&snapshotter);
    assert_told_once(&mut notices);
}

#[tokio::test(start_paused = true)]
async fn the_longest_of_parallel_hooks_is_no_overhead() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let sleeper = |name: &'static str, seconds| {
        NativeHook::task(name, [EventKind::Notification], move |_| async move {
            sleep(Duration::from_secs(seconds)).await;
            Ok(Reply::proceed())
        })
    };
    let builder = Orchestrator::builder().native_hook(sleeper("short", 1)).native_hook(sleeper("long", 3));
    let orchestrator = builder.start().await.unwrap();
    orchestrator.dispatch(event(EventKind::Notification, "run")).await.unwrap();
    let values_of = |name: &str| {
        let all = snapshotter.snapshot().into_vec().into_iter();
        all.filter(|(key, ..)| key.key().name() == name)
            .flat_map(|(.., value)| match value {
                DebugValue::Histogram(values) => values.into_iter().map(f64::from).collect(),
                DebugValue::Counter(_) | DebugValue::Gauge(_) => Vec::new(),
            })
            .collect::<Vec<_>>()
    };
    let overhead = values_of("hookyard_overhead_duration_seconds");
    assert!(overhead.len() == 1 && overhead[0] < 0.01, "{overhead:?}");
}

#[tokio::test]
async fn an_event_that_no_hook_matches_is_not_counted() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let hook = NativeHook::inline("hook", [EventKind::Notification], |_| Ok(Reply::proceed()));
    let orchestrator = Orchestrator::builder().native_hook(hook).start().await.unwrap();
    for kind in [EventKind::BeforeToolDispatch, EventKind::Notification] {
        orchestrator.dispatch(event(kind, "run")).await.unwrap();
    }
    assert_eq!(counted(&snapshotter, "hookyard_event_duration_seconds", &[]), 1);
}
