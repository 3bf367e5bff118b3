//! What comes of a schedule, as the library did it or as the reference says.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use hookyard::model::Verdict;

/// What came of a schedule.
#[derive(Debug, Default, PartialEq, Eq, Clone)]
pub(crate) struct Observed {
    /// What each `Send` got, by its place among the actions.
    pub(crate) answers: BTreeMap<usize, Answered>,
    /// Which hook worked when on which event, in order of time.
    pub(crate) work: Vec<Work>,
    /// What was cancelled, by the place of the action: runs and events.
    pub(crate) cancelled: BTreeMap<usize, (usize, usize)>,
    /// When the shutdown ended, and whether everything had finished.
    pub(crate) stopped: Option<(u64, bool)>,
}

/// What one `Send` got, and when.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Answered {
    pub(crate) at: u64,
    pub(crate) answer: Answer,
}

/// What one `Send` got.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) enum Answer {
    Outcome(Box<Summary>),
    Error(String),
    /// Its caller gave up.
    GivenUp,
}

/// An outcome, without what is never the same twice.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) struct Summary {
    /// The number of the first `Send` that got this very outcome.
    pub(crate) decision: usize,
    pub(crate) verdict: Verdict,
    pub(crate) by: Option<String>,
    pub(crate) reason: Option<Reason>,
    /// The tool's input if hooks changed it.
    pub(crate) patched: Option<String>,
    /// Hook and text.
    pub(crate) notes: Vec<(String, String)>,
    /// Hook, how it ended, its verdict.
    pub(crate) hooks: Vec<(String, &'static str, Verdict)>,
    pub(crate) version: u64,
}

/// Why a verdict is as it is.
#[derive(Debug, PartialEq, Eq, Clone)]
pub(crate) enum Reason {
    /// A hook gave it.
    Words(String),
    /// A failure of the hook that decided.
    Failure,
    /// The run was cancelled.
    Cancelled,
}

/// One hook at work on one event.
#[derive(Debug, PartialEq, Eq, Clone, PartialOrd, Ord)]
pub(crate) struct Work {
    pub(crate) from: u64,
    pub(crate) to: u64,
    pub(crate) event: usize,
    pub(crate) hook: String,
    pub(crate) end: WorkEnd,
    /// The tool's input as the hook saw it.
    pub(crate) input: String,
}

/// How a hook's work ended.
#[derive(Debug, PartialEq, Eq, Clone, Copy, PartialOrd, Ord)]
pub(crate) enum WorkEnd {
    Done,
    /// It was dropped, by a timeout or because nobody wanted it any more.
    Dropped,
}

impl Observed {
    /// In order, and without what was over when it began at a moment of `cuts`: which of several waiting hooks gets a
    /// place at the moment at which all are cancelled is nobody's business.
    pub(crate) fn in_order(mut self, cuts: &BTreeSet<u64>) -> Self {
        self.work.retain(|work| work.from < work.to || !cuts.contains(&work.to));
        self.work.sort();
        self
    }

    /// With decisions named by the first `Send` that got them.
    pub(crate) fn by_first_call(mut self) -> Self {
        let mut first = BTreeMap::new();
        for (number, answered) in &mut self.answers {
            if let Answer::Outcome(summary) = &mut answered.answer {
                summary.decision = *first.entry(summary.decision).or_insert(*number);
            }
        }
        self
    }
}

impl fmt::Display for Observed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, Answered { at, answer }) in &self.answers {
            writeln!(f, "    at {at}, action {number} gets {answer:?}")?;
        }
        for Work { from, to, event, hook, end, input } in &self.work {
            writeln!(f, "    from {from} to {to}, {hook} works on {event}: {end:?}, {input}")?;
        }
        writeln!(f, "    cancelled {:?}, stopped {:?}", self.cancelled, self.stopped)
    }
}
