//! What a worker is started with, and the limits it has to keep.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    handler::{command::spawn::Program, runner::CommandLimits},
    model::WorkerBounds,
    telemetry::{ProcessMeters, WorkerMeters},
};

/// The time for the hello of a worker that is tried again: nobody waits for it.
pub(super) const RETRY_HELLO: Duration = Duration::from_secs(30);

/// Stands for a deadline that the clock cannot represent.
const DISTANT: Duration = Duration::from_hours(24 * 365);

/// The moment so long after another one.
pub(super) fn after(moment: Instant, time: Duration) -> Instant {
    moment.checked_add(time).unwrap_or(moment + DISTANT)
}

/// Timeouts of the protocol, which no hook file sets.
#[derive(Debug, Clone, Copy)]
pub(in crate::handler::command) struct WorkerTimeouts {
    /// From the start to the hello.
    pub(super) hello: Duration,
    /// Without events, until the worker is pinged.
    pub(super) ping: Duration,
    /// From a ping to its answer.
    pub(super) pong: Duration,
    /// From the end of its stdin to its exit.
    pub(super) grace: Duration,
    /// From its exit to its last line: a descendant may still hold the pipe.
    pub(super) drain: Duration,
}

impl Default for WorkerTimeouts {
    fn default() -> Self {
        Self {
            hello: Duration::from_secs(5),
            ping: Duration::from_secs(10),
            pong: Duration::from_secs(5),
            grace: Duration::from_secs(2),
            drain: Duration::from_millis(200),
        }
    }
}

/// Whether the standard error of a worker is logged. It is read in pieces, and a secret across two of them would not
/// be recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::handler::command) enum StderrLogging {
    Shown,
    /// The hook has secrets.
    Withheld,
}

/// What the workers of one hook are started with.
#[derive(Debug, Clone)]
pub(in crate::handler::command) struct WorkerConfig {
    /// The hook's name, for logs.
    pub(in crate::handler::command) hook: Arc<str>,
    pub(in crate::handler::command) stderr_logging: StderrLogging,
    pub(in crate::handler::command) program: Arc<Program>,
    /// The limits of the hook file.
    pub(in crate::handler::command) bounds: WorkerBounds,
    pub(in crate::handler::command) limits: CommandLimits,
    pub(in crate::handler::command) timeouts: WorkerTimeouts,
    pub(in crate::handler::command) meters: FleetMeters,
}

/// Where workers are counted.
#[derive(Debug, Clone)]
pub(in crate::handler::command) struct FleetMeters {
    pub(in crate::handler::command) workers: Arc<WorkerMeters>,
    pub(in crate::handler::command) processes: Arc<ProcessMeters>,
}
