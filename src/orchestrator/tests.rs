//! Tests that need the inside of an orchestrator: actors that die or stop.

#[cfg(feature = "daemon")]
mod simulated_lives;
mod stored_halt;

use std::{sync::Arc, time::Duration};

use ractor::concurrency::sleep;
use tempfile::TempDir;

use super::{CancelSummary, DispatchError, NativeHook, Orchestrator};
use crate::{
    config::TrustPolicy,
    model::{Ended, Event, EventKind, HandlerKind, Reply, RunId, RunKey, SessionId, ToolCallId, Verdict},
    run::{LeaseError, RunHandle, RunMessage},
};

fn tool(run: &str) -> Event {
    let mut event = Event::new(
        EventKind::BeforeToolDispatch,
        SessionId::new("session").unwrap(),
        RunId::new(run).unwrap(),
    );
    event.attributes.tool_name = Some("Bash".into());
    event
}

impl Orchestrator {
    fn run_handle(&self, run: &str) -> Arc<RunHandle> {
        let workspace = self.snapshot(None).unwrap().workspace().id.clone();
        let key = RunKey { workspace, run: RunId::new(run).unwrap() };
        self.0.context.directory.find(&key).unwrap().handle().unwrap()
    }

    /// What the supervisor says to a run that has been idle, at a moment of the test's choice.
    fn passivate(&self, run: &str) {
        self.run_handle(run).actor.cast(RunMessage::Passivate).unwrap();
    }

    fn kill_run(&self, run: &str) {
        self.run_handle(run).actor.kill();
    }
}

/// A workspace with one command hook.
fn workspace_with(hook: &str) -> TempDir {
    let workspace = tempfile::tempdir().unwrap();
    let hooks = workspace.path().join(".openharness/hooks");
    std::fs::create_dir_all(&hooks).unwrap();
    std::fs::write(hooks.join("hook.yaml"), hook).unwrap();
    workspace
}

async fn orchestrator_with(workspace: &TempDir) -> Orchestrator {
    let builder = Orchestrator::builder().trust(TrustPolicy::Off).workspace(workspace.path());
    builder.start().await.unwrap()
}

