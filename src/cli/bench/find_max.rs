//! Finds the highest rate at which a goal is met, by loads at one rate after the other.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    super::units::precise_duration,
    load::{LoadEnd, LoadResult, LoadSubject},
    page::quantile_name,
    rate_search::{LatencyGoal, RateSearch, StepVerdict},
    report::{FindMaxReport, FindMaxStep, is_too_late, milliseconds},
    runner::LoadRunner,
    scenario::{LoadMode, LoadPlan},
    scenario_file::HIGHEST_RATE,
    target::TargetGone,
};

/// How often a step that is too close to the goal is continued.
const MOST_CONTINUED: u32 = 2;

/// What is not counted of a step.
const STEP_WARM_UP: Duration = Duration::from_millis(200);

/// How a search is bounded.
#[derive(Debug, Clone, Copy)]
pub(super) struct SearchBounds {
    /// The time for all steps.
    pub(super) time: Duration,
    /// The shortest step.
    pub(super) step: Duration,
}

/// What a search found, and the load at the rate that it found, or else the last one.
#[derive(Debug)]
pub(super) struct SearchResult {
    pub(super) report: FindMaxReport,
    pub(super) load: Option<(LoadPlan, LoadResult)>,
    pub(super) end: LoadEnd,
}

impl SearchResult {
    /// Nothing was tried yet.
    fn nothing(goal: LatencyGoal) -> Self {
        let report = FindMaxReport {
            quantile: goal.quantile,
            limit_ms: milliseconds(goal.limit),
            steps: Vec::new(),
            found: None,
            confirmed: false,
        };
        Self { report, load: None, end: LoadEnd::Complete }
    }
}

/// One search.
#[derive(Debug)]
struct MaxFinder<'r> {
    runner: &'r LoadRunner<'r>,
    subject: &'r LoadSubject,
    plan: LoadPlan,
    goal: LatencyGoal,
    bounds: SearchBounds,
    end: Instant,
}

/// One rate, as it was tried.
struct TriedRate {
    step: FindMaxStep,
    plan: LoadPlan,
    result: LoadResult,
}

/// Searches the highest rate. The plan says with which one it begins, and everything else.
///
/// Returns an error if the target cannot be reached.
pub(super) async fn search(
    runner: &LoadRunner<'_>,
    subject: &LoadSubject,
    plan: &LoadPlan,
    (goal, bounds): (LatencyGoal, SearchBounds),
) -> Result<SearchResult, TargetGone> {
    let LoadMode::Open { rate: first, .. } = plan.mode else {
        return Err(TargetGone("a closed loop has no rate to search".to_owned()));
    };
    check_time(first, goal, bounds)?;
    let end = Instant::now() + bounds.time;
    let finder = MaxFinder { runner, subject, plan: plan.clone(), goal, bounds, end };
    let mut search = RateSearch::new(first, HIGHEST_RATE);
    let mut found = SearchResult::nothing(goal);
    let mut warm_up = plan.measured_from();
    let mut forgiven = None;
    let mut met: Vec<(f64, (LoadPlan, LoadResult))> = Vec::new();
    while let Some(rate) = search.next_rate().filter(|rate| finder.has_time_for(*rate)) {
        let tried = match finder.try_rate(rate, warm_up).await {
            Ok(tried) => tried,
            Err(gone) if found.report.steps.is_empty() => return Err(gone),
            Err(TargetGone(why)) => {
                found.end = LoadEnd::TargetGone(why);
                break;
            }
        };
        warm_up = STEP_WARM_UP;
        let is_met = tried.step.met;
        let is_late = tried.step.generator_late;
        found.report.steps.push(tried.step);
        found.end = tried.result.end.clone();
        let is_over = found.end != LoadEnd::Complete;
        // A machine that was busy with something else for a moment says nothing of the rate.
        let is_forgiven = !is_met && is_late && forgiven != Some(rate);
        if is_forgiven {
            forgiven = Some(rate);
        } else if !is_over {
            search.learn(rate, is_met);
        }
        // What is reported is the best that met the goal, and before there is one, the last that was tried.
        if is_met {
            met.push((rate, (tried.plan, tried.result)));
        } else {
            found.load = Some((tried.plan, tried.result));
        }
        if is_over {
            break;
        }
    }
    found.report.found = search.found();
    let best = met.iter().rposition(|(rate, _)| Some(*rate) == search.found());
    let best = best.map(|at| met.swap_remove(at).1);
    // A load that was broken off is not learned from.
    found.load = best.or(found.load).or_else(|| met.pop().map(|(_, load)| load));
    found.report.confirmed = search.is_confirmed();
    Ok(found)
}

