//! A replay as a person reads it: what the hooks did, tables, totals.

use std::{collections::BTreeMap, time::Duration};

use super::{
    super::{
        escape,
        paint::Paint,
        screen::Screen,
        table::{AdaptiveTable, EMPTY_CELL, Page},
        units::{plural, plural_u64, precise_duration},
        wrap,
    },
    finding::{self, Finding, FindingKind, Occurrences},
    play::{AnswerOrigin, PlayedEvent, ReplayPlayer},
    report::{HookSummary, ReplayReport, ReplayTotals},
};
use crate::model::Verdict;

/// How many findings are shown unless all are asked for.
const MOST_SHOWN: usize = 40;

/// With less room than this for what a hook did, it gets lines of its own below its event.
const LEAST_ROOM: usize = 48;

/// Where the lines below an event begin.
const INDENT: usize = 7;

/// An event as soon as it is answered.
pub(super) fn event(played: &PlayedEvent, replayer: &ReplayPlayer, screen: &Screen) -> String {
    let paint = screen.out.paint;
    let copy = if replayer.sessions() > 1 { format!("#{}", played.copy) } else { String::new() };
    let verdict = match &played.result {
        Ok(outcome) => paint.verdict(outcome.verdict, &format!("{:<7}", outcome.verdict)),
        Err(_) => paint.red("no outcome"),
    };
    let took = match played.origin {
        AnswerOrigin::Fresh => precise_duration(played.took),
        AnswerOrigin::Stored => "as before".to_owned(),
    };
    format!(
        "{:>6}  {}{copy}  {verdict}  {}  {}",
        played.line,
        escape::short(played.run.as_str(), 40),
        finding::subject(played),
        paint.dim(&took),
    )
}

/// The summary at the end.
pub(super) fn summary(report: &ReplayReport<'_>, all: bool, screen: &Screen) -> String {
    let paint = screen.out.paint;
    let mut page = Page::default();
    page.line(&findings(report, all, screen));
    page.line(&events(report, screen));
    if !report.by_hook.is_empty() {
        page.line(&hooks(report, screen));
    }
    page.line(&totals(&report.totals, paint, screen.table_width()));
    page.into_text()
}

fn findings(report: &ReplayReport<'_>, all: bool, screen: &Screen) -> String {
    let paint = screen.out.paint;
    if report.findings.is_empty() {
        return "The hooks left every event as it was.\n".to_owned();
    }
    let most = if all { usize::MAX } else { MOST_SHOWN };
    let shown: Vec<_> = report.findings.iter().take(most).collect();
    let layout = FindingLayout::new(&shown, screen.table_width());
    let mut page = Page::default();
    page.line(&paint.bold("What the hooks did, by line of the recording"));
    let mut before = None;
    for (found, text) in shown.iter().copied() {
        let text = format!("{}{}", text.what, copies(text, report.sessions));
        let place = (found.line, &found.event);
        page.line(&layout.finding(found, &text, before == Some(place), paint));
        before = Some(place);
    }
    let hidden = report.findings.len() - shown.len();
    if hidden > 0 {
        page.line(&paint.dim(&format!("       and {hidden} more; `--verbose` shows them")));
    }
    page.into_text()
}

/// The widths of the columns before the text of a finding.
struct FindingLayout {
    run: usize,
    event: usize,
    kind: usize,
    width: Option<usize>,
}

impl FindingLayout {
    fn new(shown: &[(&Finding, &Occurrences)], width: Option<usize>) -> Self {
        let widest =
            |part: fn(&Finding) -> usize| shown.iter().map(|(found, _)| part(found)).max().unwrap_or(0);
        Self {
            run: widest(|found| found.run.chars().count()),
            event: widest(|found| found.event.chars().count()),
            kind: widest(|found| found.kind.as_str().len()),
            width,
        }
    }

    /// A finding on one line, where there is room for it; else below its event, which the next finding about
    /// it does not repeat.
    fn finding(&self, found: &Finding, text: &str, same_event: bool, paint: Paint) -> String {
        let Self { run, event, kind, width } = *self;
        let place = format!("{:>5}  {:<run$}  {:<event$}", found.line, found.run, found.event);
        let kind_shown = colored(found.kind, &format!("{:<kind$}", found.kind.as_str()), paint);
        let beside = place.chars().count() + kind + 4;
        if width.is_none_or(|width| width >= beside + LEAST_ROOM) {
            return format!("{place}  {kind_shown}  {}", wrap::hanging(text, width, beside));
        }
        let below = wrap::hanging(text, width, INDENT + kind + 2);
        let below = format!("{:INDENT$}{kind_shown}  {below}", "");
        let place = format!("{:>5}  {}  {}", found.line, found.run, found.event);
        if same_event { below } else { format!("{}\n{below}", wrap::hanging(&place, width, INDENT)) }
    }
}

/// In how many copies of its event a finding occurs.
fn copies(text: &Occurrences, sessions: u32) -> String {
    let copies = text.copies;
    match (text.varies, sessions) {
        (false, 1) => String::new(),
        (false, _) => format!("  (in {copies} of {sessions} sessions)"),
        (true, _) => format!("  (and the like, in {copies} of {sessions} sessions)"),
    }
}

