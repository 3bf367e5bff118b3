//! The thread that writes audit lines in batches, syncs them, and keeps going when a write fails; and where it writes them.

use std::{
    fs::File,
    io::{self, Write},
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{
    confirmations::LineGuard,
    counters::AuditCounters,
    line::{self, AuditEntry, DenialLine, UnaskedLine},
};
use crate::{
    config::{AuditPatches, AuditSync},
    daemon::ship::Spool,
};

/// The size from which a batch is written, in bytes.
const BATCH_BYTES: usize = 64 << 10;

/// How often an idle writer wakes up, and how often the file is checked for having been moved away.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// A destination of bytes.
pub(super) trait AuditSink: std::fmt::Debug + Send {
    /// How many more bytes fit before a rotation.
    fn remaining_capacity(&self) -> u64;

    /// Rotates if this many more bytes do not fit.
    fn reserve(&mut self, bytes: usize) -> io::Result<()>;

    /// Writes some of these bytes. Returns how many.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;

    /// Removes the last bytes that were written, the start of a line that could not be finished. Returns whether that
    /// succeeded.
    fn discard_tail(&mut self, bytes: usize) -> bool;

    /// Syncs what was written to the disk.
    fn sync(&mut self) -> io::Result<()>;

    /// Opens the path again if its file was moved away.
    fn reopen_if_moved(&mut self) -> io::Result<()>;
}

/// Standard output.
#[derive(Debug)]
pub(super) struct StdoutSink(File);

impl StdoutSink {
    pub(super) fn open() -> io::Result<Self> {
        Ok(Self(File::from(rustix::io::fcntl_dupfd_cloexec(io::stdout(), 3)?)))
    }
}

impl AuditSink for StdoutSink {
    fn remaining_capacity(&self) -> u64 {
        u64::MAX
    }

    fn reserve(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn discard_tail(&mut self, _: usize) -> bool {
        false
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reopen_if_moved(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Nowhere: lines are only shipped.
#[derive(Debug)]
pub(super) struct NoSink;

impl AuditSink for NoSink {
    fn remaining_capacity(&self) -> u64 {
        u64::MAX
    }

    fn reserve(&mut self, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn discard_tail(&mut self, _: usize) -> bool {
        true
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn reopen_if_moved(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A command to the writer.
#[derive(Debug)]
pub(super) enum WriterCommand {
    /// Write an entry, which releases this weight of the queue.
    Write(Box<AuditEntry>, usize),
    /// Write a line about an answer without hooks, which waits for it and releases this weight of the queue.
    WriteUnasked(Box<UnaskedLine>, LineGuard, usize),
    /// Write a line about denied requests, which releases this weight of the queue.
    WriteDenial(Box<DenialLine>, usize),
    /// Reopen the file if it was moved away.
    CheckFile,
}

/// How lines are written.
#[derive(Debug, Clone)]
pub(super) struct WriterOptions {
    pub(super) sync: AuditSync,
    pub(super) patches: AuditPatches,
    /// Where the same lines wait to be shipped.
    pub(super) spool: Option<Arc<Spool>>,
    /// Whether that is the only place for them.
    pub(super) is_only_shipped: bool,
}

/// The state of the thread.
#[derive(Debug)]
pub(super) struct Writer {
    sink: Box<dyn AuditSink>,
    options: WriterOptions,
    counters: Arc<AuditCounters>,
    /// Whole lines that are not yet written.
    batch: Vec<u8>,
    /// The lines in the batch, each with who waits for it.
    lines: Vec<Option<LineGuard>>,
    /// Whether the file ends in the middle of a line.
    has_partial_line: bool,
    /// When the oldest unsynced line was written.
    unsynced: Option<Instant>,
    file_checked: Instant,
    /// The last error, until it is logged.
    error: Option<io::Error>,
}

impl Writer {
    pub(super) fn new(
        sink: Box<dyn AuditSink>,
        options: WriterOptions,
        counters: Arc<AuditCounters>,
    ) -> Self {
        Self {
            sink,
            options,
            counters,
            batch: Vec::new(),
            lines: Vec::new(),
            has_partial_line: false,
            unsynced: None,
            file_checked: Instant::now(),
            error: None,
        }
    }

    /// Runs until the queue is closed and empty.
    pub(super) fn run(mut self, commands: &Receiver<WriterCommand>) {
        loop {
            match commands.recv_timeout(self.pause()) {
                Ok(command) => {
                    self.execute(command);
                    while self.batch.len() < BATCH_BYTES
                        && let Ok(command) = commands.try_recv()
                    {
                        self.execute(command);
                    }
                    self.write();
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            self.run_periodic_work();
        }
        if self.unsynced.is_some() {
            self.sync();
        }
        self.counters.report_final_losses(&mut self.error);
    }

    fn pause(&self) -> Duration {
        let due = match (self.options.sync, self.unsynced) {
            (AuditSync::Every(period), Some(since)) => period.saturating_sub(since.elapsed()),
            _ => FILE_CHECK_INTERVAL,
        };
        due.min(FILE_CHECK_INTERVAL)
    }

    fn execute(&mut self, command: WriterCommand) {
        match command {
            WriterCommand::Write(mut entry, weight) => {
                let patches = self.options.patches;
                let guard = entry.guard.take();
                self.take(guard, |batch| line::write(&entry, patches, batch));
                drop(entry);
                self.finish_line(weight);
            }
            WriterCommand::WriteUnasked(unasked, guard, weight) => {
                self.take(Some(guard), |batch| line::write_own_words(&*unasked, batch));
                self.finish_line(weight);
            }
            WriterCommand::WriteDenial(denial, weight) => {
                self.take(None, |batch| line::write_own_words(&*denial, batch));
                self.finish_line(weight);
            }
            WriterCommand::CheckFile => {
                self.write();
                self.check_file();
            }
        }
    }

    /// Releases the weight of a line, and writes it if every line is synced.
    fn finish_line(&mut self, weight: usize) {
        self.counters.release(weight);
        if self.options.sync == AuditSync::Always {
            self.write();
        }
    }

    /// Adds a line to the batch. If the file has no room for all of it, the lines before are written first, so that a
    /// rotation does not split the batch.
    fn take(
        &mut self,
        guard: Option<LineGuard>,
        add_line: impl FnOnce(&mut Vec<u8>) -> serde_json::Result<()>,
    ) {
        let start = self.batch.len();
        if let Err(error) = add_line(&mut self.batch) {
            return self.record_loss(1, error.into());
        }
        if start > 0 && self.batch.len() as u64 > self.sink.remaining_capacity() {
            let line = self.batch.split_off(start);
            self.write();
            self.batch = line;
        }
        self.lines.push(guard);
    }

    /// Writes the batch. Lines that cannot be written whole are lost.
    fn write(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let mut batch = std::mem::take(&mut self.batch);
        let lines = std::mem::take(&mut self.lines);
        // Whatever becomes of them elsewhere.
        let spooled = self.options.spool.as_ref().map_or(Ok(()), |spool| spool.add(&batch));
        let is_spooled = spooled.is_ok();
        let ready = if self.options.is_only_shipped { spooled } else { Ok(()) };
        let ready =
            ready.and_then(|()| self.sink.reserve(batch.len())).and_then(|()| self.end_partial_line());
        let (written, error) = match ready {
            Ok(()) => self.write_bytes(&batch),
            Err(error) => (0, Some(error)),
        };
        // The end of the last whole line.
        let whole = memchr::memrchr(b'\n', &batch[..written]).map_or(0, |end| end + 1);
        let kept = memchr::memchr_iter(b'\n', &batch[..whole]).count() as u64;
        if written > whole {
            self.has_partial_line = !self.sink.discard_tail(written - whole);
        }
        self.counters.written.fetch_add(kept, Ordering::Relaxed);
        if let Some(error) = error {
            self.record_loss((lines.len() as u64).saturating_sub(kept), error);
        }
        if kept > 0 && self.options.sync != AuditSync::Never {
            self.unsynced.get_or_insert_with(Instant::now);
        }
        let is_safe = (self.options.sync != AuditSync::Always || self.sync()) && is_spooled;
        // The guards of the others are dropped: their lines are lost, or perhaps not on the disk.
        let safe = if is_safe { usize::try_from(kept).unwrap_or(usize::MAX) } else { 0 };
        let written = lines.into_iter().take(safe);
        written.flatten().for_each(LineGuard::written);
        batch.clear();
        // Gives the memory of a large line back.
        batch.shrink_to(BATCH_BYTES * 2);
        self.batch = batch;
    }

    /// Ends a partial line, so that the next one starts on a line of its own.
    fn end_partial_line(&mut self) -> io::Result<()> {
        if self.has_partial_line {
            let (written, error) = self.write_bytes(b"\n");
            self.has_partial_line = written == 0;
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Writes bytes until all are written or an error. Returns how many were written.
    fn write_bytes(&mut self, bytes: &[u8]) -> (usize, Option<io::Error>) {
        let mut written = 0;
        while written < bytes.len() {
            match self.sink.write(&bytes[written..]) {
                Ok(0) => return (written, Some(io::ErrorKind::WriteZero.into())),
                Ok(some) => written += some,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return (written, Some(error)),
            }
        }
        (written, None)
    }

    fn run_periodic_work(&mut self) {
        if self.file_checked.elapsed() >= FILE_CHECK_INTERVAL {
            self.check_file();
        }
        if let (AuditSync::Every(period), Some(since)) = (self.options.sync, self.unsynced)
            && since.elapsed() >= period
        {
            self.sync();
        }
        self.counters.report_losses(&mut self.error);
    }

    fn check_file(&mut self) {
        self.file_checked = Instant::now();
        if let Err(error) = self.sink.reopen_if_moved() {
            self.error = Some(error);
        }
    }

    /// Returns whether all lines are on the disk.
    fn sync(&mut self) -> bool {
        self.unsynced = None;
        let spooled = self.options.spool.as_ref().map_or(Ok(()), |spool| spool.sync());
        let synced = self.sink.sync().and(spooled);
        if let Err(error) = &synced {
            tracing::error!(%error, "cannot sync audit lines to the disk");
        }
        synced.is_ok()
    }

    fn record_loss(&mut self, lines: u64, error: io::Error) {
        self.counters.record_failed_write(lines);
        self.error = Some(error);
    }
}
