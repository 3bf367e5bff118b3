//! How the workers of a fleet ended, and whether another one may be started.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use super::end::WorkerEnd;

/// How long no worker is started after one failed; doubled with each failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// A worker that ran so long worked, so that its failure starts the count anew.
const LONG_LIFE: Duration = Duration::from_secs(30);

/// The recent ends of a fleet's workers.
#[derive(Debug, Default)]
pub(super) struct FleetHealth {
    /// How many failed in a row.
    failed: u32,
    /// No worker is started before this moment.
    paused_until: Option<Instant>,
    /// Why no worker is started any more, until the next reload.
    given_up: Option<Arc<str>>,
    /// Whether the program is known to speak the protocol: then it is never run without it.
    speaks_protocol: bool,
    is_stopped: bool,
}

impl FleetHealth {
    pub(super) fn may_start(&self) -> bool {
        self.given_up.is_none() && self.paused_until.is_none_or(|until| until <= Instant::now())
    }

    pub(super) fn has_given_up(&self) -> bool {
        self.given_up.is_some()
    }

    /// Starts no worker any more: hookyard is stopping.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
        self.given_up = Some("hookyard is stopping".into());
    }

    pub(super) fn speaks_protocol(&self) -> bool {
        self.speaks_protocol
    }

    /// Takes down that the program speaks the protocol. A missing hello was slow then, so workers are started again.
    pub(super) fn note_protocol(&mut self) {
        self.speaks_protocol = true;
        if !self.is_stopped {
            self.given_up = None;
        }
    }

    /// The end of the pause before the next worker, if there is one.
    pub(super) fn pause_end(&self) -> Option<Instant> {
        self.paused_until.filter(|until| *until > Instant::now())
    }

    /// Why no worker is started, if so.
    pub(super) fn unavailable_reason(&self) -> Option<String> {
        if let Some(why) = &self.given_up {
            return Some(format!("no worker: {why}; until the next reload each event gets a process"));
        }
        self.pause_end()
            .is_some()
            .then(|| "no worker: one has failed, and there is a pause before the next".to_owned())
    }

    /// Records the end of a worker. If the program has never said hello, no other one is started; after a failure there
    /// is a pause.
    pub(super) fn record(&mut self, hook: &str, end: &WorkerEnd, age: Duration) {
        let why = match end {
            WorkerEnd::Retired => return,
            WorkerEnd::NoHello(why) if self.speaks_protocol => why.as_str(),
            WorkerEnd::NoHello(why) => {
                if self.given_up.replace(why.as_str().into()).is_none() {
                    tracing::warn!(hook, why, "no worker: until the next reload each event gets a process");
                }
                return;
            }
            WorkerEnd::Protocol(why) | WorkerEnd::Died(why) => why.as_str(),
            WorkerEnd::Late => "it was late with an event",
        };
        self.failed = if age >= LONG_LIFE { 1 } else { self.failed.saturating_add(1) };
        let pause = FIRST_PAUSE.saturating_mul(1 << (self.failed - 1).min(10)).min(MAX_PAUSE);
        self.paused_until = Some(Instant::now() + pause);
        tracing::warn!(hook, why, ?pause, "a worker ended; another may be started after the pause");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_pause_doubles_up_to_its_longest_and_starts_over_after_a_long_life() {
        let mut health = FleetHealth::default();
        let mut pause = |age| {
            health.record("hook", &WorkerEnd::Late, age);
            health.paused_until.unwrap() - Instant::now()
        };
        let pauses: Vec<_> = (0..9).map(|_| pause(Duration::ZERO).as_millis()).collect();
        assert_eq!(pauses, [100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
        assert_eq!(pause(LONG_LIFE), FIRST_PAUSE);
    }
}
