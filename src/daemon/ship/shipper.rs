//! The task that sends what waits, for as long as it takes.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    task::spawn_blocking,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    request::{BatchResult, LineSender, ShipRequest},
    spool::{Batch, Spool, SpoolAdoption},
};
use crate::config::ShipSettings;

/// The first pause after a failure, and the longest: each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_mins(5);

/// How often it is seen whether another daemon has left its lines, as one that is replaced does.
const ADOPTION_PAUSE: Duration = Duration::from_millis(500);

/// After this it is reported that another one ships.
const LONG_WAIT: Duration = Duration::from_secs(30);

/// The size up to which a server that refuses a line for its size is wrong, in bytes.
const SMALL_LINE: usize = 64 << 10;

/// How long a daemon that stops still sends.
const LAST_CHANCE: Duration = Duration::from_secs(3);

/// What is shipped, and to where.
#[derive(Debug)]
pub(in crate::daemon) struct Shipping {
    pub(in crate::daemon) spool: Arc<Spool>,
    sender: Arc<LineSender>,
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
            sender: Arc::new(LineSender::new(settings, node)?),
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
        // What cannot be written is reported there; the rest fails only while the runtime shuts down.
        drop(spawn_blocking(move || spool.add(&line)).await);
    }

    async fn send_all(&self) {
        let mut pace = Pace { lines: self.batch, pause: FIRST_PAUSE };
        let mut adoption = SpoolAdoption::Refused;
        let begun = Instant::now();
        loop {
            if adoption != SpoolAdoption::Whole {
                adoption = self.adopt(begun).await;
            }
            if adoption == SpoolAdoption::Refused {
                sleep(ADOPTION_PAUSE).await;
                continue;
            }
            // While another process writes, its files are looked for again.
            let most = if adoption == SpoolAdoption::Whole { Duration::MAX } else { ADOPTION_PAUSE };
            let is_ready = timeout(most, self.wait_for_lines()).await.is_ok();
            if is_ready && let Err(pause) = self.send_next(&mut pace).await {
                sleep(pause).await;
            }
        }
    }

    /// Takes what other processes have left.
    async fn adopt(&self, begun: Instant) -> SpoolAdoption {
        let spool = Arc::clone(&self.spool);
        let adopted = match spawn_blocking(move || spool.adopt()).await {
            Ok(adopted) => adopted.map_err(|error| format!("its lines on disk cannot be used: {error}")),
            Err(error) => Err(error.to_string()),
        };
        let adoption = match adopted {
            Ok(SpoolAdoption::Refused) if begun.elapsed() > LONG_WAIT => {
                Err("another process ships the lines in `data`".to_owned())
            }
            adopted => adopted,
        };
        adoption.unwrap_or_else(|why| {
            self.note(Err(why));
            SpoolAdoption::Refused
        })
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
        let (batch, result) = match self.next(pace.lines).await {
            Ok(None) => return Ok(()),
            Ok(Some((batch, request))) => (Some(batch), self.sender.send(request).await),
            Err(why) => (None, BatchResult::Failed(why, None)),
        };
        let lines = batch.as_ref().map_or(0, |batch| batch.lines);
        let size = batch.as_ref().map_or(0, |batch| batch.bytes.len());
        match result {
            BatchResult::Taken { refused } => {
                *pace = Pace { lines: self.batch, pause: FIRST_PAUSE };
                self.note(Ok(()));
                if refused > 0 {
                    tracing::error!(
                        refused,
                        server = self.server(),
                        "lines are lost: the server took the others only"
                    );
                }
                self.pass(batch, refused).await;
                Ok(())
            }
            BatchResult::TooLarge if lines > 1 => {
                pace.lines = usize::try_from(lines / 2).unwrap_or(1);
                Ok(())
            }
            // A server that refuses small lines as well takes none, and is tried again.
            BatchResult::TooLarge if size > SMALL_LINE => {
                tracing::error!(
                    bytes = size,
                    server = self.server(),
                    "a line is lost: the server takes none as large"
                );
                self.pass(batch, lines).await;
                Ok(())
            }
            BatchResult::TooLarge => {
                Err(self.fail(pace, "it answered that one line is too large".to_owned(), None))
            }
            BatchResult::Failed(why, after) => Err(self.fail(pace, why, after)),
            BatchResult::Late(why) => {
                pace.lines = usize::try_from(lines / 2).unwrap_or(1).max(1);
                Err(self.fail(pace, why, None))
            }
        }
    }

    /// Goes on behind a batch, so many lines of which the server has refused.
    async fn pass(&self, batch: Option<Batch>, refused: u64) {
        let Some(batch) = batch else { return };
        let spool = Arc::clone(&self.spool);
        drop(spawn_blocking(move || spool.shipped(&batch, refused)).await);
    }

    /// Returns how long to wait after a failure.
    fn fail(&self, pace: &mut Pace, why: String, after: Option<Duration>) -> Duration {
        self.note(Err(why));
        let pause = spread(pace.pause).max(after.unwrap_or_default()).min(LONGEST_PAUSE);
        pace.pause = pace.pause.saturating_mul(2).min(LONGEST_PAUSE);
        pause
    }

    /// The next lines, and the request with them.
    async fn next(&self, lines: usize) -> Result<Option<(Batch, ShipRequest)>, String> {
        let (spool, sender) = (Arc::clone(&self.spool), Arc::clone(&self.sender));
        let prepare = move || {
            let batch =
                spool.next(lines).map_err(|error| format!("lines cannot be read from disk: {error}"))?;
            let prepared = batch.map(|batch| sender.prepare(&batch).map(|request| (batch, request)));
            prepared.transpose()
        };
        spawn_blocking(prepare).await.map_err(|error| error.to_string())?
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
        let last = async {
            self.add(state).await;
            let mut pace = Pace { lines: self.batch, pause: FIRST_PAUSE };
            if self.adopt(Instant::now()).await != SpoolAdoption::Refused {
                while self.spool.counts().lines > 0 && self.send_next(&mut pace).await.is_ok() {}
            }
            let spool = Arc::clone(&self.spool);
            drop(spawn_blocking(move || spool.release()).await);
        };
        // A process that ends lets go of the rest.
        drop(timeout(LAST_CHANCE, last).await);
    }
}

/// A pause that differs a little from edge to edge, so that not all of them come back at once.
fn spread(pause: Duration) -> Duration {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    let share = f64::from(now.subsec_nanos() % 1000) / 1000.0;
    pause.mul_f64(1.0 + 0.2 * share)
}
