//! Counts answers and their times. Senders share a few tallies, which are added up at the end.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use hdrhistogram::Histogram;
use parking_lot::Mutex;

use super::answer::{AnswerResult, BenchAnswer, HookTime};
use crate::model::{Ended, EventKind};

/// Significant digits of a time.
const DIGITS: u8 = 3;

/// Longer times count as this.
const LONGEST: Duration = Duration::from_hours(2);

/// So many tallies, that senders seldom wait for each other.
const SHARDS: usize = 4;

/// Times as a distribution, in nanoseconds.
#[derive(Debug, Clone)]
pub(super) struct LatencyHistogram(Histogram<u64>);

impl LatencyHistogram {
    pub(super) fn new() -> Self {
        let histogram = Histogram::new(DIGITS);
        // Only more than five digits are refused.
        Self(histogram.unwrap_or_else(|_| unreachable!("three digits are allowed")))
    }

    pub(super) fn add(&mut self, time: Duration) {
        let nanoseconds = u64::try_from(time.min(LONGEST).as_nanos()).unwrap_or(u64::MAX);
        // The histogram grows up to the longest time; a saturating record would not let it grow.
        _ = self.0.record(nanoseconds);
    }

    fn merge(&mut self, other: &Self) {
        // Both grow as they have to.
        _ = self.0.add(&other.0);
    }

    pub(super) fn count(&self) -> u64 {
        self.0.len()
    }

    /// A quantile, from 0 to 1; nothing if there are no times.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.0.value_at_quantile(share)))
    }

    pub(super) fn longest(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_nanos(self.0.max()))
    }

    pub(super) fn mean(&self) -> Option<Duration> {
        (self.count() > 0).then(|| Duration::from_secs_f64(self.0.mean() / 1e9))
    }

    /// How many times are longer than this.
    pub(super) fn longer_than(&self, limit: Duration) -> u64 {
        let nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.count() - self.0.count_between(0, nanoseconds).min(self.count())
    }
}

/// The events of one kind.
#[derive(Debug, Clone)]
pub(super) struct KindTally {
    /// By how they ended.
    pub(super) results: BTreeMap<String, u64>,
    /// From when the event was due until its outcome.
    pub(super) latency: LatencyHistogram,
    /// From when it was sent.
    pub(super) service: LatencyHistogram,
    /// What of that was not in hooks.
    pub(super) ours: LatencyHistogram,
    /// What was.
    pub(super) in_hooks: LatencyHistogram,
}

/// The invocations of one hook.
#[derive(Debug, Clone)]
pub(super) struct HookTally {
    /// By how they ended, in the order of [`Ended::ALL`].
    pub(super) ended: [u64; Ended::ALL.len()],
    pub(super) blocked: u64,
    pub(super) duration: LatencyHistogram,
    pub(super) queued: LatencyHistogram,
}

/// The events of one part of the measured time.
#[derive(Debug, Clone)]
pub(super) struct RoundTally {
    pub(super) latency: LatencyHistogram,
    pub(super) outcomes: u64,
    /// Events without an outcome.
    pub(super) failed: u64,
}

/// Everything that is counted.
#[derive(Debug, Clone)]
pub(super) struct LoadTally {
    pub(super) kinds: BTreeMap<EventKind, KindTally>,
    pub(super) hooks: HashMap<Box<str>, HookTally>,
    pub(super) rounds: Vec<RoundTally>,
    /// All events with an outcome.
    pub(super) latency: LatencyHistogram,
    /// How late the generator was with events for which a sender was free.
    pub(super) lateness: LatencyHistogram,
    /// Events that were due while all senders were busy.
    pub(super) waited: u64,
    /// Events that were due and not sent any more. Their wait so far is in `latency`.
    pub(super) unsent: u64,
}

/// An event that was answered, or was given up.
#[derive(Debug)]
pub(super) struct CountedEvent {
    pub(super) kind: EventKind,
    pub(super) round: usize,
    /// Since it was due.
    pub(super) latency: Duration,
    /// Since it was sent.
    pub(super) service: Duration,
    pub(super) answer: BenchAnswer,
    pub(super) start: StartTime,
}

/// How punctually an event was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StartTime {
    /// It was not due at any time.
    Undue,
    /// A sender was free, and so late.
    Late(Duration),
    /// All senders were busy when it was due.
    Waited,
}

impl KindTally {
    fn new() -> Self {
        Self {
            results: BTreeMap::new(),
            latency: LatencyHistogram::new(),
            service: LatencyHistogram::new(),
            ours: LatencyHistogram::new(),
            in_hooks: LatencyHistogram::new(),
        }
    }

