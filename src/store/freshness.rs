//! Whether what this daemon knows of the halts of its cluster is up to date.

use std::{
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use tokio::{sync::Notify, time::timeout};

use crate::platform::clock_since_boot;

/// After how long without a word of itself this process counts as one that was stopped.
const STOPPED_AFTER: Duration = Duration::from_millis(1500);

/// What becomes of events while other daemons may have halted their runs without this one knowing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WhenUnsure {
    /// They are answered.
    Answer,
    /// They are refused, so that their hosts ask another daemon.
    Refuse,
}

/// The cluster's store has not been heard of for so long that other daemons may have halted the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Unsure;

/// Whether what is known of the halts of other daemons is up to date. Times are milliseconds of a clock that goes on while
/// the process is stopped and the machine sleeps.
#[derive(Debug)]
pub(crate) struct Freshness {
    stale_after: Duration,
    when_unsure: WhenUnsure,
    /// Until when it is.
    until: AtomicU64,
    /// When this process was at work last, as it says itself from time to time.
    awake: AtomicU64,
    /// Until when events wait: the process was stopped, and is about to hear of the store.
    waits_until: AtomicU64,
    heard: Notify,
}

impl Freshness {
    pub(crate) fn new(stale_after: Duration, when_unsure: WhenUnsure) -> Self {
        Self {
            stale_after,
            when_unsure,
            until: AtomicU64::new(0),
            awake: AtomicU64::new(0),
            waits_until: AtomicU64::new(0),
            heard: Notify::new(),
        }
    }

    /// Costs a look at the clock.
    pub(crate) fn is_fresh(&self) -> bool {
        now() < self.until.load(Ordering::Acquire)
    }

    /// Everything is known that was in the store at this time.
    pub(crate) fn heard(&self, at: u64) {
        self.until.fetch_max(at.saturating_add(millis(self.stale_after)), Ordering::AcqRel);
        self.heard.notify_waiters();
    }

    /// This process is at work. To be called more often than [`STOPPED_AFTER`].
    pub(crate) fn is_awake(&self) {
        self.notice_stop();
        self.awake.store(now(), Ordering::Release);
    }

    /// How long ago the store was heard of; none if it never was.
    pub(crate) fn age(&self) -> Option<Duration> {
        let until = self.until.load(Ordering::Acquire);
        let heard = until.checked_sub(millis(self.stale_after)).filter(|_| until > 0)?;
        Some(Duration::from_millis(now().saturating_sub(heard)))
    }

    /// Waits until what is known is up to date, if this process was stopped and is about to hear what it has missed. It does not
    /// wait for a store that does not answer.
    ///
    /// Returns an error if it is not up to date, and events are refused then.
    pub(crate) async fn settled(&self) -> Result<(), Unsure> {
        self.notice_stop();
        loop {
            let mut heard = pin!(self.heard.notified());
            heard.as_mut().enable();
            if self.is_fresh() {
                return Ok(());
            }
            let left = self.waits_until.load(Ordering::Acquire).saturating_sub(now());
            if left == 0 || timeout(Duration::from_millis(left), heard).await.is_err() {
                return match self.when_unsure {
                    WhenUnsure::Answer => Ok(()),
                    WhenUnsure::Refuse => Err(Unsure),
                };
            }
        }
    }

    fn notice_stop(&self) {
        let now = now();
        if now.saturating_sub(self.awake.load(Ordering::Acquire)) > millis(STOPPED_AFTER) {
            self.waits_until.fetch_max(now + millis(self.stale_after), Ordering::AcqRel);
        }
    }
}

/// The time on the clock of [`Freshness`].
pub(crate) fn now() -> u64 {
    millis(clock_since_boot())
}

fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    const STALE_AFTER: Duration = Duration::from_mins(1);

    #[tokio::test]
    async fn after_a_stop_an_event_waits_until_the_store_is_heard_of() {
        let freshness = Arc::new(Freshness::new(STALE_AFTER, WhenUnsure::Refuse));
        assert!(!freshness.is_fresh() && freshness.age().is_none());
        let waits = tokio::spawn({
            let freshness = Arc::clone(&freshness);
            async move { freshness.settled().await }
        });
        while freshness.waits_until.load(Ordering::Acquire) == 0 {
            tokio::task::yield_now().await;
        }
        freshness.heard(now());
        assert_eq!(waits.await.unwrap(), Ok(()));
        assert!(freshness.is_fresh() && freshness.age().unwrap() < STALE_AFTER);
    }

    #[tokio::test]
    async fn nobody_waits_for_a_store_that_does_not_answer() {
        for (when_unsure, expected) in [(WhenUnsure::Answer, Ok(())), (WhenUnsure::Refuse, Err(Unsure))] {
            let freshness = Freshness::new(STALE_AFTER, when_unsure);
            freshness.awake.store(now(), Ordering::Release);
            assert_eq!(freshness.settled().await, expected);
            assert_eq!(freshness.waits_until.load(Ordering::Acquire), 0);
        }
    }

    #[tokio::test]
    async fn after_a_stop_nobody_waits_for_ever() {
        let freshness = Freshness::new(Duration::from_millis(20), WhenUnsure::Answer);
        assert_eq!(freshness.settled().await, Ok(()));
    }
}
