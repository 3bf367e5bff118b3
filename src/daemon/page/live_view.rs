//! What hooks do now, added up: pure, with the clock elsewhere.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;

use crate::{
    RunRef,
    handler::{HookWorkers, WorkerCounts},
    model::{HandlerKind, HookName, HookReport, Outcome, Verdict, WorkspaceId},
    telemetry::{PoolOccupancy, SlidingWindow},
};

/// The most hooks that are counted; further ones are not.
const MOST_HOOKS: usize = 2000;

/// The longest text of a failure that is sent, in characters.
const MOST_WHY: usize = 500;

/// An event that has ended.
#[derive(Debug)]
pub(super) struct WatchedEvent {
    pub(super) run: Arc<RunRef>,
    pub(super) outcome: Arc<Outcome>,
    /// Whether it has an outcome, and not only reports of hooks.
    pub(super) is_answered: bool,
}

/// What was seen since somebody watches. Times count from there.
#[derive(Debug, Default)]
pub(super) struct LiveCounts {
    hooks: BTreeMap<WorkspaceId, BTreeMap<HookName, HookCounts>>,
    /// How many hooks these are.
    known: usize,
    events: SlidingWindow,
    verdicts: Verdicts,
    total: u64,
    dropped: u64,
}

/// How many events or invocations had each verdict.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(super) struct Verdicts {
    proceed: u64,
    allow: u64,
    ask: u64,
    block: u64,
    halt: u64,
}

#[derive(Debug)]
struct HookCounts {
    handler: HandlerKind,
    invocations: u64,
    took: SlidingWindow,
    waited: SlidingWindow,
    verdicts: Verdicts,
    failures: u64,
    last_failure: Option<(Duration, String)>,
}

/// What is sent to the page.
#[derive(Debug, Serialize)]
pub(super) struct LiveView {
    /// For how long somebody watches, in milliseconds.
    watched_ms: u64,
    /// How many invocations and outcomes were not counted because they came too fast.
    dropped: u64,
    events: EventsView,
    hooks: Vec<HookView>,
    pools: Vec<PoolView>,
    workers: Vec<WorkersView>,
    events_in_flight: usize,
    runs: usize,
    active_runs: usize,
}

#[derive(Debug, Serialize)]
struct EventsView {
    total: u64,
    /// Per second, within the last minute.
    rate: f64,
    verdicts: Verdicts,
}

#[derive(Debug, Serialize)]
struct HookView {
    workspace_id: String,
    hook: String,
    handler: HandlerKind,
    invocations: u64,
    rate: f64,
    /// Within the last minute.
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    wait_p99_ms: Option<f64>,
    verdicts: Verdicts,
    failures: u64,
    last_failure: Option<FailureView>,
}

#[derive(Debug, Serialize)]
struct FailureView {
    ago_ms: u64,
    why: String,
}

#[derive(Debug, Serialize)]
struct PoolView {
    pool: HandlerKind,
    used: usize,
    places: usize,
    waiting: usize,
    queue: Option<usize>,
}

/// The workers of a hook.
#[derive(Debug, Serialize)]
struct WorkersView {
    workspace_id: String,
    hook: String,
    workers: usize,
    busy: usize,
    most: usize,
    /// How many said hello and then failed, or could not be started.
    failed: u64,
    /// What the last one ended with, if they do not serve.
    why: Option<String>,
}

/// What is known of the orchestrator at the moment of a view.
#[derive(Debug)]
pub(super) struct Occupancy {
    pub(super) pools: Vec<(HandlerKind, PoolOccupancy)>,
    pub(super) workers: Vec<(WorkspaceId, HookWorkers)>,
    pub(super) events_in_flight: usize,
    pub(super) runs: usize,
    pub(super) active_runs: usize,
}

impl LiveCounts {
    pub(super) fn take(&mut self, WatchedEvent { run, outcome, is_answered }: &WatchedEvent, now: Duration) {
        let hooks = self.hooks.entry(run.workspace_id.clone()).or_default();
        for report in &outcome.hooks {
            if let Some(counts) = hooks.get_mut(&report.hook) {
                counts.take(report, now);
            } else if self.known < MOST_HOOKS {
                self.known += 1;
                let counts = hooks.entry(report.hook.clone());
                counts.or_insert_with(|| HookCounts::of(report.handler)).take(report, now);
            }
        }
        if *is_answered {
            self.total += 1;
            self.events.count(now);
            self.verdicts.add(outcome.verdict);
        }
    }

    pub(super) fn lose(&mut self, count: u64) {
        self.dropped += count;
    }

    pub(super) fn view(&self, now: Duration, occupancy: Occupancy) -> LiveView {
        let hooks = self.hooks.iter().flat_map(|(workspace, hooks)| {
            hooks.iter().map(move |(hook, counts)| counts.view(workspace, hook, now))
        });
        let pools = occupancy.pools.into_iter().map(|(pool, known)| PoolView {
            pool,
            used: known.used,
            places: known.limit,
            waiting: known.depth,
            queue: known.queue_limit,
        });
        LiveView {
            watched_ms: whole_ms(now),
            dropped: self.dropped,
            events: EventsView { total: self.total, rate: self.events.rate(now), verdicts: self.verdicts },
            hooks: hooks.collect(),
            pools: pools.collect(),
            workers: occupancy.workers.into_iter().take(MOST_HOOKS).map(WorkersView::of).collect(),
            events_in_flight: occupancy.events_in_flight,
            runs: occupancy.runs,
            active_runs: occupancy.active_runs,
        }
    }
}

