//! Drives a scenario through the registry and the course as a run would, and checks the protocol between the two.

use std::{collections::BTreeMap, ops::Range, sync::Arc, time::Duration};

use hookyard::{
    model::{Conclusion, Ended, Json, Outcome, Reply, Target},
    registry::{Explanation, Plan, Snapshot},
    run::{Course, Progress},
    telemetry::HookMeters,
};
use metrics_util::debugging::{DebugValue, DebuggingRecorder, Snapshotter};
use proptest::prelude::*;

use crate::course::{
    double::{self, Double},
    model::series,
    scenario::{End, Rule, Scenario},
};

/// The names of a stage's hooks, and the payload they were told.
pub(crate) type Stage = (Vec<String>, BTreeMap<Target, String>);

/// What became of a scenario.
pub(crate) struct Observed {
    /// The stages that ran, each with the payload its hooks were told.
    pub(crate) ran: Vec<Stage>,
    pub(crate) outcome: Outcome,
    /// All counters that are not 0.
    pub(crate) counters: BTreeMap<String, u64>,
}

/// How long the invocation of a step is said to have taken.
pub(crate) fn duration(step: usize) -> Duration {
    Duration::from_millis(step as u64 + 1)
}

/// The registry of a scenario, its plan and the reasons for what is not in it.
pub(crate) fn explain(scenario: &Scenario) -> (Arc<Snapshot>, Plan, Explanation) {
    let hooks = scenario.hooks.iter().map(Rule::hook).collect();
    let snapshot = Arc::new(Snapshot::new(7, Arc::new(double::place()), hooks));
    let event = scenario.event();
    let (plan, explanation) = (snapshot.plan(&event), snapshot.explain(&event));
    (snapshot, plan, explanation)
}

/// Takes a scenario to its end.
///
/// Returns an error if the course breaks the protocol between it and its run.
pub(crate) fn drive(scenario: &Scenario) -> Result<Observed, TestCaseError> {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    let (ran, outcome) = metrics::with_local_recorder(&recorder, || {
        let (snapshot, plan, _) = explain(scenario);
        Drive::begin(scenario, &snapshot, &plan).finish()
    })?;
    Ok(Observed { ran, outcome, counters: counters(&snapshotter) })
}

/// The counters that are not 0, each as one line.
fn counters(snapshotter: &Snapshotter) -> BTreeMap<String, u64> {
    let count = |(key, _, _, value): (metrics_util::CompositeKey, _, _, DebugValue)| {
        let DebugValue::Counter(count @ 1..) = value else { return None };
        let labels: Vec<_> = key.key().labels().map(|label| (label.key(), label.value())).collect();
        let name = key.key().name().strip_prefix("hookyard_").expect("all metrics have the prefix");
        Some((series(name, &labels), count))
    };
    snapshotter.snapshot().into_vec().into_iter().filter_map(count).collect()
}

/// A course under way.
struct Drive<'a> {
    scenario: &'a Scenario,
    course: Course,
    /// The stages of the plan that are still to come.
    stages: Vec<Range<usize>>,
    steps: usize,
    ran: Vec<Stage>,
    ended: usize,
    progress: Progress,
}

impl<'a> Drive<'a> {
    fn begin(scenario: &'a Scenario, snapshot: &Arc<Snapshot>, plan: &Plan) -> Self {
        let mut stages: Vec<_> = (0..).map_while(|number| plan.stage(number)).collect();
        stages.reverse();
        let event = Arc::new(scenario.event());
        let (course, progress) = Course::begin(event, plan.clone(), Arc::clone(snapshot));
        let steps = plan.steps().len();
        Self { scenario, course, stages, steps, ran: Vec::new(), ended: 0, progress }
    }

    fn finish(mut self) -> Result<(Vec<Stage>, Outcome), TestCaseError> {
        while let Progress::Run(steps) = self.progress.clone() {
            // The model says which stages a dialect passes over that has settled the event.
            let next = std::iter::from_fn(|| self.stages.pop()).find(|stage| *stage == steps);
            prop_assert!(next.is_some(), "the stages run in order");
            self.stage(&steps)?;
        }
        prop_assert_eq!(&self.progress, &Progress::Done);
        self.meddle()?;
        self.course.cancel("nobody waits", tokio::time::Instant::now());
        prop_assert!(!self.is_any_running(), "nothing runs after the end");
        self.record();
        Ok((self.ran, self.course.into_outcome(hookyard::run::next_decision_id())))
    }

