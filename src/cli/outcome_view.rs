//! One outcome as a person reads it: the verdict, the reason, what changed and how each hook ended.

use serde::Serialize;

use super::{
    change_text, escape,
    paint::Paint,
    table::{Page, TextTable},
    units::precise_duration,
    wrap,
};
use crate::model::{Ended, Event, EventKind, HookReport, NoteKind, Outcome, Verdict};

/// The width of the labels.
const LABEL: usize = 9;

/// How much of an error of a hook is shown, in characters.
const LONGEST_ERROR: usize = 200;

/// How much of a changed value is shown, in characters.
const LONGEST_VALUE: usize = 160;

/// How many changes of one patch are shown.
const MOST_CHANGES: usize = 40;

/// The outcome of an event, or of one that could not be read.
pub(super) fn render(event: Option<&Event>, outcome: &Outcome, paint: Paint, width: Option<usize>) -> String {
    let mut page = Page::default();
    let verdict = paint.verdict(outcome.verdict, outcome.verdict.as_str());
    page.line(&format!("{verdict}  {}", subject(event, outcome)));
    if let Some(reason) = &outcome.reason {
        labelled("reason", reason, paint, width, &mut page);
    }
    if let Some(by) = &outcome.by {
        labelled("by", by.as_str(), paint, width, &mut page);
    }
    for note in &outcome.notes {
        let text = format!("{} to {}: {}", note.hook, audience(note.kind), note.text);
        labelled("note", &text, paint, width, &mut page);
    }
    if outcome.suppress_output {
        labelled("output", "hidden", paint, width, &mut page);
    }
    patches(event, outcome, paint, width, &mut page);
    if outcome.hooks.is_empty() {
        page.line("No hook ran.");
    } else {
        page.line("");
        page.block(&hooks(outcome, paint, width));
    }
    page.into_text()
}

/// Adds a line with a label, its text broken to fit beside it.
fn labelled(label: &str, text: &str, paint: Paint, width: Option<usize>, page: &mut Page) {
    let text = wrap::hanging(&escape::block(text, 0), width, LABEL);
    page.line(&format!("{}{text}", paint.dim(&format!("{label:<LABEL$}"))));
}

fn subject(event: Option<&Event>, outcome: &Outcome) -> String {
    let matched = event.and_then(Event::match_text).map(|text| format!(" {}", escape::short(text, 80)));
    format!("{}{}", outcome.event, matched.unwrap_or_default())
}

/// Whom a note is for.
pub(super) fn audience(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::SystemMessage | NoteKind::LoopBroken => "the person",
        NoteKind::AdditionalContext => "the model",
    }
}

fn patches(event: Option<&Event>, outcome: &Outcome, paint: Paint, width: Option<usize>, page: &mut Page) {
    for (target, after) in outcome.patched.iter() {
        page.line(&format!("{}{target}", paint.dim(&format!("{:<LABEL$}", "patched"))));
        let before = event.and_then(|event| event.targets.get(target));
        let changes = change_text::changes(before, after);
        for change in changes.iter().take(MOST_CHANGES) {
            let path = change_text::path(change);
            let place = if path.is_empty() { "" } else { &format!("{path}: ") };
            let (before, after) = change_text::sides(change, LONGEST_VALUE);
            let before =
                before.map(|value| paint.red(&wrap::hanging(&format!("- {place}{value}"), width, LABEL + 2)));
            let after = after
                .map(|value| paint.green(&wrap::hanging(&format!("+ {place}{value}"), width, LABEL + 2)));
            for line in before.into_iter().chain(after) {
                page.line(&format!("{:LABEL$}{line}", ""));
            }
        }
        if changes.len() > MOST_CHANGES {
            page.line(&format!("{:LABEL$}and {} more", "", changes.len() - MOST_CHANGES));
        }
    }
}

/// A hook on each line, or a few lines for each where a table would be too wide.
fn hooks(outcome: &Outcome, paint: Paint, width: Option<usize>) -> String {
    let mut table =
        TextTable::new(&["hook", "ended", "verdict", "took", "remarks"], paint).right_aligned([3]);
    let mut page = Page::default();
    for report in &outcome.hooks {
        let hook = report.hook.as_str();
        let ended = report.ended.phrase();
        let verdict = given_verdict(report).map_or("none", Verdict::as_str);
        let took = precise_duration(report.duration);
        let remarks = remarks(report, outcome.event).join("; ");
        table.add([hook, ended, verdict, &took, &remarks].map(str::to_owned));
        let parts = [ended, verdict, &remarks].into_iter().filter(|part| !part.is_empty());
        let parts: Vec<_> = parts.collect();
        page.line(&paint.bold(hook));
        page.line(&wrap::hanging(&format!("  {}; took {took}", parts.join("; ")), width, 2));
    }
    if table.fits(width) { table.render() } else { page.into_text() }
}

