//! One outcome as a person reads it: the verdict first, then why, what changed and how each hook fared.
//! Refuses to show it to programs, which get its canonical JSON.

use super::{escape, json_diff, page::Page, paint::Paint, table::TextTable, units::precise_duration, wrap};
use crate::model::{Event, HookReport, NoteKind, Outcome, Verdict};

/// The width of the words in front of what they introduce.
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
    let mut row = |label: &str, value: &str| {
        let value = wrap::hanging(&escape::block(value, 0), width, LABEL);
        page.line(&format!("{}{value}", paint.dim(&format!("{label:<LABEL$}"))));
    };
    if let Some(reason) = &outcome.reason {
        row("reason", reason);
    }
    if let Some(by) = &outcome.by {
        row("by", by.as_str());
    }
    for note in &outcome.notes {
        row("note", &format!("{} to {}: {}", note.hook, audience(note.kind), note.text));
    }
    if outcome.suppress_output {
        row("output", "is not to be shown");
    }
    patches(event, outcome, paint, width, &mut page);
    if outcome.hooks.is_empty() {
        page.line("No hook ran.");
    } else {
        page.line("");
        page.block(&hooks(&outcome.hooks, paint, width));
    }
    page.into_text()
}

fn subject(event: Option<&Event>, outcome: &Outcome) -> String {
    let matched = event.and_then(Event::match_text).map(|text| format!(" {}", escape::short(text, 80)));
    format!("{}{}", outcome.event, matched.unwrap_or_default())
}

/// For whom a note is, in words.
pub(super) fn audience(kind: NoteKind) -> &'static str {
    match kind {
        NoteKind::SystemMessage | NoteKind::LoopBroken => "the person",
        NoteKind::AdditionalContext => "the model",
    }
}

fn patches(event: Option<&Event>, outcome: &Outcome, paint: Paint, width: Option<usize>, page: &mut Page) {
    let line = |text: &str| wrap::hanging(text, width, LABEL + 2);
    for (target, after) in outcome.patched.iter() {
        page.line(&format!("{}{target}", paint.dim(&format!("{:<LABEL$}", "patched"))));
        let before = event.and_then(|event| event.targets.get(target));
        let changes = json_diff::between(before, after);
        for change in changes.iter().take(MOST_CHANGES) {
            let place = if change.place.is_empty() { "" } else { &format!("{}: ", change.place) };
            let (before, after) = change.sides(LONGEST_VALUE);
            let before = before.map(|value| paint.red(&line(&format!("- {place}{value}"))));
            let after = after.map(|value| paint.green(&line(&format!("+ {place}{value}"))));
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
fn hooks(reports: &[HookReport], paint: Paint, width: Option<usize>) -> String {
    let mut rows = TextTable::new(&["hook", "ended", "verdict", "took", "remarks"], paint).right([3]);
    let mut page = Page::default();
    for report in reports {
        let (hook, ended, took) =
            (report.hook.as_str(), report.ended.phrase(), precise_duration(report.duration));
        let verdict = if report.verdict == Verdict::Proceed { "" } else { report.verdict.as_str() };
        let remarks = remarks(report).join("; ");
        rows.add([hook, ended, verdict, &took, &remarks].map(str::to_owned));
        let told = [ended, verdict, &remarks].into_iter().filter(|part| !part.is_empty());
        let told = format!("  {}; took {took}", told.collect::<Vec<_>>().join("; "));
        page.line(&paint.bold(hook));
        page.line(&wrap::hanging(&told, width, 2));
    }
    if rows.fits(width) { rows.render() } else { page.into_text() }
}

fn remarks(report: &HookReport) -> Vec<String> {
    let mut remarks: Vec<String> = report.patched.iter().map(|target| format!("patched {target}")).collect();
    remarks.extend(report.error.iter().map(|error| remark(error)));
    remarks.extend(report.tokens.map(|t| format!("{} tokens read, {} written", t.input, t.output)));
    remarks.extend(report.warnings.iter().map(|warning| format!("warning: {}", remark(warning))));
    remarks
}

fn remark(text: &str) -> String {
    escape::short(text, LONGEST_ERROR)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Ended, EventKind, HandlerKind, HookName, Json, Note, RunId, SessionId, Target};

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
            duration: Duration::from_micros(millis),
            tokens: None,
            error: error.map(Into::into),
            failure_mode: None,
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
