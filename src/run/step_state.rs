//! One step of a course: whether it ran, and what came of it. Refuses to say what that means for the event.

use std::time::Duration;

use tokio::time::Instant;

use crate::model::{Conclusion, Ended, HookReport};

/// Where one step of the plan stands.
#[derive(Debug)]
pub(super) enum StepState {
    NotRun,
    /// Its hook is under way, in a pool since then unless it runs here and now.
    InFlightEvent(Option<Instant>),
    Concluded(Conclusion),
    Reported(HookReport),
}

impl StepState {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::InFlightEvent(_))
    }

    /// Its hook has gone to a pool.
    pub(super) fn submitted(&mut self, at: Instant) {
        if let Self::InFlightEvent(since) = self {
            *since = Some(at);
        }
    }

    /// Ends it as cancelled, if it is under way.
    pub(super) fn cancel(&mut self, why: &str) {
        if let Self::InFlightEvent(since) = self {
            let duration = since.map(|since| since.elapsed()).unwrap_or_default();
            *self = Self::Concluded(Conclusion { duration, ..Conclusion::not_run(Ended::Cancelled, why) });
        }
    }

    /// How long its hook ran; nothing while that is not known.
    pub(super) fn duration(&self) -> Duration {
        match self {
            Self::NotRun | Self::InFlightEvent(_) => Duration::ZERO,
            Self::Concluded(conclusion) => conclusion.duration,
            Self::Reported(report) => report.duration,
        }
    }
}
