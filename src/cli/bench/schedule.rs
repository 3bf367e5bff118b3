//! When events are due: pure, by a rate, a ramp and a seed.

use std::time::Duration;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use super::random::LoadRandom;

/// How the arrivals of an open loop are spread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "snake_case")]
pub(super) enum ArrivalProcess {
    /// At equal distances
    Constant,
    /// At random, as those of many hosts that know nothing of each other
    Poisson,
}

/// When the events of an open loop are due, since its start. During the ramp, the rate rises from nothing in a straight
/// line.
#[derive(Debug, Clone)]
pub(super) struct ArrivalSchedule {
    process: ArrivalProcess,
    /// Events a second after the ramp.
    rate: f64,
    /// In seconds.
    ramp: f64,
    end: Duration,
    random: LoadRandom,
    /// How many events of a constant rate were due so far, or would have been at a mean of one.
    progress: f64,
}

impl ArrivalSchedule {
    /// `end` is when nothing is due any more. The rate has to be above 0.
    pub(super) fn new(process: ArrivalProcess, rate: f64, ramp: Duration, end: Duration, seed: u64) -> Self {
        let random = LoadRandom::new(seed);
        Self { process, rate, ramp: ramp.as_secs_f64(), end, random, progress: 0.0 }
    }

    /// When so many events are due, in seconds: the inverse of how many are due until then.
    fn time_of(&self, events: f64) -> f64 {
        // Until its end, the ramp has half of the events that the full rate would have.
        let in_ramp = self.rate * self.ramp / 2.0;
        if events < in_ramp {
            (2.0 * self.ramp * events / self.rate).sqrt()
        } else {
            self.ramp + (events - in_ramp) / self.rate
        }
    }
}

impl Iterator for ArrivalSchedule {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let gap = match self.process {
            ArrivalProcess::Constant => 1.0,
            ArrivalProcess::Poisson => self.random.exponential(),
        };
        let due = Duration::try_from_secs_f64(self.time_of(self.progress)).ok().filter(|due| *due < self.end);
        if due.is_some() {
            self.progress += gap;
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn count(schedule: ArrivalSchedule) -> usize {
        schedule.count()
    }

    #[test]
    fn a_constant_rate_is_due_at_equal_distances() {
        let second = Duration::from_secs(1);
        let schedule = ArrivalSchedule::new(ArrivalProcess::Constant, 4.0, Duration::ZERO, second, 0);
        let due: Vec<_> = schedule.map(|due| due.as_millis()).collect();
        assert_eq!(due, [0, 250, 500, 750]);
    }

    #[test]
    fn a_ramp_has_half_of_its_events() {
        let (ramp, end) = (Duration::from_secs(10), Duration::from_secs(11));
        let schedule = ArrivalSchedule::new(ArrivalProcess::Constant, 100.0, ramp, end, 0);
        let due: Vec<_> = schedule.collect();
        let in_ramp = due.iter().filter(|due| **due < ramp).count();
        assert_eq!((in_ramp, due.len() - in_ramp), (500, 100));
        let first_half = due.iter().filter(|due| **due < ramp / 2).count();
        assert_eq!(first_half, 125, "a quarter of the events of the ramp are in its first half");
    }

    proptest! {
        #[test]
        fn arrivals_are_in_order_and_as_many_as_the_rate_says(
            rate in 0.5_f64..50_000.0, ramp in 0_u64..3_000, length in 100_u64..2_000, seed: u64,
        ) {
            let (ramp, length) = (Duration::from_millis(ramp), Duration::from_millis(length));
            let end = ramp + length;
            for process in [ArrivalProcess::Constant, ArrivalProcess::Poisson] {
                let schedule = ArrivalSchedule::new(process, rate, ramp, end, seed);
                let due: Vec<_> = schedule.clone().collect();
                prop_assert!(due.is_sorted());
                prop_assert!(due.last().is_none_or(|last| *last < end));
                let expected = rate * (ramp.as_secs_f64() / 2.0 + length.as_secs_f64());
                // Six standard deviations of a Poisson process, and the first event, which is due at once.
                let allowed = match process {
                    ArrivalProcess::Constant => 2.0,
                    ArrivalProcess::Poisson => 6.0 * expected.sqrt() + 6.0,
                };
                let found = f64::from(u32::try_from(count(schedule)).unwrap());
                prop_assert!((found - expected).abs() <= allowed, "{process:?}: {found} of {expected}");
            }
        }
    }
}