    fn merge(&mut self, other: &Self) {
        for (word, count) in &other.results {
            *self.results.entry(word.clone()).or_default() += count;
        }
        self.latency.merge(&other.latency);
        self.service.merge(&other.service);
        self.ours.merge(&other.ours);
        self.in_hooks.merge(&other.in_hooks);
    }

    /// All events, whatever became of them.
    pub(super) fn count(&self) -> u64 {
        self.results.values().sum()
    }

    fn add(&mut self, event: &CountedEvent) {
        let word = event.answer.result.word();
        match self.results.get_mut(word) {
            Some(count) => *count += 1,
            None => drop(self.results.insert(word.to_owned(), 1)),
        }
        if !counts_as_wait(&event.answer.result) {
            return;
        }
        self.latency.add(event.latency);
        self.service.add(event.service);
        if let Some(in_hooks) = event.answer.in_hooks {
            self.in_hooks.add(in_hooks);
            self.ours.add(event.service.saturating_sub(in_hooks));
        }
    }
}

impl HookTally {
    fn new() -> Self {
        let (duration, queued) = (LatencyHistogram::new(), LatencyHistogram::new());
        Self { ended: [0; Ended::ALL.len()], blocked: 0, duration, queued }
    }

    fn merge(&mut self, other: &Self) {
        for (own, more) in self.ended.iter_mut().zip(other.ended) {
            *own += more;
        }
        self.blocked += other.blocked;
        self.duration.merge(&other.duration);
        self.queued.merge(&other.queued);
    }

    fn add(&mut self, hook: &HookTime) {
        let place = Ended::ALL.into_iter().position(|ended| ended == hook.ended);
        if let Some(count) = place.and_then(|place| self.ended.get_mut(place)) {
            *count += 1;
        }
        self.blocked += u64::from(hook.blocked);
        self.duration.add(hook.duration);
        self.queued.add(hook.queued);
    }
}

/// Whether the time of an event is one: whoever was turned away at once has not waited for an outcome.
fn counts_as_wait(result: &AnswerResult) -> bool {
    matches!(result, AnswerResult::Outcome(_) | AnswerResult::TimedOut)
}

impl LoadTally {
    pub(super) fn new(rounds: usize) -> Self {
        let round = RoundTally { latency: LatencyHistogram::new(), outcomes: 0, failed: 0 };
        Self {
            kinds: BTreeMap::new(),
            hooks: HashMap::new(),
            rounds: vec![round; rounds],
            latency: LatencyHistogram::new(),
            lateness: LatencyHistogram::new(),
            waited: 0,
            unsent: 0,
        }
    }

    pub(super) fn add(&mut self, event: &CountedEvent) {
        self.kinds.entry(event.kind).or_insert_with(KindTally::new).add(event);
        let result = &event.answer.result;
        if let Some(round) = self.rounds.get_mut(event.round) {
            round.outcomes += u64::from(result.is_outcome());
            round.failed += u64::from(!result.is_outcome());
            if counts_as_wait(result) {
                round.latency.add(event.latency);
            }
        }
        if counts_as_wait(result) {
            self.latency.add(event.latency);
        }
        match event.start {
            StartTime::Undue => {}
            StartTime::Late(time) => self.lateness.add(time),
            StartTime::Waited => self.waited += 1,
        }
        for hook in &event.answer.hooks {
            if !self.hooks.contains_key(&hook.hook) {
                self.hooks.insert(hook.hook.clone(), HookTally::new());
            }
            if let Some(tally) = self.hooks.get_mut(&hook.hook) {
                tally.add(hook);
            }
        }
    }

    /// Counts an event that was due and is not sent any more, with its wait so far.
    pub(super) fn add_unsent(&mut self, round: usize, wait: Duration) {
        self.unsent += 1;
        self.latency.add(wait);
        if let Some(round) = self.rounds.get_mut(round) {
            round.latency.add(wait);
            round.failed += 1;
        }
    }

    /// Adds another load, whose rounds follow these.
    pub(super) fn append(&mut self, other: &Self) {
        let rounds = other.rounds.iter().cloned();
        self.rounds.extend(rounds);
        self.merge_all_but_rounds(other);
    }

    fn merge(&mut self, other: &Self) {
        for (own, more) in self.rounds.iter_mut().zip(&other.rounds) {
            own.latency.merge(&more.latency);
            own.outcomes += more.outcomes;
            own.failed += more.failed;
        }
        self.merge_all_but_rounds(other);
    }

