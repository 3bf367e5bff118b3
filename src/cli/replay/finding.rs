//! What is worth telling about a played event: verdicts, patches, notes, failures, warnings. Refuses to tell of
//! events that hooks left alone.

use super::{
    super::{escape, json_diff, outcome_view::audience},
    play::{AnswerOrigin, PlayedEvent},
};
use crate::model::{Ended, EventKind, HookReport, Json, Outcome, Target, Verdict};

/// How much of a text from a hook or host is shown, in characters.
const LONGEST_TEXT: usize = 160;

/// Up to how many characters a changed value is shown; of a longer one only its place.
const LONGEST_VALUE: usize = 60;

/// How many changes of one patch are shown.
const MOST_CHANGES: usize = 3;

/// What sort of finding it is, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FindingKind {
    /// The event got no outcome.
    NoOutcome,
    /// A hook gave a verdict.
    Verdict(Verdict),
    /// The payload was changed.
    Patched,
    /// The tool's output is not to be shown.
    Hidden,
    /// A hook brought no reply.
    Failed,
    /// A hook answered oddly.
    Warning,
    /// A hook had something to say.
    Note,
}

impl FindingKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::NoOutcome => "no outcome",
            Self::Verdict(verdict) => verdict.as_str(),
            Self::Patched => "patched",
            Self::Hidden => "hidden",
            Self::Failed => "failed",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// Something worth telling, in the order of the recording, but for the words: those of a hook may differ with
/// every copy of the event.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) line: usize,
    pub(super) sort: FindingKind,
    /// The hook or target that it is about, and which of several remarks it is.
    about: (String, usize),
    /// As in the recording.
    pub(super) run: String,
    pub(super) event: String,
}

/// How a finding was found in the copies of its event.
#[derive(Debug, Clone)]
pub(super) struct Occurrences {
    /// On one line, ready to print; in the words of the first copy.
    pub(super) what: String,
    /// In how many copies.
    pub(super) copies: u64,
    /// Whether other copies have other words for it.
    pub(super) varies: bool,
}

impl Occurrences {
    pub(super) fn new(what: &str) -> Self {
        Self { what: what.to_owned(), copies: 0, varies: false }
    }

    pub(super) fn add(&mut self, what: &str) {
        self.copies += 1;
        self.varies |= self.what != what;
    }
}

/// What was found, before its place is added.
type UnplacedFinding = (FindingKind, (String, usize), String);

/// Everything worth telling about an event, with its words.
pub(super) fn of(finished: &PlayedEvent) -> Vec<(Finding, String)> {
    let mut found = Vec::new();
    match &finished.result {
        Ok(outcome) if finished.origin == AnswerOrigin::Stored => {
            if outcome.verdict != Verdict::Proceed {
                let what = format!("{}, as before", by(outcome));
                found.push((FindingKind::Verdict(outcome.verdict), (String::new(), 0), what));
            }
        }
        Ok(outcome) => of_outcome(finished, outcome, &mut found),
        Err(error) => {
            found.push((FindingKind::NoOutcome, (String::new(), 0), escape::short(error, LONGEST_TEXT)));
        }
    }
    if found.is_empty() {
        return Vec::new();
    }
    let (line, run, event) = (finished.line, escape::short(finished.run.as_str(), 40), subject(finished));
    let placed = |(sort, about, what): UnplacedFinding| {
        (Finding { line, sort, about, run: run.clone(), event: event.clone() }, what)
    };
    found.into_iter().map(placed).collect()
}

/// The event's kind, and what its matchers looked at.
pub(super) fn subject(finished: &PlayedEvent) -> String {
    let matched = finished.matched.as_ref().map(|text| format!(" {}", escape::short(text, 40)));
    format!("{}{}", finished.kind, matched.unwrap_or_default())
}

fn of_outcome(finished: &PlayedEvent, outcome: &Outcome, found: &mut Vec<UnplacedFinding>) {
    let about = |audience: &dyn std::fmt::Display| (audience.to_string(), 0);
    if outcome.verdict != Verdict::Proceed {
        found.push((FindingKind::Verdict(outcome.verdict), (String::new(), 0), verdict(outcome)));
    }
    for (target, after) in outcome.patched.iter() {
        let what = patch(target, outcome, finished.before.get(target), after);
        found.push((FindingKind::Patched, about(&target), what));
    }
    if outcome.suppress_output {
        found.push((
            FindingKind::Hidden,
            (String::new(), 0),
            "the tool's output is not to be shown".to_owned(),
        ));
    }
    for report in &outcome.hooks {
        if report.ended != Ended::Completed {
            found.push((FindingKind::Failed, about(&report.hook), failure(report, outcome.event)));
        }
        for (number, warning) in report.warnings.iter().enumerate() {
            let what = format!("{}: {}", report.hook, escape::short(warning, LONGEST_TEXT));
            found.push((FindingKind::Warning, (report.hook.to_string(), number), what));
        }
    }
    for (number, note) in outcome.notes.iter().enumerate() {
        let text = escape::short(note.text.trim_end(), LONGEST_TEXT);
        let what = format!("{} to {}: {text}", note.hook, audience(note.kind));
        found.push((FindingKind::Note, (note.hook.to_string(), number), what));
    }
}

/// Who changed a part of the payload, and where it changed.
fn patch(target: Target, outcome: &Outcome, before: Option<&Json>, after: &Json) -> String {
    let patched = |report: &&HookReport| report.patched.contains(&target);
    let by: Vec<_> = outcome.hooks.iter().filter(patched).map(|report| report.hook.as_str()).collect();
    let changes = json_diff::between(before, after);
    let shown = changes.iter().take(MOST_CHANGES).map(|change| change.phrase(LONGEST_VALUE));
    let mut shown: Vec<_> = shown.filter(|phrase| !phrase.is_empty()).collect();
    if changes.is_empty() {
        shown.push("to what it was".to_owned());
    } else if changes.len() > MOST_CHANGES {
        shown.push(format!("and {} more", changes.len() - MOST_CHANGES));
    }
    format!("{target} by {}: {}", by.join(", "), shown.join(", "))
}

fn by(outcome: &Outcome) -> String {
    outcome.by.as_ref().map(|hook| format!("by {hook}")).unwrap_or_default()
}

fn verdict(outcome: &Outcome) -> String {
    let by = by(outcome);
    // Only a run that a halt has ended gets a verdict without any hook.
    if outcome.hooks.is_empty() {
        return format!("{by}, earlier in this run");
    }
    let reason = outcome.reason.as_ref().map(|reason| format!(": {}", escape::short(reason, LONGEST_TEXT)));
    format!("{by}{}", reason.unwrap_or_default())
}

fn failure(report: &HookReport, event: EventKind) -> String {
    let error = report.error.as_ref().map(|error| format!(": {}", escape::short(error, LONGEST_TEXT)));
    let then = match report.verdict {
        Verdict::Proceed if event.is_interceptor() => "; the event went on without it".to_owned(),
        Verdict::Proceed => String::new(),
        verdict => format!("; that counts as {verdict}"),
    };
    format!("{} {}{}{then}", report.hook, report.ended.phrase(), error.unwrap_or_default())
}
