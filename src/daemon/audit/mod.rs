//! The audit: a line of JSON for each outcome, in a file or on standard output. Owns how many lines may wait and how many
//! are lost; refuses to keep an event waiting: what does not fit is dropped and counted.
//!
//! ```text
//! run::RunActor ── FinishedEvent ──▶ Audit ── bounded queue ──▶ writer's thread ──▶ AuditSink (file, stdout)
//! ```

mod changed_paths;
mod line;
mod rotating_file;
mod sink;
mod writer;

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::time::Instant;

use line::AuditEntry;
use rotating_file::RotatingFile;
use sink::{AuditSink, StdoutSink};
use writer::{Writer, WriterOptions};

use crate::{
    FinishedEvent, OutcomeObserver,
    config::{AuditDestination, AuditPatches, AuditSettings},
    model::{HookReport, Outcome, Targets},
    telemetry::AuditDropped,
};

/// How much may wait, in bytes: lines with large payloads are fewer.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// About what a line without payload keeps in memory while it waits.
const BASE_ENTRY_BYTES: usize = 512;

/// How long a shutdown waits for an outlet that takes nothing.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often the log hears of lines that are lost.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// Why no audit can be written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
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
    queue: ArcSwapOption<Sender<WriterCommand>>,
    limits: QueueLimits,
    patches: AuditPatches,
    counters: Arc<AuditCounters>,
    writer: Mutex<Option<JoinHandle<()>>>,
    to: String,
}

/// What the writer is told.
#[derive(Debug)]
enum WriterCommand {
    /// Write this down, which weighs so much.
    Write(Box<AuditEntry>, usize),
    /// The file may have been moved away.
    CheckFile,
}

#[derive(Debug, Clone, Copy)]
struct QueueLimits {
    lines: usize,
    bytes: usize,
}

/// What became of lines.
#[derive(Debug, Default)]
pub(super) struct AuditCounters {
    waiting: AtomicUsize,
    weight: AtomicUsize,
    pub(super) written: AtomicU64,
    pub(super) dropped_queue: AtomicU64,
    pub(super) dropped_write: AtomicU64,
    loss_report: Mutex<LossReport>,
}

/// What the log was told of losses.
#[derive(Debug, Default)]
struct LossReport {
    last: Option<Instant>,
    /// How many it was told of.
    told: u64,
}

impl Audit {
    /// Opens the place of the settings, if there is one, and begins to take lines.
    ///
    /// Returns an error if the place cannot be used.
    pub(super) fn start(settings: &AuditSettings) -> Result<Option<Arc<Self>>, AuditError> {
        let (to, sink): (String, Box<dyn AuditSink>) = match &settings.to {
            None => return Ok(None),
            Some(AuditDestination::Stdout) => ("stdout".to_owned(), Box::new(StdoutSink::open()?)),
            Some(AuditDestination::File(path)) => {
                let file = RotatingFile::open(path, settings.max_size as u64, settings.keep.get());
                let file = file.map_err(|why| AuditError::File { path: path.clone(), why })?;
                (path.display().to_string(), Box::new(file))
            }
        };
        Ok(Some(Arc::new(Self::on(sink, to, settings)?)))
    }

