//! The audit: a line of JSON for each outcome, in a file or on standard output. Owns how many lines may wait and how many
//! are lost; refuses to keep an event waiting: what does not fit is dropped and counted.
//!
//! ```text
//! run::RunActor ── Finished ──▶ Audit ── bounded queue ──▶ writer's thread ──▶ Outlet (file, stdout)
//! ```

mod changes;
mod file;
mod line;
mod outlet;
mod writer;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::time::Instant;

use file::LogFile;
use line::Entry;
use outlet::{Outlet, Stdout};
use writer::{Writer, WriterBounds};

use crate::{
    FinishedEvent, OutcomeObserver,
    config::{AuditDestination, AuditPatches, AuditSettings},
    model::{HookReport, Outcome, Targets},
    telemetry::AuditDropped,
};

/// How much may wait, in bytes: lines with large payloads are fewer.
const MOST_WAITING: usize = 64 << 20;

/// About what a line without payload keeps in memory while it waits.
const PLAIN_LINE: usize = 512;

/// How long a shutdown waits for an outlet that takes nothing.
const LAST_LINES: Duration = Duration::from_secs(5);

/// How often the log hears of lines that are lost.
const COMPLAINT: Duration = Duration::from_mins(1);

/// Why no audit can be written.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The file cannot be used.
    #[error("the audit file {path} {why}", path = path.display())]
    File {
        /// Its path.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// There is nothing to write to, or nobody to do it.
    #[error("the audit cannot be written: {0}")]
    Io(#[from] io::Error),
}

/// The audit of a daemon, as long as it takes lines.
#[derive(Debug)]
pub(super) struct Audit {
    queue: ArcSwapOption<Sender<Order>>,
    bounds: QueueBounds,
    patches: AuditPatches,
    tally: Arc<Tally>,
    writer: Mutex<Option<JoinHandle<()>>>,
    to: String,
}

/// What the writer is told.
#[derive(Debug)]
enum Order {
    /// Write this down, which weighs so much.
    Line(Box<Entry>, usize),
    /// The file may have been moved away.
    Look,
}

#[derive(Debug, Clone, Copy)]
struct QueueBounds {
    lines: usize,
    bytes: usize,
}

/// What became of lines.
#[derive(Debug, Default)]
pub(super) struct Tally {
    waiting: AtomicUsize,
    weight: AtomicUsize,
    pub(super) written: AtomicU64,
    pub(super) dropped_queue: AtomicU64,
    pub(super) dropped_write: AtomicU64,
    complaint: Mutex<Complaint>,
}

/// What the log was told of losses.
#[derive(Debug, Default)]
struct Complaint {
    last: Option<Instant>,
    /// How many it was told of.
    told: u64,
}

impl Audit {
    /// Opens the place of the settings, if there is one, and begins to take lines.
    ///
    /// Returns an error if the place cannot be used.
    pub(super) fn start(settings: &AuditSettings) -> Result<Option<Arc<Self>>, AuditError> {
        let (to, outlet): (String, Box<dyn Outlet>) = match &settings.to {
            None => return Ok(None),
            Some(AuditDestination::Stdout) => ("stdout".to_owned(), Box::new(Stdout::open()?)),
            Some(AuditDestination::File(path)) => {
                let file = LogFile::open(path, settings.max_size as u64, settings.keep.get());
                let file = file.map_err(|why| AuditError::File { path: path.clone(), why })?;
                (path.display().to_string(), Box::new(file))
            }
        };
        Ok(Some(Arc::new(Self::on(outlet, to, settings)?)))
    }

    fn on(outlet: Box<dyn Outlet>, to: String, settings: &AuditSettings) -> io::Result<Self> {
        let (sender, orders) = mpsc::channel();
        let tally = Arc::new(Tally::default());
        let bounds = WriterBounds { sync: settings.sync, patches: settings.patches };
        let writer = Writer::new(outlet, bounds, Arc::clone(&tally));
        let thread = thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&orders))?;
        Ok(Self {
            queue: ArcSwapOption::from_pointee(sender),
            bounds: QueueBounds { lines: settings.queue.get(), bytes: MOST_WAITING },
            patches: settings.patches,
            tally,
            writer: Mutex::new(Some(thread)),
            to,
        })
    }

    /// Where its lines go.
    pub(super) fn to(&self) -> &str {
        &self.to
    }

    pub(super) fn tally(&self) -> &Tally {
        &self.tally
    }

    /// Has the file opened again if it was moved away.
    pub(super) fn look(&self) {
        if let Some(queue) = &*self.queue.load() {
            // A send fails only if the writer is gone, and its file with it.
            drop(queue.send(Order::Look));
        }
    }

    /// Takes no more lines, and writes those that wait. Blocks until that is done, or nothing can be written.
    pub(super) fn close(&self) {
        self.queue.store(None);
        let Some(writer) = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take() else { return };
        let (done, ended) = mpsc::channel();
        // A reader of standard output that does not read keeps neither the daemon nor its end.
        let waiting = thread::Builder::new().spawn(move || {
            drop(writer.join());
            // A send fails only if nobody waits any more.
            done.send(()).ok();
        });
        if waiting.is_err() || ended.recv_timeout(LAST_LINES).is_err() {
            let lines = self.tally.waiting.load(Ordering::Relaxed);
            tracing::error!(
                lines,
                to = self.to,
                "audit lines are lost: they could not be written before the end"
            );
        }
    }
}

