//! Hands the arrivals of an open loop to senders when they are due, by a clock that is finer than that of the runtime.

use std::{io, iter::Peekable, sync::Arc, thread, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::Semaphore,
    time::{Instant, sleep_until},
};

use super::schedule::ArrivalSchedule;

/// How long the clock sleeps at most before it looks whether it is still wanted.
const LONGEST_SLEEP: Duration = Duration::from_millis(50);

/// What keeps the time of an open loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ArrivalClock {
    /// A thread of its own, which wakes some 50 µs late; timers of the runtime are up to a millisecond late.
    Thread,
    /// A task, by the runtime's own clock, which tests can pause.
    #[cfg_attr(not(test), expect(dead_code, reason = "tests own the clock"))]
    Task,
}

/// The arrivals that senders take in order.
#[derive(Debug)]
pub(super) struct ArrivalQueue {
    begun: Instant,
    schedule: Mutex<ArrivalSchedule>,
    /// One permit for each arrival that is due and not taken.
    due: Semaphore,
    senders: usize,
}

/// Which arrivals are due at a moment. Pure.
#[derive(Debug)]
struct ArrivalRelease(Peekable<ArrivalSchedule>);

impl ArrivalRelease {
    /// Takes all that are due by then.
    fn take(&mut self, since: Duration) -> usize {
        let mut due = 0;
        while self.0.next_if(|arrival| *arrival <= since).is_some() {
            due += 1;
        }
        due
    }

    /// When the next one is due; nothing after the last.
    fn next(&mut self) -> Option<Duration> {
        self.0.peek().copied()
    }
}

impl ArrivalQueue {
    pub(super) fn new(begun: Instant, schedule: ArrivalSchedule, senders: usize) -> Self {
        Self { begun, schedule: Mutex::new(schedule), due: Semaphore::new(0), senders }
    }

    /// Waits for the next arrival, and returns when it was due, since the start; nothing after the last, and once the queue
    /// is closed.
    pub(super) async fn take(&self) -> Option<Duration> {
        self.due.acquire().await.ok()?.forget();
        self.schedule.lock().next()
    }

    /// No sender gets an arrival any more.
    pub(super) fn close(&self) {
        self.due.close();
    }

    /// The arrivals that were due before a moment, and that nobody has taken.
    pub(super) fn left_over(&self, since: Duration) -> Vec<Duration> {
        let mut schedule = self.schedule.lock();
        let mut left = Vec::new();
        while let Some(due) = schedule.next().filter(|due| *due < since) {
            left.push(due);
        }
        left
    }

    fn release(&self) -> ArrivalRelease {
        ArrivalRelease(self.schedule.lock().clone().peekable())
    }

    /// Lets all senders see that nothing is due any more.
    fn finish(&self) {
        self.due.add_permits(self.senders);
    }

    /// Starts the clock, which ends after the last arrival or when the queue is closed.
    ///
    /// Returns an error if there is no thread for it.
    pub(super) fn start(self: &Arc<Self>, clock: ArrivalClock) -> io::Result<()> {
        let queue = Arc::clone(self);
        match clock {
            ArrivalClock::Thread => {
                let thread = thread::Builder::new().name("arrivals".to_owned());
                thread.spawn(move || queue.run_on_thread()).map(drop)
            }
            ArrivalClock::Task => {
                tokio::spawn(async move { queue.run_as_task().await });
                Ok(())
            }
        }
    }

    fn run_on_thread(&self) {
        let mut release = self.release();
        while !self.due.is_closed() {
            self.due.add_permits(release.take(self.begun.elapsed()));
            let Some(next) = release.next() else { return self.finish() };
            let wait = (self.begun + next).saturating_duration_since(Instant::now());
            thread::sleep(wait.min(LONGEST_SLEEP));
        }
    }

    async fn run_as_task(&self) {
        let mut release = self.release();
        while !self.due.is_closed() {
            self.due.add_permits(release.take(self.begun.elapsed()));
            let Some(next) = release.next() else { return self.finish() };
            sleep_until(self.begun + next).await;
        }
    }
}
