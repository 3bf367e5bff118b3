//! How a report looks at several widths.

use super::super::{
    super::paint::Paint,
    markdown,
    page::{self, PageLayout},
    report::BenchReport,
};

/// A report with everything in it.
const REPORT: &str = include_str!("report.json");

fn report() -> BenchReport {
    serde_json::from_str(REPORT).unwrap()
}

fn rendered(report: &BenchReport, width: usize) -> String {
    let text = page::render(report, PageLayout { paint: Paint::Plain, width: Some(width) });
    for line in text.lines() {
        assert!(line.chars().count() <= width, "wider than {width}: {line}");
    }
    text
}

#[test]
fn a_load_at_60_80_and_140_columns() {
    let report = BenchReport { versus: None, ..report() };
    for width in [60, 80, 140] {
        insta::assert_snapshot!(format!("load_{width}"), rendered(&report, width));
    }
}

#[test]
fn two_settings_at_80_columns() {
    insta::assert_snapshot!("versus_80", rendered(&BenchReport { find_max: None, ..report() }, 80));
}

#[test]
fn a_report_in_markdown() {
    insta::assert_snapshot!("markdown", markdown::render(&report()));
}

#[test]
fn a_report_is_read_as_it_is_written() {
    let written = serde_json::to_value(report()).unwrap();
    let read: serde_json::Value = serde_json::from_str(REPORT).unwrap();
    assert_eq!(written, read);
}
