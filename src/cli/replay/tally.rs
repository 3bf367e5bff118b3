//! Counts what was played: verdicts and times per event kind and per hook, and what is worth telling. Bounded
//! by the recording and the hooks, however often it is played; only with `--json` is every event kept.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use hdrhistogram::Histogram;

use super::{
    finding::{self, Finding, Told},
    play::{Answered, Finished},
};
use crate::model::{Ended, EventKind, HookName, HookReport, Verdict};

/// Digits of a time that are kept.
const DIGITS: u8 = 3;

/// Longer times count as this.
const LONGEST: Duration = Duration::from_hours(1);

/// Times, as a distribution.
#[derive(Debug)]
pub(super) struct Times(Histogram<u64>);

impl Times {
    fn new() -> Self {
        // One of these bounds is refused only if they contradict each other, which constants do not.
        let histogram = Histogram::new(DIGITS);
        Self(histogram.unwrap_or_else(|_| unreachable!("three digits are allowed")))
    }

    fn add(&mut self, time: Duration) {
        let micros = u64::try_from(time.min(LONGEST).as_micros()).unwrap_or(u64::MAX);
        // It grows up to the longest time; a saturating record would keep it as small as it begins.
        _ = self.0.record(micros);
    }

    /// The time that this share of all stays within, or `None` if there is none.
    pub(super) fn quantile(&self, share: f64) -> Option<Duration> {
        (!self.0.is_empty()).then(|| Duration::from_micros(self.0.value_at_quantile(share)))
    }
}

/// How often each verdict was given.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Verdicts([u64; Verdict::ALL.len()]);

impl Verdicts {
    fn add(&mut self, verdict: Verdict) {
        self.0[verdict as usize] += 1;
    }

    pub(super) fn get(&self, verdict: Verdict) -> u64 {
        self.0[verdict as usize]
    }
}

/// The events of one kind, or the invocations of one hook.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) count: u64,
    pub(super) verdicts: Verdicts,
    /// Events without an outcome; invocations without a reply.
    pub(super) failed: u64,
    /// Those of events that ran hooks: the others would hide how long hooks take.
    pub(super) times: Times,
}

impl Row {
    fn new() -> Self {
        Self { count: 0, verdicts: Verdicts::default(), failed: 0, times: Times::new() }
    }
}

/// Everything that was counted.
#[derive(Debug)]
pub(super) struct Tally {
    pub(super) by_event: BTreeMap<EventKind, Row>,
    pub(super) by_hook: HashMap<HookName, Row>,
    /// How many events got the answer of an earlier one.
    pub(super) repeated: u64,
    /// What is worth telling, with how it was found.
    pub(super) findings: BTreeMap<Finding, Told>,
    /// Every event, where they are kept.
    pub(super) kept: Option<Vec<Finished>>,
}

impl Tally {
    /// Counts, and keeps every event if asked to.
    pub(super) fn new(keep: bool) -> Self {
        Self {
            by_event: BTreeMap::new(),
            by_hook: HashMap::new(),
            repeated: 0,
            findings: BTreeMap::new(),
            kept: keep.then(Vec::new),
        }
    }

    pub(super) fn add(&mut self, finished: Finished) {
        let row = self.by_event.entry(finished.kind).or_insert_with(Row::new);
        row.count += 1;
        if finished.ran_hooks() {
            row.times.add(finished.took);
        }
        self.repeated += u64::from(finished.answered == Answered::AsBefore);
        match &finished.result {
            Ok(outcome) => {
                row.verdicts.add(outcome.verdict);
                if finished.ran_hooks() {
                    outcome.hooks.iter().for_each(|report| self.add_hook(report));
                }
            }
            Err(_) => row.failed += 1,
        }
        for (finding, what) in finding::of(&finished) {
            self.findings.entry(finding).or_insert_with(|| Told::new(&what)).add(&what);
        }
        if let Some(kept) = &mut self.kept {
            kept.push(finished);
        }
    }

    /// How many events were played.
    pub(super) fn events(&self) -> u64 {
        self.by_event.values().map(|row| row.count).sum()
    }

    /// How many of them got no outcome.
    pub(super) fn refused(&self) -> u64 {
        self.by_event.values().map(|row| row.failed).sum()
    }

    fn add_hook(&mut self, report: &HookReport) {
        if !self.by_hook.contains_key(&report.hook) {
            self.by_hook.insert(report.hook.clone(), Row::new());
        }
        let Some(row) = self.by_hook.get_mut(&report.hook) else { return };
        row.count += 1;
        row.verdicts.add(report.verdict);
        row.failed += u64::from(report.ended != Ended::Completed);
        row.times.add(report.duration);
    }
}
