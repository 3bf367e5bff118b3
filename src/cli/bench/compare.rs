//! Compares two reports that were written as JSON.

use std::{io::Read, path::Path};

use super::{
    super::{
        escape,
        exit::{CliError, CliResult, Exit},
        paths::open_input,
        screen::Screen,
    },
    page::{self, PageLayout},
    ratios,
    report::{BenchReport, REPORT_FORMAT, RatioRow},
    statistics::unpaired_ratio,
};
use crate::model::io_reason;

/// The largest report, in bytes.
const LARGEST_REPORT: u64 = 16 << 20;

/// Compares two reports, prints how their figures relate, and what else is different. Returns the rows.
pub(super) fn compare(first: &Path, other: &Path, screen: &Screen) -> Result<Vec<RatioRow>, CliError> {
    let (first, other) = (read(first)?, read(other)?);
    for remark in remarks(&first, &other) {
        screen.note(&format!("{} {remark}", screen.err.paint.yellow("note:")));
    }
    let rows = ratios::rows(&first.measured, &other.measured, unpaired_ratio);
    let layout = PageLayout { paint: screen.out.paint, width: screen.table_width() };
    let subjects = [("A", &first), ("B", &other)].map(|(letter, report)| {
        format!("{letter}: {}; {}\n", page::subject(&report.measured), page::plan(&report.measured.load))
    });
    let method =
        "B / A with an interval of 95 % confidence: Welch's t of the logarithms of the rounds of each report";
    screen.print(&format!("{}\n{}\n{method}", subjects.concat(), page::ratios(&rows, layout)))?;
    Ok(rows)
}

/// The exit code of a comparison: whatever its figures are.
pub(super) fn exit(rows: &[RatioRow]) -> CliResult {
    if rows.is_empty() {
        let help = "a report has them if events were answered in its measured time";
        return Err(CliError::with_help("the reports have no figures to compare", help));
    }
    Ok(Exit::Done)
}

fn read(file: &Path) -> Result<BenchReport, CliError> {
    let name = escape::path(file);
    let mut bytes = Vec::new();
    let opened = open_input(file).and_then(|opened| opened.take(LARGEST_REPORT + 1).read_to_end(&mut bytes));
    opened.map_err(|error| CliError::new(format!("{name} cannot be read: {}", io_reason(&error))))?;
    let help = "`hookyard bench --json FILE` writes one";
    if bytes.len() as u64 > LARGEST_REPORT {
        return Err(CliError::with_help(format!("{name} is too large for a report"), help));
    }
    let report = serde_json::from_slice::<BenchReport>(&bytes).map_err(|error| {
        let why = escape::line(&error.to_string()).into_owned();
        CliError::with_help(format!("{name} is no report of `bench`: {why}"), help)
    })?;
    if report.format != REPORT_FORMAT {
        let what = format!("{name} has the format {}, and this is {REPORT_FORMAT}", report.format);
        return Err(CliError::with_help(what, "measure both with the same version"));
    }
    Ok(report)
}

/// What is different in two reports beside their figures.
fn remarks(first: &BenchReport, other: &BenchReport) -> Vec<String> {
    let (a, b) = (&first.measured, &other.measured);
    let mut remarks = Vec::new();
    if first.machine != other.machine {
        let machines = [first, other].map(|report| escape::line(&report.machine.describe()).into_owned());
        remarks.push(format!("A and B are of different machines: {}; {}", machines[0], machines[1]));
    }
    if (&a.scenario.events, a.scenario.sessions) != (&b.scenario.events, b.scenario.sessions) {
        remarks.push("A and B sent different events".to_owned());
    }
    if a.load.mode != b.load.mode {
        remarks.push("A and B sent their events in different loops or at different rates".to_owned());
    }
    for (letter, measured) in [("A", a), ("B", b)] {
        if let Some(end) = page::end(measured) {
            remarks.push(format!("{letter}: {end}"));
        }
        if !measured.generator.kept_schedule {
            remarks.push(format!("{letter}: the generator could not keep its own schedule"));
        }
    }
    remarks
}
