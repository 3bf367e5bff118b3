//! When workers start, are replaced and end.

use super::*;

#[tokio::test]
async fn workers_are_replaced_after_max_requests() {
    let fixture = Fixture::worker("good", "max_requests: 2").await;
    let mut seen = Vec::new();
    while seen.len() < 6 {
        seen.push(next_worker(&fixture).await);
    }
    assert!(seen.iter().all(|(_, number)| *number <= 2), "{seen:?}");
    assert!(seen.iter().map(|(pid, _)| pid).collect::<std::collections::HashSet<_>>().len() >= 3);
    assert_gone(seen[0].0).await;
}

#[tokio::test]
async fn no_event_gets_a_process_while_the_next_worker_starts() {
    let fixture = Fixture::worker("multiplex", "max_requests: 5").await;
    worker_of(&fixture.ask("fine").await);
    for round in 0..4 {
        let runs: Vec<_> = (0..40).map(|run| format!("run-{round}-{run}")).collect();
        let input = || json!({ "command": "fine" }).to_string();
        let outcomes = join_all(runs.iter().map(|run| fixture.ask_as(run, input()))).await;
        assert!(outcomes.iter().all(|outcome| worker_of(outcome).1 > 0));
    }
}

#[tokio::test]
async fn the_next_worker_starts_before_max_requests_is_reached() {
    let fixture = Fixture::worker("good", "max_requests: 20").await;
    let directory = fixture.workspace.path();
    let workers = || child_processes::processes(|process| runs_in(process, directory)).len();
    let mut seen = Vec::new();
    for _ in 0..19 {
        seen.push(worker_of(&fixture.ask("fine").await));
    }
    wait_until_async("the next worker runs beside the first", || workers() == 2).await;
    seen.push(worker_of(&fixture.ask("fine").await));
    let first = seen[0].0;
    assert_eq!(seen, (1..=20).map(|number| (first, number)).collect::<Vec<_>>());
    let (second, number) = worker_of(&fixture.ask("fine").await);
    assert!(second != first && number == 1);
}

#[tokio::test]
async fn an_old_worker_ends_although_it_always_has_an_event() {
    let fixture = Fixture::worker("multiplex", "max_age_seconds: 1\nmax_requests: 10000000").await;
    let (first, _) = next_worker(&fixture).await;
    let replaced = async {
        fixture.lines("held.txt", 1).await;
        loop {
            let outcome = fixture.ask_as("other", json!({ "command": "fine" }).to_string()).await;
            if reason(&outcome) != "oneshot fine" && worker_of(&outcome).0 != first {
                return;
            }
        }
    };
    tokio::select! {
        outcome = fixture.ask("hold") => panic!("{outcome:?}"),
        replaced = timeout(LONG, replaced) => replaced.unwrap(),
    }
}

/// A worker that is given up soon after its first event.
async fn ends_after_one_event(keys: &str) {
    let fixture = Fixture::worker("good", keys).await;
    assert_gone(next_worker(&fixture).await.0).await;
}

#[tokio::test]
async fn an_idle_worker_ends() {
    ends_after_one_event("max_idle_seconds: 1").await;
}

#[tokio::test]
async fn an_old_worker_ends() {
    ends_after_one_event("max_age_seconds: 1").await;
}

#[tokio::test]
async fn a_large_worker_ends() {
    ends_after_one_event("max_rss_mib: 1").await;
}

#[tokio::test]
async fn a_reload_replaces_the_workers_of_changed_hooks_only() {
    let fixture = Fixture::worker("good", "").await;
    let (pid, _) = worker_of(&fixture.ask("fine").await);
    fixture.orchestrator.reload().await.unwrap();
    assert_eq!(worker_of(&fixture.ask("fine").await), (pid, 2), "nothing has changed");
    write_hook(fixture.workspace.path(), &script("good"), "mode: worker\n  environment: { A: b }");
    fixture.orchestrator.reload().await.unwrap();
    assert_gone(pid).await;
    assert_eq!(worker_of(&fixture.ask("fine").await).1, 1);
}

#[tokio::test]
async fn no_worker_outlives_its_orchestrator() {
    let fixture = Fixture::worker("good", "").await;
    let (pid, _) = worker_of(&fixture.ask("fine").await);
    assert!(fixture.orchestrator.shutdown(LONG).await);
    assert_gone(pid).await;
    let fixture = Fixture::worker("good", "").await;
    let (pid, _) = worker_of(&fixture.ask("fine").await);
    drop(fixture);
    assert_gone(pid).await;
}
