//! Things that happen too rarely for a resolved handle: each looks up its metric when it is emitted.

use std::time::{SystemTime, UNIX_EPOCH};

use super::names;
use crate::model::{Diagnostic, Severity};

/// A reply came for an invocation that had already ended.
pub(crate) struct LateReply;

impl LateReply {
    pub(crate) fn emit() {
        names::LATE_REPLIES.counter([]).increment(1);
    }
}

/// An actor died and another took its place, or will.
pub(crate) struct ActorRestarted(pub(crate) &'static str);

impl ActorRestarted {
    pub(crate) fn emit(self) {
        names::ACTOR_RESTARTS.counter([self.0]).increment(1);
    }
}

/// Something panicked and was caught.
pub(crate) struct Panicked(pub(crate) &'static str);

impl Panicked {
    pub(crate) fn emit(self) {
        names::PANICS.counter([self.0]).increment(1);
    }
}

/// The files of a workspace were read.
pub(crate) struct ConfigLoaded<'a> {
    /// What is wrong with them.
    pub(crate) diagnostics: &'a [Diagnostic],
    /// Whether nothing is wrong with any workspace.
    pub(crate) all_sound: bool,
}

impl ConfigLoaded<'_> {
    pub(crate) fn emit(self) {
        for error in self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error) {
            names::CONFIG_ERRORS.counter([error.code]).increment(1);
        }
        names::CONFIG_LAST_RELOAD_SUCCESSFUL.gauge([]).set(if self.all_sound { 1.0 } else { 0.0 });
        let when = names::CONFIG_LAST_RELOAD_SUCCESS.gauge([]);
        if self.all_sound {
            when.set(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
        }
    }
}

/// Lines that the server of `ship.url` has taken.
#[cfg(feature = "daemon")]
pub(crate) struct LinesShipped(pub(crate) u64);

#[cfg(feature = "daemon")]
impl LinesShipped {
    pub(crate) fn emit(self) {
        names::SHIPPED.counter([]).increment(self.0);
    }
}

/// Lines that wait until the server of `ship.url` takes them.
#[cfg(feature = "daemon")]
pub(crate) struct LinesWaiting {
    pub(crate) lines: u64,
    pub(crate) bytes: u64,
}

#[cfg(feature = "daemon")]
impl LinesWaiting {
    #[expect(clippy::cast_precision_loss, reason = "a gauge is a float")]
    pub(crate) fn set(&self) {
        names::SHIP_WAITING_LINES.gauge([]).set(self.lines as f64);
        names::SHIP_WAITING_BYTES.gauge([]).set(self.bytes as f64);
    }
}

/// Records that are lost: audit lines, lines for shipping, or spans of traces.
#[cfg(feature = "daemon")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RecordsLost {
    /// Audit lines that found the queue full.
    AuditQueue,
    /// Audit lines that could not be written.
    AuditWrite,
    /// Spans that found the queue full.
    SpanQueue,
    /// Spans that could not be exported.
    SpanExport,
    /// Lines for shipping that had to make room.
    ShipFull,
    /// Lines for shipping that could not be written or read.
    ShipWrite,
    /// Lines that the server takes not even alone.
    ShipRefused,
}

#[cfg(feature = "daemon")]
impl RecordsLost {
    const ALL: [Self; 7] = [
        Self::AuditQueue,
        Self::AuditWrite,
        Self::SpanQueue,
        Self::SpanExport,
        Self::ShipFull,
        Self::ShipWrite,
        Self::ShipRefused,
    ];

    /// Initialises all series at zero, so that the rate of the first loss is seen.
    pub(crate) fn expect_all() {
        for loss in Self::ALL {
            loss.emit(0);
        }
        LinesShipped(0).emit();
    }

    pub(crate) fn emit(self, records: u64) {
        let counter = match self {
            Self::AuditQueue => names::AUDIT_DROPPED.counter(["queue"]),
            Self::AuditWrite => names::AUDIT_DROPPED.counter(["write"]),
            Self::SpanQueue => names::TRACE_SPANS_DROPPED.counter(["queue"]),
            Self::SpanExport => names::TRACE_SPANS_DROPPED.counter(["export"]),
            Self::ShipFull => names::SHIP_DROPPED.counter(["full"]),
            Self::ShipWrite => names::SHIP_DROPPED.counter(["write"]),
            Self::ShipRefused => names::SHIP_DROPPED.counter(["refused"]),
        };
        counter.increment(records);
    }
}

/// A write of the state of runs failed, or took too long for a halt to wait for it, or all of it was gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreFailure {
    /// There is no space on the disk.
    #[cfg(feature = "store")]
    Full,
    /// Anything else.
    #[cfg(feature = "store")]
    Write,
    /// A halt was answered before it was on disk.
    Slow,
    /// The file of a former process was gone at the start.
    #[cfg(feature = "store")]
    Gone,
}

impl StoreFailure {
    pub(crate) fn emit(self) {
        self.add(1);
    }

