//! One step of a course: whether it ran, and what came of it. Refuses to say what that means for the event.

use std::time::Duration;

use crate::model::{Conclusion, HookReport};

/// Where one step of the plan stands.
#[derive(Debug)]
pub(super) enum Slot {
    NotRun,
    Running,
    Concluded(Conclusion),
    Reported(HookReport),
}

impl Slot {
    /// How long its hook ran; nothing while that is not known.
    pub(super) fn duration(&self) -> Duration {
        match self {
            Self::NotRun | Self::Running => Duration::ZERO,
            Self::Concluded(conclusion) => conclusion.duration,
            Self::Reported(report) => report.duration,
        }
    }
}