    fn on(sink: Box<dyn AuditSink>, to: String, settings: &AuditSettings) -> io::Result<Self> {
        let (sender, commands) = mpsc::channel();
        let counters = Arc::new(AuditCounters::default());
        let limits = WriterOptions { sync: settings.sync, patches: settings.patches };
        let writer = Writer::new(sink, limits, Arc::clone(&counters));
        let thread = thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&commands))?;
        Ok(Self {
            queue: ArcSwapOption::from_pointee(sender),
            limits: QueueLimits { lines: settings.queue.get(), bytes: MAX_QUEUED_BYTES },
            patches: settings.patches,
            counters,
            writer: Mutex::new(Some(thread)),
            to,
        })
    }

    /// Where its lines go.
    pub(super) fn to(&self) -> &str {
        &self.to
    }

    pub(super) fn counters(&self) -> &AuditCounters {
        &self.counters
    }

    /// Has the file opened again if it was moved away.
    pub(super) fn look(&self) {
        if let Some(queue) = &*self.queue.load() {
            // A send fails only if the writer is gone, and its file with it.
            drop(queue.send(WriterCommand::CheckFile));
        }
    }

    /// Takes no more lines, and writes those that wait. Blocks until that is done, or nothing can be written.
    pub(super) fn close(&self) {
        self.queue.store(None);
        let Some(writer) = self.writer.lock().take() else { return };
        let (done, ended) = mpsc::channel();
        // A reader of standard output that does not read keeps neither the daemon nor its end.
        let waiting = thread::Builder::new().spawn(move || {
            drop(writer.join());
            // A send fails only if nobody waits any more.
            done.send(()).ok();
        });
        if waiting.is_err() || ended.recv_timeout(CLOSE_TIMEOUT).is_err() {
            let lines = self.counters.waiting.load(Ordering::Relaxed);
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
        let entry = AuditEntry::of(finished, self.patches);
        let weight = weight(&entry);
        let queue = self.queue.load();
        let sent =
            queue.as_ref().filter(|_| self.counters.try_reserve(weight, self.limits)).is_some_and(|queue| {
                let sent = queue.send(WriterCommand::Write(Box::new(entry), weight)).is_ok();
                if !sent {
                    self.counters.release(weight);
                }
                sent
            });
        if !sent {
            self.counters.dropped_queue.fetch_add(1, Ordering::Relaxed);
            AuditDropped::Queue.emit(1);
            // The writer may hang for as long as it likes.
            self.counters.report_losses(&mut None);
        }
    }
}

impl AuditCounters {
    /// Takes a place in the queue. Returns whether there was one.
    fn try_reserve(&self, weight: usize, limits: QueueLimits) -> bool {
        let lines = self.waiting.fetch_add(1, Ordering::AcqRel);
        let bytes = self.weight.fetch_add(weight, Ordering::AcqRel);
        // One line has a place whatever it weighs, or it would never have one.
        let fits = lines < limits.lines && (lines == 0 || bytes.saturating_add(weight) <= limits.bytes);
        if !fits {
            self.release(weight);
        }
        fits
    }

    fn release(&self, weight: usize) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.weight.fetch_sub(weight, Ordering::AcqRel);
    }

    /// Tells the log what was lost since it was told last, if that is long enough ago.
    fn report_losses(&self, error: &mut Option<io::Error>) {
        // Whoever has it is telling.
        let Some(mut loss_report) = self.loss_report.try_lock() else { return };
        if loss_report.last.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
            self.tell(&mut loss_report, error);
        }
    }

    /// The same, at the end.
    fn report_final_losses(&self, error: &mut Option<io::Error>) {
        self.tell(&mut self.loss_report.lock(), error);
    }

    fn tell(&self, loss_report: &mut LossReport, error: &mut Option<io::Error>) {
        let (full, failed) =
            (self.dropped_queue.load(Ordering::Relaxed), self.dropped_write.load(Ordering::Relaxed));
        if full + failed > loss_report.told {
            *loss_report = LossReport { last: Some(Instant::now()), told: full + failed };
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
fn weight(entry: &AuditEntry) -> usize {
    let large = |targets: &Targets| targets.iter().map(|(_, json)| json.as_str().len()).sum::<usize>();
    let Outcome { patched, notes, reason, hooks, .. } = &*entry.outcome;
    let texts: usize = notes.iter().map(|note| note.text.len()).sum();
    BASE_ENTRY_BYTES
        + large(patched)
        + large(&entry.before)
        + texts
        + reason.as_ref().map_or(0, |reason| reason.len())
        + hooks.len() * size_of::<HookReport>()
}

#[cfg(test)]
mod tests;