impl OutcomeObserver for Audit {
    fn event_finished(&self, finished: FinishedEvent) {
        let entry = Entry::of(finished, self.patches);
        let weight = weight(&entry);
        let queue = self.queue.load();
        let sent = queue.as_ref().filter(|_| self.tally.enter(weight, self.bounds)).is_some_and(|queue| {
            let sent = queue.send(Order::Line(Box::new(entry), weight)).is_ok();
            if !sent {
                self.tally.leave(weight);
            }
            sent
        });
        if !sent {
            self.tally.dropped_queue.fetch_add(1, Ordering::Relaxed);
            AuditDropped::Queue.emit(1);
            // The writer may hang for as long as it likes.
            self.tally.complain(&mut None);
        }
    }
}

impl Tally {
    /// Takes a place in the queue. Returns whether there was one.
    fn enter(&self, weight: usize, bounds: QueueBounds) -> bool {
        let lines = self.waiting.fetch_add(1, Ordering::AcqRel);
        let bytes = self.weight.fetch_add(weight, Ordering::AcqRel);
        // One line has a place whatever it weighs, or it would never have one.
        let fits = lines < bounds.lines && (lines == 0 || bytes.saturating_add(weight) <= bounds.bytes);
        if !fits {
            self.leave(weight);
        }
        fits
    }

    fn leave(&self, weight: usize) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.weight.fetch_sub(weight, Ordering::AcqRel);
    }

    /// Tells the log what was lost since it was told last, if that is long enough ago.
    fn complain(&self, error: &mut Option<io::Error>) {
        // Whoever has it is telling.
        let Ok(mut complaint) = self.complaint.try_lock() else { return };
        if complaint.last.is_none_or(|last| last.elapsed() >= COMPLAINT) {
            self.tell(&mut complaint, error);
        }
    }

    /// The same, at the end.
    fn complain_at_last(&self, error: &mut Option<io::Error>) {
        self.tell(&mut self.complaint.lock().unwrap_or_else(PoisonError::into_inner), error);
    }

    fn tell(&self, complaint: &mut Complaint, error: &mut Option<io::Error>) {
        let (full, failed) =
            (self.dropped_queue.load(Ordering::Relaxed), self.dropped_write.load(Ordering::Relaxed));
        if full + failed > complaint.told {
            *complaint = Complaint { last: Some(Instant::now()), told: full + failed };
            let error = error.take().map(|error| error.to_string());
            tracing::error!(full, failed, error, "audit lines are lost, so many until now");
        }
    }

    /// Lines that could not be written.
    fn lost(&self, lines: u64) {
        self.dropped_write.fetch_add(lines, Ordering::Relaxed);
        AuditDropped::Write.emit(lines);
    }
}

/// About how much memory an outcome keeps, with what is told of its event.
fn weight(entry: &Entry) -> usize {
    let large = |targets: &Targets| targets.iter().map(|(_, json)| json.as_str().len()).sum::<usize>();
    let Outcome { patched, notes, reason, hooks, .. } = &*entry.outcome;
    let texts: usize = notes.iter().map(|note| note.text.len()).sum();
    PLAIN_LINE
        + large(patched)
        + large(&entry.before)
        + texts
        + reason.as_ref().map_or(0, |reason| reason.len())
        + hooks.len() * size_of::<HookReport>()
}

#[cfg(test)]
mod tests;
