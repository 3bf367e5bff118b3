//! The report of a load, as it is written to JSON and read again.

use std::{
    collections::{BTreeMap, HashMap},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    load::{LoadEnd, LoadResult},
    machine::Machine,
    scenario::LoadPlan,
    statistics::RatioInterval,
    tally::{HookTally, KindTally, LatencyHistogram, LoadTally, RoundTally},
};
use crate::model::Ended;

/// The version of the format. A report of another one is not compared.
pub(super) const REPORT_FORMAT: u32 = 1;

/// The processor time of a process is known in steps of 10 ms; of less than this, nothing is said.
const LEAST_CPU: Duration = Duration::from_millis(50);

/// Events may start so late without a remark.
const TOLERATED_LATENESS: Duration = Duration::from_millis(5);

/// Or by so much of what they take.
const TOLERATED_SHARE: f64 = 0.1;

/// Everything about one call of `bench`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct BenchReport {
    #[serde(rename = "hookyard_bench")]
    pub(super) format: u32,
    pub(super) version: String,
    pub(super) command: String,
    /// In seconds since 1970.
    pub(super) started_at: u64,
    pub(super) machine: Machine,
    #[serde(flatten)]
    pub(super) measured: MeasuredLoad,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) find_max: Option<FindMaxReport>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) versus: Option<VersusReport>,
}

/// One load on one target.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct MeasuredLoad {
    pub(super) scenario: ScenarioSummary,
    pub(super) target: String,
    pub(super) target_version: String,
    pub(super) load: LoadPlan,
    pub(super) ended: ReportEnd,
    /// Why it ended before its time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Option<String>,
    pub(super) measured_seconds: f64,
    pub(super) sent: u64,
    pub(super) outcomes: u64,
    pub(super) failed: u64,
    pub(super) unsent: u64,
    pub(super) outcomes_per_second: f64,
    pub(super) latency: Option<LatencySummary>,
    pub(super) events: Vec<EventFigures>,
    pub(super) hooks: Vec<HookFigures>,
    pub(super) rounds: Vec<RoundFigures>,
    pub(super) usage: UsageReport,
    pub(super) generator: GeneratorReport,
}

/// What was sent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScenarioSummary {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) sessions: u32,
    pub(super) events_per_run: Option<u32>,
    pub(super) events: Vec<ScenarioEvent>,
    /// The recording that was played instead.
    pub(super) recording: Option<String>,
    pub(super) hooks: String,
}

/// The share of a kind of events in a scenario.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct ScenarioEvent {
    pub(super) kind: String,
    #[serde(rename = "match")]
    pub(super) matched: Option<String>,
    pub(super) weight: f64,
    pub(super) payload_bytes: [usize; 2],
}

/// How a load ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ReportEnd {
    Complete,
    Interrupted,
    TargetGone,
}

/// A distribution of times, in milliseconds.
#[expect(clippy::struct_field_names, reason = "the names are those of the JSON, which has the unit")]
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct LatencySummary {
    pub(super) mean_ms: f64,
    pub(super) p50_ms: f64,
    pub(super) p90_ms: f64,
    pub(super) p99_ms: f64,
    pub(super) p999_ms: f64,
    pub(super) max_ms: f64,
}

/// The events of one kind.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct EventFigures {
    pub(super) event: String,
    pub(super) count: u64,
    /// How they ended: by verdict, or `shed`, `no_answer`, `connection_lost` or the word of a refusal.
    pub(super) results: BTreeMap<String, u64>,
    pub(super) latency: Option<LatencySummary>,
    pub(super) service: Option<LatencySummary>,
    pub(super) ours: Option<LatencySummary>,
    pub(super) in_hooks: Option<LatencySummary>,
}

/// The invocations of one hook.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct HookFigures {
    pub(super) hook: String,
    pub(super) runs: u64,
    pub(super) ended: BTreeMap<String, u64>,
    pub(super) blocked: u64,
    pub(super) duration: Option<LatencySummary>,
    pub(super) queued: Option<LatencySummary>,
}

/// One part of the measured time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct RoundFigures {
    pub(super) outcomes_per_second: f64,
    pub(super) p50_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
}

/// What the target used while it was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct UsageReport {
    /// Processor time of the process itself, without its hooks; in process, the generator is in it.
    pub(super) cpu_us_per_event: Option<f64>,
    /// That of the processes of hooks which have ended; known in process only.
    pub(super) hooks_cpu_us_per_event: Option<f64>,
    pub(super) resident_before_bytes: Option<u64>,
    pub(super) resident_after_bytes: Option<u64>,
    pub(super) runs_before: Option<u64>,
    pub(super) runs_after: Option<u64>,
}

