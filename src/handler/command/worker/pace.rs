//! How many events are sent ahead to a worker that serves them one after the other. Pure: the event loop measures.

use std::time::Duration;

/// The longest that an event should wait behind those that were sent before it. Whoever is slower than that gets one at
/// a time, so that its further events wait where another worker can take them.
const LONGEST_WAIT: Duration = Duration::from_millis(4);

/// How many events are with a worker of each pace at once, the quickest last. There are few steps, since each change
/// is passed on to who waits.
const STEPS: [usize; 4] = [1, 4, 16, 64];

/// The most events that are with a worker at once, the one that it works on among them.
pub(super) const MOST_AHEAD: usize = STEPS[STEPS.len() - 1];

/// The weight of a quick event is one part of so many.
const MEMORY: u32 = 8;

/// How long a worker takes for an event: a peak EWMA, which rises at once and falls slowly.
#[derive(Debug)]
pub(super) struct Pace {
    typical: Duration,
}

impl Pace {
    /// A worker of which nothing is known gets one event at a time.
    pub(super) fn unknown() -> Self {
        Self { typical: LONGEST_WAIT }
    }

    /// The worker took so long for an event.
    pub(super) fn took(&mut self, time: Duration) {
        let slowly = self.typical.saturating_mul(MEMORY - 1).saturating_add(time) / MEMORY;
        self.typical = time.max(slowly);
    }

    /// How many events may be with it at once.
    pub(super) fn window(&self) -> usize {
        let fits = |count: &&usize| {
            self.typical.saturating_mul(u32::try_from(**count).unwrap_or(u32::MAX)) <= LONGEST_WAIT
        };
        STEPS.iter().rev().find(fits).copied().unwrap_or(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_sent_ahead_to_a_quick_worker_until_one_takes_long() {
        let mut pace = Pace::unknown();
        assert_eq!(pace.window(), 1);
        let mut windows = vec![];
        for _ in 0..64 {
            pace.took(Duration::from_micros(20));
            windows.push(pace.window());
        }
        windows.dedup();
        assert_eq!(windows, [1, 4, 16, MOST_AHEAD]);
        for (micros, window) in
            [(62, 64), (63, 16), (250, 16), (251, 4), (1_000, 4), (1_001, 1), (u64::MAX, 1)]
        {
            pace.took(Duration::from_micros(micros));
            assert_eq!(pace.window(), window, "{micros} µs");
        }
    }
}
