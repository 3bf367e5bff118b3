//! HTTP/2: many requests on one connection, and what a peer can keep open with it.

use std::{net::TcpListener, time::Instant};

use axum::http::Request;
use h2::client::{Builder, SendRequest};
use tokio::{net::UnixStream, task::JoinHandle, time::timeout};

use crate::{
    http_server::{
        events::{event, slow},
        raw_connection::{RawConnection, get},
    },
    support::daemon::{Daemon, DaemonSetup},
    support::wait::{LONGEST_WAIT, wait_until},
};

type Sender = SendRequest<bytes::Bytes>;

/// A connection, and the task that ends with it.
async fn connect(daemon: &Daemon, builder: &mut Builder) -> (Sender, JoinHandle<()>) {
    let stream = UnixStream::connect(daemon.socket()).await.expect("a connection");
    let (sender, connection) = builder.handshake(stream).await.expect("HTTP/2");
    (sender, tokio::spawn(async move { drop(connection.await) }))
}

fn request(method: &str, path: &str) -> Request<()> {
    Request::builder().method(method).uri(format!("http://localhost{path}")).body(()).expect("a request")
}

/// Asks for something; returns the status, and the body to its end.
async fn ask(sender: &Sender, method: &str, path: &str, body: Option<&str>) -> (u16, String) {
    let mut sender = sender.clone().ready().await.expect("an open connection");
    let (answer, mut rest) = sender.send_request(request(method, path), body.is_none()).expect("room");
    if let Some(body) = body {
        rest.send_data(body.to_owned().into(), true).expect("an open stream");
    }
    let answer = answer.await.expect("an answer");
    let (status, mut body) = (answer.status().as_u16(), answer.into_body());
    let mut text = Vec::new();
    while let Some(data) = body.data().await {
        let data = data.expect("data");
        text.extend_from_slice(&data);
        body.flow_control().release_capacity(data.len()).expect("room");
    }
    (status, String::from_utf8(text).expect("UTF-8"))
}

