//! A report as a person reads it in a terminal.

use std::time::Duration;

use super::{
    super::{
        escape,
        paint::Paint,
        table::{AdaptiveTable, EMPTY_CELL, Page},
        units::{plural_u64, precise_duration},
        wrap,
    },
    report::{
        BenchReport, EventFigures, FindMaxReport, HookFigures, LatencySummary, MeasuredLoad, RatioRow,
        ReportEnd, VersusReport,
    },
    scenario::{LoadMode, LoadPlan},
    schedule::ArrivalProcess,
};

/// How much of a name is shown.
const LONGEST_NAME: usize = 120;

/// How a report is laid out.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageLayout {
    pub(super) paint: Paint,
    /// The columns; nothing where a program reads it.
    pub(super) width: Option<usize>,
}

impl PageLayout {
    fn paragraph(self, page: &mut Page, text: &str) {
        page.line(&wrap::hanging(text, self.width, 0));
    }
}

/// The whole report.
pub(super) fn render(report: &BenchReport, layout: PageLayout) -> String {
    let mut page = Page::default();
    match &report.versus {
        None => load_page(&report.measured, layout, &mut page),
        Some(versus) => versus_page(&report.measured, versus, layout, &mut page),
    }
    if let Some(search) = &report.find_max {
        page.line("");
        page.block(&search_page(search, layout));
    }
    layout.paragraph(&mut page, &report.machine.describe());
    page.into_text()
}

fn load_page(measured: &MeasuredLoad, layout: PageLayout, page: &mut Page) {
    layout.paragraph(page, &layout.paint.bold(&subject(measured)));
    layout.paragraph(page, &plan(&measured.load));
    if let Some(warning) = end(measured) {
        layout.paragraph(page, &layout.paint.red(&warning));
    }
    page.line("");
    if !measured.events.is_empty() {
        page.block(&events(&measured.events, layout));
        page.line("");
    }
    if !measured.hooks.is_empty() {
        page.block(&hooks(&measured.hooks, layout));
        page.line("");
    }
    layout.paragraph(page, &totals(measured));
    if let Some(failures) = failures(measured) {
        layout.paragraph(page, &layout.paint.red(&failures));
    }
    if let Some(usage) = usage(measured) {
        layout.paragraph(page, &usage);
    }
    for (line, is_bad) in generator(measured) {
        layout.paragraph(page, &if is_bad { layout.paint.red(&line) } else { line });
    }
}

/// What was sent where.
pub(super) fn subject(measured: &MeasuredLoad) -> String {
    let scenario = &measured.scenario;
    let source = scenario.recording.as_ref().unwrap_or(&scenario.name);
    let sessions = plural_u64(u64::from(scenario.sessions), "session");
    let name = escape::short(source, LONGEST_NAME);
    format!("{name}, {sessions}, to {}", escape::short(&measured.target, LONGEST_NAME))
}

/// How fast it was sent.
pub(super) fn plan(load: &LoadPlan) -> String {
    let mode = match load.mode {
        LoadMode::Closed { concurrency } => {
            format!("closed loop, {}", plural_u64(u64::from(concurrency), "sender"))
        }
        LoadMode::Open { rate, arrivals, in_flight } => {
            let spread = match arrivals {
                ArrivalProcess::Constant => "at equal distances",
                ArrivalProcess::Poisson => "at random (Poisson)",
            };
            format!("open loop, {rate} events per second {spread}, at most {in_flight} under way")
        }
    };
    let ramp =
        if load.ramp.is_zero() { String::new() } else { format!("{} ramp, ", precise_duration(load.ramp)) };
    let times = [load.warm_up, load.duration].map(precise_duration);
    format!("{mode}; {ramp}{} warm-up, {} measured", times[0], times[1])
}

/// Why it ended before its time.
pub(super) fn end(measured: &MeasuredLoad) -> Option<String> {
    let seconds = measured.measured_seconds;
    match measured.ended {
        ReportEnd::Complete => None,
        ReportEnd::Interrupted => Some(format!("interrupted; this is what was measured in {seconds:.1} s")),
        ReportEnd::TargetGone => {
            let why = escape::line(measured.reason.as_deref().unwrap_or_default()).into_owned();
            Some(format!(
                "the target ended after {seconds:.1} s: {why}; this is what was measured until then"
            ))
        }
    }
}

fn time(milliseconds: f64) -> String {
    let microseconds = milliseconds * 1e3;
    if microseconds < 10.0 {
        return format!("{microseconds:.1} µs");
    }
    precise_duration(Duration::from_secs_f64(milliseconds / 1e3))
}

fn times(summary: Option<&LatencySummary>, pick: impl Fn(&LatencySummary) -> f64) -> String {
    summary.map_or_else(|| EMPTY_CELL.to_owned(), |summary| time(pick(summary)))
}

fn number(number: u64) -> String {
    if number == 0 { EMPTY_CELL.to_owned() } else { number.to_string() }
}

