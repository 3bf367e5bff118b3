//! What is counted, where the count is easily wrong: invocations that nobody waited for to the end.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

use std::{fs, time::Duration};

use hookyard::{
    NativeHook, Orchestrator,
    config::Settings,
    model::{Event, EventKind, Reply, RunId, SessionId},
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
    let hook = "name: hook\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: sleep 1\n";
    fs::write(hooks.join("hook.yaml"), hook).unwrap();
    let mut settings = Settings::default();
    settings.pools.command.concurrency = 1.try_into().unwrap();
    let builder = Orchestrator::builder().workspace(workspace.path()).settings(settings);
    let orchestrator = builder.start().await.unwrap();
    let second = async {
        sleep(Duration::from_millis(100)).await;
        let dispatch = orchestrator.dispatch(event(EventKind::BeforeToolDispatch, "second"));
        assert!(timeout(Duration::from_millis(100), dispatch).await.is_err());
    };
    let (first, ()) =
        tokio::join!(orchestrator.dispatch(event(EventKind::BeforeToolDispatch, "first")), second);
    first.unwrap();
    sleep(Duration::from_millis(300)).await;
    assert_eq!(counted(&snapshotter, "hookyard_shed_total", &[]), 0);
}
