//! The socket of lines of a daemon: all senders share one connection, which has as many events in flight as there are senders.

use std::{
    collections::HashMap,
    mem,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
    sync::{Mutex as AsyncMutex, mpsc, oneshot},
    time::sleep,
};

use super::{
    super::{
        answer::{AnswerResult, BenchAnswer},
        events::BenchEvent,
    },
    address::connect_socket,
    connection::{DaemonTarget, LARGEST_RESPONSE, OVERLOADED, SECOND_TRY},
    gone::TargetGone,
    null_server,
    usage::TargetUsage,
};
use crate::{daemon::Client, model::DialectName};

/// The socket of lines of a daemon.
#[derive(Debug, Clone)]
pub(in super::super) struct LinesTarget {
    /// The same daemon, which says at its event socket what it uses.
    daemon: DaemonTarget,
    /// None leads to a task that answers at once.
    socket: Option<Client>,
    link: Arc<AsyncMutex<Option<Arc<LinesLink>>>>,
}

/// Through which one sender sends its lines.
#[derive(Debug)]
pub(in super::super) struct LinesSender {
    target: LinesTarget,
    /// The event that was sent last, and where.
    sent: Option<(Arc<LinesLink>, u64)>,
}

/// One connection.
#[derive(Debug)]
struct LinesLink {
    unsent: mpsc::UnboundedSender<Vec<u8>>,
    last_id: AtomicU64,
    /// Who waits for which answer; nothing once the connection has ended.
    waiting: Mutex<Option<HashMap<u64, oneshot::Sender<LineReply>>>>,
}

/// What a line says of its event.
#[derive(Debug)]
enum LineReply {
    Outcome(Box<str>),
    /// In the words of an agent.
    Native,
    Error(String),
}

#[derive(Deserialize)]
struct AnswerLine<'l> {
    #[serde(default)]
    id: Option<u64>,
    #[serde(borrow, default)]
    outcome: Option<&'l RawValue>,
    #[serde(borrow, default)]
    answer: Option<&'l RawValue>,
    #[serde(default)]
    error: Option<LineRefusal>,
    #[serde(default)]
    draining: bool,
}

#[derive(Deserialize)]
struct LineRefusal {
    code: String,
}

/// What came is no answer to anything that was sent.
#[derive(Debug, PartialEq, Eq)]
struct NoAnswer;

impl LinesTarget {
    pub(in super::super) fn new(daemon: DaemonTarget, socket: &Path) -> Self {
        Self { daemon, socket: Some(Client::new(socket)), link: Arc::default() }
    }

    /// The same lines to nobody.
    pub(super) fn null(&self) -> Self {
        Self { daemon: self.daemon.clone(), socket: None, link: Arc::default() }
    }

    pub(super) fn name(&self) -> String {
        let socket = self.socket.as_ref().map(|client| client.socket().display().to_string());
        socket.map_or_else(|| "nothing".to_owned(), |socket| format!("lines {socket}"))
    }

    pub(super) async fn usage(&self) -> TargetUsage {
        self.daemon.usage().await
    }

    pub(super) async fn open(&self) -> Result<LinesSender, TargetGone> {
        self.link().await?;
        Ok(LinesSender { target: self.clone(), sent: None })
    }

    /// The connection of all senders, made again if it has ended.
    async fn link(&self) -> Result<Arc<LinesLink>, TargetGone> {
        let mut current = self.link.lock().await;
        if let Some(link) = current.as_ref().filter(|link| !link.has_ended()) {
            return Ok(Arc::clone(link));
        }
        let is_first = current.is_none();
        let stream = match self.connect().await {
            Err(_) if !is_first => {
                sleep(SECOND_TRY).await;
                self.connect().await?
            }
            connected => connected?,
        };
        let link = LinesLink::begin(stream);
        *current = Some(Arc::clone(&link));
        Ok(link)
    }

    async fn connect(&self) -> Result<UnixStream, TargetGone> {
        match &self.socket {
            Some(client) => connect_socket(client).await,
            None => null_server::connect_lines(),
        }
    }
}

impl LinesSender {
    pub(super) async fn send(&mut self, event: &BenchEvent) -> Result<BenchAnswer, TargetGone> {
        let link = self.target.link().await?;
        let (reply, replied) = oneshot::channel();
        let Some(id) = link.send(event, reply) else { return Ok(BenchAnswer::of(AnswerResult::Broken)) };
        self.sent = Some((link, id));
        let reply = replied.await;
        self.sent = None;
        Ok(reply.map_or_else(|_| BenchAnswer::of(AnswerResult::Broken), |reply| answer(event, reply)))
    }

    /// Nobody waits for the answer any more; the connection is that of the others, too.
    pub(super) fn give_up(&mut self) {
        if let Some((link, id)) = self.sent.take() {
            link.cancel(id);
        }
    }
}