/// The verdict of a hook; `None` if it failed and its failure is ignored.
pub(super) fn given_verdict(report: &HookReport) -> Option<Verdict> {
    let is_ignored = report.ended != Ended::Completed && report.verdict == Verdict::Proceed;
    (!is_ignored).then_some(report.verdict)
}

/// What the failure of a hook means for the event; empty if it did not fail, or if the event is only observed.
pub(super) fn failure_effect(report: &HookReport, event: EventKind) -> String {
    match report.verdict {
        _ if report.ended == Ended::Completed => String::new(),
        Verdict::Proceed if event.is_interceptor() => "the event went on without it".to_owned(),
        Verdict::Proceed => String::new(),
        verdict => format!("that counts as {verdict}"),
    }
}

fn remarks(report: &HookReport, event: EventKind) -> Vec<String> {
    let mut remarks: Vec<String> = report.patched.iter().map(|target| format!("patched {target}")).collect();
    remarks.extend(report.error.iter().map(|error| shortened(error)));
    let effect = failure_effect(report, event);
    if !effect.is_empty() {
        remarks.push(effect);
    }
    remarks.extend(report.tokens.map(|t| format!("{} tokens read, {} written", t.input, t.output)));
    remarks.extend(report.warnings.iter().map(|warning| format!("warning: {}", shortened(warning))));
    remarks
}

fn shortened(text: &str) -> String {
    escape::short(text, LONGEST_ERROR)
}

/// How often each verdict was given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct VerdictCounts([u64; Verdict::ALL.len()]);

impl VerdictCounts {
    /// How often this verdict was given.
    pub(super) fn of(&self, verdict: Verdict) -> u64 {
        self.0[verdict as usize]
    }

    pub(super) fn add(&mut self, verdict: Verdict) {
        self.0[verdict as usize] += 1;
    }
}

impl Serialize for VerdictCounts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(Verdict::ALL.map(|verdict| (verdict, self.of(verdict))))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{HandlerKind, HookName, Json, Note, RunId, SessionId, Target};

    fn event() -> Event {
        let (session, run) = (SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        let mut event = Event::new(EventKind::BeforeToolDispatch, session, run);
        event.attributes.tool_name = Some("Ba\x1bsh".into());
        event.targets.set(Target::ToolInput, Json::parse(r#"{"command":"npm i"}"#).unwrap());
        event
    }

    fn outcome() -> Outcome {
        let name = |name: &str| HookName::new(name).unwrap();
        let report = |hook: &str, ended, millis, error: Option<&str>| HookReport {
            hook: name(hook),
            handler: HandlerKind::Command,
            ended,
            verdict: Verdict::Proceed,
            patched: Vec::new(),
            values: None,
            queued: Duration::ZERO,
            content: None,
            duration: Duration::from_micros(millis),
            tokens: None,
            error: error.map(Into::into),
            failure_mode: None,
            trust: None,
            patch_results: crate::model::PatchResults::default(),
            started: None,
            warnings: Vec::new(),
        };
        let mut outcome = Outcome::proceed(crate::run::next_decision_id(), EventKind::BeforeToolDispatch, 1);
        outcome.patched.set(Target::ToolInput, Json::parse(r#"{"command":"npm ci"}"#).unwrap());
        let kind = NoteKind::SystemMessage;
        outcome.notes = vec![Note { hook: name("npm"), kind, text: "pinned\nthe rest\x1b[2J".into() }];
        outcome.hooks = vec![
            report("npm", Ended::Completed, 61_234, None),
            report("slow", Ended::TimedOut, 2_000_000, Some("it took\n2 s")),
        ];
        outcome.hooks[0].warnings.push("odd".to_owned());
        outcome
    }

    #[test]
    fn a_patched_event_shows_what_changed() {
        insta::assert_snapshot!(render(Some(&event()), &outcome(), Paint::Plain, Some(100)));
    }

    #[test]
    fn a_block_shows_who_and_why() {
        let mut outcome = Outcome::proceed(crate::run::next_decision_id(), EventKind::BeforeToolDispatch, 1);
        outcome.verdict = Verdict::Block;
        outcome.reason = Some("no\nreally".into());
        outcome.by = Some(HookName::new("guard").unwrap());
        insta::assert_snapshot!(render(Some(&event()), &outcome, Paint::Plain, Some(100)));
        assert!(render(None, &outcome, Paint::Colored, None).starts_with("\x1b[1;31mblock\x1b[0m"));
    }
}