/// Whether there is time to tell anything of the first rate.
fn check_time(first: f64, goal: LatencyGoal, bounds: SearchBounds) -> Result<(), TargetGone> {
    let needed = goal.step_length(first, bounds.step);
    if needed > bounds.time {
        return Err(TargetGone(format!(
            "p{} takes {} to tell at {first} events per second, the first rate: `--for` gives more time, `--rate` begins higher",
            quantile_name(goal.quantile),
            precise_duration(needed),
        )));
    }
    Ok(())
}

impl MaxFinder<'_> {
    /// Whether there is time for a step, and nobody wants an end.
    fn has_time_for(&self, rate: f64) -> bool {
        let needed = self.goal.step_length(rate, self.bounds.step);
        !self.runner.is_interrupted() && Instant::now() + needed <= self.end
    }

    /// Tries a rate, and goes on with it for as long as it cannot be told.
    async fn try_rate(&self, rate: f64, warm_up: Duration) -> Result<TriedRate, TargetGone> {
        let LoadMode::Open { arrivals, in_flight, .. } = self.plan.mode else {
            unreachable!("checked before")
        };
        let mut plan = LoadPlan {
            mode: LoadMode::Open { rate, arrivals, in_flight },
            ramp: Duration::ZERO,
            warm_up,
            duration: self.goal.step_length(rate, self.bounds.step),
            rounds: 2,
            ..self.plan.clone()
        };
        let what = format!("{rate:.1} per second");
        let mut total: Option<LoadResult> = None;
        for continued in 0..=MOST_CONTINUED {
            let result = match (self.runner.run(self.subject, &plan, &what).await, total.take()) {
                (Ok(result), Some(before)) => before.followed_by(result),
                (Err(TargetGone(why)), Some(before)) => {
                    LoadResult { end: LoadEnd::TargetGone(why), ..before }
                }
                (result, None) => result?,
            };
            let (slow, all) = result.tally.slower_than(self.goal.limit);
            let told = self.goal.judge(slow, all);
            let is_last = continued == MOST_CONTINUED
                || told != StepVerdict::Open
                || result.end != LoadEnd::Complete
                || !self.has_time_for(rate);
            if is_last {
                return Ok(self.tried(rate, plan, result));
            }
            total = Some(result);
            plan.warm_up = STEP_WARM_UP;
            // Another sequence of arrivals, so that the same coincidence does not count twice.
            plan.seed = plan.seed.wrapping_add(1);
        }
        unreachable!("the last of them returns")
    }

    fn tried(&self, rate: f64, plan: LoadPlan, result: LoadResult) -> TriedRate {
        let (slow, events) = result.tally.slower_than(self.goal.limit);
        let latency = result.tally.latency.quantile(self.goal.quantile);
        let late = result.tally.lateness.quantile(self.goal.quantile).map_or(0.0, milliseconds);
        let step = FindMaxStep {
            rate: (rate * 10.0).round() / 10.0,
            seconds: milliseconds(result.measured) / 1e3,
            events,
            slow,
            quantile_ms: latency.map(milliseconds),
            met: self.goal.judge_at_last(slow, events) == StepVerdict::Passed,
            generator_late: is_too_late(late, latency.map_or(0.0, milliseconds)),
        };
        TriedRate { step, plan, result }
    }
}
