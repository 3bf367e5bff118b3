//! Requests that are sent again, and those that are not.

use super::*;

#[tokio::test]
async fn only_lifecycle_hooks_are_retried() {
    let cases = [
        (EventKind::RunCompleted, 2, 3, Ended::Completed),
        (EventKind::RunCompleted, 9, 3, Ended::Failed),
        (EventKind::BeforeToolDispatch, 2, 1, Ended::Failed),
    ];
    for (kind, times, expected, end) in cases {
        let (server, asked) = failing(times).await;
        let outcome = ask(&server.url("/"), json!({}), kind).await;
        assert_eq!(asked.load(Ordering::Relaxed), expected, "{kind} {times}");
        assert_eq!(ended(&outcome).0, end, "{outcome:?}");
    }
}

/// Events without a kind of their own: each says for itself whether a host waits for a verdict.
#[tokio::test]
async fn only_host_events_that_cannot_be_blocked_are_retried() {
    for (name, expected) in [("TaskCreated", 1), ("CwdChanged", 3)] {
        let (server, asked) = failing(2).await;
        let workspace = tempfile::tempdir().unwrap();
        let hook = json!([{ "hooks": [{ "type": "http", "url": server.url("/") }] }]);
        fs::create_dir(workspace.path().join(".claude")).unwrap();
        let settings = json!({ "hooks": { name: hook } }).to_string();
        fs::write(workspace.path().join(".claude/settings.json"), settings).unwrap();
        let home = Some(workspace.path().join("home"));
        let orchestrator = start(&workspace, Settings { home, ..Settings::default() }).await;
        let event = json!({ "hook_event_name": name, "session_id": "s" }).to_string();
        orchestrator.dispatch_json(DialectName::Claude, event.as_bytes()).await.unwrap();
        assert_eq!(asked.load(Ordering::Relaxed), expected, "{name}");
    }
}

#[tokio::test]
async fn a_request_that_the_server_acted_upon_is_not_retried() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let answer = async move || {
        count.fetch_add(1, Ordering::Relaxed);
        StatusCode::BAD_REQUEST
    };
    let server = Server::start(Router::new().route("/", any(answer))).await;
    let outcome = ask(&server.url("/"), json!({}), EventKind::RunCompleted).await;
    assert_eq!(ended(&outcome).1, "the server answered with status 400");
    assert_eq!(asked.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn there_is_no_retry_after_the_deadline() {
    let (server, asked) = failing(9).await;
    let handler = json!({ "timeout_seconds": 0.1 });
    let outcome = ask(&server.url("/"), handler, EventKind::RunCompleted).await;
    assert!(matches!(ended(&outcome).0, Ended::Failed | Ended::TimedOut), "{outcome:?}");
    // On a busy machine the deadline may be over before the first try is.
    assert!(asked.load(Ordering::Relaxed) <= 1);
}
