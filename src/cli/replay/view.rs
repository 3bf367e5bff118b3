//! A replay as a person reads it: what the hooks did, then tables, then the totals. Refuses to count.

use std::{collections::BTreeMap, time::Duration};

use super::{
    super::{outcome_view::time, page::Page, paint::Paint, screen::Screen, table::Rows, workspace::counted},
    finding::{self, Finding, Sort, Told},
    play::{Finished, Player},
    report::{Report, Totals},
};
use crate::model::Verdict;

/// How many findings are shown unless all are asked for.
const MOST_SHOWN: usize = 40;

/// An event as soon as it is answered.
pub(super) fn event(finished: &Finished, player: &Player, screen: &Screen) -> String {
    let paint = screen.out.paint;
    let copy = if player.sessions() > 1 { format!("#{}", finished.copy) } else { String::new() };
    let verdict = match &finished.result {
        Ok(outcome) => paint.verdict(outcome.verdict, &format!("{:<7}", outcome.verdict)),
        Err(_) => paint.red("no outcome"),
    };
    format!(
        "{:>6}  {}{copy}  {verdict}  {}  {}",
        finished.line,
        super::escape::short(finished.run.as_str(), 40),
        finding::subject(finished),
        paint.dim(&time(finished.took)),
    )
}

/// Everything at the end.
pub(super) fn summary(report: &Report<'_>, all: bool, screen: &Screen) -> String {
    let paint = screen.out.paint;
    let mut page = Page::default();
    page.line(&findings(report, all, screen));
    page.line(&events(report, screen));
    if !report.by_hook.is_empty() {
        page.line(&hooks(report, screen));
    }
    page.line(&totals(&report.totals, paint));
    page.into_text()
}

fn findings(report: &Report<'_>, all: bool, screen: &Screen) -> String {
    let paint = screen.out.paint;
    if report.findings.is_empty() {
        return "The hooks left every event as it was.\n".to_owned();
    }
    let most = if all { usize::MAX } else { MOST_SHOWN };
    let shown: Vec<_> = report.findings.iter().take(most).collect();
    let widest = |part: fn(&Finding) -> usize| shown.iter().map(|(found, _)| part(found)).max().unwrap_or(0);
    let run = widest(|found| found.run.chars().count());
    let event = widest(|found| found.event.chars().count());
    let sort = widest(|found| found.sort.as_str().len());
    let mut page = Page::default();
    page.line(&paint.bold("What the hooks did, by line of the recording"));
    for (found, told) in &shown {
        page.line(&format!(
            "{:>5}  {:<run$}  {:<event$}  {}  {}{}",
            found.line,
            found.run,
            found.event,
            colored(found.sort, &format!("{:<sort$}", found.sort.as_str()), paint),
            told.what,
            paint.dim(&copies(told, report.sessions)),
        ));
    }
    let hidden = report.findings.len() - shown.len();
    if hidden > 0 {
        page.line(&paint.dim(&format!("       and {hidden} more; `--verbose` shows them")));
    }
    page.into_text()
}

/// In which copies of an event something was found, unless it was in all.
fn copies(told: &Told, sessions: u32) -> String {
    let copies = told.copies;
    match (told.varies, copies == u64::from(sessions)) {
        (false, true) => String::new(),
        (false, false) => format!("  (in {copies} of {sessions} sessions)"),
        (true, _) => format!("  (and the like, in {copies} of {sessions} sessions)"),
    }
}

fn colored(sort: Sort, text: &str, paint: Paint) -> String {
    match sort {
        Sort::Verdict(verdict) => paint.verdict(verdict, text),
        Sort::NoOutcome | Sort::Failed => paint.red(text),
        Sort::Warning => paint.yellow(text),
        Sort::Patched | Sort::Hidden => paint.green(text),
    }
}

fn events(report: &Report<'_>, screen: &Screen) -> String {
    let verdicts = given(report.by_event.iter().map(|row| &row.verdicts));
    let failed = report.by_event.iter().any(|row| row.no_outcome > 0);
    let mut header = vec!["event", "count"];
    header.extend(verdicts.iter().map(|verdict| verdict.as_str()));
    header.extend(failed.then_some("no outcome"));
    header.extend(["p50", "p99"]);
    let mut rows = Rows::new(&header, screen.out.paint, screen.table_width()).right(1..header.len());
    for row in &report.by_event {
        let mut cells = vec![row.event.to_string(), row.count.to_string()];
        cells.extend(verdicts.iter().map(|verdict| number(row.verdicts[verdict.as_str()])));
        cells.extend(failed.then(|| number(row.no_outcome)));
        cells.extend([row.p50_ms, row.p99_ms].map(milliseconds));
        rows.add(cells);
    }
    rows.render()
}

fn hooks(report: &Report<'_>, screen: &Screen) -> String {
    let verdicts = given(report.by_hook.iter().map(|row| &row.verdicts));
    let mut header = vec!["hook", "runs"];
    header.extend(verdicts.iter().map(|verdict| verdict.as_str()));
    header.extend(["failed", "p50", "p99"]);
    let mut rows = Rows::new(&header, screen.out.paint, screen.table_width()).right(1..header.len());
    for row in &report.by_hook {
        let mut cells = vec![row.hook.clone(), row.runs.to_string()];
        cells.extend(verdicts.iter().map(|verdict| number(row.verdicts[verdict.as_str()])));
        cells.push(number(row.failures));
        cells.extend([row.p50_ms, row.p99_ms].map(milliseconds));
        rows.add(cells);
    }
    rows.render()
}

/// The verdicts worth a column.
fn given<'a>(rows: impl Iterator<Item = &'a BTreeMap<&'static str, u64>>) -> Vec<Verdict> {
    let rows: Vec<_> = rows.collect();
    let is_given = |verdict: &Verdict| {
        *verdict == Verdict::Proceed
            || rows.iter().any(|row| row.get(verdict.as_str()).is_some_and(|n| *n > 0))
    };
    Verdict::ALL.into_iter().filter(is_given).collect()
}

/// A number, with nothing in the place of zeros: they hide the others.
fn number(number: u64) -> String {
    if number == 0 { "·".to_owned() } else { number.to_string() }
}

fn milliseconds(milliseconds: Option<f64>) -> String {
    milliseconds.map_or_else(|| "·".to_owned(), |m| time(Duration::from_secs_f64(m / 1e3)))
}

fn totals(totals: &Totals, paint: Paint) -> String {
    let number = |number: u64, thing| counted(usize::try_from(number).unwrap_or(usize::MAX), thing);
    let played = format!(
        "{} of {} in {}, {} per second; hooks ran {}",
        number(totals.events, "event"),
        number(totals.runs, "run"),
        time(Duration::from_secs_f64(totals.seconds)),
        totals.events_per_second,
        number(totals.invocations, "time"),
    );
    let trouble = [
        (totals.failures > 0).then(|| format!(", {} of them without a reply", totals.failures)),
        (totals.no_outcome > 0).then(|| format!("; {} got no outcome", number(totals.no_outcome, "event"))),
        (totals.broken_lines > 0)
            .then(|| format!("; {} could not be read", counted(totals.broken_lines, "line"))),
    ];
    let trouble: String = trouble.into_iter().flatten().collect();
    if trouble.is_empty() { played } else { played + &paint.red(&trouble) }
}