async fn in_time<T>(future: impl Future<Output = T>) -> T {
    timeout(LONGEST_WAIT, future).await.expect("in time")
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_carries_many_requests_at_once() {
    let daemon = slow("");
    let (sender, _task) = connect(&daemon, &mut Builder::new()).await;
    let event = event("r").replace("Bash", "Read");
    let asked = (0..100).map(|_| in_time(ask(&sender, "POST", "/v1/events", Some(&event))));
    for (status, text) in futures_util::future::join_all(asked).await {
        assert_eq!(status, 200);
        assert!(text.contains("proceed"), "{text}");
    }
    assert_eq!(ask(&sender, "GET", "/nowhere", None).await.0, 404);
    assert_eq!(ask(&sender, "PUT", "/v1/events", None).await.0, 405);
    daemon.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_is_reset_cancels_its_hooks() {
    let daemon = slow("");
    let (sender, _task) = connect(&daemon, &mut Builder::new()).await;
    let mut sending = sender.clone().ready().await.unwrap();
    let (answer, mut rest) = sending.send_request(request("POST", "/v1/events"), false).unwrap();
    rest.send_data(event("r").into(), true).unwrap();
    wait_until("the hook runs", || daemon.processes().len() > 2);
    drop((answer, rest));
    wait_until("its processes end", || daemon.processes().len() == 1);
    // The connection goes on.
    assert_eq!(in_time(ask(&sender, "GET", "/healthz", None)).await.0, 200);
    daemon.finish();
}

const QUICK: &str = "limits: { header_timeout: 1s, body_timeout: 1s, idle_timeout: 30s, requests: 1 }";

#[tokio::test(flavor = "multi_thread")]
async fn a_peer_that_grants_no_window_is_disconnected() {
    let daemon = DaemonSetup::new().settings(QUICK).serve();
    let (sender, task) = connect(&daemon, Builder::new().initial_window_size(0)).await;
    let mut answers = Vec::new();
    for _ in 0..50 {
        let mut sending = sender.clone().ready().await.unwrap();
        answers.push(sending.send_request(request("GET", "/v1/openapi.json"), true).unwrap());
    }
    in_time(task).await.unwrap();
    daemon.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_that_does_not_arrive_times_out() {
    let daemon = slow(QUICK);
    let (sender, _task) = connect(&daemon, &mut Builder::new()).await;
    let mut sending = sender.clone().ready().await.unwrap();
    let mut announced = request("POST", "/v1/events");
    announced.headers_mut().insert("content-length", 100.into());
    let (answer, _rest) = sending.send_request(announced, false).unwrap();
    assert_eq!(in_time(answer).await.unwrap().status().as_u16(), 408);
    // Its place is free again.
    assert_eq!(in_time(ask(&sender, "GET", "/v1/runs", None)).await.0, 200);
    daemon.finish();
}

/// Waits until the daemon closes a connection on which this was sent.
async fn wait_for_the_end(daemon: &Daemon, text: &str) {
    let mut wire = RawConnection::unix(daemon);
    wire.send(text);
    tokio::task::spawn_blocking(move || wire.rest()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_header_timeout_does_not_apply_to_an_idle_connection() {
    let daemon = DaemonSetup::new().settings(QUICK).serve();
    let (sender, _task) = connect(&daemon, &mut Builder::new()).await;
    // A long answer has the client send frames of its own after it.
    assert_eq!(in_time(ask(&sender, "GET", "/v1/openapi.json", None)).await.0, 200);
    // Connections that came later are cut: one with half a head after `header_timeout`, twice.
    for _ in 0..2 {
        wait_for_the_end(&daemon, "GET /healthz HTT").await;
    }
    assert_eq!(in_time(ask(&sender, "GET", "/healthz", None)).await.0, 200);
    daemon.finish();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_idle_timeout_does_not_apply_to_an_open_stream() {
    let daemon = DaemonSetup::new()
        .settings("limits: { header_timeout: 1s, body_timeout: 1s, idle_timeout: 1s }\nshutdown_deadline: 5m")
        .serve();
    let (sender, task) = connect(&daemon, &mut Builder::new()).await;
    let mut sending = sender.clone().ready().await.unwrap();
    let (answer, _) = sending.send_request(request("GET", "/v1/stream"), true).unwrap();
    let mut body = in_time(answer).await.unwrap().into_body();
    assert_eq!(in_time(body.data()).await.unwrap().unwrap(), ": hookyard\n\n");
    // Connections that came later are cut as idle, twice.
    for _ in 0..2 {
        wait_for_the_end(&daemon, &get("/healthz")).await;
    }
    assert_eq!(daemon.get("/v1/status")["streams"], 1);
    // It ends with the daemon, in peace.
    let since = Instant::now();
    let mut daemon = daemon;
    daemon.signal(rustix::process::Signal::TERM);
    let last = in_time(body.data()).await;
    assert!(last.is_none_or(|last| last.is_ok_and(|data| data.is_empty())));
    drop((sender, sending));
    assert_eq!(daemon.wait().code(), Some(0));
    assert!(since.elapsed() < LONGEST_WAIT);
    in_time(task).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_of_a_request_is_checked() {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let address = format!("127.0.0.1:{port}");
    let daemon = DaemonSetup::new().argument("--tcp").argument(&address).serve();
    let stream = tokio::net::TcpStream::connect(&address).await.unwrap();
    let (sender, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    let status = async |host: &str| {
        let mut sender: Sender = sender.clone().ready().await.unwrap();
        let request = Request::builder().uri(format!("http://{host}/metrics")).body(()).unwrap();
        in_time(sender.send_request(request, true).unwrap().0).await.unwrap().status().as_u16()
    };
    assert_eq!((status("localhost").await, status(&address).await), (200, 200));
    assert_eq!((status("rebound.example.com").await, status("10.0.0.1").await), (403, 403));
    daemon.finish();
}
