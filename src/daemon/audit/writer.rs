//! The thread that writes audit lines. Owns when they are written and synced, and what is said of those that could not
//! be; refuses to stop because of one.

use std::{
    io,
    sync::{
        Arc,
        atomic::Ordering,
        mpsc::{Receiver, RecvTimeoutError},
    },
    time::Duration,
};

use tokio::time::Instant;

use super::{
    AuditCounters, WriterCommand,
    line::{self, AuditEntry},
    sink::AuditSink,
};
use crate::config::{AuditPatches, AuditSync};

/// How much is written at once.
const BATCH_BYTES: usize = 64 << 10;

/// How often the writer looks around when there is nothing to do, and whether its file is still there.
const FILE_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// How lines are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct WriterOptions {
    pub(super) sync: AuditSync,
    pub(super) patches: AuditPatches,
}

/// What the thread knows.
#[derive(Debug)]
pub(super) struct Writer {
    sink: Box<dyn AuditSink>,
    options: WriterOptions,
    counters: Arc<AuditCounters>,
    /// Whole lines that are not written yet.
    batch: Vec<u8>,
    /// How many lines that are.
    lines: u64,
    /// Whether the outlet ends in the middle of a line.
    has_partial_line: bool,
    /// When lines that may not be on the disk were written first.
    unsynced: Option<Instant>,
    looked: Instant,
    /// What went wrong last.
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
            lines: 0,
            has_partial_line: false,
            unsynced: None,
            looked: Instant::now(),
            error: None,
        }
    }

    /// Writes until nobody can send anything any more, and all of it is written.
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
            WriterCommand::Write(entry, weight) => {
                self.take(&entry);
                drop(entry);
                self.counters.release(weight);
                if self.options.sync == AuditSync::Always {
                    self.write();
                }
            }
            WriterCommand::CheckFile => {
                self.write();
                self.look();
            }
        }
    }

    /// Takes in a line. One that has no room beside those before it comes after them, maybe in another file.
    fn take(&mut self, entry: &AuditEntry) {
        let start = self.batch.len();
        if let Err(error) = line::write(entry, self.options.patches, &mut self.batch) {
            return self.record_loss(1, error.into());
        }
        if start > 0 && self.batch.len() as u64 > self.sink.remaining_capacity() {
            let line = self.batch.split_off(start);
            self.write();
            self.batch = line;
        }
        self.lines += 1;
    }

    /// Writes the lines that are there; those that cannot be written are lost.
    fn write(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let (mut batch, lines) = (std::mem::take(&mut self.batch), std::mem::take(&mut self.lines));
        let (written, error) = match self.sink.reserve(batch.len()).and_then(|()| self.end_partial_line()) {
            Ok(()) => self.written(&batch),
            Err(error) => (0, Some(error)),
        };
        let whole = memchr::memrchr(b'\n', &batch[..written]).map_or(0, |end| end + 1);
        let kept = memchr::memchr_iter(b'\n', &batch[..whole]).count() as u64;
        if written > whole {
            self.has_partial_line = !self.sink.discard_tail(written - whole);
        }
        self.counters.written.fetch_add(kept, Ordering::Relaxed);
        if let Some(error) = error {
            self.record_loss(lines.saturating_sub(kept), error);
        }
        if kept > 0 && self.options.sync != AuditSync::Never {
            self.unsynced.get_or_insert_with(Instant::now);
        }
        if self.options.sync == AuditSync::Always {
            self.sync();
        }
        batch.clear();
        // A large line keeps no memory once it is written.
        batch.shrink_to(BATCH_BYTES * 2);
        self.batch = batch;
    }

    /// Ends the line that was torn, so that the next begins at its beginning.
    fn end_partial_line(&mut self) -> io::Result<()> {
        if self.has_partial_line {
            let (written, error) = self.written(b"\n");
            self.has_partial_line = written == 0;
            error.map_or(Ok(()), Err)?;
        }
        Ok(())
    }

    /// Writes bytes, as many as can be, and tells how many that were.
    fn written(&mut self, bytes: &[u8]) -> (usize, Option<io::Error>) {
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
        if self.looked.elapsed() >= FILE_CHECK_INTERVAL {
            self.look();
        }
        if let (AuditSync::Every(period), Some(since)) = (self.options.sync, self.unsynced)
            && since.elapsed() >= period
        {
            self.sync();
        }
        self.counters.report_losses(&mut self.error);
    }

    fn look(&mut self) {
        self.looked = Instant::now();
        if let Err(error) = self.sink.reopen_if_moved() {
            self.error = Some(error);
        }
    }

    fn sync(&mut self) {
        self.unsynced = None;
        if let Err(error) = self.sink.sync() {
            tracing::error!(%error, "audit lines could not be synced to the disk");
        }
    }

    fn record_loss(&mut self, lines: u64, error: io::Error) {
        self.counters.lost(lines);
        self.error = Some(error);
    }
}
