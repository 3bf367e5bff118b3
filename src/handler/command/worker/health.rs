//! Why workers ended, what that means for their open events, and whether another one may be started.

use std::{sync::Arc, time::Duration};

use tokio::time::Instant;

use crate::{
    model::{Ended, Failure},
    telemetry::Degradation,
};

/// How long no worker is started after one failed; doubled with each failure in a row.
const FIRST_PAUSE: Duration = Duration::from_millis(100);

/// The longest pause.
const MAX_PAUSE: Duration = Duration::from_secs(10);

/// How long no worker is tried again after the first one that said no hello; doubled with each further one.
const FIRST_RETRY: Duration = Duration::from_secs(5);

/// The longest time until a worker is tried again.
const MAX_RETRY: Duration = Duration::from_mins(5);

/// So many failures in a row are no accident.
const FAILING: u32 = 3;

/// A worker that ran so long worked, so that its failure restarts the count.
const LONG_LIFE: Duration = Duration::from_secs(30);

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

    /// Whether a worker that serves events in their order has begun only the first open one: it kept to the protocol to
    /// the end.
    pub(super) fn proves_order(&self) -> bool {
        matches!(self, Self::Died(_) | Self::Late)
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

/// The recent ends of a fleet's workers.
#[derive(Debug, Default)]
pub(super) struct FleetHealth {
    /// How many failed in a row.
    failed: u32,
    /// When the last one failed, and how.
    last_failure: Option<(Instant, Arc<str>)>,
    /// No worker is started before this moment.
    paused_until: Option<Instant>,
    /// Set while each event gets a process, since the program has never said hello.
    no_hello: Option<NoHello>,
    /// Whether the program is known to speak the protocol: then it is never run without it.
    speaks_protocol: bool,
    is_stopped: bool,
}

/// A program that was started as a worker and said no hello.
#[derive(Debug)]
struct NoHello {
    why: Arc<str>,
    /// How often it was tried.
    tries: u32,
    /// No worker is started before this moment.
    retry_at: Instant,
}

impl FleetHealth {
    pub(super) fn may_start(&self) -> bool {
        let is_paused = self.paused_until.is_some_and(|until| until > Instant::now());
        !self.is_stopped && self.no_hello.is_none() && !is_paused
    }

    /// Whether events get processes of their own, because no worker said hello.
    pub(super) fn has_no_hello(&self) -> bool {
        self.no_hello.is_some()
    }

    /// Whether it is time to try a worker again, although none said hello so far.
    pub(super) fn may_retry(&self) -> bool {
        !self.is_stopped && self.no_hello.as_ref().is_some_and(|none| none.retry_at <= Instant::now())
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Starts no worker any more: hookyard is stopping.
    pub(super) fn stop(&mut self) {
        self.is_stopped = true;
    }

    /// Why the workers do not serve, if they do not, and what the last one ended with.
    pub(super) fn degradation(&self) -> Option<(Degradation, Arc<str>)> {
        if let Some(none) = &self.no_hello {
            return Some((Degradation::NoHello, Arc::clone(&none.why)));
        }
        let (at, why) = self.last_failure.as_ref()?;
        let is_failing = self.failed >= FAILING && at.elapsed() < LONG_LIFE;
        is_failing.then(|| (Degradation::Failing, Arc::clone(why)))
    }

    pub(super) fn speaks_protocol(&self) -> bool {
        self.speaks_protocol
    }

    /// Takes down that the program speaks the protocol. A missing hello was slow then, so workers are started again.
    pub(super) fn note_protocol(&mut self, hook: &str) {
        self.speaks_protocol = true;
        if self.no_hello.take().is_some() {
            tracing::info!(hook, "the program speaks the worker protocol after all; workers serve again");
        }
    }

    /// The end of the pause before the next worker, if there is one.
    pub(super) fn pause_end(&self) -> Option<Instant> {
        self.paused_until.filter(|until| *until > Instant::now())
    }

    /// Why no worker is started, if so.
    pub(super) fn unavailable_reason(&self) -> Option<String> {
        if self.is_stopped {
            return Some("no worker: hookyard is stopping".to_owned());
        }
        if let Some(NoHello { why, .. }) = &self.no_hello {
            return Some(format!(
                "no worker: {why}; each event gets a process, and a worker is tried again later"
            ));
        }
        self.pause_end()
            .is_some()
            .then(|| "no worker: one has failed, and there is a pause before the next".to_owned())
    }

    /// Records the end of a worker. If the program has never said hello, it is tried again after a longer time; after a
    /// failure there is a pause.
    pub(super) fn record(&mut self, hook: &str, end: &WorkerEnd, age: Duration) {
        let why = match end {
            WorkerEnd::Retired => return,
            WorkerEnd::NoHello(why) if self.speaks_protocol => why.as_str(),
            WorkerEnd::NoHello(why) => return self.record_no_hello(hook, why),
            WorkerEnd::Protocol(why) | WorkerEnd::Died(why) => why.as_str(),
            WorkerEnd::Late => "it was late with an event",
        };
        self.last_failure = Some((Instant::now(), why.into()));
        self.failed = if age >= LONG_LIFE { 1 } else { self.failed.saturating_add(1) };
        let pause = FIRST_PAUSE.saturating_mul(1 << (self.failed - 1).min(10)).min(MAX_PAUSE);
        self.paused_until = Some(Instant::now() + pause);
        let pause_ms = milliseconds(pause);
        tracing::warn!(hook, why, pause_ms, "a worker ended; another may be started after the pause");
    }

    fn record_no_hello(&mut self, hook: &str, why: &str) {
        let tries = self.no_hello.as_ref().map_or(0, |none| none.tries).saturating_add(1);
        let retry = FIRST_RETRY.saturating_mul(1 << (tries - 1).min(10)).min(MAX_RETRY);
        let retry_at = Instant::now() + retry;
        self.no_hello = Some(NoHello { why: why.into(), tries, retry_at });
        if tries == 1 {
            tracing::warn!(
                hook,
                why,
                "no worker: each event gets a process, and a worker is tried again later"
            );
        } else {
            tracing::debug!(hook, why, tries, retry_ms = milliseconds(retry), "still no worker");
        }
    }
}

/// For the log, whose fields are numbers and plain texts.
fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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

    #[tokio::test(start_paused = true)]
    async fn a_program_without_a_hello_is_tried_again_ever_more_rarely_until_it_says_hello() {
        let mut health = FleetHealth::default();
        let mut times = Vec::new();
        for _ in 0..8 {
            health.record("hook", &WorkerEnd::NoHello("it is slow".into()), Duration::ZERO);
            assert!(!health.may_start() && !health.may_retry());
            let left = health.no_hello.as_ref().unwrap().retry_at - Instant::now();
            tokio::time::advance(left).await;
            assert!(health.may_retry());
            times.push(left.as_secs());
        }
        assert_eq!(times, [5, 10, 20, 40, 80, 160, 300, 300]);
        assert!(matches!(health.degradation(), Some((Degradation::NoHello, why)) if &*why == "it is slow"));
        health.note_protocol("hook");
        assert!(health.may_start() && !health.may_retry() && health.degradation().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn workers_that_end_again_and_again_are_degraded_until_none_failed_for_a_while() {
        let mut health = FleetHealth::default();
        for failures in 1..=FAILING {
            assert!(health.degradation().is_none(), "after {failures}");
            health.record("hook", &WorkerEnd::Died("it exited".into()), Duration::ZERO);
        }
        assert!(matches!(health.degradation(), Some((Degradation::Failing, why)) if &*why == "it exited"));
        tokio::time::advance(LONG_LIFE).await;
        assert!(health.degradation().is_none());
    }
}