fn colored(kind: FindingKind, text: &str, paint: Paint) -> String {
    match kind {
        FindingKind::Verdict(verdict) => paint.verdict(verdict, text),
        FindingKind::NoOutcome | FindingKind::Failed => paint.red(text),
        FindingKind::Warning => paint.yellow(text),
        FindingKind::Patched | FindingKind::Hidden => paint.green(text),
        FindingKind::Note => paint.bold(text),
    }
}

fn events(report: &ReplayReport<'_>, screen: &Screen) -> String {
    let verdicts = given(report.by_event.iter().map(|row| &row.verdicts));
    let failed = report.by_event.iter().any(|row| row.no_outcome > 0);
    let mut header = vec!["event", "count"];
    header.extend(verdicts.iter().map(|verdict| verdict.as_str()));
    header.extend(failed.then_some("no outcome"));
    header.extend(["p50", "p99"]);
    let mut table = AdaptiveTable::new(header, screen.out.paint);
    for row in &report.by_event {
        let mut cells = vec![row.event.to_string(), row.count.to_string()];
        cells.extend(verdicts.iter().map(|verdict| number(row.verdicts[verdict.as_str()])));
        cells.extend(failed.then(|| number(row.no_outcome)));
        cells.extend([row.p50_ms, row.p99_ms].map(milliseconds));
        table.add(cells);
    }
    table.render("p99", screen.table_width())
}

fn hooks(report: &ReplayReport<'_>, screen: &Screen) -> String {
    let verdicts = given(report.by_hook.iter().map(|row| &row.verdicts));
    // A column with the same text in every row says nothing.
    let alike = report.by_hook.windows(2).all(|pair| handler(&pair[0]) == handler(&pair[1]));
    let mut header = vec!["hook"];
    header.extend((!alike).then_some("handler"));
    header.push("runs");
    header.extend(verdicts.iter().map(|verdict| verdict.as_str()));
    header.extend(["failed", "p50", "p99"]);
    let mut table = AdaptiveTable::new(header, screen.out.paint).text_columns(&["handler"]);
    for row in &report.by_hook {
        let mut cells = vec![row.hook.clone()];
        cells.extend((!alike).then(|| handler(row)));
        cells.push(row.runs.to_string());
        cells.extend(verdicts.iter().map(|verdict| number(row.verdicts[verdict.as_str()])));
        cells.push(number(row.failures));
        cells.extend([row.p50_ms, row.p99_ms].map(milliseconds));
        table.add(cells);
    }
    table.render("p99", screen.table_width())
}

/// The kind of handler and, for commands, the mode.
fn handler(row: &HookSummary) -> String {
    row.mode.map_or_else(|| row.handler.to_string(), |mode| format!("{}, {mode}", row.handler))
}

/// The verdicts that need a column.
fn given<'a>(rows: impl Iterator<Item = &'a BTreeMap<&'static str, u64>>) -> Vec<Verdict> {
    let rows: Vec<_> = rows.collect();
    let is_given = |verdict: &Verdict| {
        *verdict == Verdict::Proceed
            || rows.iter().any(|row| row.get(verdict.as_str()).is_some_and(|n| *n > 0))
    };
    Verdict::ALL.into_iter().filter(is_given).collect()
}

fn number(number: u64) -> String {
    if number == 0 { EMPTY_CELL.to_owned() } else { number.to_string() }
}

fn milliseconds(milliseconds: Option<f64>) -> String {
    milliseconds.map_or_else(|| EMPTY_CELL.to_owned(), |m| precise_duration(Duration::from_secs_f64(m / 1e3)))
}

fn totals(totals: &ReplayTotals, paint: Paint, width: Option<usize>) -> String {
    let repeated = match totals.repeated {
        0 => String::new(),
        repeated => format!("; {} answered as before", plural_u64(repeated, "event")),
    };
    let played = format!(
        "{} of {} in {}, {} per second{repeated}; hooks ran {}",
        plural_u64(totals.events, "event"),
        plural_u64(totals.runs, "run"),
        precise_duration(Duration::from_secs_f64(totals.seconds)),
        totals.events_per_second,
        plural_u64(totals.invocations, "time"),
    );
    let problems = problems(totals);
    let text = wrap::hanging(&format!("{played}{problems}"), width, 0);
    // Breaking lines turns spaces into line breaks, so the problems begin where they did.
    match text.split_at_checked(played.len()) {
        Some((played, problems)) if !problems.is_empty() => format!("{played}{}", paint.red(problems)),
        _ => text,
    }
}

fn problems(totals: &ReplayTotals) -> String {
    let failures = match totals.failures {
        0 => String::new(),
        failures => format!(", {failures} of them failed"),
    };
    let no_outcome = match totals.no_outcome {
        0 => String::new(),
        events => format!("; {} got no outcome", plural_u64(events, "event")),
    };
    let broken_lines = match totals.broken_lines {
        0 => String::new(),
        lines => format!("; {} could not be read", plural(lines, "line")),
    };
    failures + &no_outcome + &broken_lines
}
