//! The command: what it takes, what it does in which order, and how it ends.

use std::{
    path::{Path, PathBuf},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use clap::Args;
use tokio_util::sync::CancellationToken;

use super::{
    super::{
        exit::{CliError, CliResult, Exit},
        flags::{DialectFlag, TrustFlag, WorkspaceFlags},
        screen::Screen,
        session::{ABORT_GRACE, StopSignals, start_error},
    },
    arrivals::ArrivalClock,
    compare,
    find_max::{self, SearchBounds},
    flags::{LoadFlags, SearchFlags, TargetFlags},
    load::LoadGenerator,
    machine::Machine,
    output::ReportOutput,
    rate_search::LatencyGoal,
    ratios,
    report::{BenchReport, LoadDescription, MeasuredLoad, REPORT_FORMAT, ReportEnd, VersusReport},
    runner::LoadRunner,
    side::{BenchSide, LoadPurpose, SideRequest},
    statistics::paired_ratio,
    target::TargetGone,
    versus::{self, VersusSide},
};

/// The exit code if the target ended before its time.
const TARGET_GONE: Exit = Exit::Special(3);

/// The exit code if the generator could not keep its schedule.
const SCHEDULE_LOST: Exit = Exit::Special(4);

/// The exit code if no rate met the goal of a search.
const GOAL_MISSED: Exit = Exit::Special(5);

const FOOTER: &str = "\
Examples:
  hookyard bench
  hookyard bench scenario.yaml --concurrency 16 --json before.json
  hookyard bench --daemon --rate 500 --arrivals poisson --duration 1m
  hookyard bench --daemon --find-max --p99 10ms
  hookyard bench --recording session.jsonl --dialect claude --trust-workspace
  hookyard bench --versus other-scenario.yaml --rounds 20
  hookyard bench --compare before.json after.json

A closed loop sends as fast as answers come. An open loop sends at a rate, as hosts do that know nothing of each other, and \
counts each time from when its event was due: a target that stalls shows it in every event that should have started \
meanwhile. Hooks run with all their effects. Nothing but the target is sent anything.

`ours` is what was not spent in hooks: queues, hookyard itself, and the connection.

Exit codes: 0 measured; 1 the scenario is invalid, the target cannot be reached, no event got an outcome, or the report \
cannot be written; 3 the target ended before its time, and the report is of what was measured until then; 4 the generator \
could not keep its own schedule; 5 no rate met the goal of `--find-max`; 130 interrupted, with a report as for 3.";

/// Put a load on hooks, and measure what hosts wait for
///
/// Sends events of many sessions to an orchestrator in this process, or to a daemon, and prints percentiles of the waiting
/// times by kind of event and by hook. Without SCENARIO, sends a mix of events as agents do that use tools.
#[derive(Debug, Args)]
#[command(after_help = FOOTER)]
pub(in crate::cli) struct BenchCommand {
    /// File that says which events are sent, with which hooks and how fast; docs/capacity.md has its keys
    #[arg(value_name = "SCENARIO")]
    scenario: Option<PathBuf>,

    /// Send the events of a recording instead, one JSON event per line, for as many sessions as there are
    #[arg(long, value_name = "FILE.jsonl")]
    recording: Option<PathBuf>,

    /// Sessions that are open at a time
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    sessions: Option<u32>,

    /// Measure another setting in turns with the first: another scenario, or the directory of another workspace
    #[arg(long, value_name = "SCENARIO|DIR")]
    versus: Option<PathBuf>,

    /// Compare two reports that `--json` has written, and measure nothing
    #[arg(long, num_args = 2, value_names = ["A.json", "B.json"],
        conflicts_with_all = ["scenario", "recording", "versus", "find_max", "json", "markdown"])]
    compare: Vec<PathBuf>,

    /// Write the report as JSON; `-` is standard output
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// Write the report as Markdown; `-` is standard output
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,

    #[command(flatten)]
    dialect: DialectFlag,

    #[command(flatten)]
    trust: TrustFlag,

    #[command(flatten)]
    workspace: WorkspaceFlags,

    #[command(flatten)]
    target: TargetFlags,

    #[command(flatten)]
    load: LoadFlags,

    #[command(flatten)]
    search: SearchFlags,
}

