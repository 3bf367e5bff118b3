//! On what terms a worker serves, and how its service ends. Refuses to enforce them, which is its life's part.

use std::{sync::Arc, time::Duration};

use crate::{
    handler::command::{CommandLimits, spawn::Program},
    model::{Ended, Failure, WorkerBounds},
    telemetry::{ProcessMeters, WorkerMeters},
};

/// The most events that a worker gets at once if it says that it can take many.
pub(super) const MOST_OPEN: usize = 1024;

/// How long things may take that no hook file says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// From the start to the hello.
    pub(super) hello: Duration,
    /// Without events, until the worker is asked whether it is there.
    pub(super) ping: Duration,
    /// From that question to its answer.
    pub(super) pong: Duration,
    /// From the end of its stdin to its exit.
    pub(super) grace: Duration,
    /// From its exit to its last line.
    pub(super) drain: Duration,
}

impl Default for Patience {
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

/// Whether the log shows what a worker writes to its standard error, which comes in pieces: a secret that is in two of
/// them is not recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::handler::command) enum Errors {
    Shown,
    /// Its hook has secrets.
    Withheld,
}

/// What a worker is started with.
#[derive(Debug, Clone)]
pub(super) struct Terms {
    /// The hook's name, for logs.
    pub(super) hook: Arc<str>,
    pub(super) errors: Errors,
    pub(super) program: Arc<Program>,
    pub(super) bounds: WorkerBounds,
    pub(super) limits: CommandLimits,
    pub(super) patience: Patience,
    pub(super) meters: FleetMeters,
}

/// Where workers are counted.
#[derive(Debug, Clone)]
pub(in crate::handler::command) struct FleetMeters {
    pub(in crate::handler::command) workers: Arc<WorkerMeters>,
    pub(in crate::handler::command) processes: Arc<ProcessMeters>,
}

/// Why a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// It did not say hello, so it is no worker.
    NoHello(String),
    /// It wrote what no worker may write.
    Protocol(String),
    /// It exited, or no longer answers.
    Died(String),
    /// It was late with an event.
    Late,
    /// It has done its share.
    Retired,
}

impl Ending {
    /// Whether it worked once and failed, so that another is started after a pause.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Protocol(_) | Self::Died(_) | Self::Late)
    }

    /// What it means for an event that was open, and itself overdue or not.
    pub(super) fn failure(&self, overdue: bool) -> Failure {
        match self {
            Self::Late if overdue => {
                Failure::new(Ended::TimedOut, "no answer in time; the worker was killed")
            }
            Self::Late => Failure::new(Ended::Failed, "the worker was killed, late with another event"),
            Self::Protocol(why) => {
                Failure::new(Ended::InvalidOutput, format!("the worker broke the protocol: {why}"))
            }
            Self::Died(why) | Self::NoHello(why) => {
                Failure::new(Ended::Failed, format!("the worker ended: {why}"))
            }
            Self::Retired => Failure::new(Ended::Failed, "the worker was stopped"),
        }
    }
}