/// What the generator itself takes, and whether it kept its schedule.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct GeneratorReport {
    /// Of an open loop: how late events were for which a sender was free.
    pub(super) lateness: Option<LatencySummary>,
    /// Events that were due while all senders were busy.
    pub(super) waited: u64,
    pub(super) kept_schedule: bool,
    /// The same load on nothing: what of all times and of the processor is the generator's.
    pub(super) against_nothing: Option<OverheadReport>,
}

/// The same load on nothing.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct OverheadReport {
    pub(super) latency: LatencySummary,
    pub(super) cpu_us_per_event: Option<f64>,
    pub(super) outcomes_per_second: f64,
}

/// The search of the highest rate.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct FindMaxReport {
    pub(super) quantile: f64,
    pub(super) limit_ms: f64,
    pub(super) steps: Vec<FindMaxStep>,
    /// The highest rate at which the goal was met.
    pub(super) found: Option<f64>,
    /// Whether it was met there twice, and a little above it not.
    pub(super) confirmed: bool,
}

/// One rate that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct FindMaxStep {
    pub(super) rate: f64,
    pub(super) seconds: f64,
    pub(super) events: u64,
    /// Those slower than the goal, or without an outcome.
    pub(super) slow: u64,
    pub(super) quantile_ms: Option<f64>,
    pub(super) met: bool,
    /// The generator could not keep the schedule, so that the rate says nothing of the target.
    pub(super) generator_late: bool,
}

/// Another setting, measured in turns with the first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct VersusReport {
    pub(super) other: Box<MeasuredLoad>,
    pub(super) ratios: Vec<RatioRow>,
}

/// How one figure of the other setting relates to that of the first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct RatioRow {
    pub(super) figure: String,
    pub(super) first: f64,
    pub(super) other: f64,
    /// Nothing where there are too few rounds.
    pub(super) interval: Option<RatioInterval>,
}

impl LatencySummary {
    pub(super) fn of(times: &LatencyHistogram) -> Option<Self> {
        let quantile = |share| times.quantile(share).map(milliseconds);
        Some(Self {
            mean_ms: milliseconds(times.mean()?),
            p50_ms: quantile(0.5)?,
            p90_ms: quantile(0.9)?,
            p99_ms: quantile(0.99)?,
            p999_ms: quantile(0.999)?,
            max_ms: milliseconds(times.longest()?),
        })
    }
}

/// Milliseconds, exact to ten nanoseconds.
pub(super) fn milliseconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e8).round() / 1e5
}

/// A number with a digit after the point.
fn tenths(number: f64) -> f64 {
    (number * 10.0).round() / 10.0
}

#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 events are sent")]
fn per_second(events: u64, time: Duration) -> f64 {
    if time.is_zero() { 0.0 } else { tenths(events as f64 / time.as_secs_f64()) }
}

/// The processor time of each event, in microseconds; nothing if too little was used to say it.
#[expect(clippy::cast_precision_loss, reason = "fewer than 2^53 events are sent")]
fn cpu_per_event(before: Option<Duration>, after: Option<Duration>, events: u64) -> Option<f64> {
    let used = after?.checked_sub(before?).filter(|used| *used >= LEAST_CPU && events > 0)?;
    Some(tenths(used.as_secs_f64() * 1e6 / events as f64))
}

/// What a load is measured with.
#[derive(Debug, Clone)]
pub(super) struct LoadDescription {
    pub(super) scenario: ScenarioSummary,
    pub(super) target: String,
    pub(super) target_version: String,
    pub(super) load: LoadPlan,
}

