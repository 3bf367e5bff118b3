//! Runs as a host sees them: what waits for what, what is remembered, what ends, what is turned away. The clock
//! is paused, so waiting costs nothing and nothing depends on the machine.

use std::{
    future::pending,
    num::NonZeroUsize,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hookyard::{
    DispatchError, NativeHook, Notice, Orchestrator, Overload,
    config::Settings,
    model::{
        Capability, Delivery, Ended, Event, EventId, EventKind, FailurePolicy, Json, NoteKind, Reply, RunId,
        SessionId, Target, ToolCallId, Verdict,
    },
};
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};

const SECOND: Duration = Duration::from_secs(1);

fn event(kind: EventKind, run: &str) -> Event {
    let mut event = Event::new(kind, SessionId::new("session").unwrap(), RunId::new(run).unwrap());
    event.attributes.tool_name = Some("Bash".into());
    event
}

fn tool(run: &str) -> Event {
    let mut event = event(EventKind::BeforeToolDispatch, run);
    event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"ls"}"#).unwrap());
    event
}

fn call(run: &str, id: &str) -> Event {
    Event { tool_call_id: Some(ToolCallId::new(id).unwrap()), ..tool(run) }
}

/// A hook that counts how often it ran and then waits as long as told.
fn counting(name: &str, kind: EventKind, wait: Duration) -> (NativeHook, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let hook = NativeHook::task(name, [kind], move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async move {
            sleep(wait).await;
            Ok(Reply::proceed())
        }
    });
    (hook, count)
}

async fn orchestrator(hooks: impl IntoIterator<Item = NativeHook>) -> Orchestrator {
    with_settings(Settings::default(), hooks).await
}

async fn with_settings(settings: Settings, hooks: impl IntoIterator<Item = NativeHook>) -> Orchestrator {
    let builder = Orchestrator::builder().settings(settings);
    let builder = hooks.into_iter().fold(builder, hookyard::Builder::native_hook);
    builder.start().await.expect("it starts")
}

/// Lets every task that can run do so, without the clock moving.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
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
    let Notice::Invocation { report, .. } = notices.recv().await.unwrap() else {
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
async fn an_event_dropped_in_the_queue_never_runs() {
    let (slow, ran) = counting("slow", EventKind::BeforeToolDispatch, 10 * SECOND);
    let orchestrator = orchestrator([slow]).await;
    let first = orchestrator.dispatch(tool("run"));
    let second = async {
        settle().await;
        assert!(timeout(SECOND, orchestrator.dispatch(tool("run"))).await.is_err());
    };
    let (first, ()) = tokio::join!(first, second);
    first.unwrap();
    settle().await;
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn the_same_event_runs_no_hook_twice() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, SECOND);
    let orchestrator = orchestrator([hook]).await;
    // While the first is under way, and afterwards.
    let (a, b) =
        tokio::join!(orchestrator.dispatch(call("run", "1")), orchestrator.dispatch(call("run", "1")));
    let c = orchestrator.dispatch(call("run", "1")).await;
    assert_eq!(a, b);
    assert_eq!(b, c);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    // Another call, another run, and another kind are other events.
    orchestrator.dispatch(call("run", "2")).await.unwrap();
    orchestrator.dispatch(call("other", "1")).await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 3);
    let named = |call_id: &str| Event { id: Some(EventId::new("e-1").unwrap()), ..call("run", call_id) };
    let first = orchestrator.dispatch(named("3")).await;
    assert_eq!(orchestrator.dispatch(named("4")).await, first, "the same event id");
    assert_eq!(ran.load(Ordering::SeqCst), 4);
}

