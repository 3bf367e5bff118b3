//! The state of one step of a course. Reads no clock: the present is an argument.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Conclusion, Ended, HookReport};

/// The state of one step of the plan.
#[derive(Debug)]
pub(super) enum StepState {
    /// The stage of the step has not begun, or was skipped.
    NotRun,
    /// The hook runs; the moment it was submitted to its pool is unknown for hooks that run inside the actor.
    Running(Option<Instant>),
    /// The invocation has ended, and other steps of the stage have not.
    Concluded(Conclusion),
    /// The conclusion has taken effect on the event.
    Reported(HookReport),
}

impl StepState {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Running => Running, with the moment of its submission.
    pub(super) fn submitted(&mut self, at: Instant) {
        if let Self::Running(since) = self {
            *since = Some(at);
        }
    }

    /// Running => Concluded as cancelled; other states stay as they are.
    pub(super) fn cancel(&mut self, why: &str, now: Instant) {
        if let Self::Running(since) = self {
            let duration = since.map(|since| now.saturating_duration_since(since)).unwrap_or_default();
            *self = Self::Concluded(Conclusion { duration, ..Conclusion::not_run(Ended::Cancelled, why) });
        }
    }

    /// How long the hook ran; zero while it is unknown.
    pub(super) fn duration(&self) -> Duration {
        match self {
            Self::NotRun | Self::Running(_) => Duration::ZERO,
            Self::Concluded(conclusion) => conclusion.duration,
            Self::Reported(report) => report.duration,
        }
    }
}
