//! Workers that get events ahead: each is served once, in its order, and a hang is that of one event.

use super::*;

/// Asks for so many events at once, each in its run.
async fn ask_many(fixture: &Fixture, command: &str, count: usize) -> Vec<Outcome> {
    let runs: Vec<_> = (0..count).map(|run| format!("run-{run}")).collect();
    let input = || json!({ "command": command }).to_string();
    join_all(runs.iter().map(|run| fixture.ask_as(run, input()))).await
}

/// A worker that has answered many events quickly, so that it gets some ahead.
async fn quick_worker(keys: &str) -> (Fixture, u32) {
    let fixture = Fixture::worker("pipeline", keys).await;
    let (pid, _) = worker_of(&fixture.ask("fine").await);
    let outcomes = ask_many(&fixture, "fine", 100).await;
    let served: std::collections::HashSet<_> = outcomes.iter().map(worker_of).collect();
    assert_eq!(served.len(), 100, "each once: {served:?}");
    (fixture, pid)
}

#[tokio::test]
async fn events_behind_a_hang_have_their_time_still_and_are_served_once_by_the_next_worker() {
    let (fixture, first) = quick_worker("timeout_seconds: 4").await;
    let others = async {
        fixture.lines("held.txt", 1).await;
        ask_many(&fixture, "fine", 8).await
    };
    let (slow, others) = tokio::join!(fixture.ask("hang"), others);
    assert_eq!(ended(&slow), (Ended::TimedOut, "no answer in time; the worker was killed"));
    let mut served: Vec<_> = others.iter().map(worker_of).collect();
    served.sort_unstable();
    let (second, _) = served[0];
    assert_ne!(second, first);
    assert_eq!(served, (1..=8).map(|number| (second, number)).collect::<Vec<_>>());
    assert_gone(first).await;
}

#[tokio::test]
async fn a_worker_that_dies_fails_the_event_that_it_was_at() {
    let (fixture, first) = quick_worker("").await;
    let outcomes = tokio::join!(
        fixture.ask_as("a", json!({ "command": "die" }).to_string()),
        ask_many(&fixture, "fine", 8)
    );
    assert_eq!(ended(&outcomes.0).0, Ended::Failed);
    for outcome in &outcomes.1 {
        worker_of(outcome);
    }
    assert_gone(first).await;
}

#[tokio::test]
async fn a_slow_worker_gets_one_event_at_a_time() {
    let (fixture, _) = quick_worker("workers: 2").await;
    let holds = async {
        tokio::join!(fixture.ask_as("a", hold()), fixture.ask_as("b", hold()), fixture.ask_as("c", hold()))
    };
    let go = async {
        // Both workers hold an event: none is kept behind the other's.
        fixture.lines("held.txt", 2).await;
        fs::write(fixture.workspace.path().join("go"), "").unwrap();
    };
    let ((a, b, c), ()) = tokio::join!(holds, go);
    let pids: std::collections::HashSet<_> = [a, b, c].iter().map(|outcome| worker_of(outcome).0).collect();
    assert_eq!(pids.len(), 2);
}

fn hold() -> String {
    json!({ "command": "until go" }).to_string()
}
