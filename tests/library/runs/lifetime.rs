//! When runs begin, halt, idle and end.

use super::*;

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
async fn an_unused_run_is_forgotten() {
    let orchestrator = orchestrator([halting()]).await;
    orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
    sleep(2 * 3600 * SECOND).await;
    assert_eq!(orchestrator.run_count().known, 0);
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Proceed);
}

#[tokio::test(start_paused = true)]
async fn a_run_in_occasional_use_is_not_forgotten() {
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
    assert_eq!(outcome, Err(DispatchError::Interrupted), "its hook has begun");
    assert_eq!(since.elapsed().as_secs(), 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_after_the_end_of_a_run_starts_a_new_run() {
    let (last, _) = counting("last", EventKind::RunCompleted, Duration::ZERO);
    let orchestrator = orchestrator([halting(), last]).await;
    for number in 0..2000 {
        let first = orchestrator.dispatch(event(EventKind::AfterModelCall, "run")).await.unwrap();
        assert_eq!(first.hooks.len(), 1, "run {number} is new");
        orchestrator.dispatch(event(EventKind::RunCompleted, "run")).await.unwrap();
    }
}
