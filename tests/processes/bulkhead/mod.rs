//! `max_concurrency`: how many run at once, who waits and who is shed. The clock is paused where no process runs.

mod detached;

use crate::support::{trust::orchestrator_with, wait::wait_until_async};
use std::{
    fs,
    num::NonZeroUsize,
    path::Path,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use hookyard::{
    NativeHook, Notice, NoticeStream, Orchestrator,
    config::Settings,
    model::{Delivery, Ended, Event, EventKind, Outcome, Reply, RunId, SessionId},
};
use tempfile::TempDir;
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep, timeout},
};

const SECOND: Duration = Duration::from_secs(1);

/// Generous: nothing here waits so long unless it hangs.
const LONG: Duration = Duration::from_mins(1);

/// Says that it runs, and waits until it may end.
const HOLDS: &str = "echo started >> started.txt; until [ -e go ]; do sleep 0.01; done";

fn event(kind: EventKind, run: &str, tool: &str) -> Event {
    let mut event = Event::new(kind, SessionId::new("session").unwrap(), RunId::new(run).unwrap());
    event.attributes.tool_name = Some(tool.into());
    event
}

fn tool(run: &str) -> Event {
    event(EventKind::BeforeToolDispatch, run, "Slow")
}

fn start_event(orchestrator: &Orchestrator, event: Event) -> JoinHandle<Outcome> {
    let orchestrator = orchestrator.clone();
    tokio::spawn(async move { orchestrator.dispatch(event).await.unwrap() })
}

fn ended(outcome: &Outcome) -> (Ended, &str) {
    (outcome.hooks[0].ended, outcome.hooks[0].error.as_deref().unwrap_or_default())
}

/// Lets every task that can run do so, without the clock moving.
async fn settle() {
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
}

/// Gives a workspace a hook on one tool.
fn write_hook(workspace: &Path, tool: &str, handler: &str) {
    let hooks = workspace.join(".openharness/hooks");
    fs::create_dir_all(&hooks).unwrap();
    let file = format!(
        "name: {tool}\nevents: [before_tool_dispatch]\nmatcher: ^{tool}$\nhandler:\n  type: command\n  {handler}\n"
    );
    fs::write(hooks.join(format!("{tool}.yaml")), file).unwrap();
}

fn holding(most: usize) -> String {
    format!("command: '{HOLDS}'\n  max_concurrency: {most}")
}

/// Waits until so many processes have said that they run.
async fn started(workspace: &Path, count: usize) {
    let lines = || fs::read_to_string(workspace.join("started.txt")).unwrap_or_default().lines().count();
    wait_until_async(&format!("{count} processes run"), || lines() >= count).await;
}

async fn with_commands(workspace: &TempDir, settings: Settings) -> Orchestrator {
    let orchestrator = orchestrator_with(workspace.path(), settings).await;
    for report in orchestrator.load_reports().values() {
        assert!(report.diagnostics.is_empty(), "{:?}", report.diagnostics);
    }
    orchestrator
}

async fn with_native(hook: NativeHook) -> Orchestrator {
    Orchestrator::builder().native_hook(hook).start().await.unwrap()
}

/// A hook that takes a second, and counts how often it ran.
fn of_a_second(most: usize) -> (NativeHook, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&count);
    let hook = NativeHook::task("slow", [EventKind::BeforeToolDispatch], move |_| {
        counter.fetch_add(1, Ordering::SeqCst);
        async {
            sleep(SECOND).await;
            Ok(Reply::proceed())
        }
    });
    (hook.max_concurrency(most), count)
}

