//! A report in Markdown.

use std::fmt::Write;

use super::{
    page,
    report::{BenchReport, EventFigures, FindMaxReport, HookFigures, LatencySummary, MeasuredLoad, RatioRow},
};

/// The whole report.
pub(super) fn render(report: &BenchReport) -> String {
    let mut text = String::from("# hookyard bench\n\n");
    facts(
        &mut text,
        &[
            ("command", code(&report.command)),
            ("version", plain(&report.version)),
            ("machine", plain(&report.machine.describe())),
            ("started", format!("{} s after 1970", report.started_at)),
        ],
    );
    match &report.versus {
        None => load(&mut text, &report.measured),
        Some(versus) => {
            text.push_str("\n## A\n");
            load(&mut text, &report.measured);
            text.push_str("\n## B\n");
            load(&mut text, &versus.other);
            text.push_str("\n## B / A\n\n");
            ratios(&mut text, &versus.ratios);
        }
    }
    if let Some(found) = &report.find_max {
        search(&mut text, found);
    }
    text
}

fn load(text: &mut String, measured: &MeasuredLoad) {
    text.push('\n');
    let scenario = &measured.scenario;
    let mut rows = vec![
        ("load", plain(&page::subject(measured))),
        ("hooks", plain(&scenario.hooks)),
        ("target version", plain(&measured.target_version)),
        ("plan", plain(&page::plan(&measured.load))),
        ("seed", measured.load.seed.to_string()),
        ("result", plain(&page::totals(measured))),
    ];
    rows.extend(page::end(measured).map(|end| ("ended", plain(&end))));
    rows.extend(page::failures(measured).map(|failures| ("failures", plain(&failures))));
    rows.extend(page::usage(measured).map(|usage| ("usage", plain(&usage))));
    rows.extend(page::generator(measured).into_iter().map(|(line, _)| ("generator", plain(&line))));
    facts(text, &rows);
    if !measured.events.is_empty() {
        events(text, &measured.events);
    }
    if !measured.hooks.is_empty() {
        hooks(text, &measured.hooks);
    }
}

fn events(text: &mut String, rows: &[EventFigures]) {
    const HEAD: [&str; 10] = [
        "event",
        "count",
        "results",
        "p50 ms",
        "p90 ms",
        "p99 ms",
        "p99.9 ms",
        "max ms",
        "ours p50 ms",
        "ours p99 ms",
    ];
    text.push('\n');
    table_head(text, &HEAD);
    for row in rows {
        let results = row.results.iter().map(|(word, count)| format!("{count} {}", plain(word)));
        let [p50, p90, p99, p999, max] = times(row.latency.as_ref());
        let [ours_p50, _, ours_p99, ..] = times(row.ours.as_ref());
        let results = results.collect::<Vec<_>>().join(", ");
        let cells =
            [plain(&row.event), row.count.to_string(), results, p50, p90, p99, p999, max, ours_p50, ours_p99];
        table_row(text, &cells);
    }
}

fn hooks(text: &mut String, rows: &[HookFigures]) {
    const HEAD: [&str; 9] =
        ["hook", "runs", "ended", "blocked", "p50 ms", "p90 ms", "p99 ms", "max ms", "queued p99 ms"];
    text.push('\n');
    table_head(text, &HEAD);
    for row in rows {
        let ended = row.ended.iter().map(|(word, count)| format!("{count} {}", plain(word)));
        let [p50, p90, p99, _, max] = times(row.duration.as_ref());
        let [_, _, queued, ..] = times(row.queued.as_ref());
        let ended = ended.collect::<Vec<_>>().join(", ");
        let blocked = row.blocked.to_string();
        table_row(
            text,
            &[plain(&row.hook), row.runs.to_string(), ended, blocked, p50, p90, p99, max, queued],
        );
    }
}

fn search(text: &mut String, found: &FindMaxReport) {
    _ = write!(text, "\n## Highest rate\n\n{}\n\n", plain(&page::found(found)));
    let quantile = format!("p{} ms", page::quantile_name(found.quantile));
    table_head(text, &["rate", "events", "slow", &quantile, "seconds", "goal"]);
    for step in &found.steps {
        let goal = if step.met { "met" } else { "missed" };
        let quantile = step.quantile_ms.map_or_else(|| "–".to_owned(), |time| format!("{time:.3}"));
        let cells = [
            format!("{:.1}", step.rate),
            step.events.to_string(),
            step.slow.to_string(),
            quantile,
            format!("{:.1}", step.seconds),
            goal.to_owned(),
        ];
        table_row(text, &cells);
    }
}

fn ratios(text: &mut String, rows: &[RatioRow]) {
    table_head(text, &["figure", "A", "B", "B / A", "95 % from", "to"]);
    for row in rows {
        let interval = row.interval.as_ref();
        let number = |value: Option<f64>| value.map_or_else(|| "–".to_owned(), |value| format!("{value:.3}"));
        let cells = [
            plain(&row.figure),
            format!("{:.3}", row.first),
            format!("{:.3}", row.other),
            number(interval.map(|interval| interval.ratio)),
            number(interval.map(|interval| interval.low)),
            number(interval.map(|interval| interval.high)),
        ];
        table_row(text, &cells);
    }
    text.push_str(
        "\nA paired t interval of the logarithms of the rounds' figures; each round has A and B.\n",
    );
}

/// p50, p90, p99, p99.9 and the longest, in milliseconds.
fn times(summary: Option<&LatencySummary>) -> [String; 5] {
    match summary {
        None => std::array::from_fn(|_| "–".to_owned()),
        Some(it) => [it.p50_ms, it.p90_ms, it.p99_ms, it.p999_ms, it.max_ms].map(|time| format!("{time:.3}")),
    }
}

/// A table of names and values.
fn facts(text: &mut String, rows: &[(&str, String)]) {
    table_head(text, &["", ""]);
    for (name, value) in rows {
        table_row(text, &[(*name).to_owned(), value.clone()]);
    }
}

fn table_head(text: &mut String, cells: &[&str]) {
    // Writing to a string cannot fail.
    _ = writeln!(text, "| {} |", cells.join(" | "));
    _ = writeln!(text, "|{}", " --- |".repeat(cells.len()));
}

fn table_row(text: &mut String, cells: &[String]) {
    _ = writeln!(text, "| {} |", cells.join(" | "));
}

/// A text that Markdown leaves as it is, on one line.
fn plain(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        if letter.is_control() {
            escaped.push(' ');
            continue;
        }
        if "\\`*_[]<>|".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// A text as code, on one line.
fn code(text: &str) -> String {
    let text: String = text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect();
    format!("`{}`", text.replace('`', "'").replace('|', "\\|"))
}
