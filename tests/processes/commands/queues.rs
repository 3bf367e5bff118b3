//! Command hooks that wait for a place in their pool.

use super::*;

/// A command that runs until there is a file `go`.
fn holds() -> String {
    "command: 'touch started; until [ -e go ]; do sleep 0.02; done'".to_owned()
}

#[tokio::test]
async fn a_full_pool_sheds_and_says_so() {
    let workspace = workspace(&holds(), "on_error: deny");
    let mut settings = Settings::default();
    settings.pools.command.concurrency = 2.try_into().unwrap();
    settings.pools.command.queue = 3.try_into().unwrap();
    let orchestrator = start(workspace.path(), settings).await;
    let events = (0..20).map(|run| Event { run_id: RunId::new(format!("run-{run}")).unwrap(), ..event() });
    let mut running: FuturesUnordered<_> = events.map(|event| orchestrator.dispatch(event)).collect();
    let mut outcomes: Vec<_> = running.by_ref().take(15).map(Result::unwrap).collect().await;
    fs::write(workspace.path().join("go"), "").unwrap();
    outcomes.extend(running.map(Result::unwrap).collect::<Vec<_>>().await);
    let shed: Vec<_> = outcomes.iter().filter(|outcome| ended(outcome).0 == Ended::Shed).collect();
    assert_eq!(shed.len(), 15, "two run, three wait");
    for outcome in shed {
        assert_eq!(outcome.verdict, Verdict::Block, "a guard that is shed still guards");
        assert!(outcome.reason.as_deref().unwrap_or_default().contains("queue of the command pool is full"));
    }
}

#[tokio::test]
async fn a_job_beyond_the_queue_deadline_is_shed() {
    let workspace = workspace("command: sleep 2", "");
    let mut settings = Settings::default();
    settings.pools.command.concurrency = 1.try_into().unwrap();
    settings.pools.command.queue_deadline = Duration::from_millis(300);
    let orchestrator = start(workspace.path(), settings).await;
    let other = Event { run_id: RunId::new("other").unwrap(), ..event() };
    let (first, second) = tokio::join!(orchestrator.dispatch(event()), orchestrator.dispatch(other));
    let mut ends = [ended(&first.unwrap()).0, ended(&second.unwrap()).0];
    ends.sort_unstable();
    assert_eq!(ends, [Ended::Completed, Ended::Shed]);
}

#[tokio::test]
async fn a_dropped_invocation_frees_its_place_in_the_queue() {
    let workspace = workspace(&holds(), "on_error: deny");
    let mut settings = Settings::default();
    settings.pools.command.concurrency = 1.try_into().unwrap();
    settings.pools.command.queue = 1.try_into().unwrap();
    let orchestrator = start(workspace.path(), settings).await;
    let of_run = |run: &str| Event { run_id: RunId::new(run).unwrap(), ..event() };
    let others = async {
        wait_until_async("the first runs", || workspace.path().join("started").exists()).await;
        let dropped = timeout(Duration::from_millis(100), orchestrator.dispatch(of_run("dropped"))).await;
        assert!(dropped.is_err(), "it waits in the queue");
        let go = async { fs::write(workspace.path().join("go"), "").unwrap() };
        tokio::join!(orchestrator.dispatch(of_run("next")), go).0.unwrap()
    };
    let (first, next) = tokio::join!(orchestrator.dispatch(of_run("first")), others);
    assert_eq!(ended(&first.unwrap()).0, Ended::Completed);
    assert_eq!(ended(&next), (Ended::Completed, ""));
}