#[tokio::test(start_paused = true)]
async fn a_tool_call_id_used_again_for_something_else_is_another_event() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, Duration::ZERO);
    let orchestrator = orchestrator([hook]).await;
    orchestrator.dispatch(call("run", "1")).await.unwrap();
    let mut other = call("run", "1");
    other.targets.set(Target::ToolInput, Json::parse(r#"{"command":"rm -rf /"}"#).unwrap());
    orchestrator.dispatch(other).await.unwrap();
    let other = {
        let mut event = call("run", "1");
        event.attributes.tool_name = Some("Shell".into());
        event
    };
    orchestrator.dispatch(other).await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_outlives_the_first_caller() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, 10 * SECOND);
    let orchestrator = orchestrator([hook]).await;
    let impatient = timeout(SECOND, orchestrator.dispatch(call("run", "1")));
    let patient = orchestrator.dispatch(call("run", "1"));
    let (impatient, patient) = tokio::join!(impatient, patient);
    assert!(impatient.is_err());
    assert_eq!(patient.unwrap().hooks[0].ended, Ended::Completed);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

fn halting() -> NativeHook {
    NativeHook::inline("budget", [EventKind::AfterModelCall], |_| Ok(Reply::halt("over budget")))
}

#[tokio::test(start_paused = true)]
async fn a_halted_run_answers_halt_and_runs_no_interceptor() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, Duration::ZERO);
    let (observer, watched) = counting("watcher", EventKind::RunFailed, Duration::ZERO);
    let orchestrator = orchestrator([halting(), hook, observer]).await;
    let first = orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
    assert_eq!(first.verdict, Verdict::Halt);
    // One whose plan has a hook, and one whose plan is empty.
    for kind in [EventKind::BeforeToolDispatch, EventKind::PromptSubmitted] {
        let later = orchestrator.dispatch(event(kind, "run")).await.unwrap();
        assert_eq!((later.verdict, later.reason.as_deref()), (Verdict::Halt, Some("over budget")));
        assert_eq!(later.by.unwrap().as_str(), "budget");
        assert!(later.hooks.is_empty());
    }
    assert_eq!(ran.load(Ordering::SeqCst), 0);
    orchestrator.dispatch(event(EventKind::RunFailed, "run")).await.unwrap();
    assert_eq!(watched.load(Ordering::SeqCst), 1, "lifecycle hooks still run");
    orchestrator.dispatch(tool("other")).await.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1, "other runs go on");
}

#[tokio::test(start_paused = true)]
async fn an_idle_run_gives_up_its_actor_and_forgets_neither_halt_nor_answers() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, Duration::ZERO);
    let orchestrator = orchestrator([halting(), hook]).await;
    let answered = orchestrator.dispatch(call("remembers", "1")).await.unwrap();
    orchestrator.dispatch(event(EventKind::AfterModelCall, "halted")).await.unwrap();
    assert_eq!(orchestrator.run_count().active, 2);
    sleep(120 * SECOND).await;
    let count = orchestrator.run_count();
    assert_eq!((count.known, count.active), (2, 0));
    assert_eq!(orchestrator.dispatch(call("remembers", "1")).await.unwrap(), answered);
    assert_eq!(ran.load(Ordering::SeqCst), 1);
    assert_eq!(orchestrator.dispatch(tool("halted")).await.unwrap().verdict, Verdict::Halt);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_nothing_is_heard_of_is_forgotten() {
    let orchestrator = orchestrator([halting()]).await;
    orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
    sleep(2 * 3600 * SECOND).await;
    assert_eq!(orchestrator.run_count().known, 0);
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Proceed);
}

#[tokio::test(start_paused = true)]
async fn a_run_in_use_now_and_then_is_not_forgotten() {
    let orchestrator = orchestrator([halting()]).await;
    for _ in 0..4 {
        let outcome = orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
        assert_eq!(outcome.verdict, Verdict::Halt);
        sleep(3000 * SECOND).await;
        assert_eq!(orchestrator.run_count().known, 1);
        let watcher = orchestrator.dispatch(tool("run")).await.unwrap();
        assert_eq!(watcher.verdict, Verdict::Halt);
    }
}

#[tokio::test]
async fn ten_thousand_runs_come_and_go_and_nothing_stays_behind() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, Duration::ZERO);
    let (last, _) = counting("last", EventKind::RunCompleted, Duration::ZERO);
    let orchestrator = orchestrator([hook, last]).await;
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    for batch in 0..100 {
        let runs = (0..100).map(|number| {
            let (orchestrator, run) = (orchestrator.clone(), format!("run-{batch}-{number}"));
            async move {
                orchestrator.dispatch(call(&run, "1")).await.unwrap();
                orchestrator.dispatch(event(EventKind::RunCompleted, &run)).await.unwrap();
            }
        });
        futures_util::future::join_all(runs).await;
    }
    assert_eq!(ran.load(Ordering::SeqCst), 10_000);
    timeout(10 * SECOND, async {
        while orchestrator.run_count().known > 0 || tasks.num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    })
    .await
    .unwrap_or_else(|_| {
        panic!("{:?} and {} tasks stay", orchestrator.run_count(), tasks.num_alive_tasks() - before)
    });
}

