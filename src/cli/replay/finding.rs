//! Findings: verdicts, patches, notes, failures and warnings of replayed events. Events that hooks left alone have none.

use std::fmt::Display;

use super::{
    super::{
        change_text, escape,
        outcome_view::{audience, failure_effect},
    },
    play::{AnswerOrigin, PlayedEvent},
};
use crate::model::{Ended, EventKind, HookReport, Json, Outcome, Target, Verdict};

/// How much of a text from a hook or host is shown, in characters.
const LONGEST_TEXT: usize = 160;

/// Longer changed values, in characters, are not shown: only where they are.
const LONGEST_VALUE: usize = 60;

/// How many changes of one patch are shown.
const MOST_CHANGES: usize = 3;

/// The kind of a finding, the strictest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FindingKind {
    /// The event got no outcome.
    NoOutcome,
    /// A hook gave a verdict.
    Verdict(Verdict),
    /// The payload was changed.
    Patched,
    /// The tool's output is hidden.
    Hidden,
    /// A hook failed.
    Failed,
    /// A hook's answer has a warning.
    Warning,
    /// A hook sent a note.
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

/// A finding without its text, which may differ between copies of the event. Ordered as in the recording.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Finding {
    pub(super) line: usize,
    pub(super) kind: FindingKind,
    /// The hook or target that it is about, and which of several remarks it is.
    about: (String, usize),
    /// As in the recording.
    pub(super) run: String,
    pub(super) event: String,
}

/// In how many copies of its event a finding occurs.
#[derive(Debug, Clone)]
pub(super) struct Occurrences {
    /// The text of the first copy, on one line and escaped.
    pub(super) what: String,
    /// The number of copies.
    pub(super) copies: u64,
    /// Whether the text differs in other copies.
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

/// A finding before its line, run and event are known.
struct Remark {
    kind: FindingKind,
    /// The hook or target that it is about.
    about: String,
    /// Which of several remarks about it this is.
    number: usize,
    text: String,
}

impl Remark {
    fn new(kind: FindingKind, about: &dyn Display, text: String) -> Self {
        Self { kind, about: about.to_string(), number: 0, text }
    }

    fn numbered(self, number: usize) -> Self {
        Self { number, ..self }
    }
}

/// The findings of an event, with their texts.
pub(super) fn of(played: &PlayedEvent) -> Vec<(Finding, String)> {
    let mut remarks = Vec::new();
    match &played.result {
        Ok(outcome) if played.origin == AnswerOrigin::Stored => {
            if outcome.verdict != Verdict::Proceed {
                let text = format!("{}, as before", by(outcome));
                remarks.push(Remark::new(FindingKind::Verdict(outcome.verdict), &"", text));
            }
        }
        Ok(outcome) => add_outcome(played, outcome, &mut remarks),
        Err(error) => {
            remarks.push(Remark::new(FindingKind::NoOutcome, &"", escape::short(error, LONGEST_TEXT)));
        }
    }
    remarks.into_iter().map(|remark| located(remark, played)).collect()
}

/// A finding with its line, run and event.
fn located(remark: Remark, played: &PlayedEvent) -> (Finding, String) {
    let finding = Finding {
        line: played.line,
        kind: remark.kind,
        about: (remark.about, remark.number),
        run: escape::short(played.run.as_str(), 40),
        event: subject(played),
    };
    (finding, remark.text)
}

/// The event's kind, and what its matchers looked at.
pub(super) fn subject(played: &PlayedEvent) -> String {
    let matched = played.matched.as_ref().map(|text| format!(" {}", escape::short(text, 40)));
    format!("{}{}", played.kind, matched.unwrap_or_default())
}

fn add_outcome(played: &PlayedEvent, outcome: &Outcome, remarks: &mut Vec<Remark>) {
    if outcome.verdict != Verdict::Proceed {
        remarks.push(Remark::new(FindingKind::Verdict(outcome.verdict), &"", verdict(outcome)));
    }
    for (target, after) in outcome.patched.iter() {
        let text = patch(target, outcome, played.before.get(target), after);
        remarks.push(Remark::new(FindingKind::Patched, &target, text));
    }
    if outcome.suppress_output {
        remarks.push(Remark::new(FindingKind::Hidden, &"", "the tool's output is hidden".to_owned()));
    }
    for report in &outcome.hooks {
        if report.ended != Ended::Completed {
            remarks.push(Remark::new(FindingKind::Failed, &report.hook, failure(report, outcome.event)));
        }
        for (number, warning) in report.warnings.iter().enumerate() {
            let text = format!("{}: {}", report.hook, escape::short(warning, LONGEST_TEXT));
            remarks.push(Remark::new(FindingKind::Warning, &report.hook, text).numbered(number));
        }
    }
    for (number, note) in outcome.notes.iter().enumerate() {
        let text = escape::short(note.text.trim_end(), LONGEST_TEXT);
        let text = format!("{} to {}: {text}", note.hook, audience(note.kind));
        remarks.push(Remark::new(FindingKind::Note, &note.hook, text).numbered(number));
    }
}

/// Which hooks changed a part of the payload, and where.
fn patch(target: Target, outcome: &Outcome, before: Option<&Json>, after: &Json) -> String {
    let patched = |report: &&HookReport| report.patched.contains(&target);
    let by: Vec<_> = outcome.hooks.iter().filter(patched).map(|report| report.hook.as_str()).collect();
    let changes = change_text::changes(before, after);
    let shown = changes.iter().take(MOST_CHANGES).map(|change| change_text::phrase(change, LONGEST_VALUE));
    let mut shown: Vec<_> = shown.filter(|phrase| !phrase.is_empty()).collect();
    if changes.is_empty() {
        shown.push("to the same value".to_owned());
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
    let effect = failure_effect(report, event);
    let separator = if effect.is_empty() { "" } else { "; " };
    format!("{} {}{}{separator}{effect}", report.hook, report.ended.phrase(), error.unwrap_or_default())
}