#[tokio::test]
async fn a_slow_hook_leaves_its_pools_permits_to_others() {
    let workspace = tempfile::tempdir().unwrap();
    write_hook(workspace.path(), "Slow", &holding(1));
    write_hook(workspace.path(), "Quick", "command: 'true'");
    let mut settings = Settings::default();
    settings.pools.command.concurrency = NonZeroUsize::new(2).unwrap();
    let orchestrator = with_commands(&workspace, settings).await;
    let slow: Vec<_> = (0..8).map(|run| start_event(&orchestrator, tool(&format!("run-{run}")))).collect();
    started(workspace.path(), 1).await;
    for _ in 0..8 {
        let quick = event(EventKind::BeforeToolDispatch, "other", "Quick");
        let outcome = timeout(LONG, orchestrator.dispatch(quick)).await.unwrap().unwrap();
        assert_eq!(ended(&outcome), (Ended::Completed, ""));
    }
    assert_eq!(fs::read_to_string(workspace.path().join("started.txt")).unwrap().lines().count(), 1);
    fs::write(workspace.path().join("go"), "").unwrap();
    for outcome in slow {
        assert_eq!(ended(&timeout(LONG, outcome).await.unwrap().unwrap()), (Ended::Completed, ""));
    }
}

#[tokio::test(start_paused = true)]
async fn max_concurrency_applies_over_all_runs() {
    let (hook, count) = of_a_second(2);
    let orchestrator = with_native(hook).await;
    let since = Instant::now();
    let calls: Vec<_> = (0..6).map(|run| start_event(&orchestrator, tool(&format!("run-{run}")))).collect();
    settle().await;
    assert_eq!(count.load(Ordering::SeqCst), 2);
    for call in calls {
        call.await.unwrap();
    }
    assert_eq!((since.elapsed().as_secs(), count.load(Ordering::SeqCst)), (3, 6));
}

#[tokio::test(start_paused = true)]
async fn interceptors_run_before_lifecycle_hooks() {
    let kinds = [EventKind::BeforeToolDispatch, EventKind::RunCompleted];
    let order = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&order);
    let hook = NativeHook::task("hook", kinds, move |draft| {
        seen.lock().unwrap().push(draft.event().run_id.to_string());
        async {
            sleep(SECOND).await;
            Ok(Reply::proceed())
        }
    });
    let orchestrator = with_native(hook.max_concurrency(1)).await;
    let events = [
        tool("first"),
        event(EventKind::RunCompleted, "ended-a", ""),
        event(EventKind::RunCompleted, "ended-b", ""),
        tool("tool-a"),
        tool("tool-b"),
    ];
    let mut calls = Vec::new();
    for event in events {
        calls.push(start_event(&orchestrator, event));
        settle().await;
    }
    for call in calls {
        assert_eq!(ended(&call.await.unwrap()), (Ended::Completed, ""));
    }
    assert_eq!(*order.lock().unwrap(), ["first", "tool-a", "tool-b", "ended-a", "ended-b"]);
}

#[tokio::test(start_paused = true)]
async fn the_queue_deadline_of_the_pool_applies() {
    let mut settings = Settings::default();
    settings.pools.command.queue_deadline = 2 * SECOND;
    let slow = NativeHook::task("slow", [EventKind::BeforeToolDispatch], |_| async {
        sleep(30 * SECOND).await;
        Ok(Reply::proceed())
    });
    let builder = Orchestrator::builder().settings(settings).native_hook(slow.max_concurrency(1));
    let orchestrator = builder.start().await.unwrap();
    let since = Instant::now();
    let first = start_event(&orchestrator, tool("first"));
    settle().await;
    let outcome = orchestrator.dispatch(tool("second")).await.unwrap();
    let words = "it waited too long for a place of the hook's own (`max_concurrency: 1`)";
    assert_eq!((ended(&outcome), since.elapsed().as_secs()), ((Ended::Shed, words), 2));
    assert_eq!(ended(&first.await.unwrap()), (Ended::Completed, ""));
}