#[tokio::test(start_paused = true)]
async fn an_ended_run_that_no_hook_watches_is_forgotten_too() {
    let orchestrator = orchestrator([halting()]).await;
    orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
    orchestrator.dispatch(event(EventKind::RunCompleted, "run")).await.unwrap();
    settle().await;
    assert_eq!(orchestrator.run_count().known, 0);
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Proceed, "a fresh record");
}

#[tokio::test(start_paused = true)]
async fn too_much_is_refused_before_it_is_queued() {
    let (slow, _) = counting("slow", EventKind::BeforeToolDispatch, 10 * SECOND);
    let mut settings = Settings::default();
    settings.limits.pending_per_run = NonZeroUsize::new(2).unwrap();
    settings.limits.in_flight = NonZeroUsize::new(3).unwrap();
    let orchestrator = with_settings(settings, [slow]).await;
    let refused = async {
        settle().await;
        let full = orchestrator.dispatch(tool("run")).await;
        assert_eq!(full, Err(DispatchError::Overloaded(Overload::PendingPerRun)));
        let other = orchestrator.dispatch(tool("other"));
        let last = async {
            settle().await;
            let full = orchestrator.dispatch(tool("third")).await;
            assert_eq!(full, Err(DispatchError::Overloaded(Overload::InFlight)));
        };
        let (other, ()) = tokio::join!(other, last);
        other.unwrap();
    };
    let (a, b, ()) =
        tokio::join!(orchestrator.dispatch(tool("run")), orchestrator.dispatch(tool("run")), refused);
    assert!(a.is_ok() && b.is_ok());
    orchestrator.dispatch(tool("run")).await.expect("what was refused left nothing behind");
}

