//! Typed occurrences: things that happen and are counted. Each knows its metric and its labels; refuses free
//! text in either.
#![expect(clippy::disallowed_macros, reason = "typed occurrences are what the ban on raw macros points to")]

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use metrics::{counter, gauge, histogram};

use super::names;
use crate::model::{Diagnostic, EventKind, Severity, Verdict};

/// An event got its outcome.
pub(crate) struct EventAnswered {
    /// Its kind.
    pub(crate) event: EventKind,
    /// The verdict.
    pub(crate) verdict: Verdict,
    /// How long the host waited.
    pub(crate) waited: Duration,
}

impl EventAnswered {
    pub(crate) fn emit(self) {
        let (event, verdict) = (self.event.as_str(), self.verdict.as_str());
        histogram!(names::EVENT_DURATION, "event" => event, "verdict" => verdict).record(self.waited);
    }
}

/// Where work was turned away.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ShedWhere {
    /// Before its run saw it.
    Admission,
    /// In its run's pending queue.
    Run,
    /// In a pool's queue.
    Pool,
}

/// Why work was turned away.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ShedReason {
    /// The queue was full.
    Full,
    /// It waited too long.
    Deadline,
    /// hookyard is shutting down.
    Shutdown,
}

/// Work was turned away.
pub(crate) struct Shed {
    /// Where.
    pub(crate) at: ShedWhere,
    /// Why.
    pub(crate) reason: ShedReason,
}

impl Shed {
    pub(crate) fn emit(self) {
        let at = match self.at {
            ShedWhere::Admission => "admission",
            ShedWhere::Run => "run",
            ShedWhere::Pool => "pool",
        };
        let reason = match self.reason {
            ShedReason::Full => "full",
            ShedReason::Deadline => "deadline",
            ShedReason::Shutdown => "shutdown",
        };
        counter!(names::SHED, "where" => at, "reason" => reason).increment(1);
    }
}

/// A reply came for an invocation that had already ended.
pub(crate) struct LateReply;

impl LateReply {
    pub(crate) fn emit() {
        counter!(names::LATE_REPLIES).increment(1);
    }
}

/// An actor died and another took its place.
pub(crate) struct ActorRestarted(pub(crate) &'static str);

impl ActorRestarted {
    pub(crate) fn emit(self) {
        counter!(names::ACTOR_RESTARTS, "actor" => self.0).increment(1);
    }
}

/// Something panicked and was caught.
pub(crate) struct Panicked(pub(crate) &'static str);

impl Panicked {
    pub(crate) fn emit(self) {
        counter!(names::PANICS, "actor" => self.0).increment(1);
    }
}

/// A process was started.
pub(crate) struct Spawned(pub(crate) Duration);

impl Spawned {
    pub(crate) fn emit(self) {
        histogram!(names::SPAWN_DURATION).record(self.0);
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProcessExit {
    /// With exit code 0.
    Ok,
    /// With exit code 2.
    Block,
    /// With another exit code.
    Nonzero,
    /// By a signal of its own.
    Signal,
    /// At its deadline, on being asked.
    TimeoutTerm,
    /// At its deadline, by force.
    TimeoutKill,
}

impl ProcessExit {
    pub(crate) fn emit(self) {
        let class = match self {
            Self::Ok => "ok",
            Self::Block => "block",
            Self::Nonzero => "nonzero",
            Self::Signal => "signal",
            Self::TimeoutTerm => "timeout_term",
            Self::TimeoutKill => "timeout_kill",
        };
        counter!(names::PROCESS_EXITS, "class" => class).increment(1);
    }
}

/// What a process left behind.
#[derive(Debug, Clone, Copy)]
pub(crate) enum ProcessLeak {
    /// A descendant held a pipe open.
    PipeHeld,
    /// A descendant in its group was still alive and was killed.
    SurvivorKilled,
}

impl ProcessLeak {
    pub(crate) fn emit(self) {
        let kind = match self {
            Self::PipeHeld => "pipe_held",
            Self::SurvivorKilled => "survivor_killed",
        };
        counter!(names::PROCESS_LEAKS, "kind" => kind).increment(1);
    }
}

/// A process is doing its work, for as long as this value lives.
pub(crate) struct ProcessRunning(metrics::Gauge);

impl ProcessRunning {
    /// Counts one more.
    pub(crate) fn enter() -> Self {
        let running = gauge!(names::PROCESSES, "state" => "running");
        running.increment(1.0);
        Self(running)
    }
}

impl Drop for ProcessRunning {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// So many processes are killed and not gone yet.
pub(crate) struct ProcessesTerminating(pub(crate) usize);

impl ProcessesTerminating {
    pub(crate) fn emit(self) {
        let count = u32::try_from(self.0).unwrap_or(u32::MAX);
        gauge!(names::PROCESSES, "state" => "terminating").set(count);
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
            counter!(names::CONFIG_ERRORS, "kind" => error.code).increment(1);
        }
        gauge!(names::CONFIG_LAST_RELOAD_SUCCESSFUL).set(if self.all_sound { 1.0 } else { 0.0 });
        if self.all_sound {
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            gauge!(names::CONFIG_LAST_RELOAD_SUCCESS).set(now.as_secs_f64());
        }
    }
}

/// A reader of the stream was too slow.
#[cfg(feature = "daemon")]
pub(crate) struct StreamDropped(pub(crate) u64);

#[cfg(feature = "daemon")]
impl StreamDropped {
    pub(crate) fn emit(self) {
        counter!(names::STREAM_DROPPED).increment(self.0);
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
    pub(crate) fn emit(self, lines: u64) {
        let reason = match self {
            Self::Queue => "queue",
            Self::Write => "write",
        };
        counter!(names::AUDIT_DROPPED, "reason" => reason).increment(lines);
    }
}

/// The daemon answered a request.
#[cfg(feature = "daemon")]
pub(crate) struct ApiRequest {
    /// The route as it is declared, with its parameters' names.
    pub(crate) route: &'static str,
    /// The hundreds of the status.
    pub(crate) class: u16,
}

#[cfg(feature = "daemon")]
impl ApiRequest {
    pub(crate) fn emit(self) {
        let class = match self.class {
            1 => "1xx",
            2 => "2xx",
            3 => "3xx",
            4 => "4xx",
            _ => "5xx",
        };
        counter!(names::API_REQUESTS, "route" => self.route, "status_class" => class).increment(1);
    }
}
