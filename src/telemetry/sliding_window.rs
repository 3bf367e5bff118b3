//! Rates and latencies within the last minute, for who watches. Times count from the start of watching; the clock is elsewhere.

use std::{collections::VecDeque, time::Duration};

use hdrhistogram::Histogram;

/// The length of a slot. The window slides in steps of this.
const SLOT: Duration = Duration::from_secs(5);

/// How many slots the window has.
const SLOTS: u64 = 12;

/// Over less than this, a rate would jump.
const SHORTEST: Duration = Duration::from_secs(1);

/// Longer times count as this.
const LONGEST: Duration = Duration::from_hours(24);

/// Counts and times within the last minute.
#[derive(Debug, Default)]
pub(crate) struct SlidingWindow {
    slots: VecDeque<WindowSlot>,
}

#[derive(Debug)]
struct WindowSlot {
    number: u64,
    count: u64,
    /// In microseconds; `None` if nothing was measured.
    times: Option<Histogram<u32>>,
}

/// The median and the 99th percentile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LatencyQuantiles {
    pub(crate) p50: Duration,
    pub(crate) p99: Duration,
}

impl SlidingWindow {
    /// Counts an occurrence.
    pub(crate) fn count(&mut self, now: Duration) {
        self.slot(now).count += 1;
    }

    /// Counts an occurrence that took this long.
    pub(crate) fn measure(&mut self, now: Duration, took: Duration) {
        let slot = self.slot(now);
        slot.count += 1;
        // Those that took nothing are the difference.
        if took.is_zero() {
            return;
        }
        if slot.times.is_none() {
            slot.times = empty();
        }
        if let Some(times) = &mut slot.times {
            // The histogram grows up to the longest time.
            let _ = times.record(micros(took));
        }
    }

    /// Occurrences per second.
    pub(crate) fn rate(&self, now: Duration) -> f64 {
        let first = first(now);
        let covered = now.saturating_sub(SLOT * u32::try_from(first).unwrap_or(u32::MAX)).max(SHORTEST);
        let count: u64 = self.since(first).map(|slot| slot.count).sum();
        #[expect(clippy::cast_precision_loss, reason = "a rate is shown with three digits")]
        let count = count as f64;
        count / covered.as_secs_f64()
    }

    /// The latencies; `None` if nothing was measured.
    pub(crate) fn quantiles(&self, now: Duration) -> Option<LatencyQuantiles> {
        let mut all = empty()?;
        for slot in self.since(first(now)) {
            if let Some(times) = &slot.times {
                // A growing histogram can add any other.
                let _ = all.add(times);
            }
            let instant = slot.count - slot.times.as_ref().map_or(0, Histogram::len);
            let count = u32::try_from(instant).unwrap_or(u32::MAX);
            let _ = all.record_n(micros(Duration::ZERO), count);
        }
        let at = |quantile| Duration::from_micros(all.value_at_quantile(quantile));
        (!all.is_empty()).then(|| LatencyQuantiles { p50: at(0.5), p99: at(0.99) })
    }

    fn since(&self, first: u64) -> impl Iterator<Item = &WindowSlot> {
        self.slots.iter().filter(move |slot| slot.number >= first)
    }

    fn slot(&mut self, now: Duration) -> &mut WindowSlot {
        let number = number(now);
        if self.slots.back().is_none_or(|slot| slot.number < number) {
            let oldest = first(now);
            self.slots.retain(|slot| slot.number >= oldest);
            self.slots.push_back(WindowSlot { number, count: 0, times: None });
        }
        let last = self.slots.len() - 1;
        &mut self.slots[last]
    }
}

fn micros(took: Duration) -> u64 {
    let micros = took.min(LONGEST).max(Duration::from_micros(1)).as_micros();
    u64::try_from(micros).unwrap_or(u64::MAX)
}

fn empty() -> Option<Histogram<u32>> {
    // Two significant digits are enough to look at.
    Histogram::new(2).ok()
}

fn number(now: Duration) -> u64 {
    now.as_secs() / SLOT.as_secs()
}

/// The first slot of the window.
fn first(now: Duration) -> u64 {
    (number(now) + 1).saturating_sub(SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn rate(window: &SlidingWindow, now: Duration) -> String {
        format!("{:.2}", window.rate(now))
    }

    #[test]
    fn a_rate_is_that_of_the_time_since_the_start_and_then_of_a_minute() {
        let mut window = SlidingWindow::default();
        for second in 0..10 {
            window.count(seconds(second));
        }
        assert_eq!(rate(&window, seconds(10)), "1.00");
        assert_eq!(rate(&window, seconds(20)), "0.50");
        assert_eq!(rate(&window, seconds(64)), "0.08");
        assert_eq!(rate(&window, seconds(65)), "0.00");
        let mut window = SlidingWindow::default();
        window.count(Duration::ZERO);
        assert_eq!(rate(&window, Duration::from_millis(1)), "1.00");
    }

    #[test]
    fn what_took_long_is_forgotten_after_a_minute() {
        let mut window = SlidingWindow::default();
        assert_eq!(window.quantiles(Duration::ZERO), None);
        window.measure(seconds(1), seconds(2));
        for _ in 0..99 {
            window.measure(seconds(30), Duration::from_millis(2));
        }
        let near =
            |now: Duration| window.quantiles(now).map(|q| (q.p50.as_millis(), q.p99.as_millis().clamp(1, 3)));
        assert_eq!(near(seconds(30)), Some((2, 2)));
        window.measure(seconds(31), seconds(3));
        let p99 = |window: &SlidingWindow, now| window.quantiles(now).map(|q| q.p99 > seconds(1));
        assert_eq!(p99(&window, seconds(31)), Some(true));
        assert_eq!(p99(&window, seconds(89)), Some(false));
        assert_eq!(window.quantiles(seconds(90)), None);
        window.measure(seconds(1000), Duration::MAX);
        assert_eq!(window.slots.len(), 1);
    }
}