#[tokio::test(start_paused = true)]
async fn an_event_that_waits_too_long_for_its_turn_is_refused() {
    let (slow, ran) = counting("slow", EventKind::BeforeToolDispatch, 50 * SECOND);
    let orchestrator = orchestrator([slow]).await;
    let since = Instant::now();
    let second = async {
        settle().await;
        let refused = orchestrator.dispatch(tool("run")).await;
        assert_eq!(refused, Err(DispatchError::Overloaded(Overload::PendingDeadline)));
        assert_eq!(since.elapsed().as_secs(), 30);
    };
    let (first, ()) = tokio::join!(orchestrator.dispatch(tool("run")), second);
    first.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn no_more_runs_are_kept_than_allowed() {
    let (hook, _) = counting("hook", EventKind::BeforeToolDispatch, Duration::ZERO);
    let mut settings = Settings::default();
    settings.limits.runs = NonZeroUsize::new(2).unwrap();
    let orchestrator = with_settings(settings, [hook]).await;
    orchestrator.dispatch(tool("a")).await.unwrap();
    orchestrator.dispatch(tool("b")).await.unwrap();
    assert_eq!(orchestrator.dispatch(tool("c")).await, Err(DispatchError::Overloaded(Overload::Runs)));
    orchestrator.dispatch(tool("a")).await.expect("known runs go on");
}

#[tokio::test(start_paused = true)]
async fn a_panic_is_the_hooks_own_failure() {
    let kinds = [EventKind::BeforeToolDispatch];
    let inline = NativeHook::inline("inline", kinds, |_| panic!("inline trouble"));
    let making = NativeHook::task("making", kinds, |_| -> std::future::Ready<_> { panic!("making trouble") });
    let polled = NativeHook::task("polled", kinds, |_| async { panic!("polled trouble") });
    let guard = NativeHook::inline("guard", kinds, |_| panic!("guard trouble")).on_error(FailurePolicy::Deny);
    let orchestrator = orchestrator([inline, making, polled, guard]).await;
    let outcome = orchestrator.dispatch(tool("run")).await.unwrap();
    assert_eq!(outcome.hooks.len(), 4);
    for (report, text) in outcome.hooks.iter().zip(["inline", "making", "polled", "guard"]) {
        assert_eq!(report.ended, Ended::Failed);
        assert_eq!(report.error.as_deref(), Some(&*format!("the hook panicked: {text} trouble")));
    }
    assert_eq!(outcome.verdict, Verdict::Block);
    assert!(outcome.reason.unwrap().contains("hook `guard` failed: the hook panicked: guard trouble"));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_ends_the_hook_and_its_policy_decides() {
    let (slow, _) = counting("slow", EventKind::BeforeToolDispatch, 100 * SECOND);
    let slow = slow.timeout(2 * SECOND).on_timeout(FailurePolicy::Ask);
    let orchestrator = orchestrator([slow]).await;
    let since = Instant::now();
    let outcome = orchestrator.dispatch(tool("run")).await.unwrap();
    assert_eq!((since.elapsed().as_secs(), outcome.verdict), (2, Verdict::Ask));
    assert_eq!(outcome.hooks[0].ended, Ended::TimedOut);
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

#[tokio::test(start_paused = true)]
async fn shutdown_lets_work_finish_and_takes_no_more() {
    let (slow, _) = counting("slow", EventKind::BeforeToolDispatch, 5 * SECOND);
    let orchestrator = orchestrator([slow]).await;
    let closing = async {
        settle().await;
        let finished = orchestrator.shutdown(10 * SECOND).await;
        assert!(finished);
        assert_eq!(orchestrator.dispatch(tool("late")).await, Err(DispatchError::ShuttingDown));
    };
    let (outcome, ()) = tokio::join!(orchestrator.dispatch(tool("run")), closing);
    outcome.unwrap();
}

#[tokio::test(start_paused = true)]
async fn shutdown_cancels_what_does_not_finish() {
    let (stuck, _) = counting("stuck", EventKind::BeforeToolDispatch, 1000 * SECOND);
    let orchestrator = orchestrator([stuck.timeout(1000 * SECOND)]).await;
    let since = Instant::now();
    let closing = async {
        settle().await;
        assert!(!orchestrator.shutdown(10 * SECOND).await);
    };
    let (outcome, ()) = tokio::join!(orchestrator.dispatch(tool("run")), closing);
    assert_eq!(outcome, Err(DispatchError::ShuttingDown));
    assert_eq!(since.elapsed().as_secs(), 10);
}

#[tokio::test]
async fn native_hooks_that_could_not_work_are_refused() {
    let kinds = [EventKind::BeforeToolDispatch];
    let hook = |name: &str| NativeHook::inline(name, kinds, |_| Ok(Reply::proceed()));
    let start = |hooks: Vec<NativeHook>| {
        let builder = hooks.into_iter().fold(Orchestrator::builder(), hookyard::Builder::native_hook);
        async { builder.start().await.expect_err("it does not start").to_string() }
    };
    assert!(start(vec![hook("a/b")]).await.contains("its name contains '/'"));
    assert!(start(vec![hook("a"), hook("a")]).await.contains("another native hook has this name"));
    assert!(start(vec![hook("a").matcher("(")]).await.contains("invalid pattern"));
    assert!(
        start(vec![hook("a").capability(Capability::RewriteContext)])
            .await
            .contains("fits none of its events")
    );
    let without_events = NativeHook::inline("a", [], |_| Ok(Reply::proceed()));
    assert!(start(vec![without_events]).await.contains("it has no events"));
}

#[tokio::test(start_paused = true)]
async fn repeated_events_count_as_events_in_hand() {
    let (slow, _) = counting("slow", EventKind::Notification, 10 * SECOND);
    let mut settings = Settings::default();
    settings.limits.pending_per_run = NonZeroUsize::new(3).unwrap();
    let orchestrator = with_settings(settings, [slow]).await;
    let same = Event { id: Some(EventId::new("e-1").unwrap()), ..event(EventKind::Notification, "run") };
    let mut calls = Vec::new();
    for _ in 0..5 {
        let (orchestrator, same) = (orchestrator.clone(), same.clone());
        calls.push(tokio::spawn(async move { orchestrator.dispatch(same).await }));
        settle().await;
    }
    let outcomes: Vec<_> =
        futures_util::future::join_all(calls).await.into_iter().map(Result::unwrap).collect();
    let refused = Err(DispatchError::Overloaded(Overload::PendingPerRun));
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == refused).count(), 2);
    assert!(outcomes[..3].iter().all(|outcome| *outcome == outcomes[0] && outcome.is_ok()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answered_event_is_in_nobodys_hands() {
    let (quick, _) = counting("quick", EventKind::BeforeToolDispatch, Duration::ZERO);
    let mut settings = Settings::default();
    settings.limits.in_flight = NonZeroUsize::MIN;
    settings.limits.pending_per_run = NonZeroUsize::MIN;
    let orchestrator = with_settings(settings, [quick]).await;
    for number in 0..2000 {
        let outcome = orchestrator.dispatch(tool("run")).await;
        assert!(outcome.is_ok(), "event {number}: {outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_repeated_detached_event_is_answered_at_once_and_goes_on_alone() {
    let (observer, watched) = counting("watcher", EventKind::Notification, 5 * SECOND);
    let orchestrator = orchestrator([observer]).await;
    let mut notices = orchestrator.subscribe();
    let attached = Event { id: Some(EventId::new("e-1").unwrap()), ..event(EventKind::Notification, "run") };
    let detached = Event { delivery: Delivery::Detached, ..attached.clone() };
    let since = Instant::now();
    let impatient = timeout(SECOND, orchestrator.dispatch(attached));
    let repeated = async {
        settle().await;
        let outcome = orchestrator.dispatch(detached).await.unwrap();
        assert_eq!((outcome.hooks.len(), since.elapsed()), (0, Duration::ZERO));
    };
    let (impatient, ()) = tokio::join!(impatient, repeated);
    assert!(impatient.is_err());
    notices.recv().await.unwrap();
    assert_eq!((watched.load(Ordering::SeqCst), since.elapsed().as_secs()), (1, 5));
}

#[tokio::test(start_paused = true)]
async fn a_repeated_event_waits_for_the_first_answer_and_not_for_its_turn() {
    let (slow, ran) = counting("slow", EventKind::BeforeToolDispatch, 50 * SECOND);
    let orchestrator = orchestrator([slow]).await;
    // Longer than an event may wait for its turn.
    let repeated = async {
        settle().await;
        orchestrator.dispatch(call("run", "1")).await
    };
    let (first, repeated) = tokio::join!(orchestrator.dispatch(call("run", "1")), repeated);
    assert_eq!(first, repeated);
    let since = Instant::now();
    let again = async {
        settle().await;
        assert_eq!(orchestrator.dispatch(call("run", "1")).await, first);
        assert_eq!(since.elapsed(), Duration::ZERO, "its answer is known");
    };
    let (other, ()) = tokio::join!(orchestrator.dispatch(call("run", "2")), again);
    other.unwrap();
    assert_eq!(ran.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_event_repeated_in_the_queue_joins_the_first_when_that_starts() {
    let (slow, ran) = counting("slow", EventKind::BeforeToolDispatch, 20 * SECOND);
    let orchestrator = orchestrator([slow]).await;
    let queued = async {
        settle().await;
        sleep(15 * SECOND).await;
        tokio::join!(orchestrator.dispatch(call("run", "2")), orchestrator.dispatch(call("run", "2")))
    };
    let ahead = async {
        settle().await;
        orchestrator.dispatch(call("run", "1")).await
    };
    let (first, ahead, (a, b)) = tokio::join!(orchestrator.dispatch(call("run", "0")), ahead, queued);
    assert!(first.is_ok() && ahead.is_ok());
    assert_eq!(a.unwrap(), b.unwrap());
    assert_eq!(ran.load(Ordering::SeqCst), 3);
}

#[tokio::test(start_paused = true)]
async fn a_deadline_beyond_all_time_is_none() {
    let (slow, _) = counting("slow", EventKind::BeforeToolDispatch, 50 * SECOND);
    let mut settings = Settings::default();
    settings.limits.pending_deadline = Duration::MAX;
    let orchestrator = with_settings(settings, [slow]).await;
    let (a, b) = tokio::join!(orchestrator.dispatch(tool("run")), orchestrator.dispatch(tool("run")));
    assert!(a.is_ok() && b.is_ok(), "{a:?} {b:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_comes_after_the_end_of_a_run_has_a_fresh_record() {
    let (last, _) = counting("last", EventKind::RunCompleted, Duration::ZERO);
    let orchestrator = orchestrator([halting(), last]).await;
    for number in 0..2000 {
        let first = orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
        assert_eq!(first.hooks.len(), 1, "run {number} is new");
        orchestrator.dispatch(event(EventKind::RunCompleted, "run")).await.unwrap();
    }
}
