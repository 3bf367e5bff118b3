//! The one timer of a worker's event loop. It is moved only to an earlier moment, so that events that end in time cost it
//! nothing; whoever it rings for finds out what is due, and sets it again.

use std::{pin::Pin, time::Duration};

use tokio::time::{Instant, Sleep, sleep_until};

use super::limits::after;

/// Where it stands if nothing is to come.
const FAR: Duration = Duration::from_hours(24);

#[derive(Debug)]
pub(super) struct Alarm(Pin<Box<Sleep>>);

impl Alarm {
    pub(super) fn at(moment: Instant) -> Self {
        Self(Box::pin(sleep_until(moment)))
    }

    /// Waits until it rings. It rings until it is set again.
    pub(super) async fn rings(&mut self) {
        self.0.as_mut().await;
    }

    pub(super) fn set(&mut self, moment: Option<Instant>, now: Instant) {
        self.0.as_mut().reset(moment.unwrap_or_else(|| after(now, FAR)));
    }

    /// Makes it ring at this moment at the latest.
    pub(super) fn not_after(&mut self, moment: Instant) {
        if moment < self.0.deadline() {
            self.0.as_mut().reset(moment);
        }
    }
}
