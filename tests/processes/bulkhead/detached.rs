//! Detached hooks and events that nobody waits for leave guards their places.

use super::*;

/// An event whose host does not wait.
fn detached(run: &str) -> Event {
    Event { delivery: Delivery::Detached, ..event(EventKind::RunCompleted, run, "") }
}

/// A workspace with a hook that watches and holds its place, and a guard that does not.
fn watched() -> TempDir {
    let workspace = tempfile::tempdir().unwrap();
    write_hook(workspace.path(), "Quick", "command: 'true'");
    let text =
        format!("name: notes\nevents: [run_completed]\nhandler:\n  type: command\n  command: '{HOLDS}'\n");
    fs::write(workspace.path().join(".openharness/hooks/notes.yaml"), text).unwrap();
    workspace
}

/// The guard answers as often as asked, while the hooks that hold their places do so.
async fn guards_go_on(orchestrator: &Orchestrator) {
    for number in 0..5 {
        let quick = event(EventKind::BeforeToolDispatch, &format!("quick-{number}"), "Quick");
        let outcome = timeout(LONG, orchestrator.dispatch(quick)).await.unwrap().unwrap();
        assert_eq!(ended(&outcome), (Ended::Completed, ""));
    }
}

fn lines(workspace: &Path) -> usize {
    fs::read_to_string(workspace.join("started.txt")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn a_guard_never_waits_for_hooks_of_detached_events() {
    for (places, most) in SHARES {
        let workspace = watched();
        let mut settings = Settings::default();
        settings.pools.command.concurrency = NonZeroUsize::new(places).unwrap();
        let orchestrator = with_commands(&workspace, settings).await;
        for run in 0..8 {
            orchestrator.dispatch(detached(&format!("run-{run}"))).await.unwrap();
        }
        started(workspace.path(), most).await;
        guards_go_on(&orchestrator).await;
        assert_eq!(lines(workspace.path()), most, "of {places} places");
        fs::write(workspace.path().join("go"), "").unwrap();
        started(workspace.path(), 8).await;
    }
}

#[tokio::test]
async fn a_full_queue_turns_away_hooks_of_detached_events_and_no_guard() {
    let workspace = watched();
    let mut settings = Settings::default();
    settings.pools.command.concurrency = NonZeroUsize::MIN;
    settings.pools.command.queue = NonZeroUsize::new(2).unwrap();
    let orchestrator = with_commands(&workspace, settings).await;
    for run in 0..8 {
        orchestrator.dispatch(detached(&format!("run-{run}"))).await.unwrap();
    }
    started(workspace.path(), 1).await;
    write_hook(workspace.path(), "Slow", &format!("command: '{HOLDS}'"));
    orchestrator.reload().await.unwrap();
    let guards: Vec<_> = (0..3).map(|run| start_event(&orchestrator, tool(&format!("tool-{run}")))).collect();
    started(workspace.path(), 2).await;
    fs::write(workspace.path().join("go"), "").unwrap();
    for guard in guards {
        assert_eq!(ended(&timeout(LONG, guard).await.unwrap().unwrap()), (Ended::Completed, ""));
    }
}

/// The same with a detached hook of calls of the tool `Slow`, which holds its place too.
fn with_detached_hook() -> TempDir {
    let workspace = watched();
    let detached = serde_json::json!({ "hooks": { "PreToolUse": [{ "matcher": "Slow", "hooks": [
        { "type": "command", "command": HOLDS, "async": true }
    ] }] } });
    fs::create_dir(workspace.path().join(".claude")).unwrap();
    fs::write(workspace.path().join(".claude/settings.json"), detached.to_string()).unwrap();
    workspace
}

#[tokio::test]
async fn a_guard_never_waits_for_detached_hooks_of_tool_calls() {
    for (places, most) in SHARES {
        let workspace = with_detached_hook();
        let mut settings = Settings::default();
        settings.pools.command.concurrency = NonZeroUsize::new(places).unwrap();
        let orchestrator = with_commands(&workspace, settings).await;
        for run in 0..8 {
            let outcome = timeout(LONG, orchestrator.dispatch(tool(&format!("run-{run}")))).await.unwrap();
            assert!(outcome.unwrap().hooks.is_empty(), "nobody waits for it");
        }
        started(workspace.path(), most).await;
        guards_go_on(&orchestrator).await;
        assert_eq!(lines(workspace.path()), most, "of {places} places");
        fs::write(workspace.path().join("go"), "").unwrap();
        started(workspace.path(), 8).await;
    }
}

/// Calls the tool with the detached hook so often in these runs, one after the other.
async fn call_slow_tools(orchestrator: &Orchestrator, runs: impl Iterator<Item = String>) {
    for run in runs {
        let outcome = timeout(LONG, orchestrator.dispatch(tool(&run))).await.unwrap();
        let outcome = outcome.unwrap_or_else(|error| panic!("{run}: {error}"));
        assert!(outcome.hooks.is_empty(), "nobody waits for it");
    }
}

/// How the next detached hook that ends without having run has ended.
async fn next_shed(notices: &mut NoticeStream) -> (String, Ended, String) {
    loop {
        match timeout(LONG, notices.next()).await.unwrap().unwrap().unwrap() {
            Notice::Invocation { run, report, .. } if report.ended != Ended::Completed => {
                let error = report.error.as_deref().unwrap_or_default().to_owned();
                return (run.run_id.to_string(), report.ended, error);
            }
            _ => {}
        }
    }
}

#[tokio::test]
async fn slow_detached_hooks_leave_the_next_guard_of_their_run_its_verdict() {
    let workspace = with_detached_hook();
    let mut settings = Settings::default();
    settings.pools.command.concurrency = NonZeroUsize::MIN;
    let most = settings.limits.pending_per_run.get();
    let orchestrator = with_commands(&workspace, settings).await;
    let mut notices = orchestrator.subscribe();
    call_slow_tools(&orchestrator, (0..most).map(|_| "run".to_owned())).await;
    started(workspace.path(), 1).await;
    let guarded = || event(EventKind::BeforeToolDispatch, "run", "Quick");
    let outcome = timeout(LONG, orchestrator.dispatch(guarded())).await.unwrap().unwrap();
    assert_eq!(ended(&outcome), (Ended::Completed, ""));
    // There are as many as may be, so the next one is turned away. Its event is not.
    call_slow_tools(&orchestrator, std::iter::once("run".to_owned())).await;
    let (run, how, error) = next_shed(&mut notices).await;
    assert_eq!((&*run, how), ("run", Ended::Shed));
    assert!(error.contains("as many detached hooks are under way as may be"), "{error}");
    let outcome = timeout(LONG, orchestrator.dispatch(guarded())).await.unwrap().unwrap();
    assert_eq!(ended(&outcome), (Ended::Completed, ""));
    fs::write(workspace.path().join("go"), "").unwrap();
    started(workspace.path(), most).await;
    // All permits are back.
    wait_until_async("nothing is in flight", || orchestrator.in_flight() == 0).await;
    assert_eq!(lines(workspace.path()), most, "the one that was turned away never ran");
    call_slow_tools(&orchestrator, std::iter::once("run".to_owned())).await;
    started(workspace.path(), most + 1).await;
    assert!(orchestrator.shutdown(LONG).await);
}

#[tokio::test]
async fn slow_detached_hooks_leave_guards_of_all_runs_their_verdicts() {
    let workspace = with_detached_hook();
    let mut settings = Settings::default();
    settings.pools.command.concurrency = NonZeroUsize::MIN;
    settings.limits.in_flight = NonZeroUsize::new(8).unwrap();
    let orchestrator = with_commands(&workspace, settings).await;
    let mut notices = orchestrator.subscribe();
    call_slow_tools(&orchestrator, (0..8).map(|run| format!("run-{run}"))).await;
    assert_eq!(orchestrator.in_flight(), 6);
    for turned_away in ["run-6", "run-7"] {
        let (run, how, _) = next_shed(&mut notices).await;
        assert_eq!((&*run, how), (turned_away, Ended::Shed));
    }
    guards_go_on(&orchestrator).await;
    fs::write(workspace.path().join("go"), "").unwrap();
    assert!(orchestrator.shutdown(LONG).await);
    assert_eq!(lines(workspace.path()), 6, "a shutdown waits for detached hooks");
}

#[tokio::test(start_paused = true)]
async fn a_place_goes_to_who_waits_in_the_pool_before_the_hooks_own_permit_is_passed_on() {
    let task = |name: &str, kind, length| {
        NativeHook::task(name, [kind], move |_| async move {
            sleep(length).await;
            Ok(Reply::proceed())
        })
    };
    let mut settings = Settings::default();
    settings.pools.native.concurrency = NonZeroUsize::new(2).unwrap();
    let builder = Orchestrator::builder()
        .settings(settings)
        .native_hook(task("long", EventKind::BeforeToolDispatch, 20 * SECOND))
        .native_hook(task("guard", EventKind::AfterToolDispatch, SECOND).max_concurrency(1))
        .native_hook(task("notes", EventKind::RunCompleted, 2 * SECOND));
    let orchestrator = builder.start().await.unwrap();
    let since = Instant::now();
    let long = start_event(&orchestrator, tool("long"));
    let mut calls = Vec::new();
    for (kind, run) in [
        (EventKind::AfterToolDispatch, "first"),
        (EventKind::AfterToolDispatch, "second"),
        (EventKind::RunCompleted, "ended"),
    ] {
        settle().await;
        calls.push(start_event(&orchestrator, event(kind, run, "Slow")));
    }
    let mut ends = Vec::new();
    for call in calls {
        assert_eq!(ended(&call.await.unwrap()), (Ended::Completed, ""));
        ends.push(since.elapsed().as_secs());
    }
    // The second guard waits at its hook's limit, not in the pool, when the first one ends. It goes first there from then on.
    assert_eq!(ends, [1, 4, 4]);
    long.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_native_guard_never_waits_for_hooks_of_detached_events() {
    for (places, most) in SHARES {
        let count = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&count);
        let notes = NativeHook::task("notes", [EventKind::RunCompleted], move |_| {
            counter.fetch_add(1, Ordering::SeqCst);
            async {
                sleep(30 * SECOND).await;
                Ok(Reply::proceed())
            }
        });
        let guard = NativeHook::task("guard", [EventKind::BeforeToolDispatch], |_| async {
            sleep(SECOND).await;
            Ok(Reply::proceed())
        });
        let mut settings = Settings::default();
        settings.pools.native.concurrency = NonZeroUsize::new(places).unwrap();
        let builder = Orchestrator::builder().settings(settings).native_hook(notes).native_hook(guard);
        let orchestrator = builder.start().await.unwrap();
        for run in 0..8 {
            orchestrator.dispatch(detached(&format!("run-{run}"))).await.unwrap();
        }
        settle().await;
        let since = Instant::now();
        // Interceptors may have every place that is free, and all of them together no more than there are.
        let calls: Vec<_> =
            (0..places).map(|run| start_event(&orchestrator, tool(&format!("{run}")))).collect();
        for call in calls {
            assert_eq!(ended(&call.await.unwrap()), (Ended::Completed, ""));
        }
        let free = places.max(2) - most;
        let rounds = places.div_ceil(free.min(places));
        assert_eq!(since.elapsed().as_secs(), u64::try_from(rounds).unwrap(), "of {places} places");
        assert_eq!(count.load(Ordering::SeqCst), most, "of {places} places");
    }
}