    fn merge_all_but_rounds(&mut self, other: &Self) {
        for (kind, tally) in &other.kinds {
            self.kinds.entry(*kind).or_insert_with(KindTally::new).merge(tally);
        }
        for (hook, tally) in &other.hooks {
            self.hooks.entry(hook.clone()).or_insert_with(HookTally::new).merge(tally);
        }
        self.latency.merge(&other.latency);
        self.lateness.merge(&other.lateness);
        self.waited += other.waited;
        self.unsent += other.unsent;
    }

    /// Events that were sent.
    pub(super) fn sent(&self) -> u64 {
        self.kinds.values().map(KindTally::count).sum()
    }

    /// Those with an outcome.
    pub(super) fn outcomes(&self) -> u64 {
        self.rounds.iter().map(|round| round.outcomes).sum()
    }

    /// Those without one.
    pub(super) fn failed(&self) -> u64 {
        self.rounds.iter().map(|round| round.failed).sum::<u64>() - self.unsent
    }

    /// Events that were slower than this, or had no outcome, and all that were due.
    pub(super) fn slower_than(&self, limit: Duration) -> (u64, u64) {
        // Those that waited for an answer in vain have their wait among the times.
        let without_time = self.sent() + self.unsent - self.latency.count();
        (self.latency.longer_than(limit) + without_time, self.sent() + self.unsent)
    }
}

/// The tallies of all senders.
#[derive(Debug)]
pub(super) struct SharedTally {
    shards: [Mutex<LoadTally>; SHARDS],
    rounds: usize,
}

impl SharedTally {
    pub(super) fn new(rounds: usize) -> Self {
        Self { shards: std::array::from_fn(|_| Mutex::new(LoadTally::new(rounds))), rounds }
    }

    /// Counts an event of a sender.
    pub(super) fn add(&self, sender: usize, event: &CountedEvent) {
        self.shards[sender % SHARDS].lock().add(event);
    }

    /// All together.
    pub(super) fn total(&self) -> LoadTally {
        let mut total = LoadTally::new(self.rounds);
        self.shards.iter().for_each(|shard| total.merge(&shard.lock()));
        total
    }

    /// How many events with an outcome there are so far, and a quantile of their times.
    pub(super) fn so_far(&self, quantile: f64) -> (u64, Option<Duration>) {
        let mut latency = LatencyHistogram::new();
        self.shards.iter().for_each(|shard| latency.merge(&shard.lock().latency));
        (latency.count(), latency.quantile(quantile))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Verdict;

    fn event(milliseconds: u64, result: AnswerResult) -> CountedEvent {
        CountedEvent {
            kind: EventKind::RunFailed,
            round: 0,
            latency: Duration::from_millis(milliseconds),
            service: Duration::from_millis(milliseconds),
            answer: BenchAnswer::of(result),
            start: StartTime::Undue,
        }
    }

    #[test]
    fn whoever_is_turned_away_is_no_fast_answer_and_counts_as_slow() {
        let shared = SharedTally::new(2);
        for (sender, milliseconds) in [5, 10, 20].into_iter().enumerate() {
            shared.add(sender, &event(milliseconds, AnswerResult::Outcome(Some(Verdict::Block))));
        }
        shared.add(9, &event(0, AnswerResult::Shed));
        shared.add(9, &event(30_000, AnswerResult::TimedOut));
        let mut tally = shared.total();
        assert_eq!((tally.sent(), tally.outcomes(), tally.failed()), (5, 3, 2));
        assert_eq!(tally.kinds[&EventKind::RunFailed].results["shed"], 1);
        assert_eq!(tally.latency.count(), 4);
        assert_eq!(tally.slower_than(Duration::from_millis(12)), (3, 5));
        tally.add_unsent(1, Duration::from_millis(100));
        assert_eq!((tally.sent(), tally.outcomes(), tally.failed(), tally.unsent), (5, 3, 2, 1));
        assert_eq!(tally.slower_than(Duration::from_millis(12)), (4, 6));
        assert_eq!(shared.so_far(0.5).0, 4);
    }

    #[test]
    fn times_have_three_digits_from_nanoseconds_to_hours() {
        let mut times = LatencyHistogram::new();
        for time in [Duration::from_nanos(850), Duration::from_hours(1)] {
            times.add(time);
        }
        let shortest = times.quantile(0.25).unwrap();
        assert_eq!(shortest, Duration::from_nanos(850));
        let longest = times.longest().unwrap().as_secs_f64();
        assert!((longest / 3600.0 - 1.0).abs() < 0.001, "{longest}");
    }
}
