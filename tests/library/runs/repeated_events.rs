//! Events that are sent again: the first answer counts.

use super::*;

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
async fn an_event_id_used_again_for_something_else_is_another_event() {
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, SECOND);
    let orchestrator = orchestrator([hook]).await;
    let named = |change: fn(&mut Event)| {
        let mut event = Event { id: Some(EventId::new("e-1").unwrap()), ..tool("run") };
        change(&mut event);
        event
    };
    let changes: [fn(&mut Event); 7] = [
        |_| {},
        |event| event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"rm -rf /"}"#).unwrap()),
        |event| event.attributes.tool_name = Some("Shell".into()),
        |event| event.attributes.agent_name = Some("another".into()),
        |event| event.extra.push(("permission_mode".into(), Json::parse(r#""plan""#).unwrap())),
        |event| event.cwd = Some("/elsewhere".into()),
        |event| {
            event.tool_call_id = Some(ToolCallId::new("c-1").unwrap());
            event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"ls /"}"#).unwrap());
        },
    ];
    for (number, change) in changes.into_iter().enumerate() {
        // Also while the first is under way: the same runs once, another payload for itself.
        let (a, b) = tokio::join!(orchestrator.dispatch(named(change)), orchestrator.dispatch(named(change)));
        assert_eq!(a, b);
        assert!(a.is_ok());
        assert_eq!(ran.load(Ordering::SeqCst), number + 1, "change {number}");
    }
    let (a, b) = tokio::join!(
        orchestrator.dispatch(Event { run_id: RunId::new("other").unwrap(), ..named(|_| {}) }),
        orchestrator.dispatch(Event { run_id: RunId::new("other").unwrap(), ..named(changes[1]) }),
    );
    assert_ne!(a.unwrap().decision_id, b.unwrap().decision_id);
    assert_eq!(ran.load(Ordering::SeqCst), changes.len() + 2);
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

#[tokio::test(start_paused = true)]
async fn repeated_events_count_as_in_flight() {
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
async fn an_answered_event_is_no_longer_in_flight() {
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
    notices.next().await.unwrap().unwrap();
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
async fn answers_that_take_too_much_memory_are_those_of_the_runs_that_rested_longest() {
    const MOST: usize = 64 * 1024;
    let (hook, ran) = counting("hook", EventKind::BeforeToolDispatch, Duration::ZERO);
    let mut settings = Settings { run_idle: SECOND, ..Settings::default() };
    settings.limits.answers_bytes = MOST;
    let orchestrator = with_settings(settings, [hook]).await;
    // More runs than it can remember an answer of each, one after the other.
    let runs: Vec<String> = (0..2_000).map(|number| format!("run-{number}")).collect();
    for run in &runs {
        orchestrator.dispatch(call(run, "1")).await.unwrap();
        sleep(SECOND / 10).await;
    }
    sleep(10 * SECOND).await;
    let is_remembered = async |run: &str| {
        let before = ran.load(Ordering::SeqCst);
        orchestrator.dispatch(call(run, "1")).await.unwrap();
        ran.load(Ordering::SeqCst) == before
    };
    assert!(is_remembered(&runs[1_999]).await && is_remembered(&runs[1_900]).await);
    assert!(!is_remembered(&runs[0]).await && !is_remembered(&runs[100]).await);
}