    /// Runs one stage to its end, which may be that of the event.
    fn stage(&mut self, steps: &Range<usize>) -> Result<(), TestCaseError> {
        let names = steps.clone().map(|step| self.course.step(step).hook.name.to_string()).collect();
        let told = self.payload();
        self.ran.push((names, told.clone()));
        self.progress = Progress::Wait;
        let mut by_pace: Vec<usize> = steps.clone().collect();
        by_pace.sort_by_key(|step| self.scenario.pace[*step]);
        let mut left = by_pace.as_slice();
        loop {
            self.check_stage(&told, left)?;
            if self.scenario.end == End::CancelledAfter(self.ended) {
                self.course.cancel("nobody waits", tokio::time::Instant::now());
                self.progress = Progress::Done;
                return Ok(());
            }
            let Some((step, rest)) = left.split_first() else { return Ok(()) };
            left = rest;
            self.end_of(*step)?;
            if left.is_empty() {
                prop_assert_ne!(
                    &self.progress,
                    &Progress::Wait,
                    "a stage whose steps have all ended is over"
                );
                return Ok(());
            }
            prop_assert_eq!(&self.progress, &Progress::Wait, "a stage is over when its last step has ended");
            self.meddle()?;
        }
    }

    /// Ends the invocation of a step as its hook wants it.
    fn end_of(&mut self, step: usize) -> Result<(), TestCaseError> {
        let name = self.course.step(step).hook.name.to_string();
        let result = self.scenario.rule(&name).answer.result();
        self.ended += 1;
        self.progress = self.course.conclude(step, Conclusion::ran(result, duration(step)));
        self.record();
        prop_assert!(!self.course.is_running(step), "an invocation that has ended does not run");
        Ok(())
    }

    /// The steps that are left run, and all hooks of a stage are told the same, however late they ask.
    fn check_stage(&mut self, told: &BTreeMap<Target, String>, left: &[usize]) -> Result<(), TestCaseError> {
        for step in 0..self.steps {
            prop_assert_eq!(self.course.is_running(step), left.contains(&step), "whether step {} runs", step);
        }
        prop_assert_eq!(&self.payload(), told, "the draft changes between stages only");
        for step in left {
            let dialect = self.course.step(*step).hook.dialect.name();
            let parts = told.iter().map(|(target, value)| (*target, value.as_str()));
            let envelope = self.course.envelope(*step);
            prop_assert_eq!(String::from_utf8_lossy(&envelope), Double::told(dialect, parts));
        }
        Ok(())
    }

    /// Says of every step that is not running that it ended, which must change nothing.
    fn meddle(&mut self) -> Result<(), TestCaseError> {
        let told = self.payload();
        let idle: Vec<usize> = (0..self.steps).filter(|step| !self.course.is_running(*step)).collect();
        for step in idle {
            let mut reply = Reply::halt("too late");
            if let Some(target) = self.scenario.kind.target() {
                reply = reply.patch(target, Json::parse("\"too late\"").unwrap());
            }
            let late = Conclusion::ran(Ok(reply), Duration::from_secs(9));
            let was_over = self.progress == Progress::Done;
            match self.course.conclude(step, late) {
                Progress::Wait => {}
                Progress::Done if was_over => {}
                progress => prop_assert!(false, "a late end of step {step} led to {progress:?}"),
            }
            let failed = Conclusion::not_run(Ended::Failed, "too late");
            let _ = self.course.conclude(step, failed);
        }
        prop_assert_eq!(self.payload(), told, "a late patch changes nothing");
        Ok(())
    }

    /// Counts what has ended, as a run does.
    fn record(&mut self) {
        let kind = self.course.event().kind;
        for (step, report) in self.course.new_reports() {
            HookMeters::resolve(&step.hook).record(kind, report);
        }
    }

    fn is_any_running(&self) -> bool {
        (0..self.steps).any(|step| self.course.is_running(step))
    }

    fn payload(&self) -> BTreeMap<Target, String> {
        let part = |target| Some((target, self.course.draft().target(target)?.as_str().to_owned()));
        Target::ALL.into_iter().filter_map(part).collect()
    }
}
