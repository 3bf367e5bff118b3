//! Searches the highest rate at which a goal is met: doubles until it is not, then halves the distance. Pure.

use std::time::Duration;

use super::statistics::share_interval;

/// The search ends when the lowest rate that failed is at most so many times the highest that passed.
const PRECISION: f64 = 1.08;

/// A rate this far below the first that is tried is not tried.
const FURTHEST_DOWN: f64 = 1024.0;

/// A step is long enough for so many events that may be slower than the goal.
const SLOW_EVENTS: f64 = 20.0;

/// The longest step.
const LONGEST_STEP: Duration = Duration::from_secs(30);

/// What most events have to be faster than.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct LatencyGoal {
    /// How many of all events, from 0 to 1.
    pub(super) quantile: f64,
    pub(super) limit: Duration,
}

/// Whether a goal is met at a rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StepVerdict {
    Passed,
    Failed,
    /// Too close to the goal to tell from so few events.
    Open,
}

/// The search so far.
#[derive(Debug, Clone)]
pub(super) struct RateSearch {
    first: f64,
    highest: f64,
    /// The rates that passed and did not fail later, the highest one last.
    passed: Vec<f64>,
    /// Whether it passed twice.
    confirmed: bool,
    /// The lowest rate that failed.
    failed: Option<f64>,
}

impl LatencyGoal {
    /// Whether so many slow events of so many meet it.
    pub(super) fn judge(&self, slow: u64, all: u64) -> StepVerdict {
        let (low, high) = share_interval(slow, all);
        match 1.0 - self.quantile {
            allowed if high <= allowed => StepVerdict::Passed,
            allowed if low > allowed => StepVerdict::Failed,
            _ => StepVerdict::Open,
        }
    }

    /// The same where it has to be told: by the share itself.
    pub(super) fn judge_at_last(&self, slow: u64, all: u64) -> StepVerdict {
        #[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 events are sent")]
        let is_met = all > 0 && slow as f64 <= (1.0 - self.quantile) * all as f64;
        match self.judge(slow, all) {
            StepVerdict::Open if is_met => StepVerdict::Passed,
            StepVerdict::Open => StepVerdict::Failed,
            told => told,
        }
    }

    /// How long a step at a rate takes, so that its quantile is one of enough events.
    pub(super) fn step_length(&self, rate: f64, shortest: Duration) -> Duration {
        let seconds = SLOW_EVENTS / (1.0 - self.quantile) / rate;
        let needed = Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST_STEP);
        needed.clamp(shortest, LONGEST_STEP.max(shortest))
    }
}

impl RateSearch {
    /// A search that begins at a rate and tries none above another.
    pub(super) fn new(first: f64, highest: f64) -> Self {
        Self { first: first.min(highest), highest, passed: Vec::new(), confirmed: false, failed: None }
    }

    /// The rate to try next; nothing when the search is over.
    pub(super) fn next_rate(&self) -> Option<f64> {
        match (self.found(), self.failed) {
            (None, None) => Some(self.first),
            (Some(passed), None) if passed < self.highest => Some((passed * 2.0).min(self.highest)),
            (None, Some(failed)) => Some(failed / 2.0).filter(|rate| *rate >= self.first / FURTHEST_DOWN),
            (Some(passed), Some(failed)) if failed > passed * PRECISION => Some((passed * failed).sqrt()),
            (Some(passed), _) => (!self.confirmed).then_some(passed),
        }
    }

    /// Learns whether the goal is met at a rate that was tried.
    pub(super) fn learn(&mut self, rate: f64, is_met: bool) {
        if is_met {
            self.confirmed = self.found() == Some(rate);
            if self.found().is_none_or(|found| found < rate) {
                self.passed.push(rate);
            }
        } else {
            // What passed once and failed then is no rate to rely on; lower ones that passed are.
            self.passed.retain(|passed| *passed < rate);
            self.confirmed = false;
            self.failed = Some(self.failed.map_or(rate, |failed| failed.min(rate)));
        }
    }

    /// The highest rate at which the goal was met.
    pub(super) fn found(&self) -> Option<f64> {
        self.passed.last().copied()
    }

    /// Whether it was met there twice, and not much above.
    pub(super) fn is_confirmed(&self) -> bool {
        self.confirmed && self.next_rate().is_none()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const GOAL: LatencyGoal = LatencyGoal { quantile: 0.99, limit: Duration::from_millis(10) };

    #[test]
    fn a_step_is_judged_once_its_events_are_enough() {
        assert_eq!(GOAL.judge(0, 100), StepVerdict::Open);
        assert_eq!(GOAL.judge(0, 1000), StepVerdict::Passed);
        assert_eq!(GOAL.judge(10, 100), StepVerdict::Failed);
        assert_eq!(GOAL.judge(10, 1000), StepVerdict::Open);
        assert_eq!(GOAL.judge_at_last(10, 1000), StepVerdict::Passed);
        assert_eq!(GOAL.judge_at_last(11, 1000), StepVerdict::Failed);
        assert_eq!(GOAL.judge_at_last(0, 0), StepVerdict::Failed);
    }

    #[test]
    fn a_step_is_long_enough_for_its_quantile_and_bounded() {
        let seconds = |rate| GOAL.step_length(rate, Duration::from_secs(2)).as_secs_f64();
        assert!((seconds(500.0) - 4.0).abs() < 1e-6);
        assert!((seconds(1e6) - 2.0).abs() < 1e-6);
        assert!((seconds(0.1) - 30.0).abs() < 1e-6);
    }

    #[test]
    fn a_rate_that_fails_at_its_second_try_is_not_found() {
        let mut search = RateSearch::new(100.0, 1e6);
        search.learn(100.0, true);
        search.learn(200.0, false);
        search.learn(190.0, true);
        assert_eq!(search.next_rate(), Some(190.0));
        search.learn(190.0, false);
        assert_eq!(search.found(), Some(100.0), "what passed below it still counts");
        let next = search.next_rate().unwrap();
        assert!(next > 100.0 && next < 190.0, "{next}");
    }

    proptest! {
        #[test]
        fn a_known_limit_is_found_in_few_steps(limit in 0.2_f64..900_000.0, first in 1.0_f64..2000.0) {
            prop_assume!(limit > first / 500.0);
            let mut search = RateSearch::new(first, 1e6);
            let mut steps = 0;
            while let Some(rate) = search.next_rate() {
                search.learn(rate, rate <= limit);
                steps += 1;
                prop_assert!(steps < 40, "{search:?}");
            }
            let found = search.found().unwrap();
            prop_assert!(found <= limit && limit <= found * PRECISION, "{found}");
            prop_assert!(search.is_confirmed());
        }

        #[test]
        fn a_search_ends_whatever_it_learns(verdicts in prop::collection::vec(any::<bool>(), 200)) {
            let mut search = RateSearch::new(100.0, 1e6);
            let mut tried = 0;
            for verdict in verdicts {
                let Some(rate) = search.next_rate() else { break };
                prop_assert!(rate.is_finite() && rate > 0.0);
                search.learn(rate, verdict);
                tried += 1;
            }
            prop_assert!(search.next_rate().is_none() || tried == 200);
        }
    }
}
