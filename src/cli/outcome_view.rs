//! One outcome as a person reads it: the verdict first, then why, what changed and how each hook fared.
//! Refuses to show it to programs, which get its canonical JSON.

use std::time::Duration;

use super::{
    difference::{self, Change},
    escape,
    page::Page,
    paint::Paint,
    table::Rows,
};
use crate::model::{Ended, Event, HookReport, NoteKind, Outcome, Verdict};

/// The width of the words in front of what they introduce.
const LABEL: usize = 9;

/// How much of an error of a hook is shown, in characters.
const LONGEST_ERROR: usize = 200;

/// The outcome of an event, or of one that could not be read.
pub(super) fn render(event: Option<&Event>, outcome: &Outcome, paint: Paint, width: Option<usize>) -> String {
    let mut page = Page::default();
    let verdict = paint.verdict(outcome.verdict, outcome.verdict.as_str());
    page.line(&format!("{verdict}  {}", subject(event, outcome)));
    let mut row = |label: &str, value: &str| {
        page.line(&format!("{}{}", paint.dim(&format!("{label:<LABEL$}")), escape::block(value, LABEL)));
    };
    if let Some(reason) = &outcome.reason {
        row("reason", reason);
    }
    if let Some(by) = &outcome.by {
        row("by", by.as_str());
    }
    for note in &outcome.notes {
        let whom = match note.kind {
            NoteKind::SystemMessage => "you",
            NoteKind::AdditionalContext => "the model",
        };
        row("note", &format!("{} to {whom}: {}", note.hook, note.text));
    }
    if outcome.suppress_output {
        row("output", "is not to be shown");
    }
    patches(event, outcome, paint, &mut page);
    if outcome.hooks.is_empty() {
        page.line("No hook ran.");
    } else {
        page.line("");
        page.block(&hooks(&outcome.hooks, paint, width));
    }
    page.into_text()
}

fn subject(event: Option<&Event>, outcome: &Outcome) -> String {
    let matched = event.and_then(Event::matched_text).map(|text| format!(" {}", escape::short(text, 80)));
    format!("{}{}", outcome.event, matched.unwrap_or_default())
}

fn patches(event: Option<&Event>, outcome: &Outcome, paint: Paint, page: &mut Page) {
    for (target, after) in outcome.patched.iter() {
        page.line(&format!("{}{target}", paint.dim(&format!("{:<LABEL$}", "patched"))));
        let before = event.and_then(|event| event.targets.get(target));
        for change in difference::between(before, after) {
            let line = match change {
                Change::Removed(line) => paint.red(&format!("- {line}")),
                Change::Added(line) => paint.green(&format!("+ {line}")),
            };
            page.line(&format!("{:LABEL$}{line}", ""));
        }
    }
}

fn hooks(reports: &[HookReport], paint: Paint, width: Option<usize>) -> String {
    let mut rows = Rows::new(&["hook", "ended", "verdict", "took", "remarks"], paint, width).right([3]);
    for report in reports {
        let mut remarks: Vec<String> =
            report.patched.iter().map(|target| format!("patched {target}")).collect();
        remarks.extend(report.error.iter().map(|error| remark(error)));
        remarks.extend(report.warnings.iter().map(|warning| format!("warning: {}", remark(warning))));
        rows.add([
            report.hook.to_string(),
            ended(report.ended).to_owned(),
            if report.verdict == Verdict::Proceed { String::new() } else { report.verdict.to_string() },
            time(report.duration),
            remarks.join("; "),
        ]);
    }
    rows.render()
}

fn remark(text: &str) -> String {
    escape::short(text, LONGEST_ERROR)
}

/// How an invocation ended, in words.
pub(super) fn ended(ended: Ended) -> &'static str {
    match ended {
        Ended::Completed => "completed",
        Ended::Failed => "failed",
        Ended::TimedOut => "timed out",
        Ended::SpawnFailed => "did not start",
        Ended::InvalidOutput => "gave no valid answer",
        Ended::OutputTooLarge => "printed too much",
        Ended::Cancelled => "was cancelled",
        Ended::Shed => "had no place to run",
        Ended::Untrusted => "is not trusted",
    }
}

/// A duration with three digits that matter.
pub(super) fn time(duration: Duration) -> String {
    let milliseconds = duration.as_secs_f64() * 1e3;
    match milliseconds {
        m if m >= 1e3 => format!("{:.2} s", m / 1e3),
        m if m >= 100.0 => format!("{m:.0} ms"),
        m if m >= 1.0 => format!("{m:.1} ms"),
        m => format!("{:.0} µs", m * 1e3),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventKind, HandlerKind, HookName, Json, Note, RunId, SessionId, Target};

    fn event() -> Event {
        let (session, run) = (SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        let mut event = Event::new(EventKind::BeforeToolDispatch, session, run);
        event.facts.tool_name = Some("Ba\x1bsh".into());
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
            error: error.map(Into::into),
            warnings: Vec::new(),
        };
        let mut outcome = Outcome::proceed(EventKind::BeforeToolDispatch, 1);
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
        let mut outcome = Outcome::proceed(EventKind::BeforeToolDispatch, 1);
        outcome.verdict = Verdict::Block;
        outcome.reason = Some("no\nreally".into());
        outcome.by = Some(HookName::new("guard").unwrap());
        insta::assert_snapshot!(render(Some(&event()), &outcome, Paint::Plain, Some(100)));
        assert!(render(None, &outcome, Paint::Colored, None).starts_with("\x1b[1;31mblock\x1b[0m"));
    }

    #[test]
    fn times_have_their_unit() {
        let shown = |micros| time(Duration::from_micros(micros));
        assert_eq!(shown(0), "0 µs");
        assert_eq!(shown(999), "999 µs");
        assert_eq!(shown(61_234), "61.2 ms");
        assert_eq!(shown(2_000_000), "2.00 s");
        assert_eq!(shown(12_340_000), "12.34 s");
    }
}
