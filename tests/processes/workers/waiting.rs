//! Events that wait for a busy worker: they wait in a queue, in no place of the pool, and not for ever.

use hookyard::config::Settings;

use super::*;
use crate::support::trust::orchestrator_with;

/// A workspace with a worker hook on `Bash` and a command on `Read`, of which the pool runs two at once.
async fn fixture(keys: &str, settings: impl FnOnce(&mut Settings)) -> Fixture {
    let workspace = tempfile::tempdir().unwrap();
    let keys = format!("mode: worker\n  {keys}\nmatcher: ^Bash$");
    write_hook(workspace.path(), &script("good"), &keys);
    let quick = "name: quick\nevents: [before_tool_dispatch]\nmatcher: ^Read$\n\
        handler:\n  type: command\n  command: exit 2\n";
    fs::write(workspace.path().join(".openharness/hooks/quick.yaml"), quick).unwrap();
    let mut all = Settings::default();
    all.pools.command.concurrency = std::num::NonZeroUsize::new(2).unwrap();
    settings(&mut all);
    let orchestrator = orchestrator_with(workspace.path(), all).await;
    Fixture { orchestrator, workspace }
}

fn hold() -> String {
    json!({ "command": "until go" }).to_string()
}

impl Fixture {
    /// An event that no worker gets.
    async fn read(&self) -> Outcome {
        let mut read = event("reader", "{}");
        read.attributes.tool_name = Some("Read".into());
        timeout(LONG, self.orchestrator.dispatch(read)).await.unwrap().unwrap()
    }

    fn go(&self) {
        fs::write(self.workspace.path().join("go"), "").unwrap();
    }
}

#[tokio::test]
async fn waiting_for_a_busy_worker_is_queue_time_and_holds_no_place() {
    let fixture = fixture("workers: 1", |_| {}).await;
    let waited = Duration::from_millis(300);
    let others = async {
        fixture.lines("held.txt", 1).await;
        // Three more wait for the worker; the second place of the pool is free all the same.
        let since = Instant::now();
        while since.elapsed() < waited {
            assert_eq!(fixture.read().await.verdict, Verdict::Block);
        }
        fixture.go();
    };
    let ask = |run| fixture.ask_as(run, hold());
    let (a, b, c, d, ()) = tokio::join!(ask("a"), ask("b"), ask("c"), ask("d"), others);
    let outcomes = [&a, &b, &c, &d];
    let mut requests = outcomes.map(|outcome| worker_of(outcome).1);
    requests.sort_unstable();
    assert_eq!(requests, [1, 2, 3, 4]);
    let mut queued = outcomes.map(|outcome| outcome.hooks[0].queued);
    queued.sort_unstable();
    assert!(queued[1] >= waited, "{queued:?}");
    for outcome in outcomes.iter().filter(|outcome| outcome.hooks[0].queued >= waited) {
        let report = &outcome.hooks[0];
        assert!(report.duration < report.queued, "the wait is no time of the hook: {report:?}");
        let json = serde_json::to_value(report).unwrap();
        assert!(json["queued_ms"].as_f64().unwrap() >= 300.0, "{json}");
    }
}

#[tokio::test]
async fn a_command_gets_the_place_of_a_worker_that_has_answered() {
    let fixture = fixture("workers: 2", |_| {}).await;
    let others = async {
        fixture.lines("held.txt", 2).await;
        let mut read = Box::pin(fixture.read());
        // Both places of the pool are those of the workers.
        assert!(timeout(Duration::from_millis(200), &mut read).await.is_err());
        fixture.go();
        read.await
    };
    let (a, b, read) = tokio::join!(fixture.ask_as("a", hold()), fixture.ask_as("b", hold()), others);
    assert_eq!([&a, &b].map(|outcome| worker_of(outcome).1), [1, 1]);
    assert_eq!(read.verdict, Verdict::Block);
}