#[tokio::test]
async fn the_queue_limit_of_the_pool_applies() {
    let workspace = tempfile::tempdir().unwrap();
    write_hook(workspace.path(), "Slow", &holding(1));
    let mut settings = Settings::default();
    settings.pools.command.queue = NonZeroUsize::new(2).unwrap();
    let orchestrator = with_commands(&workspace, settings).await;
    let first = start_event(&orchestrator, tool("first"));
    started(workspace.path(), 1).await;
    let mut others: Vec<_> =
        (0..5).map(|run| start_event(&orchestrator, tool(&format!("run-{run}")))).collect();
    for _ in 0..3 {
        let (outcome, _, rest) = timeout(LONG, futures_util::future::select_all(others)).await.unwrap();
        let words = "too many others wait for a place of the hook's own (`max_concurrency: 1`)";
        assert_eq!(ended(&outcome.unwrap()), (Ended::Shed, words));
        others = rest;
    }
    fs::write(workspace.path().join("go"), "").unwrap();
    others.push(first);
    for outcome in others {
        assert_eq!(ended(&timeout(LONG, outcome).await.unwrap().unwrap()), (Ended::Completed, ""));
    }
}

#[tokio::test(start_paused = true)]
async fn abandoned_invocations_leave_the_queue() {
    let (hook, count) = of_a_second(1);
    let orchestrator = with_native(hook).await;
    let since = Instant::now();
    let first = start_event(&orchestrator, tool("first"));
    settle().await;
    let dropped = start_event(&orchestrator, tool("dropped"));
    settle().await;
    dropped.abort();
    settle().await;
    orchestrator.dispatch(tool("last")).await.unwrap();
    first.await.unwrap();
    assert_eq!((since.elapsed().as_secs(), count.load(Ordering::SeqCst)), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_panic_releases_the_permit() {
    let panics = NativeHook::task("hook", [EventKind::BeforeToolDispatch], |_| async { panic!("oh") });
    let orchestrator = with_native(panics.max_concurrency(1)).await;
    for _ in 0..3 {
        let outcome = orchestrator.dispatch(tool("run")).await.unwrap();
        assert_eq!(ended(&outcome), (Ended::Failed, "the hook panicked: oh"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reload_without_changes_keeps_the_limit() {
    let (hook, count) = of_a_second(1);
    let orchestrator = with_native(hook).await;
    let first = start_event(&orchestrator, tool("first"));
    settle().await;
    orchestrator.reload().await.unwrap();
    let second = start_event(&orchestrator, tool("second"));
    settle().await;
    assert_eq!(count.load(Ordering::SeqCst), 1);
    first.await.unwrap();
    second.await.unwrap();
}

#[tokio::test]
async fn a_changed_hook_does_not_wait_for_its_former_version() {
    let workspace = tempfile::tempdir().unwrap();
    write_hook(workspace.path(), "Slow", &holding(1));
    let orchestrator = with_commands(&workspace, Settings::default()).await;
    let first = start_event(&orchestrator, tool("first"));
    started(workspace.path(), 1).await;
    write_hook(workspace.path(), "Slow", "command: 'true'\n  max_concurrency: 1");
    orchestrator.reload().await.unwrap();
    let outcome = timeout(LONG, orchestrator.dispatch(tool("second"))).await.unwrap().unwrap();
    assert_eq!(ended(&outcome), (Ended::Completed, ""));
    fs::write(workspace.path().join("go"), "").unwrap();
    timeout(LONG, first).await.unwrap().unwrap();
}

#[tokio::test]
async fn inline_native_hooks_cannot_have_a_limit() {
    let kinds = [EventKind::BeforeToolDispatch];
    let inline = NativeHook::inline("hook", kinds, |_| Ok(Reply::proceed())).max_concurrency(1);
    let error = Orchestrator::builder().native_hook(inline).start().await.unwrap_err().to_string();
    assert!(error.contains("is for hooks made with `NativeHook::task`"), "{error}");
    let none = NativeHook::task("hook", kinds, |_| async { Ok(Reply::proceed()) }).max_concurrency(0);
    let error = Orchestrator::builder().native_hook(none).start().await.unwrap_err().to_string();
    assert!(error.contains("use a number from 1"), "{error}");
}

/// Pools of a size, with the most hooks without a waiting host that run at once in each.
const SHARES: [(usize, usize); 4] = [(1, 1), (2, 1), (3, 2), (4, 3)];
