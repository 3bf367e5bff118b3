//! Lists of runs: their events in flight, their order and their bounds.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_run_reports_its_events_in_flight() {
    let hooks = [
        slow("guard", EventKind::BeforeToolDispatch),
        slow("watcher", EventKind::Notification),
        slow("logger", EventKind::Notification),
    ];
    let orchestrator = orchestrator(hooks).await;
    let mut answers = vec![send(&orchestrator, tool("run")).await];
    sleep(SECOND).await;
    answers.push(send(&orchestrator, tool("run")).await);
    answers.push(send(&orchestrator, tool("run")).await);
    answers.push(send(&orchestrator, event(EventKind::Notification, "run")).await);
    sleep(2 * SECOND).await;
    let list = orchestrator.runs(RunFilter::default()).await;
    assert_eq!((list.runs.len(), list.left_out), (1, 0));
    assert_eq!(orchestrator.run_status(None, &run("run")).await, list.runs);
    let written = json!({
        "workspace_id": list.runs[0].workspace_id.as_str(),
        "run_id": "run",
        "session_id": "session",
        "phase": "active",
        "age_ms": 3000.0,
        "idle_ms": 0.0,
        "events": 4,
        "under_way": [
            { "event": "before_tool_dispatch", "since_ms": 3000.0, "hooks": ["guard"] },
            { "event": "notification", "since_ms": 2000.0, "hooks": ["watcher", "logger"] },
        ],
        "pending": 2,
    });
    assert_eq!(serde_json::to_value(&list.runs[0]).unwrap(), written);
    for answer in answers {
        answer.abort();
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_is_bounded_and_begins_with_the_oldest() {
    let quick = NativeHook::inline("quick", [EventKind::BeforeToolDispatch], |_| Ok(Reply::proceed()));
    let orchestrator = orchestrator([quick]).await;
    for number in 0..10_000 {
        orchestrator.dispatch(tool(&format!("run-{number}"))).await.unwrap();
        tokio::time::advance(Duration::from_millis(1)).await;
    }
    let list = orchestrator.runs(RunFilter { limit: 50, ..RunFilter::default() }).await;
    let ids: Vec<_> = list.runs.iter().map(|status| status.run_id.to_string()).collect();
    assert_eq!(ids, (0..50).map(|number| format!("run-{number}")).collect::<Vec<_>>());
    assert_eq!(list.left_out, 9950);
    assert!(list.runs.iter().all(|status| status.in_hand.as_ref().is_some_and(|hand| hand.pending == 0)));
    let none = orchestrator.runs(RunFilter { limit: 0, ..RunFilter::default() }).await;
    assert_eq!((none.runs.len(), none.left_out), (0, 10_000));
    assert_eq!(orchestrator.runs(RunFilter { limit: usize::MAX, ..RunFilter::default() }).await.left_out, 0);
}

#[tokio::test(start_paused = true)]
async fn looking_at_a_run_does_not_keep_it_from_being_idle() {
    let orchestrator = orchestrator([halting()]).await;
    orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
    sleep(10 * SECOND).await;
    assert_eq!(orchestrator.runs(RunFilter::default()).await.runs[0].idle.as_secs(), 10);
    for _ in 0..60 {
        sleep(SECOND).await;
        orchestrator.run_status(None, &run("run")).await;
    }
    assert!(orchestrator.runs(RunFilter::default()).await.runs.is_empty());
    assert_eq!(orchestrator.run_count().active, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_that_does_not_answer_is_listed_without_its_events() {
    let (go_on, wait) = mpsc::channel::<()>();
    let wait = Mutex::new(wait);
    let stuck = NativeHook::inline("stuck", [EventKind::BeforeToolDispatch], move |_| {
        // Until the test has seen enough.
        wait.lock().unwrap().recv().ok();
        Ok(Reply::proceed())
    });
    let orchestrator = orchestrator([halting(), stuck]).await;
    orchestrator.dispatch(event(EventKind::AfterModelCall, "free")).await.unwrap();
    let answer = send(&orchestrator, tool("stuck")).await;
    let list = async {
        loop {
            let list = orchestrator.runs(RunFilter::default()).await;
            if list.runs.len() == 2 && list.runs.iter().any(|status| status.in_hand.is_none()) {
                return list;
            }
        }
    };
    let list = timeout(20 * SECOND, list).await.unwrap();
    let known: Vec<_> =
        list.runs.iter().map(|status| (status.run_id.as_str(), status.in_hand.is_some())).collect();
    assert_eq!(known, [("free", true), ("stuck", false)]);
    drop(go_on);
    assert_eq!(answered(answer).await.verdict, Verdict::Proceed);
}
