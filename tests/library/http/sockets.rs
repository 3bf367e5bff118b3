//! Http hooks at Unix sockets follow the same rules.

use std::path::Path;

use axum::http::Uri;

use super::*;
use crate::support::servers::serve_at_socket;

/// A directory with room for a socket, and the socket's path.
fn place() -> (TempDir, String) {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("hook.sock").to_str().unwrap().to_owned();
    (place, path)
}

async fn allowed(workspace: &TempDir) -> Orchestrator {
    start(workspace, Settings { allow_unix_sockets: true, ..Settings::default() }).await
}

/// The outcome of one event whose hook asks at this socket.
async fn ask_at(path: &str, route: &str, handler: Value, kind: EventKind) -> Outcome {
    let workspace = workspace(&format!("unix:{path}:{route}"), &handler);
    allowed(&workspace).await.dispatch(event(kind)).await.unwrap()
}

#[tokio::test]
async fn a_server_at_a_socket_gives_its_verdict() {
    let (_place, path) = place();
    let sent = Arc::new(Mutex::new(Vec::new()));
    let kept = Arc::clone(&sent);
    let record = async move |uri: Uri, headers: HeaderMap, body: Bytes| {
        kept.lock().unwrap().push((uri, headers, body));
        BLOCK
    };
    serve_at_socket(Path::new(&path), Router::new().route("/check", post(record)));
    let outcome = ask_at(&path, "/check?all=1", json!({}), EventKind::BeforeToolDispatch).await;
    assert_eq!((ended(&outcome), outcome.verdict), ((Ended::Completed, ""), Verdict::Block));
    let (uri, headers, body) = sent.lock().unwrap().pop().unwrap();
    assert_eq!(uri.to_string(), "/check?all=1");
    assert_eq!(headers["host"], "localhost");
    let envelope: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(envelope["tool_name"], "Bash");
}

#[tokio::test]
async fn calls_to_a_socket_share_a_connection() {
    let (_place, path) = place();
    let connections = serve_at_socket(Path::new(&path), Router::new().route("/", post(async || "{}")));
    let workspace = workspace(&format!("unix:{path}:/"), &json!({}));
    let orchestrator = allowed(&workspace).await;
    for _ in 0..50 {
        let outcome = orchestrator.dispatch(event(EventKind::BeforeToolDispatch)).await.unwrap();
        assert_eq!(ended(&outcome), (Ended::Completed, ""));
    }
    assert_eq!(connections.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn answers_over_a_socket_have_the_same_bounds() {
    let (_place, path) = place();
    let gzip = |bytes: Vec<u8>| any(async move || ([(header::CONTENT_ENCODING, "gzip")], bytes));
    let mut small = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    small.write_all(BLOCK.as_bytes()).unwrap();
    let router = Router::new()
        .route("/small", gzip(small.finish().unwrap()))
        .route("/more", any(async || vec![b' '; (1 << 20) + 1]))
        .route("/moved", any(async || (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "/small")])))
        .route("/slow", any(async || std::future::pending::<()>().await));
    serve_at_socket(Path::new(&path), router);
    let cases = [
        ("/small", Ended::Completed, ""),
        ("/more", Ended::OutputTooLarge, "more than the 1048576 bytes"),
        ("/moved", Ended::Failed, "status 307"),
        ("/slow", Ended::TimedOut, "no whole answer from the socket"),
    ];
    for (route, end, error) in cases {
        let timeout = if route == "/slow" { 0.3 } else { 20.0 };
        let handler = json!({ "timeout_seconds": timeout });
        let outcome = ask_at(&path, route, handler, EventKind::BeforeToolDispatch).await;
        assert_eq!(ended(&outcome).0, end, "{route}: {outcome:?}");
        assert!(ended(&outcome).1.contains(error), "{route}: {outcome:?}");
    }
}

#[tokio::test]
async fn only_lifecycle_hooks_retry_a_socket() {
    for (kind, expected) in [(EventKind::RunCompleted, 3), (EventKind::BeforeToolDispatch, 1)] {
        let (_place, path) = place();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let fail = async move || {
            count.fetch_add(1, Ordering::Relaxed);
            StatusCode::SERVICE_UNAVAILABLE
        };
        serve_at_socket(Path::new(&path), Router::new().route("/", any(fail)));
        let outcome = ask_at(&path, "/", json!({}), kind).await;
        assert_eq!(ended(&outcome), (Ended::Failed, "the server answered with status 503"));
        assert_eq!(asked.load(Ordering::Relaxed), expected, "{kind}");
    }
}

#[tokio::test]
async fn a_socket_at_which_nobody_listens_is_a_failure_that_names_it() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let _guard = metrics::set_default_local_recorder(&recorder);
    let (place, left) = place();
    drop(std::os::unix::net::UnixListener::bind(&left).unwrap());
    let path = |name: &str| place.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("file"), "").unwrap();
    fs::create_dir(path("directory")).unwrap();
    let cases = [
        (path("missing"), "No such file"),
        (path("file/x"), "Not a directory"),
        (path("file"), "refused"),
        (path("directory"), "refused"),
        (left, "refused"),
    ];
    for (path, why) in cases {
        let outcome = ask_at(&path, "/?key=k3y", json!({}), EventKind::BeforeToolDispatch).await;
        let (end, error) = ended(&outcome);
        assert_eq!(end, Ended::Failed, "{path}");
        assert!(error.starts_with(&format!("no connection to the socket {path}: ")), "{error}");
        assert!(error.contains(why) && !error.contains("k3y"), "{error}");
    }
    assert_eq!(counted(&snapshotter), [("connect".to_owned(), 2), ("refused".to_owned(), 3)]);
}

#[tokio::test]
async fn a_reload_may_name_another_socket() {
    let place = tempfile::tempdir().unwrap();
    let url = |name: &str| format!("unix:{}:/", place.path().join(name).display());
    let first = serve_at_socket(&place.path().join("first"), Router::new().route("/", post(async || "{}")));
    serve_at_socket(&place.path().join("second"), Router::new().route("/", post(async || BLOCK)));
    let workspace = workspace(&url("first"), &json!({}));
    let orchestrator = allowed(&workspace).await;
    let verdict = async || orchestrator.dispatch(event(EventKind::BeforeToolDispatch)).await.unwrap().verdict;
    assert_eq!(verdict().await, Verdict::Proceed);
    let file = workspace.path().join(".openharness/hooks/hook.yaml");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace(&url("first"), &url("second"))).unwrap();
    orchestrator.reload().await.unwrap();
    assert_eq!(verdict().await, Verdict::Block);
    assert_eq!(first.load(Ordering::Relaxed), 1);
}