    fn add(self, count: u64) {
        let reason = match self {
            #[cfg(feature = "store")]
            Self::Full => "full",
            #[cfg(feature = "store")]
            Self::Write => "write",
            Self::Slow => "slow",
            #[cfg(feature = "store")]
            Self::Gone => "gone",
        };
        names::STORE_ERRORS.counter([reason]).increment(count);
    }
}

#[cfg(feature = "store")]
impl StoreFailure {
    pub(crate) fn of(is_full: bool) -> Self {
        if is_full { Self::Full } else { Self::Write }
    }

    /// Creates all series at zero, so that the rate of the first failure is seen.
    pub(crate) fn expect_all() {
        for failure in [Self::Full, Self::Write, Self::Slow, Self::Gone] {
            failure.add(0);
        }
    }
}

/// A halt was written into the store of the cluster, or could not be.
#[cfg(feature = "cluster")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct HaltPut {
    pub(crate) is_stored: bool,
    pub(crate) took: std::time::Duration,
}

#[cfg(feature = "cluster")]
impl HaltPut {
    /// Creates the series at zero, so that the rate of the first is seen.
    pub(crate) fn expect() {
        for result in ["stored", "failed"] {
            names::CLUSTER_PUTS.counter([result]).increment(0);
        }
    }

    pub(crate) fn emit(self) {
        let result = if self.is_stored { "stored" } else { "failed" };
        names::CLUSTER_PUTS.counter([result]).increment(1);
        names::CLUSTER_PUT_DURATION.histogram([]).record(self.took);
    }
}

/// The metric of how long a write of the state of runs takes.
#[cfg(feature = "store")]
pub(crate) struct StoreWriteMeter(metrics::Histogram);

#[cfg(feature = "store")]
impl StoreWriteMeter {
    pub(crate) fn resolve() -> Self {
        Self(names::STORE_WRITE_DURATION.histogram([]))
    }

    pub(crate) fn wrote(&self, took: std::time::Duration) {
        self.0.record(took);
    }
}

#[cfg(feature = "store")]
impl std::fmt::Debug for StoreWriteMeter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StoreWriteMeter").finish_non_exhaustive()
    }
}

/// A delivery of an event in the outbox has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DeliveryEnded {
    /// All its hooks have ended.
    Delivered,
    /// Hooks failed.
    Failed,
    /// Hooks did not run, because nobody has agreed to them as they are.
    Untrusted,
    /// No hook wants it any more.
    Unwanted,
    /// The actor of its run died.
    Interrupted,
    /// Its run was cancelled.
    Cancelled,
    /// It repeats another event.
    Repeated,
    /// It was not accepted.
    Refused,
}

impl DeliveryEnded {
    /// Creates all series at zero.
    pub(crate) fn expect_all() {
        let all = [
            Self::Delivered,
            Self::Failed,
            Self::Untrusted,
            Self::Unwanted,
            Self::Interrupted,
            Self::Cancelled,
            Self::Repeated,
            Self::Refused,
        ];
        for ended in all {
            ended.add(0);
        }
    }

    pub(crate) fn emit(self) {
        self.add(1);
    }

    fn add(self, count: u64) {
        let result = match self {
            Self::Delivered => "delivered",
            Self::Failed => "failed",
            Self::Untrusted => "untrusted",
            Self::Unwanted => "unwanted",
            Self::Interrupted => "interrupted",
            Self::Cancelled => "cancelled",
            Self::Repeated => "repeated",
            Self::Refused => "refused",
        };
        names::OUTBOX_DELIVERIES.counter([result]).increment(count);
    }
}

/// An event became a dead letter, for this reason.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LetterDied(pub(crate) &'static str);

impl LetterDied {
    /// Creates all series at zero, so that the rate of the first one is seen.
    pub(crate) fn expect_all() {
        for reason in ["tries", "no_workspace", "workspace_gone", "untrusted", "interrupted", "unwanted"] {
            names::DEAD_LETTERS.counter([reason]).increment(0);
        }
    }

    pub(crate) fn emit(self) {
        names::DEAD_LETTERS.counter([self.0]).increment(1);
    }
}

/// So many dead letters were dropped.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LettersDropped(pub(crate) usize);

impl LettersDropped {
    pub(crate) fn emit(self) {
        names::DEAD_LETTERS_DROPPED.counter([]).increment(u64::try_from(self.0).unwrap_or(u64::MAX));
    }
}

/// A request to the daemon was denied.
#[cfg(feature = "daemon")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct ApiDenied {
    pub(crate) listener: &'static str,
    pub(crate) code: &'static str,
}

#[cfg(feature = "daemon")]
impl ApiDenied {
    /// Creates the most likely series before the first denial, so that its rate is seen.
    pub(crate) fn expect() {
        for (listener, code) in [("event_socket", "needs_control"), ("tcp", "unauthorized")] {
            names::API_DENIED.counter([listener, code]).increment(0);
        }
    }

    pub(crate) fn emit(self) {
        names::API_DENIED.counter([self.listener, self.code]).increment(1);
    }
}