async fn slow_orchestrator() -> Orchestrator {
    let slow = NativeHook::task("slow", [EventKind::BeforeToolDispatch], |_| async {
        sleep(Duration::from_secs(5)).await;
        Ok(Reply::proceed())
    });
    Orchestrator::builder().native_hook(slow).start().await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_killed_run_answers_its_callers_and_goes_on_with_the_next_event() {
    let orchestrator = slow_orchestrator().await;
    let calls: Vec<_> = (0..3)
        .map(|_| {
            let orchestrator = orchestrator.clone();
            tokio::spawn(async move { orchestrator.dispatch(tool("run")).await })
        })
        .collect();
    sleep(Duration::from_secs(1)).await;
    orchestrator.kill_run("run");
    for call in calls {
        assert_eq!(call.await.unwrap(), Err(DispatchError::RunLost));
    }
    let next = orchestrator.dispatch(tool("run")).await.unwrap();
    assert_eq!(next.hooks[0].ended, Ended::Completed);
}

#[tokio::test(start_paused = true)]
async fn a_halt_outlives_the_actor_that_was_told() {
    let halting =
        NativeHook::inline("halting", [EventKind::BeforeToolDispatch], |_| Ok(Reply::halt("enough")));
    let orchestrator = Orchestrator::builder().native_hook(halting).start().await.unwrap();
    orchestrator.dispatch(tool("run")).await.unwrap();
    orchestrator.kill_run("run");
    sleep(Duration::from_secs(1)).await;
    let next = orchestrator.dispatch(tool("run")).await.unwrap();
    assert_eq!((next.verdict, next.hooks.len()), (Verdict::Halt, 0));
}

#[tokio::test]
async fn a_pool_that_dies_is_restarted_and_one_that_keeps_dying_stays_down() {
    let hook = "name: quick\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  command: 'true'\n";
    let workspace = workspace_with(hook);
    let orchestrator = orchestrator_with(&workspace).await;
    let pool = orchestrator.0.context.pools.of(HandlerKind::Command).unwrap();
    let mut restarts = 0;
    // One more death than the supervisor forgives.
    for number in 0..=5 {
        let ended = orchestrator.dispatch(tool(&format!("run-{number}"))).await.unwrap().hooks[0].ended;
        assert_eq!(ended, Ended::Completed, "after {restarts} restarts");
        let factory = pool.factory().unwrap();
        factory.kill();
        let restarted = async {
            while pool.factory().is_none_or(|current| current.get_id() == factory.get_id()) {
                tokio::task::yield_now().await;
            }
        };
        match tokio::time::timeout(Duration::from_secs(2), restarted).await {
            Ok(()) => restarts += 1,
            Err(_) => break,
        }
    }
    assert_eq!(restarts, 5);
    let report = orchestrator.dispatch(tool("last")).await.unwrap().hooks.remove(0);
    assert_eq!((report.ended, report.error.as_deref()), (Ended::Shed, Some("the command pool is down")));
}

#[tokio::test]
async fn a_pool_that_dies_gives_the_places_of_its_hooks_back() {
    let hook = "name: slow\nevents: [before_tool_dispatch]\nhandler:\n  type: command\n  \
                command: '[ -e started ] || { echo > started; sleep 600; }'\n  max_concurrency: 1\n";
    let workspace = workspace_with(hook);
    let orchestrator = orchestrator_with(&workspace).await;
    let call = |run: &'static str| {
        let orchestrator = orchestrator.clone();
        tokio::spawn(async move { orchestrator.dispatch(tool(run)).await.unwrap().hooks.remove(0).ended })
    };
    let first = call("first");
    while !workspace.path().join("started").exists() {
        tokio::task::yield_now().await;
    }
    let pool = orchestrator.0.context.pools.of(HandlerKind::Command).unwrap();
    let factory = pool.factory().unwrap();
    factory.kill();
    assert_eq!(first.await.unwrap(), Ended::Failed);
    while pool.factory().is_none_or(|current| current.get_id() == factory.get_id()) {
        tokio::task::yield_now().await;
    }
    let second = tokio::time::timeout(Duration::from_secs(20), call("second")).await.unwrap();
    assert_eq!(second.unwrap(), Ended::Completed);
    assert!(orchestrator.shutdown(Duration::from_secs(5)).await);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_while_its_actor_goes_away_is_forgotten() {
    let halting = NativeHook::inline("halting", [EventKind::AfterModelCall], |_| Ok(Reply::halt("enough")));
    let orchestrator = Orchestrator::builder().native_hook(halting).start().await.unwrap();
    orchestrator.dispatch(Event { kind: EventKind::AfterModelCall, ..tool("run") }).await.unwrap();
    orchestrator.passivate("run");
    orchestrator.dispatch(Event { kind: EventKind::RunCompleted, ..tool("run") }).await.unwrap();
    sleep(Duration::from_secs(1)).await;
    assert_eq!(orchestrator.run_count().known, 0);
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Proceed);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_go_away_yet_forgets_no_answer() {
    let quick = NativeHook::inline("quick", [EventKind::BeforeToolDispatch], |_| Ok(Reply::proceed()));
    let orchestrator = Orchestrator::builder().native_hook(quick).start().await.unwrap();
    let call =
        |id: usize| Event { tool_call_id: Some(ToolCallId::new(id.to_string()).unwrap()), ..tool("run") };
    let first = orchestrator.dispatch(call(0)).await.unwrap();
    for id in 1..10 {
        orchestrator.dispatch(call(id)).await.unwrap();
    }
    orchestrator.passivate("run");
    // It is accepted before the actor has looked at its messages.
    orchestrator.dispatch(call(10)).await.unwrap();
    assert_eq!(orchestrator.dispatch(call(0)).await.unwrap().decision_id, first.decision_id);
}

#[tokio::test(start_paused = true)]
async fn an_event_on_its_way_to_a_cancelled_run_begins_the_next_one() {
    let halting = NativeHook::inline("halting", [EventKind::AfterModelCall], |_| Ok(Reply::halt("enough")));
    let quick = NativeHook::inline("quick", [EventKind::BeforeToolDispatch], |_| Ok(Reply::proceed()));
    let builder = Orchestrator::builder().native_hook(halting).native_hook(quick);
    let orchestrator = builder.start().await.unwrap();
    orchestrator.dispatch(Event { kind: EventKind::AfterModelCall, ..tool("run") }).await.unwrap();
    // Whoever has a lease is about to send an event.
    let lease = orchestrator.run_handle("run").lease(64).unwrap();
    let run = RunId::new("run").unwrap();
    assert_eq!(orchestrator.cancel_run(None, &run).await, CancelSummary { runs: 1, events: 0 });
    let status = &orchestrator.run_status(None, &run).await[0];
    assert_eq!((&status.halted, status.events, orchestrator.run_count().known), (&None, 0, 1));
    drop(lease);
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Proceed);
    sleep(Duration::from_mins(2)).await;
    assert_eq!((orchestrator.run_count().known, orchestrator.run_count().active), (1, 0));
    assert_eq!(orchestrator.cancel_run(None, &run).await, CancelSummary { runs: 1, events: 0 });
    assert_eq!(orchestrator.run_count().known, 0);
}

#[tokio::test(start_paused = true)]
async fn an_actor_that_went_away_gives_no_lease() {
    let quick = NativeHook::inline("quick", [EventKind::BeforeToolDispatch], |_| Ok(Reply::proceed()));
    let orchestrator = Orchestrator::builder().native_hook(quick).start().await.unwrap();
    orchestrator.dispatch(tool("run")).await.unwrap();
    let handle = orchestrator.run_handle("run");
    orchestrator.passivate("run");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(handle.lease(64).err(), Some(LeaseError::Closed));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_event_that_meets_the_end_of_its_run_leaves_no_actor_behind() {
    let quick = NativeHook::inline("quick", [EventKind::BeforeToolDispatch], |_| Ok(Reply::proceed()));
    let orchestrator = Orchestrator::builder().native_hook(quick).start().await.unwrap();
    let tasks = tokio::runtime::Handle::current().metrics();
    let before = tasks.num_alive_tasks();
    let end = |run: &str| Event { kind: EventKind::RunCompleted, ..tool(run) };
    for number in 0..2000 {
        let run = format!("run-{number}");
        orchestrator.dispatch(tool(&run)).await.unwrap();
        orchestrator.passivate(&run);
        while orchestrator.run_count().active > 0 {
            tokio::task::yield_now().await;
        }
        let both = [tool(&run), end(&run)].map(|event| {
            let orchestrator = orchestrator.clone();
            tokio::spawn(async move { orchestrator.dispatch(event).await })
        });
        for dispatch in both {
            dispatch.await.unwrap().unwrap();
        }
        orchestrator.dispatch(end(&run)).await.unwrap();
    }
    let gone = async {
        while orchestrator.run_count().known > 0 || tasks.num_alive_tasks() > before {
            tokio::task::yield_now().await;
        }
    };
    let gone = tokio::time::timeout(Duration::from_secs(5), gone).await;
    assert!(gone.is_ok(), "{:?}, {} tasks", orchestrator.run_count(), tasks.num_alive_tasks() - before);
}
