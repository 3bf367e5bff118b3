//! Answers that are late, large or broken off.

use super::*;

/// An answer's head for chunks.
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

#[tokio::test]
async fn no_server_can_delay_an_event_beyond_the_deadline() {
    let half = b"HTTP/1.1 200 OK\r\nContent-Le".to_vec();
    let cases = [
        ("no headers", Vec::new(), Then::Silence),
        ("half of the headers", half.clone(), Then::Silence),
        ("headers byte by byte", half, Then::Drip),
        ("no body", answer(100, ""), Then::Silence),
        ("half of the body", answer(100, "{"), Then::Silence),
        ("body byte by byte", answer(100_000, ""), Then::Drip),
        ("an error's body", b"HTTP/1.1 500 Oh\r\nContent-Length: 9\r\n\r\n".to_vec(), Then::Silence),
    ];
    for (what, bytes, then) in cases {
        let url = misbehaving(bytes, then).await;
        let started = Instant::now();
        let outcome = ask(&url, json!({ "timeout_seconds": 0.5 }), EventKind::BeforeToolDispatch).await;
        let (end, error) = ended(&outcome);
        assert_eq!(end, Ended::TimedOut, "{what}: {outcome:?}");
        assert!(error.contains("within 500ms"), "{what}: {error}");
        assert!(started.elapsed() < SOON, "{what}");
    }
}

#[tokio::test]
async fn a_body_is_read_up_to_its_cap() {
    let zeros = |length: usize| vec![b' '; length];
    let mut bomb = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    bomb.write_all(&zeros(64 << 20)).unwrap();
    let bomb = bomb.finish().unwrap();
    assert!(bomb.len() < 100_000, "what is sent is small");
    let gzip = |bytes: Vec<u8>| any(async move || ([(header::CONTENT_ENCODING, "gzip")], bytes));
    let mut small = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    small.write_all(BLOCK.as_bytes()).unwrap();
    let router = Router::new()
        .route("/whole", any(async move || zeros(1 << 20)))
        .route("/more", any(async move || zeros((1 << 20) + 1)))
        .route("/bomb", gzip(bomb))
        .route("/small", gzip(small.finish().unwrap()))
        .route("/broken", gzip(b"this is not gzip".to_vec()))
        .route("/error", any(async move || (StatusCode::BAD_GATEWAY, zeros(2 << 20))));
    let server = Server::start(router).await;
    let cases = [
        ("/whole", Ended::Completed, Verdict::Proceed, ""),
        ("/more", Ended::OutputTooLarge, Verdict::Proceed, "more than the 1048576 bytes"),
        ("/bomb", Ended::OutputTooLarge, Verdict::Proceed, "more than the 1048576 bytes"),
        ("/small", Ended::Completed, Verdict::Block, ""),
        ("/broken", Ended::Failed, Verdict::Proceed, "broke off"),
        ("/error", Ended::Failed, Verdict::Proceed, "status 502"),
    ];
    for (path, end, verdict, error) in cases {
        let outcome = tool_call(&server.url(path)).await;
        assert_eq!((ended(&outcome).0, outcome.verdict), (end, verdict), "{path}: {outcome:?}");
        assert!(ended(&outcome).1.contains(error), "{path}: {outcome:?}");
    }
    let endless = misbehaving(CHUNKED.to_vec(), Then::Flood).await;
    assert_eq!(ended(&tool_call(&endless).await).0, Ended::OutputTooLarge);
}

#[tokio::test]
async fn the_cap_is_a_setting() {
    let server = Server::start(Router::new().route("/", any(async || BLOCK))).await;
    let workspace = workspace(&server.url("/"), &json!({}));
    let mut settings = Settings::default();
    settings.limits.http_body = BLOCK.len() - 1;
    let outcome =
        start(&workspace, settings).await.dispatch(event(EventKind::BeforeToolDispatch)).await.unwrap();
    assert_eq!(ended(&outcome).0, Ended::OutputTooLarge);
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_a_failure() {
    let cases = [
        ("closed at once", Vec::new(), Then::Close, Ended::Failed),
        ("reset at once", Vec::new(), Then::Reset, Ended::Failed),
        ("reset in the middle", answer(100, "{\"decision\":"), Then::Reset, Ended::Failed),
        ("shorter than it says", answer(100, BLOCK), Then::Close, Ended::Failed),
        ("longer than it says", answer(5, BLOCK), Then::Close, Ended::InvalidOutput),
        ("no last chunk", [CHUNKED, b"2\r\n{}\r\n"].concat(), Then::Close, Ended::Failed),
        ("no http", b"220 smtp.example.com ESMTP\r\n".to_vec(), Then::Close, Ended::Failed),
    ];
    for (what, bytes, then, end) in cases {
        let url = misbehaving(bytes, then).await;
        let outcome = tool_call(&url).await;
        let (found, error) = ended(&outcome);
        assert_eq!((found, outcome.verdict), (end, Verdict::Proceed), "{what}: {outcome:?}");
        assert!(end != Ended::Failed || error.contains("127.0.0.1"), "{what}: {error}");
    }
}