#[tokio::test]
async fn too_many_that_wait_for_a_worker_are_shed_and_so_are_those_that_wait_too_long() {
    let fixture = fixture("workers: 1", |settings| {
        settings.pools.command.queue = std::num::NonZeroUsize::MIN;
        settings.pools.command.queue_deadline = Duration::from_secs(2);
    })
    .await;
    let others = async {
        fixture.lines("held.txt", 1).await;
        let (late, full) = tokio::join!(fixture.ask_as("b", hold()), async {
            // The first of them waits by the time the second comes.
            tokio::task::yield_now().await;
            fixture.ask_as("c", hold()).await
        });
        fixture.go();
        [late, full]
    };
    let (held, shed) = tokio::join!(fixture.ask_as("a", hold()), others);
    assert_eq!(worker_of(&held).1, 1);
    let mut errors = shed.each_ref().map(|outcome| {
        let (end, error) = ended(outcome);
        assert_eq!(end, Ended::Shed, "{outcome:?}");
        error.to_owned()
    });
    errors.sort_unstable();
    assert_eq!(
        errors,
        [
            "it waited too long for a place in one of the hook's workers (`workers`)",
            "too many others wait for a place in one of the hook's workers (`workers`)"
        ]
    );
}

#[tokio::test]
async fn an_abandoned_event_keeps_its_worker_busy_and_no_place_of_the_pool() {
    let fixture = fixture("workers: 1", |_| {}).await;
    tokio::select! {
        outcome = fixture.ask_as("gone", hold()) => panic!("{outcome:?}"),
        () = fixture.lines("held.txt", 1) => {}
    }
    let ask = |run| fixture.ask_as(run, json!({ "command": "fine" }).to_string());
    let others = async {
        for _ in 0..20 {
            assert_eq!(fixture.read().await.verdict, Verdict::Block);
        }
        fixture.go();
    };
    let (a, b, c, ()) = tokio::join!(ask("a"), ask("b"), ask("c"), others);
    let mut requests = [a, b, c].each_ref().map(|outcome| worker_of(outcome).1);
    requests.sort_unstable();
    assert_eq!(requests, [2, 3, 4]);
}

#[tokio::test]
async fn a_multiplexing_worker_takes_those_that_waited_for_its_hello() {
    let workspace = tempfile::tempdir().unwrap();
    let slow = format!("until [ -e go ]; do sleep 0.02; done; {}", script("multiplex"));
    write_hook(workspace.path(), &slow, "mode: worker\n  timeout_seconds: 60");
    let orchestrator = orchestrator_in(workspace.path()).await;
    let fixture = Fixture { orchestrator, workspace };
    let held = || json!({ "command": "hold" }).to_string();
    let release = async {
        fixture.go();
        fixture.lines("held.txt", 2).await;
        fixture.ask_as("c", json!({ "command": "release" }).to_string()).await
    };
    let (a, b, _) = tokio::join!(fixture.ask_as("a", held()), fixture.ask_as("b", held()), release);
    assert_eq!((reason(&a), reason(&b)), ("released", "released"));
}

#[tokio::test]
async fn a_worker_that_was_slow_once_serves_later() {
    // The first worker says no hello until it is killed. Later ones do, and never as a process of one event.
    let late = r#"if [ "$HOOKYARD_WORKER" = 1 ] && [ ! -e go ]; then sleep 600; fi"#;
    let fixture =
        Fixture::of(&format!("{late}; {}", script("good")), "mode: worker\n  timeout_seconds: 20").await;
    let outcome = fixture.ask("fine").await;
    assert_eq!(reason(&outcome), "oneshot fine");
    let without_worker = async {
        while !ended_warning(&fixture.ask("fine").await).contains("a worker is tried again later") {
            tokio::task::yield_now().await;
        }
    };
    timeout(LONG, without_worker).await.unwrap();
    fixture.go();
    // No reload: it is tried again after a few seconds, and no event waits for that.
    assert_eq!(next_worker(&fixture).await.1, 1);
}

fn ended_warning(outcome: &Outcome) -> &str {
    outcome.hooks[0].warnings.first().map_or("", String::as_str)
}