/// The counts of an event row: blocked, shed, and without an outcome for another reason.
fn counts(row: &EventFigures) -> [u64; 3] {
    let count = |word: &str| row.results.get(word).copied().unwrap_or(0);
    let outcomes: u64 = ["proceed", "allow", "ask", "block", "halt", "answered"].into_iter().map(count).sum();
    [count("block") + count("halt"), count("shed"), row.count - outcomes - count("shed")]
}

fn events(rows: &[EventFigures], layout: PageLayout) -> String {
    let header = vec![
        "event", "count", "blocked", "shed", "failed", "p50", "p90", "p99", "p99.9", "max", "ours p50",
        "ours p99",
    ];
    let mut table = AdaptiveTable::new(header, layout.paint);
    for row in rows {
        let latency = row.latency.as_ref();
        let ours = row.ours.as_ref();
        let [blocked, shed, failed] = counts(row).map(number);
        table.add(vec![
            row.event.clone(),
            row.count.to_string(),
            blocked,
            shed,
            failed,
            times(latency, |it| it.p50_ms),
            times(latency, |it| it.p90_ms),
            times(latency, |it| it.p99_ms),
            times(latency, |it| it.p999_ms),
            times(latency, |it| it.max_ms),
            times(ours, |it| it.p50_ms),
            times(ours, |it| it.p99_ms),
        ]);
    }
    table.render("max", layout.width)
}

fn hooks(rows: &[HookFigures], layout: PageLayout) -> String {
    let header = vec![
        "hook",
        "runs",
        "blocked",
        "failed",
        "timed out",
        "shed",
        "p50",
        "p90",
        "p99",
        "max",
        "queued p99",
    ];
    let mut table = AdaptiveTable::new(header, layout.paint);
    for row in rows {
        let ended = |word: &str| row.ended.get(word).copied().unwrap_or(0);
        let known = ended("completed") + ended("timed_out") + ended("shed");
        let duration = row.duration.as_ref();
        table.add(vec![
            escape::short(&row.hook, LONGEST_NAME),
            row.runs.to_string(),
            number(row.blocked),
            number(row.runs - known),
            number(ended("timed_out")),
            number(ended("shed")),
            times(duration, |it| it.p50_ms),
            times(duration, |it| it.p90_ms),
            times(duration, |it| it.p99_ms),
            times(duration, |it| it.max_ms),
            row.queued
                .filter(|queued| queued.p99_ms > 0.0)
                .map_or(EMPTY_CELL.to_owned(), |it| time(it.p99_ms)),
        ]);
    }
    table.render("max", layout.width)
}

/// How many events there were, and what they took.
pub(super) fn totals(measured: &MeasuredLoad) -> String {
    let outcomes = plural_u64(measured.outcomes, "outcome");
    let rate = measured.outcomes_per_second;
    let latency = measured.latency.as_ref().map(|latency| {
        let [p50, p99, max] = [latency.p50_ms, latency.p99_ms, latency.max_ms].map(time);
        format!("; p50 {p50}, p99 {p99}, at most {max}")
    });
    let seconds = measured.measured_seconds;
    format!("{outcomes} in {seconds:.1} s, {rate} per second{}", latency.unwrap_or_default())
}

/// What became of events without an outcome.
pub(super) fn failures(measured: &MeasuredLoad) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for (word, count) in failed_words(measured) {
        words.push(format!("{count} {}", escape::line(&word)));
    }
    if measured.unsent > 0 {
        words.push(format!("{} due and never sent, because all senders were busy", measured.unsent));
    }
    (!words.is_empty()).then(|| format!("without an outcome: {}", words.join(", ")))
}

/// The ways in which events failed, over all kinds.
fn failed_words(measured: &MeasuredLoad) -> Vec<(String, u64)> {
    let verdicts = ["proceed", "allow", "ask", "block", "halt", "answered"];
    let mut words: std::collections::BTreeMap<String, u64> = std::collections::BTreeMap::new();
    for (word, count) in measured.events.iter().flat_map(|row| &row.results) {
        if !verdicts.contains(&word.as_str()) {
            *words.entry(word.replace('_', " ")).or_default() += count;
        }
    }
    words.into_iter().collect()
}

/// What the target used.
pub(super) fn usage(measured: &MeasuredLoad) -> Option<String> {
    let usage = &measured.usage;
    let mut parts = Vec::new();
    if let Some(cpu) = usage.cpu_us_per_event {
        parts.push(format!("{cpu} µs of the processor per event, without its hooks"));
    }
    if let Some(cpu) = usage.hooks_cpu_us_per_event {
        parts.push(format!("{cpu} µs per event in processes of hooks"));
    }
    if let (Some(before), Some(after)) = (usage.resident_before_bytes, usage.resident_after_bytes) {
        parts.push(format!("memory {} MiB before and {} MiB after", before >> 20, after >> 20));
    }
    if let Some(runs) = usage.runs_after {
        parts.push(format!("{} known", plural_u64(runs, "run")));
    }
    (!parts.is_empty()).then(|| format!("target: {}", parts.join("; ")))
}