impl MeasuredLoad {
    pub(super) fn new(
        description: LoadDescription,
        result: &LoadResult,
        overhead: Option<OverheadReport>,
    ) -> Self {
        let LoadResult { tally, measured, end, before, after } = result;
        let LoadDescription { scenario, target, target_version, load } = description;
        let round = measured.div_f64(f64::from(u32::try_from(tally.rounds.len()).unwrap_or(1).max(1)));
        Self {
            scenario,
            target,
            target_version,
            load,
            ended: match end {
                LoadEnd::Complete => ReportEnd::Complete,
                LoadEnd::Interrupted => ReportEnd::Interrupted,
                LoadEnd::TargetGone(_) => ReportEnd::TargetGone,
            },
            reason: if let LoadEnd::TargetGone(why) = end { Some(why.clone()) } else { None },
            measured_seconds: milliseconds(*measured) / 1e3,
            sent: tally.sent(),
            outcomes: tally.outcomes(),
            failed: tally.failed(),
            unsent: tally.unsent,
            outcomes_per_second: per_second(tally.outcomes(), *measured),
            latency: LatencySummary::of(&tally.latency),
            events: tally.kinds.iter().map(|(kind, tally)| event_row(kind.as_str(), tally)).collect(),
            hooks: hook_rows(&tally.hooks),
            rounds: tally.rounds.iter().map(|tally| round_row(tally, round)).collect(),
            usage: UsageReport {
                cpu_us_per_event: cpu_per_event(before.cpu, after.cpu, tally.sent()),
                hooks_cpu_us_per_event: cpu_per_event(before.hooks_cpu, after.hooks_cpu, tally.sent()),
                resident_before_bytes: before.resident_bytes,
                resident_after_bytes: after.resident_bytes,
                runs_before: before.runs,
                runs_after: after.runs,
            },
            generator: generator_report(tally, overhead),
        }
    }
}

impl OverheadReport {
    /// Of a load on nothing.
    pub(super) fn of(result: &LoadResult) -> Option<Self> {
        Some(Self {
            latency: LatencySummary::of(&result.tally.latency)?,
            cpu_us_per_event: cpu_per_event(result.before.cpu, result.after.cpu, result.tally.sent()),
            outcomes_per_second: per_second(result.tally.outcomes(), result.measured),
        })
    }
}

/// Whether so late starts say that the generator could not keep its schedule, if events take so long anyway.
pub(super) fn is_too_late(lateness_ms: f64, latency_ms: f64) -> bool {
    lateness_ms > milliseconds(TOLERATED_LATENESS).max(latency_ms * TOLERATED_SHARE)
}

fn generator_report(tally: &LoadTally, overhead: Option<OverheadReport>) -> GeneratorReport {
    let lateness = LatencySummary::of(&tally.lateness);
    let latency = tally.latency.quantile(0.99).map_or(0.0, milliseconds);
    let was_late = lateness.is_some_and(|lateness| is_too_late(lateness.p99_ms, latency));
    // A closed loop has no schedule.
    let is_open = lateness.is_some() || tally.waited > 0 || tally.unsent > 0;
    let is_late_itself =
        is_open && overhead.is_some_and(|overhead| is_too_late(overhead.latency.p99_ms, latency));
    GeneratorReport {
        lateness,
        waited: tally.waited,
        kept_schedule: !was_late && !is_late_itself,
        against_nothing: overhead,
    }
}

fn event_row(event: &str, tally: &KindTally) -> EventFigures {
    EventFigures {
        event: event.to_owned(),
        count: tally.count(),
        results: tally.results.clone(),
        latency: LatencySummary::of(&tally.latency),
        service: LatencySummary::of(&tally.service),
        ours: LatencySummary::of(&tally.ours),
        in_hooks: LatencySummary::of(&tally.in_hooks),
    }
}

/// The rows of hooks, in the order of their names.
fn hook_rows(hooks: &HashMap<Box<str>, HookTally>) -> Vec<HookFigures> {
    let mut rows: Vec<_> = hooks.iter().map(|(hook, tally)| hook_row(hook, tally)).collect();
    rows.sort_by(|a, b| a.hook.cmp(&b.hook));
    rows
}

fn hook_row(hook: &str, tally: &HookTally) -> HookFigures {
    let counts = Ended::ALL.into_iter().zip(tally.ended).filter(|(_, count)| *count > 0);
    HookFigures {
        hook: hook.to_owned(),
        runs: tally.ended.iter().sum(),
        ended: counts.map(|(ended, count)| (ended.as_str().to_owned(), count)).collect(),
        blocked: tally.blocked,
        duration: LatencySummary::of(&tally.duration),
        queued: LatencySummary::of(&tally.queued),
    }
}

fn round_row(tally: &RoundTally, length: Duration) -> RoundFigures {
    RoundFigures {
        // Of those that waited in vain, none is an outcome.
        outcomes_per_second: per_second(tally.outcomes, length),
        p50_ms: tally.latency.quantile(0.5).map(milliseconds),
        p99_ms: tally.latency.quantile(0.99).map(milliseconds),
    }
}
