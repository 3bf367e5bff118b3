//! Where updates come from: threads that read the stream, poll the daemon and read the keyboard. They end with the program,
//! or when the receiver is gone.

use std::{
    sync::mpsc::{SendError, SyncSender},
    thread,
    time::Duration,
};

use ratatui::crossterm::event::{self, Event, KeyEvent};

use super::{
    pools,
    state::{DaemonPoll, ListedRuns},
    stream::{SseDecoder, StreamEvent},
};
use crate::{
    cli::{exit::Exit, runs},
    daemon::{Client, ClientError, ResponseLines},
};

/// Between two polls, and before a daemon that is gone is asked again.
const PERIOD: Duration = Duration::from_secs(1);

/// How many updates may wait. Beyond this the stream is not read, and the daemon counts what is lost.
pub(super) const EVENT_BUFFER: usize = 10_000;

/// An update.
#[derive(Debug)]
pub(super) enum TopEvent {
    /// An event of the stream.
    Event(StreamEvent),
    /// The stream was opened, or the error that ended it.
    Stream(Result<(), String>),
    /// The result of a poll.
    Poll(Box<Result<DaemonPoll, String>>),
    Key(KeyEvent),
    /// The terminal was resized.
    Resized,
    /// The keyboard cannot be read any more.
    KeyboardLost(String),
    /// A signal asks the program to end.
    Interrupted(Exit),
}

/// The receiver of updates is gone.
type ReceiverGone = SendError<TopEvent>;

/// The daemon that is watched.
#[derive(Debug, Clone)]
pub(super) struct DaemonSource {
    client: Client,
    /// The workspace as a query parameter; empty for all.
    query: String,
}

impl DaemonSource {
    pub(super) fn new(client: Client, query: Option<String>) -> Self {
        Self { client, query: query.unwrap_or_default() }
    }

    /// Opens the stream.
    pub(super) fn open_stream(&self) -> Result<ResponseLines, ClientError> {
        self.client.stream(&format!("/v1/stream?{}", self.query))
    }

    /// Polls the daemon. Runs and pools may be missing if it is too busy.
    pub(super) fn poll(&self) -> Result<DaemonPoll, ClientError> {
        #[derive(serde::Deserialize)]
        struct List {
            runs: Vec<runs::RunRow>,
            left_out: usize,
        }
        let status = self.client.ask("GET", "/v1/status", None)?;
        let runs = self.client.ask("GET", &format!("/v1/runs?{}", self.query), None);
        let runs = runs.ok().map(|List { runs, left_out }| ListedRuns { shown: runs, left_out });
        let metrics = self.client.send("GET", "/metrics", None).ok().filter(|answer| answer.status == 200);
        let metrics = metrics.map(|answer| String::from_utf8_lossy(&answer.body).into_owned());
        let metrics = metrics.unwrap_or_default();
        let waiting_at_hooks = pools::waiting_at_hooks(&metrics);
        Ok(DaemonPoll { status, runs, pools: pools::read(&metrics), waiting_at_hooks })
    }

    /// Reads the stream, and opens it again whenever it ends.
    pub(super) fn spawn_stream_reader(self, first: ResponseLines, events: SyncSender<TopEvent>) {
        thread::spawn(move || {
            let mut lines = Ok(first);
            // An error means that the receiver is gone.
            while self.forward_stream(lines, &events).is_ok() {
                thread::sleep(PERIOD);
                lines = self.open_stream();
            }
        });
    }

    fn forward_stream(
        &self,
        lines: Result<ResponseLines, ClientError>,
        events: &SyncSender<TopEvent>,
    ) -> Result<(), ReceiverGone> {
        let mut lines = match lines {
            Ok(lines) => lines,
            Err(error) => return events.send(TopEvent::Stream(Err(error.to_string()))),
        };
        events.send(TopEvent::Stream(Ok(())))?;
        let mut decoder = SseDecoder::default();
        let why = loop {
            match lines.next() {
                Ok(Some(line)) => {
                    if let Some(event) = decoder.take(line) {
                        events.send(TopEvent::Event(event))?;
                    }
                }
                Ok(None) => break format!("hookyard at {} ended its stream", self.client.socket().display()),
                Err(error) => break error.to_string(),
            }
        };
        events.send(TopEvent::Stream(Err(why)))
    }

    /// Polls the daemon every second.
    pub(super) fn spawn_poller(self, events: SyncSender<TopEvent>) {
        thread::spawn(move || {
            loop {
                let poll = self.poll().map_err(|error| error.to_string());
                if events.send(TopEvent::Poll(Box::new(poll))).is_err() {
                    return;
                }
                thread::sleep(PERIOD);
            }
        });
    }
}

/// Reads the keyboard.
pub(super) fn spawn_key_reader(events: SyncSender<TopEvent>) {
    thread::spawn(move || {
        loop {
            let event = match event::read() {
                Ok(Event::Key(key)) => TopEvent::Key(key),
                Ok(Event::Resize(..)) => TopEvent::Resized,
                Ok(_) => continue,
                Err(error) => {
                    drop(events.send(TopEvent::KeyboardLost(error.to_string())));
                    return;
                }
            };
            if events.send(event).is_err() {
                return;
            }
        }
    });
}