/// What was measured, without what is said of every report.
struct MeasuredBench {
    measured: MeasuredLoad,
    find_max: Option<super::report::FindMaxReport>,
    versus: Option<VersusReport>,
}

impl BenchCommand {
    pub(in crate::cli) async fn run(self, screen: &Screen) -> CliResult {
        if let [first, other] = self.compare.as_slice() {
            return compare::exit(&compare::compare(first, other, screen)?);
        }
        let output = ReportOutput::open(self.json.as_deref(), self.markdown.as_deref())?;
        let first = self.side(self.scenario.as_deref(), self.workspace.clone()).prepare(screen).await?;
        let other = match &self.versus {
            None => None,
            Some(path) => Some(self.other_side(path).prepare(screen).await?),
        };
        let started_at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let interrupt = CancellationToken::new();
        let clock = ArrivalClock::Thread;
        let runner = LoadRunner { generator: LoadGenerator { clock, interrupt: interrupt.clone() }, screen };
        let mut signals = StopSignals::listen().map_err(|error| start_error(&error))?;
        let mut work = Box::pin(self.measure(&runner, &first, other.as_ref()));
        let mut signalled = None;
        let done = loop {
            tokio::select! {
                done = &mut work => break done,
                // Whoever asks a second time does not wait for the report.
                exit = signals.next() => {
                    if signalled.is_some() {
                        return Ok(exit);
                    }
                    signalled = Some(exit);
                    interrupt.cancel();
                }
            }
        };
        drop(work);
        let result = match (done, signalled) {
            (Ok(bench), _) => {
                let report = report(bench, started_at);
                let exit = exit_code(&report, signalled, screen);
                output.write(&report, screen).map(|()| exit)
            }
            (Err(_), Some(exit)) => {
                screen.note("interrupted before anything was measured");
                Ok(exit)
            }
            (Err(gone), None) => Err(CliError::new(format!("nothing was measured: {gone}"))),
        };
        for side in [Some(first), other].into_iter().flatten() {
            stop(side, signalled, screen).await;
        }
        result
    }

    /// The setting of a scenario and a workspace, with everything else as the flags say.
    fn side<'c>(&'c self, scenario: Option<&'c Path>, workspace: WorkspaceFlags) -> SideRequest<'c> {
        let is_search = self.search.goal().is_some();
        SideRequest {
            scenario,
            recording: self.recording.as_deref(),
            dialect: self.dialect,
            sessions: self.sessions,
            target: &self.target,
            load: self.load.load(),
            trust: self.trust,
            workspace,
            purpose: if is_search { LoadPurpose::Search } else { LoadPurpose::Measure },
        }
    }

    /// The setting to compare with: the same with another workspace, or another scenario.
    fn other_side<'c>(&'c self, path: &'c Path) -> SideRequest<'c> {
        if path.is_dir() {
            let workspace = WorkspaceFlags { workspace: Some(path.to_owned()), ..self.workspace.clone() };
            self.side(self.scenario.as_deref(), workspace)
        } else {
            self.side(Some(path), self.workspace.clone())
        }
    }

    async fn measure(
        &self,
        runner: &LoadRunner<'_>,
        first: &BenchSide,
        other: Option<&BenchSide>,
    ) -> Result<MeasuredBench, TargetGone> {
        match (self.search.goal(), other) {
            (Some(goal), _) => search(runner, first, goal).await,
            (None, Some(other)) => take_turns(runner, first, other).await,
            (None, None) => {
                let result = runner.run(&first.subject, &first.plan, "bench").await?;
                let overhead = runner.overhead(&first.subject, &first.plan).await;
                let measured = MeasuredLoad::new(first.description.clone(), &result, overhead);
                Ok(MeasuredBench { measured, find_max: None, versus: None })
            }
        }
    }
}

