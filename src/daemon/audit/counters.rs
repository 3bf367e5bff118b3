//! What became of audit lines: how many wait, were written, and were lost.

use std::{
    io,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::telemetry::RecordsLost;

/// How often losses are logged.
const REPORT_INTERVAL: Duration = Duration::from_mins(1);

/// The bounds of the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct AuditQueueLimits {
    pub(super) lines: usize,
    pub(super) bytes: usize,
}

/// The counters of the audit.
#[derive(Debug, Default)]
pub(in crate::daemon) struct AuditCounters {
    /// The lines in the queue.
    pub(super) waiting: AtomicUsize,
    /// Their approximate memory, in bytes.
    pub(super) weight: AtomicUsize,
    pub(in crate::daemon) written: AtomicU64,
    pub(in crate::daemon) dropped_queue: AtomicU64,
    pub(in crate::daemon) dropped_write: AtomicU64,
    /// The hooks that failed, and whose events went on all the same.
    pub(in crate::daemon) failed_open: AtomicU64,
    loss_report: Mutex<LossReport>,
}

/// What the log says about losses so far.
#[derive(Debug, Default)]
struct LossReport {
    last: Option<Instant>,
    /// The losses that are logged.
    reported: u64,
}

impl AuditCounters {
    /// Takes a slot in the queue for a line of this weight. Returns whether there was one.
    pub(super) fn try_reserve(&self, weight: usize, limits: AuditQueueLimits) -> bool {
        let lines = self.waiting.fetch_add(1, Ordering::AcqRel);
        let bytes = self.weight.fetch_add(weight, Ordering::AcqRel);
        // An empty queue takes a line of any weight: a large one would never fit otherwise.
        let fits = lines < limits.lines && (lines == 0 || bytes.saturating_add(weight) <= limits.bytes);
        if !fits {
            self.release(weight);
        }
        fits
    }

    pub(super) fn release(&self, weight: usize) {
        self.waiting.fetch_sub(1, Ordering::AcqRel);
        self.weight.fetch_sub(weight, Ordering::AcqRel);
    }

    /// Counts a line that found no slot in the queue.
    pub(super) fn record_full_queue(&self) {
        self.dropped_queue.fetch_add(1, Ordering::Relaxed);
        RecordsLost::AuditQueue.emit(1);
        // The writer may hang for as long as it likes, so its losses are logged from here too.
        self.report_losses(&mut None);
    }

    /// Counts lines that could not be written.
    pub(super) fn record_failed_write(&self, lines: u64) {
        self.dropped_write.fetch_add(lines, Ordering::Relaxed);
        RecordsLost::AuditWrite.emit(lines);
    }

    /// Logs new losses, once in an interval. `error` is the writer's last one, taken when it is logged.
    pub(super) fn report_losses(&self, error: &mut Option<io::Error>) {
        // Whoever holds the lock is logging them.
        let Some(mut report) = self.loss_report.try_lock() else { return };
        if report.last.is_none_or(|last| last.elapsed() >= REPORT_INTERVAL) {
            self.log(&mut report, error);
        }
    }

    /// Logs new losses at once.
    pub(super) fn report_final_losses(&self, error: &mut Option<io::Error>) {
        self.log(&mut self.loss_report.lock(), error);
    }

    fn log(&self, report: &mut LossReport, error: &mut Option<io::Error>) {
        let full = self.dropped_queue.load(Ordering::Relaxed);
        let failed = self.dropped_write.load(Ordering::Relaxed);
        if full + failed > report.reported {
            *report = LossReport { last: Some(Instant::now()), reported: full + failed };
            let error = error.take().map(|error| error.to_string());
            tracing::error!(full, failed, error, "audit lines are lost; the counts are since the start");
        }
    }
}
