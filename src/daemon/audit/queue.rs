//! The queue between runs, which finish events, and the writer of audit lines.

use std::{
    io,
    path::PathBuf,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{self, Sender},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::time::timeout;

use super::{
    confirmations::{Confirmations, LineGuard},
    counters::{AuditCounters, AuditQueueLimits},
    line::{AuditEntry, DenialLine, UnaskedLine, UnaskedReason},
    rotating_file::RotatingFile,
    writer::{AuditSink, NoSink, StdoutSink, Writer, WriterCommand, WriterOptions},
};
use crate::{
    FinishedEvent, OutcomeObserver,
    config::{AuditDestination, AuditPatches, AuditSettings},
    daemon::ship::Spool,
    model::{
        DecisionId, Delivery, DialectName, Event, EventOrigin, FailureMode, HookReport, Outcome, Targets,
    },
};

/// The memory that queued lines may take, in bytes: fewer lines wait when their payloads are large.
const MAX_QUEUED_BYTES: usize = 64 << 20;

/// The approximate memory of a queued line without its payload, in bytes.
const BASE_ENTRY_BYTES: usize = 512;

/// How long a shutdown waits for the writer, whose sink may block.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer waits for its line.
const CONFIRM_TIMEOUT: Duration = Duration::from_secs(5);

/// Why the audit cannot start.
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
    /// Standard output or the writer's thread is not available.
    #[error("cannot start the audit: {0}")]
    Io(#[from] io::Error),
}

/// The audit as runs see it: an observer that queues outcomes for the writer.
#[derive(Debug)]
pub(in crate::daemon) struct Audit {
    /// None once it is closed.
    queue: ArcSwapOption<Sender<WriterCommand>>,
    limits: AuditQueueLimits,
    patches: AuditPatches,
    /// Only where answers wait for their lines.
    confirmations: Option<Confirmations>,
    counters: Arc<AuditCounters>,
    writer: Mutex<Option<JoinHandle<()>>>,
    destination: String,
}

impl Audit {
    /// Opens the destination of the settings, if there is one, and starts the writer. Its lines are also shipped, if there is
    /// a place where they wait for that.
    ///
    /// Returns an error if the destination cannot be used.
    pub(in crate::daemon) fn start(
        settings: &AuditSettings,
        spool: Option<Arc<Spool>>,
    ) -> Result<Option<Arc<Self>>, AuditError> {
        let (destination, sink): (String, Box<dyn AuditSink>) = match &settings.to {
            None if spool.is_none() => return Ok(None),
            None => ("the server of `ship.url`".to_owned(), Box::new(NoSink)),
            Some(AuditDestination::Stdout) => ("stdout".to_owned(), Box::new(StdoutSink::open()?)),
            Some(AuditDestination::File(path)) => {
                let file = RotatingFile::open(path, settings.max_size as u64, settings.keep.get());
                let file = file.map_err(|why| AuditError::File { path: path.clone(), why })?;
                (path.display().to_string(), Box::new(file))
            }
        };
        Ok(Some(Arc::new(Self::on(sink, destination, settings, spool)?)))
    }

    /// Opens the destination of the settings, if there is one, and closes it again.
    ///
    /// Returns an error if it cannot be used.
    #[cfg(feature = "cli")]
    pub(in crate::daemon) fn check(settings: &AuditSettings) -> Result<(), AuditError> {
        let Some(AuditDestination::File(path)) = &settings.to else { return Ok(()) };
        let was_there = path.symlink_metadata().is_ok();
        let opened = RotatingFile::open(path, settings.max_size as u64, settings.keep.get());
        let file = opened.map_err(|why| AuditError::File { path: path.clone(), why })?;
        if !was_there && file.is_empty() {
            drop(std::fs::remove_file(path));
        }
        Ok(())
    }

    pub(super) fn on(
        sink: Box<dyn AuditSink>,
        destination: String,
        settings: &AuditSettings,
        spool: Option<Arc<Spool>>,
    ) -> io::Result<Self> {
        let (sender, commands) = mpsc::channel();
        let counters = Arc::new(AuditCounters::default());
        let options = WriterOptions {
            sync: settings.sync,
            patches: settings.patches,
            is_only_shipped: settings.to.is_none() && spool.is_some(),
            spool,
        };
        let writer = Writer::new(sink, options, Arc::clone(&counters));
        let thread = thread::Builder::new().name("audit".to_owned()).spawn(move || writer.run(&commands))?;
        Ok(Self {
            queue: ArcSwapOption::from_pointee(sender),
            limits: AuditQueueLimits { lines: settings.queue.get(), bytes: MAX_QUEUED_BYTES },
            patches: settings.patches,
            confirmations: settings.required.then(Confirmations::default),
            counters,
            writer: Mutex::new(Some(thread)),
            destination,
        })
    }

    /// Where its lines go: a path, or `stdout`.
    pub(in crate::daemon) fn destination(&self) -> &str {
        &self.destination
    }

    pub(in crate::daemon) fn counters(&self) -> &AuditCounters {
        &self.counters
    }

    /// Queues the line of an outcome. It is lost, and counted, if there is no room for it.
    fn record(&self, entry: AuditEntry) {
        let weight = weight(&entry);
        if !self.try_enqueue(weight, WriterCommand::Write(Box::new(entry), weight)) {
            self.counters.record_full_queue();
        }
    }

    /// Queues a line about an answer that no hook was asked for.
    fn record_unasked(&self, line: UnaskedLine, guard: LineGuard) {
        let command = WriterCommand::WriteUnasked(Box::new(line), guard, BASE_ENTRY_BYTES);
        if !self.try_enqueue(BASE_ENTRY_BYTES, command) {
            self.counters.record_full_queue();
        }
    }

    /// Whether answers wait for their lines.
    pub(in crate::daemon) fn is_required(&self) -> bool {
        self.confirmations.is_some()
    }

    /// Waits for the line of a decision, where answers wait for their lines. If the runs have recorded none, `answered` is:
    /// no hook wanted the event, or nobody waits for its hooks. Returns whether the decision may be answered.
    pub(in crate::daemon) async fn confirm(
        &self,
        decision: DecisionId,
        answered: impl FnOnce() -> Option<FinishedEvent>,
    ) -> bool {
        let Some(confirmations) = &self.confirmations else { return true };
        if !confirmations.expects(decision) {
            // Its workspace is gone meanwhile.
            let Some(answered) = answered() else { return false };
            let accepted = is_accepted_only(&answered.event);
            let mut entry = AuditEntry::of(answered, self.patches);
            entry.accepted = accepted;
            entry.guard = Some(confirmations.expect(decision));
            self.record(entry);
        }
        is_written(confirmations, decision).await
    }

    /// Records an answer that no hook was asked for, and waits for its line, where answers wait for their lines. Returns
    /// whether the line was written.
    pub(in crate::daemon) async fn confirm_unasked(
        &self,
        outcome: &Outcome,
        unasked: UnaskedReason,
        origin: Option<&EventOrigin>,
        dialect: DialectName,
    ) -> bool {
        let Some(confirmations) = &self.confirmations else { return true };
        let decision = outcome.decision_id;
        let guard = confirmations.expect(decision);
        self.record_unasked(UnaskedLine::new(outcome, unasked, origin, dialect), guard);
        is_written(confirmations, decision).await
    }

    /// Queues a line about denied requests.
    pub(in crate::daemon) fn record_denial(&self, denial: DenialLine) {
        // Those of a daemon that has stopped are in its log.
        let is_closed = self.queue.load().is_none();
        let command = WriterCommand::WriteDenial(Box::new(denial), BASE_ENTRY_BYTES);
        if !is_closed && !self.try_enqueue(BASE_ENTRY_BYTES, command) {
            self.counters.record_full_queue();
        }
    }

    /// Returns whether the queue took the command.
    fn try_enqueue(&self, weight: usize, command: WriterCommand) -> bool {
        let queue = self.queue.load();
        let Some(queue) = queue.as_ref() else { return false };
        if !self.counters.try_reserve(weight, self.limits) {
            return false;
        }
        let sent = queue.send(command).is_ok();
        if !sent {
            self.counters.release(weight);
        }
        sent
    }

    /// Has the file reopened if it was moved away.
    pub(in crate::daemon) fn reopen_if_moved(&self) {
        if let Some(queue) = &*self.queue.load() {
            // Fails only if the writer is gone, and its file with it.
            drop(queue.send(WriterCommand::CheckFile));
        }
    }

    /// Takes no more lines and writes those in the queue. Blocks until they are written, or the sink blocks too long.
    pub(in crate::daemon) fn close(&self) {
        self.queue.store(None);
        let Some(writer) = self.writer.lock().take() else { return };
        let (done, ended) = mpsc::channel();
        // A reader of standard output that does not read must not keep the daemon from stopping.
        let waiting = thread::Builder::new().spawn(move || {
            drop(writer.join());
            // Fails only if nobody waits any more.
            done.send(()).ok();
        });
        if waiting.is_err() || ended.recv_timeout(CLOSE_TIMEOUT).is_err() {
            let lines = self.counters.waiting.load(Ordering::Relaxed);
            tracing::error!(
                lines,
                to = self.destination,
                "audit lines are lost: they could not be written before the shutdown"
            );
        }
    }
}

impl OutcomeObserver for Audit {
    fn event_finished(&self, finished: FinishedEvent) {
        // One that nobody waits for is answered before its hooks have ended, with a line of its own.
        let is_awaited = !is_accepted_only(&finished.event);
        let decision = finished.outcome.decision_id;
        let hooks = finished.outcome.hooks.iter();
        let open = hooks.filter(|report| report.failure_mode == Some(FailureMode::FailOpen)).count();
        self.counters.failed_open.fetch_add(open as u64, Ordering::Relaxed);
        let mut entry = AuditEntry::of(finished, self.patches);
        entry.guard = self.confirmations.as_ref().filter(|_| is_awaited).map(|lines| lines.expect(decision));
        self.record(entry);
    }
}

/// Waits for the line of a decision. Returns whether it was written in time.
async fn is_written(confirmations: &Confirmations, decision: DecisionId) -> bool {
    timeout(CONFIRM_TIMEOUT, confirmations.confirm(decision)).await.unwrap_or(false)
}

/// Whether the host of an event is answered once it is accepted.
fn is_accepted_only(event: &Event) -> bool {
    event.delivery == Delivery::Detached && !event.is_interceptor()
}

/// The approximate memory of an entry, in bytes.
pub(super) fn weight(entry: &AuditEntry) -> usize {
    let Outcome { patched, notes, reason, hooks, .. } = &*entry.outcome;
    let notes: usize = notes.iter().map(|note| note.text.len()).sum();
    BASE_ENTRY_BYTES
        + json_bytes(patched)
        + json_bytes(&entry.before)
        + notes
        + reason.as_ref().map_or(0, |reason| reason.len())
        + hooks.len() * size_of::<HookReport>()
        + hooks.iter().filter_map(|report| report.values.as_deref()).map(json_bytes).sum::<usize>()
        + hooks.iter().filter_map(|report| report.error.as_ref()).map(|error| error.len()).sum::<usize>()
}

fn json_bytes(targets: &Targets) -> usize {
    targets.iter().map(|(_, json)| json.as_str().len()).sum()
}
