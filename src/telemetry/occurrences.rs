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

/// Audit lines are lost.
#[cfg(feature = "daemon")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AuditDropped {
    /// Too many waited already.
    Queue,
    /// They could not be written.
    Write,
}

#[cfg(feature = "daemon")]
impl AuditDropped {
    /// Has both be there before the first loss, so that its rate is seen.
    pub(crate) fn expect() {
        Self::Queue.emit(0);
        Self::Write.emit(0);
    }

    pub(crate) fn emit(self, lines: u64) {
        let reason = match self {
            Self::Queue => "queue",
            Self::Write => "write",
        };
        names::AUDIT_DROPPED.counter([reason]).increment(lines);
    }
}

/// Spans of traces are lost.
#[cfg(feature = "daemon")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpansDropped {
    /// Too many waited already.
    Queue,
    /// They could not be exported.
    Export,
}

#[cfg(feature = "daemon")]
impl SpansDropped {
    /// Has both be there before the first loss, also where nothing is traced, so that its rate is seen.
    pub(crate) fn expect() {
        Self::Queue.emit(0);
        Self::Export.emit(0);
    }

    pub(crate) fn emit(self, spans: usize) {
        let reason = match self {
            Self::Queue => "queue",
            Self::Export => "export",
        };
        names::TRACE_SPANS_DROPPED.counter([reason]).increment(spans as u64);
    }
}
