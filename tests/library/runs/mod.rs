//! Runs on a paused clock: which events wait for which, and what is remembered.

mod lifetime;
mod limits;
mod repeated_events;

use crate::support::{
    events::{call, event, settle, tool},
    native_hooks::counting,
};
use std::{
    future::pending,
    num::NonZeroUsize,
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use hookyard::{
    DispatchError, NativeHook, Notice, Orchestrator, Overload,
    config::Settings,
    model::{
        Capability, Delivery, Ended, Event, EventId, EventKind, FailurePolicy, Json, NoteKind, Reply, RunId,
        Target, ToolCallId, Verdict,
    },
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

const SECOND: Duration = Duration::from_secs(1);

async fn orchestrator(hooks: impl IntoIterator<Item = NativeHook>) -> Orchestrator {
    with_settings(Settings::default(), hooks).await
}

async fn with_settings(settings: Settings, hooks: impl IntoIterator<Item = NativeHook>) -> Orchestrator {
    let builder = Orchestrator::builder().settings(settings);
    let builder = hooks.into_iter().fold(builder, hookyard::Builder::native_hook);
    builder.start().await.expect("it starts")
}

#[tokio::test(start_paused = true)]
async fn a_slow_hook_of_one_run_delays_no_other_run() {
    let slow = NativeHook::task("slow", [EventKind::BeforeToolDispatch], |draft| async move {
        if draft.event().run_id.as_str() == "slow" {
            sleep(30 * SECOND).await;
        }
        Ok(Reply::proceed())
    });
    let orchestrator = orchestrator([slow]).await;
    let since = Instant::now();
    let waiting = tokio::spawn({
        let orchestrator = orchestrator.clone();
        async move { orchestrator.dispatch(tool("slow")).await }
    });
    settle().await;
    for number in 0..50 {
        orchestrator.dispatch(tool(&format!("quick-{number}"))).await.unwrap();
    }
    assert_eq!(since.elapsed(), Duration::ZERO);
    waiting.await.unwrap().unwrap();
    assert_eq!(since.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn interceptor_events_of_a_run_take_turns_in_order_of_arrival() {
    let (slow, _) = counting("slow", EventKind::BeforeToolDispatch, SECOND);
    let orchestrator = orchestrator([slow]).await;
    let since = Instant::now();
    let mut finished = Vec::new();
    for _ in 0..3 {
        let orchestrator = orchestrator.clone();
        finished.push(tokio::spawn(async move {
            orchestrator.dispatch(tool("run")).await.unwrap();
            since.elapsed().as_secs()
        }));
        settle().await;
    }
    let mut seconds = Vec::new();
    for task in finished {
        seconds.push(task.await.unwrap());
    }
    assert_eq!(seconds, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn interceptor_concurrency_lets_events_of_a_run_overlap() {
    let (slow, _) = counting("slow", EventKind::BeforeToolDispatch, SECOND);
    let settings = Settings { interceptor_concurrency: NonZeroUsize::new(3).unwrap(), ..Settings::default() };
    let orchestrator = with_settings(settings, [slow]).await;
    let since = Instant::now();
    let (a, b, c) = tokio::join!(
        orchestrator.dispatch(tool("run")),
        orchestrator.dispatch(tool("run")),
        orchestrator.dispatch(tool("run"))
    );
    assert!(a.is_ok() && b.is_ok() && c.is_ok());
    assert_eq!(since.elapsed().as_secs(), 1);
}

#[tokio::test(start_paused = true)]
async fn lifecycle_events_do_not_wait_behind_interceptors() {
    let (slow, _) = counting("slow", EventKind::BeforeToolDispatch, 30 * SECOND);
    let (observer, watched) = counting("watcher", EventKind::Notification, Duration::ZERO);
    let orchestrator = orchestrator([slow, observer]).await;
    let interceptor = orchestrator.dispatch(tool("run"));
    let lifecycle = async {
        settle().await;
        orchestrator.dispatch(event(EventKind::Notification, "run")).await.unwrap();
        assert!(watched.load(Ordering::SeqCst) == 1, "the watcher ran");
        Instant::now()
    };
    let since = Instant::now();
    let (outcome, lifecycle_done) = tokio::join!(interceptor, lifecycle);
    outcome.unwrap();
    assert!(lifecycle_done - since < SECOND && since.elapsed() >= 30 * SECOND);
}

#[tokio::test(start_paused = true)]
async fn a_detached_lifecycle_event_is_answered_at_once_and_its_hooks_go_on() {
    let (observer, watched) = counting("watcher", EventKind::Notification, 5 * SECOND);
    let orchestrator = orchestrator([observer]).await;
    let mut notices = orchestrator.subscribe();
    let since = Instant::now();
    let detached = Event { delivery: Delivery::Detached, ..event(EventKind::Notification, "run") };
    let outcome = orchestrator.dispatch(detached).await.unwrap();
    assert_eq!((outcome.verdict, outcome.hooks.len()), (Verdict::Proceed, 0));
    assert_eq!(since.elapsed(), Duration::ZERO);
    let Notice::Invocation { report, .. } = notices.next().await.unwrap().unwrap() else {
        panic!("an invocation comes first")
    };
    assert_eq!((report.ended, since.elapsed().as_secs()), (Ended::Completed, 5));
    assert_eq!(watched.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn dropping_a_dispatch_drops_the_hook_and_frees_the_run() {
    let places = Arc::new(Semaphore::new(1));
    let held = Arc::clone(&places);
    let stuck = NativeHook::task("stuck", [EventKind::BeforeToolDispatch], move |draft| {
        let held = Arc::clone(&held);
        async move {
            if draft.event().attributes.tool_name.as_deref() == Some("Stuck") {
                let _permit = held.acquire().await;
                pending::<()>().await;
            }
            Ok(Reply::proceed())
        }
    });
    let orchestrator = orchestrator([stuck]).await;
    let mut event = tool("run");
    event.attributes.tool_name = Some("Stuck".into());
    let gave_up = timeout(SECOND, orchestrator.dispatch(event)).await;
    assert!(gave_up.is_err(), "the hook never ends");
    settle().await;
    assert_eq!(places.available_permits(), 1, "its future was dropped");
    let since = Instant::now();
    orchestrator.dispatch(tool("run")).await.unwrap();
    assert_eq!(since.elapsed(), Duration::ZERO, "the next event did not wait");
}

#[tokio::test(start_paused = true)]
async fn later_hooks_see_patches_and_notes_come_in_order() {
    let kinds = [EventKind::BeforeToolDispatch];
    let first = NativeHook::inline("first", kinds, |_| {
        let patch = Json::parse(r#"{"timeout":5}"#).unwrap();
        Ok(Reply::proceed().patch(Target::ToolInput, patch).note(NoteKind::SystemMessage, "one"))
    });
    let second = NativeHook::inline("second", kinds, |draft| {
        let seen = draft.target(Target::ToolInput).unwrap().as_str().to_owned();
        Ok(Reply::proceed().note(NoteKind::AdditionalContext, seen))
    });
    let hooks = [second.priority(2), first.priority(1).capability(Capability::RewriteToolRequest)];
    let outcome = orchestrator(hooks).await.dispatch(tool("run")).await.unwrap();
    let notes: Vec<_> = outcome.notes.iter().map(|note| (note.hook.as_str(), &*note.text)).collect();
    assert_eq!(notes, [("first", "one"), ("second", r#"{"command":"ls","timeout":5}"#)]);
    assert_eq!(outcome.patched.get(Target::ToolInput).unwrap().as_str(), r#"{"command":"ls","timeout":5}"#);
}