fn answer(event: &BenchEvent, reply: LineReply) -> BenchAnswer {
    let unreadable = || BenchAnswer::of(AnswerResult::Refused("unreadable_answer".to_owned()));
    match reply {
        LineReply::Outcome(json) => {
            BenchAnswer::of_json(event.kind, json.as_bytes()).unwrap_or_else(unreadable)
        }
        LineReply::Native => BenchAnswer::of(AnswerResult::Outcome(None)),
        LineReply::Error(code) if code == OVERLOADED => BenchAnswer::of(AnswerResult::Shed),
        LineReply::Error(code) => BenchAnswer::of(AnswerResult::Refused(code)),
    }
}

impl LinesLink {
    fn begin(stream: UnixStream) -> Arc<Self> {
        let (reading, writing) = stream.into_split();
        let (unsent, lines) = mpsc::unbounded_channel();
        let replies = Mutex::new(Some(HashMap::new()));
        let link = Arc::new(Self { unsent, last_id: AtomicU64::new(0), waiting: replies });
        tokio::spawn(write(writing, lines));
        tokio::spawn(Arc::clone(&link).read(reading));
        link
    }

    fn has_ended(&self) -> bool {
        self.waiting.lock().is_none()
    }

    /// Sends an event and returns its id; nothing if the connection has ended.
    fn send(&self, event: &BenchEvent, reply: oneshot::Sender<LineReply>) -> Option<u64> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        self.waiting.lock().as_mut()?.insert(id, reply);
        let mut line = format!("{{\"id\":{id},").into_bytes();
        if event.dialect != DialectName::Canonical {
            line.extend_from_slice(format!("\"dialect\":\"{}\",", event.dialect).as_bytes());
        }
        line.extend_from_slice(b"\"event\":");
        // A recording may have its events over several lines.
        line.extend(event.json.iter().map(|byte| if *byte == b'\n' { b' ' } else { *byte }));
        line.extend_from_slice(b"}\n");
        // If nobody writes any more, nobody reads either, and the end is told to all who wait.
        drop(self.unsent.send(line));
        Some(id)
    }

    fn cancel(&self, id: u64) {
        let waited = self.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&id));
        if waited.is_some() {
            drop(self.unsent.send(format!("{{\"cancel\":{id}}}\n").into_bytes()));
        }
    }

    /// Gives answers to those who wait for them, until the connection ends or has something else on it.
    async fn read(self: Arc<Self>, mut stream: OwnedReadHalf) {
        let mut bytes = Vec::new();
        while matches!(stream.read_buf(&mut bytes).await, Ok(1..)) {
            let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
            let mut lines = bytes[..whole].split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
            if lines.any(|line| self.take(line).is_err()) || bytes.len() - whole > LARGEST_RESPONSE {
                break;
            }
            bytes.drain(..whole);
        }
        // Who waits is told by the end of its channel.
        drop(self.waiting.lock().take());
    }

    /// Takes one line.
    ///
    /// Returns an error if it is no answer to what was sent.
    fn take(&self, line: &[u8]) -> Result<(), NoAnswer> {
        let line: AnswerLine<'_> = serde_json::from_slice(line).map_err(|_| NoAnswer)?;
        let Some(id) = line.id else { return if line.draining { Ok(()) } else { Err(NoAnswer) } };
        let reply = match line {
            AnswerLine { outcome: Some(outcome), .. } => LineReply::Outcome(outcome.get().into()),
            AnswerLine { error: Some(error), .. } => LineReply::Error(error.code),
            AnswerLine { answer: Some(_), .. } => LineReply::Native,
            _ => return Err(NoAnswer),
        };
        if id == 0 || id > self.last_id.load(Ordering::Relaxed) {
            return Err(NoAnswer);
        }
        // An answer that comes after its time is to nobody.
        let waited = self.waiting.lock().as_mut().and_then(|waiting| waiting.remove(&id));
        if let Some(waited) = waited {
            drop(waited.send(reply));
        }
        Ok(())
    }
}

