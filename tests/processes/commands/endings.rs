//! How processes end: at their timeout, with their caller, and at shutdown.

use super::*;

/// A hook that runs a child of the corpus, and can be found by its environment.
fn hostile(child: &str, tag: &str, timeout_seconds: f64) -> TempDir {
    let path = json!(child_processes::child(child));
    let tag = json!(child_processes::tag(tag));
    workspace(&format!("args: [{path}]\ntimeout_seconds: {timeout_seconds}\nenvironment:\n  TAG: {tag}"), "")
}

#[tokio::test]
async fn the_answer_comes_within_timeout_and_grace_whatever_the_child_does() {
    let children =
        ["ignores_term", "stops_itself_ignoring_term", "fork_swarm", "respawn_storm", "fast_endless_output"];
    let answers = children.map(|child| async move {
        let workspace = hostile(child, child, 0.5);
        let orchestrator = start(workspace.path(), Settings::default()).await;
        let since = Instant::now();
        let outcome = orchestrator.dispatch(event()).await.unwrap();
        // Timeout, two seconds of grace, half a second, and what a busy machine may add. The child never ends.
        assert!(since.elapsed() < Duration::from_secs(20), "{child} took {:?}", since.elapsed());
        assert_eq!(ended(&outcome).0, Ended::TimedOut, "{child}");
        assert!(
            child_processes::gone(|process| child_processes::is_tagged(process, child)).await.is_empty(),
            "{child} lives on"
        );
    });
    futures_util::future::join_all(answers).await;
}

#[tokio::test]
async fn a_program_that_a_shell_runs_has_time_to_clean_up() {
    // The line's second command keeps the shell from becoming the program.
    let script = "trap 'sleep 0.3; echo tidy > tidied; exit' TERM; while :; do sleep 0.1; done";
    let handler = format!("command: {}\ntimeout_seconds: 2", json!(format!("sh -c \"{script}\"; true")));
    let workspace = workspace(&handler, "");
    let orchestrator = start(workspace.path(), Settings::default()).await;
    assert_eq!(ended(&orchestrator.dispatch(event()).await.unwrap()).0, Ended::TimedOut);
    assert_eq!(fs::read_to_string(workspace.path().join("tidied")).unwrap(), "tidy\n");
}

#[tokio::test]
async fn dropping_a_dispatch_kills_its_processes() {
    let workspace = hostile("fork_swarm", "dropped-dispatch", 60.0);
    let orchestrator = start(workspace.path(), Settings::default()).await;
    tokio::select! {
        outcome = orchestrator.dispatch(event()) => panic!("{outcome:?}"),
        _ = child_processes::started("dropped-dispatch") => {}
    }
    // SIGTERM, then two seconds of grace for those who ignore it.
    let lives = |process: &child_processes::Process| child_processes::is_tagged(process, "dropped-dispatch");
    wait_until_async("the processes are killed", || child_processes::processes(lives).is_empty()).await;
}

#[tokio::test]
async fn shutdown_leaves_no_process() {
    let workspace = hostile("ignores_term", "shut-down", 60.0);
    let orchestrator = start(workspace.path(), Settings::default()).await;
    let waiting = tokio::spawn({
        let orchestrator = orchestrator.clone();
        async move { orchestrator.dispatch(event()).await }
    });
    child_processes::started("shut-down").await;
    assert!(!orchestrator.shutdown(Duration::from_millis(50)).await, "it did not finish by itself");
    assert!(waiting.await.unwrap().is_err());
    assert!(
        child_processes::gone(|process| child_processes::is_tagged(process, "shut-down")).await.is_empty()
    );
}

#[tokio::test]
async fn the_longest_timeout_is_no_timeout() {
    let workspace = workspace("command: 'true'", "");
    let settings =
        Settings { default_timeout: Duration::MAX, max_timeout: Duration::MAX, ..Settings::default() };
    let orchestrator = start(workspace.path(), settings).await;
    let outcome = orchestrator.dispatch(event()).await.unwrap();
    assert_eq!(ended(&outcome), (Ended::Completed, ""));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shutdown_is_no_failure_that_a_guard_lets_pass() {
    let workspace = workspace("command: exec sleep 60", "");
    for round in 0..30 {
        let orchestrator = start(workspace.path(), Settings::default()).await;
        let calls: Vec<_> = (0..16)
            .map(|run| Event { run_id: RunId::new(format!("run-{run}")).unwrap(), ..event() })
            .map(|event| (orchestrator.clone(), event))
            .map(|(orchestrator, event)| tokio::spawn(async move { orchestrator.dispatch(event).await }))
            .collect();
        orchestrator.shutdown(Duration::from_millis(30)).await;
        for call in calls {
            let error = call.await.unwrap().unwrap_err();
            let expected = [DispatchError::ShuttingDown, DispatchError::Interrupted];
            assert!(expected.contains(&error), "round {round}: {error:?}");
        }
    }
}

#[tokio::test]
async fn every_process_is_killed_when_shutdown_returns() {
    let workspace = hostile("ignores_term", "killed-at-return", 60.0);
    let orchestrator = start(workspace.path(), Settings::default()).await;
    let runs = (0..70).map(|run| Event { run_id: RunId::new(format!("run-{run}")).unwrap(), ..event() });
    for event in runs {
        let orchestrator = orchestrator.clone();
        tokio::spawn(async move { orchestrator.dispatch(event).await });
    }
    child_processes::started("killed-at-return").await;
    orchestrator.shutdown(Duration::from_millis(50)).await;
    // No task runs from here on, as in a host that exits now: what lives was forgotten.
    let lives = |process: &child_processes::Process| {
        process.alive() && child_processes::is_tagged(process, "killed-at-return")
    };
    wait_until("they are gone", || child_processes::processes(lives).is_empty());
}
