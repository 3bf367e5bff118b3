//! Scripts that speak the worker protocol and nothing else: they are never run without it unnoticed.

use super::*;

/// A worker without a oneshot form, which blocks every event in the name of its process. `hello` is what it does first.
fn guard(hello: &str) -> String {
    let serve = r#"
echo '{"hookyard":1}'
while read -r line; do
  case $line in *\"sleep\"*) sleep 600 ;; esac
  id=$(printf %s "$line" | sed 's/^{"id":"\([^"]*\)".*/\1/')
  echo "{\"id\":\"$id\",\"output\":{\"decision\":\"block\",\"reason\":\"$$ 1\"}}"
done"#;
    format!("{hello}{serve}")
}

/// Whether a script without a worker's environment began.
const NOTES_ONESHOT: &str = "[ \"$HOOKYARD_WORKER\" = 1 ] || echo oneshot >> oneshot.txt\n";

async fn assert_all_gone(fixture: &Fixture) {
    assert!(fixture.orchestrator.shutdown(LONG).await);
    let left =
        child_processes::gone(|process| process.alive() && runs_in(process, fixture.workspace.path())).await;
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn a_guard_does_not_open_after_a_slow_event() {
    let keys = "mode: worker\n  timeout_seconds: 5";
    let fixture = Fixture::of(&guard(NOTES_ONESHOT), keys).await;
    let (first, _) = worker_of(&fixture.ask("fine").await);
    assert_eq!(ended(&fixture.ask("sleep").await).0, Ended::TimedOut);
    let outcome = fixture.ask("fine").await;
    assert_eq!(outcome.verdict, Verdict::Block, "{outcome:?}");
    assert_ne!(worker_of(&outcome).0, first);
    assert_eq!(outcome.hooks[0].warnings, [""; 0]);
    assert!(!fixture.workspace.path().join("oneshot.txt").exists());
    assert_all_gone(&fixture).await;
}

#[tokio::test]
async fn events_at_once_after_a_slow_one_wait_for_the_next_worker() {
    let keys = "mode: worker\n  timeout_seconds: 10\n  workers: 2";
    let fixture = Fixture::of(&guard(NOTES_ONESHOT), keys).await;
    worker_of(&fixture.ask("fine").await);
    let slow = fixture.ask_as("slow", json!({ "command": "sleep" }).to_string());
    let others = join_all((0..6).map(|run| {
        let run = format!("run-{run}");
        let fixture = &fixture;
        async move { fixture.ask_as(&run, json!({ "command": "fine" }).to_string()).await }
    }));
    let (slow, others) = tokio::join!(slow, others);
    assert_eq!(ended(&slow).0, Ended::TimedOut);
    for outcome in others {
        assert_eq!(outcome.verdict, Verdict::Block, "{outcome:?}");
    }
    assert!(!fixture.workspace.path().join("oneshot.txt").exists());
    assert_all_gone(&fixture).await;
}

#[tokio::test]
async fn a_hello_without_a_worker_is_no_answer_and_later_events_wait() {
    // As a worker it says hello once `go` is there; without the protocol at once.
    let slow = r#"[ "$HOOKYARD_WORKER" != 1 ] || until [ -e go ]; do sleep 0.02; done"#;
    let fixture = Fixture::of(&guard(slow), "mode: worker\n  timeout_seconds: 10").await;
    let outcome = fixture.ask("fine").await;
    let (end, error) = ended(&outcome);
    assert_eq!(end, Ended::InvalidOutput, "{outcome:?}");
    assert!(error.starts_with("this script speaks the worker protocol only"), "{error}");
    fs::write(fixture.workspace.path().join("go"), "").unwrap();
    let outcome = fixture.ask("fine").await;
    assert_eq!(outcome.verdict, Verdict::Block, "{outcome:?}");
    assert_all_gone(&fixture).await;
}

#[tokio::test]
async fn a_line_of_the_protocol_is_no_answer_in_any_mode() {
    let lines = [
        r#"{"hookyard":1}"#,
        r#"{"hookyard":1,"multiplex":true}"#,
        r#"{"pong":1}"#,
        r#"{"id":"0","output":{}}"#,
        r#"{"id":"0","error":"no"}"#,
    ];
    let cases = lines.iter().flat_map(|line| MODES.iter().map(move |mode| (line, mode)));
    for (line, mode) in cases {
        let fixture =
            Fixture::of(&format!("read -r envelope; echo '{line}'"), &format!("mode: {mode}")).await;
        let outcome = fixture.ask("fine").await;
        let (end, error) = ended(&outcome);
        assert_eq!(end, Ended::InvalidOutput, "{line} {mode}: {outcome:?}");
        assert!(error.starts_with("this script speaks the worker protocol only"), "{line} {mode}: {error}");
        assert_all_gone(&fixture).await;
    }
}

/// The modes that need no hello.
const MODES: [&str; 2] = ["oneshot", "prespawn"];

#[tokio::test]
async fn a_block_by_exit_code_stays_a_block() {
    let fixture = Fixture::of("echo '{\"hookyard\":1}'; exit 2", "mode: oneshot").await;
    assert_eq!(fixture.ask("fine").await.verdict, Verdict::Block);
}