/// What is said of the generator, and whether it is bad.
pub(super) fn generator(measured: &MeasuredLoad) -> Vec<(String, bool)> {
    let generator = &measured.generator;
    let mut lines = Vec::new();
    if let Some(nothing) = &generator.against_nothing {
        let [p50, p99] = [nothing.latency.p50_ms, nothing.latency.p99_ms].map(time);
        let cpu = nothing.cpu_us_per_event.map(|cpu| format!(", {cpu} µs of the processor per event"));
        let line = format!("generator against nothing: p50 {p50}, p99 {p99}{}", cpu.unwrap_or_default());
        lines.push((line, false));
    }
    if !generator.kept_schedule {
        let late = generator.lateness.map(|late| format!(": p99 {} late", time(late.p99_ms)));
        let line = format!(
            "the generator could not keep its own schedule{}; this machine is busy or does not reach the rate, and the times say \
             little of the target",
            late.unwrap_or_default()
        );
        lines.push((line, true));
    }
    if generator.waited > 0 {
        let waited = plural_u64(generator.waited, "event");
        let line =
            format!("{waited} waited for a free sender, which is in their times; `--in-flight` gives more");
        lines.push((line, false));
    }
    lines
}

fn search_page(search: &FindMaxReport, layout: PageLayout) -> String {
    let mut page = Page::default();
    let mut table =
        AdaptiveTable::new(vec!["rate", "events", "slow", "quantile", "seconds", "goal"], layout.paint)
            .text_columns(&["goal"]);
    for step in &search.steps {
        let goal = match (step.met, step.generator_late) {
            (true, _) => "met",
            (false, true) => "generator late",
            (false, false) => "missed",
        };
        table.add(vec![
            format!("{:.1}", step.rate),
            step.events.to_string(),
            number(step.slow),
            step.quantile_ms.map_or_else(|| EMPTY_CELL.to_owned(), time),
            format!("{:.1}", step.seconds),
            goal.to_owned(),
        ]);
    }
    page.block(&table.render("seconds", layout.width));
    page.line("");
    layout.paragraph(&mut page, &layout.paint.bold(&found(search)));
    page.into_text()
}

/// What a search found.
pub(super) fn found(search: &FindMaxReport) -> String {
    let goal = format!("p{} at most {}", quantile_name(search.quantile), time(search.limit_ms));
    match (search.found, search.confirmed) {
        (Some(rate), true) => format!("{rate:.1} events per second with {goal}"),
        (Some(rate), false) => {
            format!("at least {rate:.1} events per second with {goal}; the time was up before more was known")
        }
        (None, _) => format!("no rate that was tried has {goal}"),
    }
}

/// A quantile as its percentile is called: `99.9`.
pub(super) fn quantile_name(quantile: f64) -> String {
    let thousandths = (quantile * 1000.0).round();
    format!("{}", thousandths / 10.0)
}

fn versus_page(first: &MeasuredLoad, versus: &VersusReport, layout: PageLayout, page: &mut Page) {
    for (letter, measured) in [("A", first), ("B", &*versus.other)] {
        page.line(&layout.paint.bold(&format!("{letter}:")));
        load_page(measured, layout, page);
        page.line("");
    }
    page.block(&ratios(&versus.ratios, layout));
    page.line("");
    layout.paragraph(page, "B / A with an interval of 95 % confidence: paired t of the logarithms of rounds, each of which has A and B");
}

/// The figures of two settings, and how they relate.
pub(super) fn ratios(rows: &[RatioRow], layout: PageLayout) -> String {
    let mut table =
        AdaptiveTable::new(vec!["figure", "A", "B", "B / A", "from", "to", "differ"], layout.paint)
            .text_columns(&["differ"]);
    for row in rows {
        let (first, other) = (figure(&row.figure, row.first), figure(&row.figure, row.other));
        let cells = if let Some(interval) = &row.interval {
            let word = if interval.is_difference() { "yes" } else { "not shown" };
            let numbers = [interval.ratio, interval.low, interval.high].map(|ratio| format!("{ratio:.3}"));
            let [ratio, low, high] = numbers;
            vec![row.figure.clone(), first, other, ratio, low, high, word.to_owned()]
        } else {
            let unknown = || EMPTY_CELL.to_owned();
            let ratio = format!("{:.3}", row.other / row.first);
            vec![row.figure.clone(), first, other, ratio, unknown(), unknown(), "too few rounds".to_owned()]
        };
        table.add(cells);
    }
    table.render("differ", layout.width)
}

/// A figure with its unit.
fn figure(name: &str, value: f64) -> String {
    if name.starts_with('p') { time(value) } else { format!("{value:.1}") }
}
