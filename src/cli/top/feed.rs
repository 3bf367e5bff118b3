//! Where the news comes from: threads that read the stream, look at the daemon every second, and listen to the keyboard.
//! Refuses to make anything of it. The threads end with the program, or when nobody takes their news.

use std::{
    sync::mpsc::{SendError, SyncSender},
    thread,
    time::Duration,
};

use ratatui::crossterm::event::{self, Event, KeyEvent};

use super::{
    pools,
    told::{Gathered, Told},
    watch::{Look, Runs},
};
use crate::{
    cli::{daemon_runs, exit::Exit},
    daemon::{Client, ClientError, Lines},
};

/// Between two looks, and before a daemon that is gone is asked again.
const PERIOD: Duration = Duration::from_secs(1);

/// How much news may wait. Beyond this the stream is not read, and the daemon counts what is lost.
pub(super) const MOST_NEWS: usize = 10_000;

/// Something to take in.
#[derive(Debug)]
pub(super) enum News {
    Told(Told),
    /// Whether the stream is there; if not, why.
    Stream(Result<(), String>),
    Look(Box<Result<Look, String>>),
    Key(KeyEvent),
    Resized,
    /// No key can be read any more.
    Deaf(String),
    Interrupted(Exit),
}

/// Nobody takes news any more.
type Unwanted = SendError<News>;

/// What is looked at.
#[derive(Debug, Clone)]
pub(super) struct Source {
    client: Client,
    /// The workspace that is wanted, as a query; empty if all are.
    query: String,
}

impl Source {
    pub(super) fn new(client: Client, workspace: Option<&str>) -> Self {
        let encoded = workspace.map(crate::cli::daemon_status::encoded);
        Self { client, query: encoded.map(|id| format!("workspace_id={id}")).unwrap_or_default() }
    }

    /// The stream, from now on.
    pub(super) fn follow(&self) -> Result<Lines, ClientError> {
        self.client.follow(&format!("/v1/stream?{}", self.query))
    }

    /// How the daemon is. Runs and pools may be missing where it has no time for them.
    pub(super) fn look(&self) -> Result<Look, ClientError> {
        #[derive(serde::Deserialize)]
        struct List {
            runs: Vec<daemon_runs::Row>,
            left_out: usize,
        }
        let status = self.client.ask("GET", "/v1/status", None)?;
        let runs = self.client.ask("GET", &format!("/v1/runs?{}", self.query), None);
        let runs = runs.ok().map(|List { runs, left_out }| Runs { shown: runs, left_out });
        let metrics = self.client.send("GET", "/metrics", None).ok().filter(|answer| answer.status == 200);
        let metrics = metrics.map(|answer| String::from_utf8_lossy(&answer.body).into_owned());
        Ok(Look { status, runs, pools: pools::read(&metrics.unwrap_or_default()) })
    }

    /// Reads the stream, and opens it again whenever it ends.
    pub(super) fn tell(self, first: Lines, news: SyncSender<News>) {
        thread::spawn(move || {
            let mut lines = Ok(first);
            // An error means that nobody takes the news.
            while self.tell_all(lines, &news).is_ok() {
                thread::sleep(PERIOD);
                lines = self.follow();
            }
        });
    }

    fn tell_all(&self, lines: Result<Lines, ClientError>, news: &SyncSender<News>) -> Result<(), Unwanted> {
        let mut lines = match lines {
            Ok(lines) => lines,
            Err(error) => return news.send(News::Stream(Err(error.to_string()))),
        };
        news.send(News::Stream(Ok(())))?;
        let mut gathered = Gathered::default();
        let why = loop {
            match lines.next() {
                Ok(Some(line)) => {
                    if let Some(told) = gathered.take(line) {
                        news.send(News::Told(told))?;
                    }
                }
                Ok(None) => break format!("hookyard at {} ended its stream", self.client.socket().display()),
                Err(error) => break error.to_string(),
            }
        };
        news.send(News::Stream(Err(why)))
    }

    /// Looks at the daemon again and again.
    pub(super) fn watch(self, news: SyncSender<News>) {
        thread::spawn(move || {
            loop {
                let look = self.look().map_err(|error| error.to_string());
                if news.send(News::Look(Box::new(look))).is_err() {
                    return;
                }
                thread::sleep(PERIOD);
            }
        });
    }
}

/// Listens to the keyboard.
pub(super) fn listen(news: SyncSender<News>) {
    thread::spawn(move || {
        loop {
            let told = match event::read() {
                Ok(Event::Key(key)) => News::Key(key),
                Ok(Event::Resize(..)) => News::Resized,
                Ok(_) => continue,
                Err(error) => {
                    drop(news.send(News::Deaf(error.to_string())));
                    return;
                }
            };
            if news.send(told).is_err() {
                return;
            }
        }
    });
}
