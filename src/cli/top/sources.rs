//! Where the news comes from: threads that read the stream, look at the daemon every second, and listen to the keyboard.
//! Refuses to make anything of it. The threads end with the program, or when nobody takes their events.

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

/// Between two looks, and before a daemon that is gone is asked again.
const PERIOD: Duration = Duration::from_secs(1);

/// How much news may wait. Beyond this the stream is not read, and the daemon counts what is lost.
pub(super) const EVENT_BUFFER: usize = 10_000;

/// Something to take in.
#[derive(Debug)]
pub(super) enum TopEvent {
    /// A message of the stream.
    Event(StreamEvent),
    /// Whether the stream is there; if not, why.
    Stream(Result<(), String>),
    Poll(Box<Result<DaemonPoll, String>>),
    Key(KeyEvent),
    Resized,
    /// No key can be read any more.
    KeyboardLost(String),
    Interrupted(Exit),
}

/// Nobody takes news any more.
type ReceiverGone = SendError<TopEvent>;

/// What is looked at.
#[derive(Debug, Clone)]
pub(super) struct DaemonSource {
    client: Client,
    /// The workspace that is wanted, as a query; empty if all are.
    query: String,
}

impl DaemonSource {
    pub(super) fn new(client: Client, workspace: Option<&str>) -> Self {
        let encoded = workspace.map(crate::cli::daemon_flag::percent_encoded);
        Self { client, query: encoded.map(|id| format!("workspace_id={id}")).unwrap_or_default() }
    }

    /// The stream, from now on.
    pub(super) fn follow(&self) -> Result<ResponseLines, ClientError> {
        self.client.stream(&format!("/v1/stream?{}", self.query))
    }

    /// How the daemon is. Runs and pools may be missing where it has no time for them.
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
        Ok(DaemonPoll { status, runs, pools: pools::read(&metrics.unwrap_or_default()) })
    }

    /// Reads the stream, and opens it again whenever it ends.
    pub(super) fn spawn_stream_reader(self, first: ResponseLines, events: SyncSender<TopEvent>) {
        thread::spawn(move || {
            let mut lines = Ok(first);
            // An error means that nobody takes the events.
            while self.forward_stream(lines, &events).is_ok() {
                thread::sleep(PERIOD);
                lines = self.follow();
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

    /// Looks at the daemon again and again.
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

/// Listens to the keyboard.
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