/// Writes lines, those together that wait.
async fn write(mut stream: OwnedWriteHalf, mut lines: mpsc::UnboundedReceiver<Vec<u8>>) {
    let mut waiting = Vec::new();
    while let Some(first) = lines.recv().await {
        waiting.extend_from_slice(&first);
        while let Ok(next) = lines.try_recv() {
            waiting.extend_from_slice(&next);
        }
        if stream.write_all(&mem::take(&mut waiting)).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::{io::AsyncBufReadExt, net::UnixListener, time::timeout};

    use super::{super::address::DaemonAddress, *};
    use crate::model::EventKind;

    const OUTCOME: &str = r#"{"verdict":"proceed","hooks":[]}"#;

    fn event() -> BenchEvent {
        BenchEvent { kind: EventKind::RunFailed, dialect: DialectName::Canonical, json: b"{\n}".to_vec() }
    }

    fn target(socket: Option<&Path>) -> LinesTarget {
        let daemon = DaemonTarget::new(DaemonAddress::Null, None);
        match socket {
            Some(socket) => LinesTarget::new(daemon, socket),
            None => LinesTarget { daemon, socket: None, link: Arc::default() },
        }
    }

    /// Sends an event, and waits no longer than for a broken test.
    async fn word(door: &mut LinesSender) -> Result<String, TargetGone> {
        let answer = timeout(Duration::from_mins(1), door.send(&event())).await.unwrap();
        answer.map(|answer| answer.result.word().to_owned())
    }

    /// Takes a connection and so many lines of it, and answers with this.
    async fn serve(listener: &UnixListener, lines: usize, answer: &str) -> Vec<String> {
        let (stream, _) = listener.accept().await.unwrap();
        let (reading, mut writing) = stream.into_split();
        let mut reading = tokio::io::BufReader::new(reading).lines();
        let mut taken = Vec::new();
        for _ in 0..lines {
            taken.push(reading.next_line().await.unwrap().unwrap());
        }
        writing.write_all(answer.as_bytes()).await.unwrap();
        taken
    }

    #[tokio::test]
    async fn nobody_answers_every_event() {
        let target = target(None);
        let (mut first, mut other) = (target.open().await.unwrap(), target.open().await.unwrap());
        for _ in 0..3 {
            let words = tokio::join!(word(&mut first), word(&mut other));
            assert_eq!((words.0.unwrap().as_str(), words.1.unwrap().as_str()), ("proceed", "proceed"));
        }
    }

    #[tokio::test]
    async fn events_of_two_senders_share_a_connection_and_are_answered_in_any_order() {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("lines")).unwrap();
        let target = target(Some(&directory.path().join("lines")));
        let answer = format!(
            "{{\"draining\":true}}\n{{\"id\":2,\"outcome\":{OUTCOME}}}\n{{\"id\":1,\"error\":{{\"code\":\"overloaded\"}}}}\n"
        );
        let (mut first, mut other) = (target.open().await.unwrap(), target.open().await.unwrap());
        let (lines, first, other) =
            tokio::join!(serve(&listener, 2, &answer), word(&mut first), word(&mut other));
        assert_eq!(lines, ["{\"id\":1,\"event\":{ }}", "{\"id\":2,\"event\":{ }}"]);
        assert_eq!((first.unwrap().as_str(), other.unwrap().as_str()), ("shed", "proceed"));
    }

    #[tokio::test]
    async fn a_connection_with_something_else_on_it_is_lost_for_all_and_made_again() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("lines");
        for answer in [
            "{\"id\":1,\"outco",
            "{\"id\":3,\"outcome\":{}}\n",
            "{\"id\":\"1\",\"outcome\":{}}\n",
            "{\"outcome\":{}}\n",
            "{\"id\":1}\n",
            "<html>\n",
            "",
        ] {
            let listener = UnixListener::bind(&socket).unwrap();
            let target = target(Some(&socket));
            let (mut first, mut other) = (target.open().await.unwrap(), target.open().await.unwrap());
            let (_, one, two) = tokio::join!(serve(&listener, 2, answer), word(&mut first), word(&mut other));
            let words = (one.unwrap(), two.unwrap());
            assert_eq!(
                (words.0.as_str(), words.1.as_str()),
                ("connection_lost", "connection_lost"),
                "{answer}"
            );
            let good = format!("{{\"id\":1,\"outcome\":{OUTCOME}}}\n");
            let (_, again) = tokio::join!(serve(&listener, 1, &good), word(&mut first));
            assert_eq!(again.unwrap(), "proceed", "{answer}");
            drop(listener);
            std::fs::remove_file(&socket).unwrap();
            // The end of the connection may be seen by the event that is under way, or before it.
            let mut gone = word(&mut other).await;
            if gone.as_ref().is_ok_and(|word| word == "connection_lost") {
                gone = word(&mut other).await;
            }
            assert!(gone.is_err(), "{answer}: {gone:?}");
        }
    }

    #[tokio::test]
    async fn an_event_that_takes_too_long_is_cancelled_and_its_late_answer_is_to_nobody() {
        let directory = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(directory.path().join("lines")).unwrap();
        let target = target(Some(&directory.path().join("lines")));
        let mut door = target.open().await.unwrap();
        assert!(timeout(Duration::from_millis(20), door.send(&event())).await.is_err());
        door.give_up();
        let answer = format!("{{\"id\":1,\"outcome\":{OUTCOME}}}\n{{\"id\":2,\"outcome\":{OUTCOME}}}\n");
        let (lines, next) = tokio::join!(serve(&listener, 3, &answer), word(&mut door));
        assert_eq!(lines[1], "{\"cancel\":1}");
        assert_eq!(next.unwrap(), "proceed");
    }
}
