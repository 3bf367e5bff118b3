//! What is counted, where the count is easily wrong: invocations that nobody waited for to the end.
#![allow(clippy::unwrap_used, reason = "an error fails its test")]

use std::time::Duration;

use hookyard::{
    NativeHook, Orchestrator,
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
