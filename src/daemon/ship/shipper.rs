//! The task that sends what waits, for as long as it takes.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    request::{BatchResult, LineSender, ShipRequest},
    spool::{Batch, Spool},
};
use crate::config::ShipSettings;

/// The first pause after a failure, and the longest: each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// How often it is seen whether the daemon that is replaced has ended.
const LOCK_PAUSE: Duration = Duration::from_millis(500);

/// How long a daemon that stops still sends.
const LAST_CHANCE: Duration = Duration::from_secs(3);

/// What is shipped, and to where.
#[derive(Debug)]
pub(in crate::daemon) struct Shipping {
    pub(in crate::daemon) spool: Arc<Spool>,
    sender: LineSender,
    batch: usize,
    max_age: Duration,
    state_every: Duration,
    /// Why the last request failed; none if it did not.
    error: Mutex<Option<String>>,
}

/// How much is sent next, and when.
struct Pace {
    /// The most lines of a batch, which are fewer for a server that takes no large ones.
    lines: usize,
    pause: Duration,
}

impl Shipping {
    /// Ships to the server of the settings; nothing if there is none.
    pub(in crate::daemon) fn new(settings: &ShipSettings, node: &str, spool: Arc<Spool>) -> Option<Self> {
        Some(Self {
            spool,
            sender: LineSender::new(settings, node)?,
            batch: settings.batch.get(),
            max_age: settings.max_age,
            state_every: settings.state_every,
            error: Mutex::default(),
        })
    }

    /// The server as messages name it.
    pub(in crate::daemon) fn server(&self) -> String {
        self.sender.server()
    }

    /// Why the last request failed; none if it did not.
    pub(in crate::daemon) fn error(&self) -> Option<String> {
        self.error.lock().clone()
    }

    /// Sends what waits, until it is dropped. A line with the state is added now and then.
    pub(in crate::daemon) async fn run(&self, state: impl Fn() -> Vec<u8>) {
        let add_states = async {
            loop {
                self.add(state()).await;
                sleep(self.state_every).await;
            }
        };
        tokio::join!(add_states, self.send_all());
    }

    async fn add(&self, line: Vec<u8>) {
        let spool = Arc::clone(&self.spool);
        // Fails only while the runtime shuts down.
        drop(spawn_blocking(move || spool.add(&line)).await);
    }

    async fn send_all(&self) {
        self.wait_for_lock().await;
        let mut pace = Pace { lines: self.batch, pause: FIRST_PAUSE };
        loop {
            self.wait_for_lines().await;
            if let Err(pause) = self.send_next(&mut pace).await {
                sleep(pause).await;
            }
        }
    }

    /// Waits until no other process ships.
    async fn wait_for_lock(&self) {
        loop {
            let spool = Arc::clone(&self.spool);
            match spawn_blocking(move || spool.adopt()).await {
                Ok(Ok(true)) | Err(_) => return,
                Ok(Ok(false)) => {}
                Ok(Err(error)) => self.note(Err(format!("the directory of what waits: {error}"))),
            }
            sleep(LOCK_PAUSE).await;
        }
    }

    /// Waits until a batch is full, or a line has waited long enough. What another process has left has.
    async fn wait_for_lines(&self) {
        loop {
            let added = self.spool.added.notified();
            let counts = self.spool.counts();
            let due = self.spool.waited_since().map(|since| since + self.max_age);
            if counts.lines >= self.batch as u64
                || counts.lines > 0 && due.is_none_or(|due| due <= Instant::now())
            {
                return;
            }
            match due.filter(|_| counts.lines > 0) {
                None => added.await,
                Some(due) => tokio::select! {
                    () = added => {}
                    () = sleep_until(due) => {}
                },
            }
        }
    }

    /// Sends one batch. Returns how long to wait before the next where it failed.
    async fn send_next(&self, pace: &mut Pace) -> Result<(), Duration> {
        let Some((batch, request)) = self.next(pace.lines).await else { return Ok(()) };
        let sent = match request {
            Ok(request) => self.sender.send(request).await,
            Err(why) => BatchResult::Failed(why, None),
        };
        let spool = Arc::clone(&self.spool);
        match sent {
            BatchResult::Taken => {
                *pace = Pace { lines: self.batch, pause: FIRST_PAUSE };
                self.note(Ok(()));
                drop(spawn_blocking(move || spool.shipped(&batch)).await);
                Ok(())
            }
            BatchResult::TooLarge if batch.lines > 1 => {
                pace.lines = usize::try_from(batch.lines / 2).unwrap_or(1).max(1);
                Ok(())
            }
            BatchResult::TooLarge => {
                let bytes = batch.bytes.len();
                tracing::error!(
                    bytes,
                    server = self.server(),
                    "a line is lost: the server takes none as large"
                );
                drop(spawn_blocking(move || spool.give_up(&batch)).await);
                Ok(())
            }
            BatchResult::Failed(why, after) => {
                self.note(Err(why));
                let pause = pace.pause.max(after.unwrap_or_default()).min(LONGEST_PAUSE);
                pace.pause = pace.pause.saturating_mul(2).min(LONGEST_PAUSE);
                Err(spread(pause))
            }
        }
    }

    /// The next lines, and the request with them.
    async fn next(&self, lines: usize) -> Option<(Batch, Result<ShipRequest, String>)> {
        let spool = Arc::clone(&self.spool);
        let batch = spawn_blocking(move || spool.next(lines)).await.ok()??;
        let request = self.sender.prepare(&batch);
        Some((batch, request))
    }

    /// Notes what became of a request; only changes are logged.
    fn note(&self, result: Result<(), String>) {
        let mut known = self.error.lock();
        match (&*known, &result) {
            (None, Err(why)) => {
                tracing::warn!(
                    why,
                    server = self.server(),
                    "lines wait: the server does not take them, which is tried again"
                );
            }
            (Some(_), Ok(())) => tracing::info!(server = self.server(), "the server takes lines again"),
            (None, Ok(())) | (Some(_), Err(_)) => {}
        }
        *known = result.err();
    }

    /// Sends what waits for a last time, a moment long, with a line with the state. The rest stays on disk for the next start.
    pub(in crate::daemon) async fn close(&self, state: Vec<u8>) {
        self.add(state).await;
        let spool = Arc::clone(&self.spool);
        if !spawn_blocking(move || spool.adopt().unwrap_or(false)).await.unwrap_or(false) {
            return;
        }
        let mut pace = Pace { lines: self.batch, pause: FIRST_PAUSE };
        let last =
            async { while self.spool.counts().lines > 0 && self.send_next(&mut pace).await.is_ok() {} };
        drop(timeout(LAST_CHANCE, last).await);
        self.spool.release();
    }
}

/// A pause that differs a little from edge to edge, so that not all of them come back at once.
fn spread(pause: Duration) -> Duration {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let share = f64::from(now.subsec_nanos() % 1000) / 1000.0;
    pause.mul_f64(0.8 + 0.4 * share)
}