impl WorkersView {
    fn of((workspace, workers): (WorkspaceId, HookWorkers)) -> Self {
        let WorkerCounts { workers: there, busy, most, failed } = workers.counts;
        let why = workers.degradation.map(|(_, why)| why.chars().take(MOST_WHY).collect());
        Self {
            workspace_id: workspace.to_string(),
            hook: workers.hook.to_string(),
            workers: there,
            busy,
            most,
            failed,
            why,
        }
    }
}

impl HookCounts {
    fn of(handler: HandlerKind) -> Self {
        Self {
            handler,
            invocations: 0,
            took: SlidingWindow::default(),
            waited: SlidingWindow::default(),
            verdicts: Verdicts::default(),
            failures: 0,
            last_failure: None,
        }
    }

    fn take(&mut self, report: &HookReport, now: Duration) {
        self.handler = report.handler;
        self.invocations += 1;
        self.took.measure(now, report.duration);
        self.waited.measure(now, report.queued);
        self.verdicts.add(report.verdict);
        if report.ended.is_failure() {
            self.failures += 1;
            let why = report.error.as_deref().unwrap_or_default();
            let why = format!("{}: {why}", report.ended.as_str());
            self.last_failure = Some((now, why.chars().take(MOST_WHY).collect()));
        }
    }

    fn view(&self, workspace: &WorkspaceId, hook: &HookName, now: Duration) -> HookView {
        let took = self.took.quantiles(now);
        let last_failure = self
            .last_failure
            .as_ref()
            .map(|(at, why)| FailureView { ago_ms: whole_ms(now.saturating_sub(*at)), why: why.clone() });
        HookView {
            workspace_id: workspace.to_string(),
            hook: hook.to_string(),
            handler: self.handler,
            invocations: self.invocations,
            rate: self.took.rate(now),
            p50_ms: took.map(|took| ms(took.p50)),
            p99_ms: took.map(|took| ms(took.p99)),
            wait_p99_ms: self.waited.quantiles(now).map(|waited| ms(waited.p99)),
            verdicts: self.verdicts,
            failures: self.failures,
            last_failure,
        }
    }
}

impl Verdicts {
    fn add(&mut self, verdict: Verdict) {
        *match verdict {
            Verdict::Proceed => &mut self.proceed,
            Verdict::Allow => &mut self.allow,
            Verdict::Ask => &mut self.ask,
            Verdict::Block => &mut self.block,
            Verdict::Halt => &mut self.halt,
        } += 1;
    }
}

fn whole_ms(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn ms(time: Duration) -> f64 {
    (time.as_secs_f64() * 1e6).round() / 1e3
}

#[cfg(test)]
mod tests {
    use serde_json::{json, to_value};

    use super::*;
    use crate::model::{DecisionId, Ended, EventKind, RunId, SessionId};

    fn invocation(hook: &str, ended: Ended) -> WatchedEvent {
        let run = RunRef {
            workspace_id: WorkspaceId::new("shop").unwrap(),
            session_id: SessionId::new("s").unwrap(),
            run_id: RunId::new("r").unwrap(),
        };
        let mut report = HookReport::new(HookName::new(hook).unwrap(), HandlerKind::Command, ended);
        report.duration = Duration::from_millis(1);
        report.error = (ended != Ended::Completed).then(|| "<b>no</b>".into());
        let mut outcome = Outcome::proceed(DecisionId::new(1, 1), EventKind::BeforeToolDispatch, 1);
        outcome.hooks = vec![report];
        WatchedEvent { run: Arc::new(run), outcome: Arc::new(outcome), is_answered: false }
    }

    #[test]
    fn invocations_are_added_up_for_each_hook_and_bounded() {
        let mut counts = LiveCounts::default();
        counts.take(&invocation("guard", Ended::Completed), Duration::ZERO);
        counts.take(&invocation("guard", Ended::TimedOut), Duration::from_secs(1));
        for number in 0..MOST_HOOKS {
            counts.take(&invocation(&format!("a-{number}"), Ended::Completed), Duration::from_secs(1));
        }
        counts.lose(3);
        let occupancy = Occupancy {
            pools: Vec::new(),
            workers: Vec::new(),
            events_in_flight: 0,
            runs: 2,
            active_runs: 1,
        };
        let view = to_value(counts.view(Duration::from_secs(2), occupancy)).unwrap();
        let hooks = view["hooks"].as_array().unwrap();
        assert_eq!(
            (hooks.len(), &view["dropped"], &view["watched_ms"]),
            (MOST_HOOKS, &json!(3), &json!(2000))
        );
        let guard = hooks.iter().find(|hook| hook["hook"] == "guard").unwrap();
        assert_eq!(
            (&guard["rate"], &guard["invocations"], &guard["failures"]),
            (&json!(1.0), &json!(2), &json!(1))
        );
        assert_eq!(guard["last_failure"], json!({ "ago_ms": 1000, "why": "timed_out: <b>no</b>" }));
    }
}
