//! Why a worker ended, and what that means for its open events.

use std::time::Duration;

use crate::model::{Ended, Failure};

/// How much of an error message of a worker is repeated, in bytes.
const MAX_ERROR: usize = 512;

/// Why a worker ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WorkerEnd {
    /// It did not say hello: the program is no worker.
    NoHello(String),
    /// It violated the protocol.
    Protocol(String),
    /// It exited, or does not answer pings.
    Died(String),
    /// It missed the deadline of an event.
    Late,
    /// It reached a limit, or is not needed any more.
    Retired,
}

/// A worker that has ended.
#[derive(Debug, Clone)]
pub(super) struct EndedWorker {
    pub(super) end: WorkerEnd,
    pub(super) age: Duration,
    pub(super) said_hello: bool,
}

impl WorkerEnd {
    /// Whether it worked once and then failed, so that the next one is started after a pause.
    pub(super) fn is_failure(&self) -> bool {
        matches!(self, Self::Protocol(_) | Self::Died(_) | Self::Late)
    }

    /// The failure of an event that was open, which may have been overdue itself.
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

/// The failure for an error message of the worker.
pub(super) fn reported(error: &str) -> Failure {
    let end = error.floor_char_boundary(MAX_ERROR);
    Failure::new(Ended::Failed, format!("the worker reports: {}", &error[..end]))
}
