//! A host with many sessions and a pool of connections, as plain as can be: what it measures is the daemon. Refuses to
//! know what is in an answer.

use std::{path::Path, sync::Arc, time::Duration};

use hdrhistogram::Histogram;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    task::JoinSet,
    time::{Instant, sleep_until},
};

/// One connection that is kept.
pub(crate) struct Connection {
    stream: UnixStream,
    buffer: Vec<u8>,
}

impl Connection {
    pub(crate) async fn open(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).await.expect("a server");
        Self { stream, buffer: Vec::with_capacity(16 << 10) }
    }

    /// Sends a request and reads the whole answer, which must be a good one.
    pub(crate) async fn call(&mut self, request: &[u8]) -> &[u8] {
        self.stream.write_all(request).await.expect("a server that reads");
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await.expect("a server that answers");
            assert!(read > 0, "the server hung up: {}", String::from_utf8_lossy(&self.buffer));
            if let Some(body) = whole(&self.buffer) {
                return &self.buffer[body..];
            }
        }
    }
}

/// Where the body of an answer begins, once all of it is there.
fn whole(bytes: &[u8]) -> Option<usize> {
    let body = bytes.windows(4).position(|window| window == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(&bytes[..body]).expect("a head");
    assert!(head.starts_with("HTTP/1.1 200"), "{}", String::from_utf8_lossy(bytes));
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "))?;
    (bytes.len() - body >= length.parse::<usize>().expect("a length")).then_some(body)
}

/// A request that sends an event.
pub(crate) fn request(path: &str, event: &str) -> Vec<u8> {
    format!(
        "POST {path} HTTP/1.1\r\nhost: hookyard\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{event}",
        event.len()
    )
    .into_bytes()
}

/// What became of many requests.
pub(crate) struct Times {
    pub(crate) rate: f64,
    pub(crate) times: Histogram<u64>,
}

impl Times {
    pub(crate) fn at(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.times.value_at_quantile(quantile))
    }
}

/// Up to a minute, in nanoseconds.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_max(60_000_000_000, 3).expect("a histogram")
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// So many requests on so many connections, each sent when the one before it is answered.
pub(crate) async fn one_after_the_other(
    socket: &Path,
    connections: usize,
    each: usize,
    request: impl Fn(usize) -> Vec<u8>,
) -> Times {
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(socket).await);
    }
    let mut tasks = JoinSet::new();
    let begun = Instant::now();
    for (number, mut connection) in open.into_iter().enumerate() {
        let request = request(number);
        tasks.spawn(async move {
            let mut times = histogram();
            for _ in 0..each {
                let sent = Instant::now();
                connection.call(&request).await;
                times.saturating_record(nanoseconds(sent.elapsed()));
            }
            times
        });
    }
    collect(tasks, begun, connections * each).await
}

/// So many events on one connection as lines, each sent when one before it is answered, and so many under way. Refuses to
/// know what is in an answer: the last one is returned.
pub(crate) async fn lines(
    socket: &Path,
    in_flight: usize,
    number: usize,
    line: impl Fn(&mut Vec<u8>, usize),
) -> (f64, String) {
    let mut stream = UnixStream::connect(socket).await.expect("a server");
    let (mut outgoing, mut incoming) = (Vec::new(), Vec::with_capacity(256 << 10));
    let (mut sent, mut answered, mut last) = (0, 0, Vec::new());
    let begun = Instant::now();
    while answered < number {
        while sent < number && sent - answered < in_flight {
            line(&mut outgoing, sent);
            sent += 1;
        }
        stream.write_all(&outgoing).await.expect("a server that reads");
        outgoing.clear();
        let read = stream.read_buf(&mut incoming).await.expect("a server that answers");
        assert!(read > 0, "the server hung up: {}", String::from_utf8_lossy(&incoming));
        let ends: Vec<_> = memchr::memchr_iter(b'\n', &incoming).collect();
        answered += ends.len();
        if let [.., end] = ends[..] {
            let start = ends.iter().rev().nth(1).map_or(0, |before| before + 1);
            last = incoming[start..end].to_vec();
            incoming.drain(..=end);
        }
    }
    (number as f64 / begun.elapsed().as_secs_f64(), String::from_utf8_lossy(&last).into_owned())
}

/// Many sessions, each of which sends an event in every period, however long the answers take: a request that has to
/// wait for the one before it on its connection has waited since it was due.
pub(crate) async fn sessions(
    socket: &Path,
    connections: usize,
    sessions: usize,
    periods: usize,
    period: Duration,
    event: impl Fn(usize, usize) -> Vec<u8> + Send + Sync + 'static,
) -> Times {
    let event = Arc::new(event);
    let mut open = Vec::new();
    for _ in 0..connections {
        open.push(Connection::open(socket).await);
    }
    let begun = Instant::now() + Duration::from_millis(100);
    let mut tasks = JoinSet::new();
    for (number, mut connection) in open.into_iter().enumerate() {
        let event = Arc::clone(&event);
        tasks.spawn(async move {
            let mut times = histogram();
            for round in 0..periods {
                for session in (number..sessions).step_by(connections) {
                    let share = f64::from(u32::try_from(session).expect("few")) / sessions_as_float(sessions);
                    let due = begun + period * u32::try_from(round).expect("few") + period.mul_f64(share);
                    sleep_until(due).await;
                    let request = event(session, round);
                    let answer = connection.call(&request).await;
                    assert!(answer.starts_with(b"{\"decision_id\""), "{}", String::from_utf8_lossy(answer));
                    times.saturating_record(nanoseconds(due.elapsed()));
                }
            }
            times
        });
    }
    collect(tasks, begun, sessions * periods).await
}

fn sessions_as_float(sessions: usize) -> f64 {
    f64::from(u32::try_from(sessions).expect("few"))
}

async fn collect(mut tasks: JoinSet<Histogram<u64>>, begun: Instant, number: usize) -> Times {
    let mut times = histogram();
    while let Some(one) = tasks.join_next().await {
        times.add(one.expect("a client that works")).expect("the same kind of histogram");
    }
    Times { rate: number as f64 / begun.elapsed().as_secs_f64(), times }
}