async fn search(
    runner: &LoadRunner<'_>,
    side: &BenchSide,
    goal: (LatencyGoal, SearchBounds),
) -> Result<MeasuredBench, TargetGone> {
    let found = find_max::search(runner, &side.subject, &side.plan, goal).await?;
    let Some((plan, mut result)) = found.load else {
        return Err(TargetGone("it was interrupted before the first rate".to_owned()));
    };
    result.end = found.end;
    let overhead = runner.overhead(&side.subject, &plan).await;
    let description = LoadDescription { load: plan, ..side.description.clone() };
    let measured = MeasuredLoad::new(description, &result, overhead);
    Ok(MeasuredBench { measured, find_max: Some(found.report), versus: None })
}

async fn take_turns(
    runner: &LoadRunner<'_>,
    first: &BenchSide,
    other: &BenchSide,
) -> Result<MeasuredBench, TargetGone> {
    let side = |side: &BenchSide| VersusSide { subject: side.subject.clone(), plan: side.plan.clone() };
    let [first_result, other_result] = versus::measure(runner, &side(first), &side(other)).await?;
    let overhead = runner.overhead(&first.subject, &first.plan).await;
    let measured = MeasuredLoad::new(first.description.clone(), &first_result, overhead);
    let overhead = runner.overhead(&other.subject, &other.plan).await;
    let other = MeasuredLoad::new(other.description.clone(), &other_result, overhead);
    let ratios = ratios::rows(&measured, &other, paired_ratio);
    let versus = VersusReport { other: Box::new(other), ratios };
    Ok(MeasuredBench { measured, find_max: None, versus: Some(versus) })
}

fn report(bench: MeasuredBench, started_at: u64) -> BenchReport {
    let arguments = std::env::args().skip(1);
    let words = arguments.map(|word| super::super::paths::shell_quoted(Path::new(&word)));
    BenchReport {
        format: REPORT_FORMAT,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        command: std::iter::once("hookyard".to_owned()).chain(words).collect::<Vec<_>>().join(" "),
        started_at,
        machine: Machine::this(),
        measured: bench.measured,
        find_max: bench.find_max,
        versus: bench.versus,
    }
}

/// How the command ends. What is wrong with the figures is said once more where scripts look for it.
fn exit_code(report: &BenchReport, signalled: Option<Exit>, screen: &Screen) -> Exit {
    let other = report.versus.as_ref().map(|versus| &*versus.other);
    let loads = || std::iter::once(&report.measured).chain(other);
    if let Some(exit) = signalled {
        return exit;
    }
    if let Some(load) = loads().find(|load| load.ended == ReportEnd::TargetGone) {
        screen.error(&format!("the target ended: {}", load.reason.as_deref().unwrap_or_default()), None);
        return TARGET_GONE;
    }
    if report.find_max.as_ref().is_some_and(|search| search.found.is_none()) {
        screen
            .error("no rate that was tried meets the goal", Some("`--rate` says with which rate it begins"));
        return GOAL_MISSED;
    }
    // What a search tried above its result says nothing against it.
    if loads().any(|load| !load.generator.kept_schedule) {
        let help = "try a lower `--rate`, or let another machine send the events";
        screen.error("the generator could not keep its own schedule", Some(help));
        return SCHEDULE_LOST;
    }
    if loads().any(|load| load.outcomes == 0) {
        let help = "the report says what became of the events";
        screen.error("no event got an outcome in the measured time", Some(help));
        return Exit::Failed;
    }
    Exit::Done
}

/// Stops the orchestrator of a setting, if it has one.
async fn stop(side: BenchSide, signalled: Option<Exit>, screen: &Screen) {
    let Some(session) = &side.session else { return };
    let longest: Duration = if signalled.is_some() { ABORT_GRACE } else { session.deadline() };
    if !session.orchestrator.shutdown(longest).await && signalled.is_none() {
        screen.note(&format!("note: background hooks were stopped after {} s", longest.as_secs_f64()));
    }
}
