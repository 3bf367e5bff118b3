//! The course of one event through the stages of its plan. A pure state machine: it takes the conclusions of
//! invocations, returns what to run next and reports what happened; it reads no clock, emits no metric and cannot fail.
//!
//! ```text
//! begin ──▶ Run(steps of stage 0) ──conclude──▶ Wait … ──▶ Run(steps of stage 1) … ──▶ Done ──▶ outcome
//! ```

use std::{ops::Range, path::PathBuf, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use super::verdict_merge::{MergedVerdict, VerdictMerger};
use crate::{
    handler::links::LinkQuery,
    model::{
        Conclusion, DecisionId, Dialect, DialectName, Draft, Ended, Event, HookReport, Outcome, Redactor,
        Target, Targets, Workspace,
    },
    registry::{Plan, RegisteredHook, Snapshot},
};

/// What a course needs next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a course that is not driven never ends"]
pub enum Progress {
    /// Run these steps of the plan, all at the same time, with the draft as it is now.
    Run(Range<usize>),
    /// Nothing: other steps of the stage are still running.
    Wait,
    /// Nothing more: take the outcome.
    Done,
}

/// One event on its way through its plan.
#[derive(Debug)]
pub struct Course {
    pub(super) event: Arc<Event>,
    pub(super) plan: Plan,
    /// What the event was planned by.
    snapshot: Arc<Snapshot>,
    pub(super) draft: Arc<Draft>,
    pub(super) stage: usize,
    pub(super) states: Vec<StepState>,
    /// The latest envelope, with its dialect and the revision of the draft it was written from.
    envelope: Option<(&'static dyn Dialect, u32, Bytes)>,
    /// The targets that patches have changed.
    pub(super) changed: Vec<Target>,
    pub(super) merger: VerdictMerger,
    pub(super) suppress_output: bool,
    /// How long the stages took so far, each as long as its slowest hook.
    in_hooks: Duration,
    /// The steps before this one have ended for good: reported, or never to run.
    settled: usize,
    /// The steps before this one were taken by [`Course::new_reports`].
    taken: usize,
    /// The dialects whose chain has ended: their remaining hooks do not run.
    pub(super) closed: Vec<DialectName>,
}

/// Whether hooks of two dialects get the same input. A dialect may have two spellings of one name.
fn is_same(one: &'static dyn Dialect, other: &'static dyn Dialect) -> bool {
    one.name() == other.name() && std::ptr::addr_eq(one, other)
}

impl Course {
    /// Starts the course of an event. With an empty plan it is done at once.
    pub fn begin(event: Arc<Event>, plan: Plan, snapshot: Arc<Snapshot>) -> (Self, Progress) {
        let states = plan.steps().iter().map(|_| StepState::NotRun).collect();
        let mut course = Self {
            draft: Arc::new(Draft::new(Arc::clone(&event))),
            event,
            plan,
            snapshot,
            stage: 0,
            states,
            envelope: None,
            changed: Vec::new(),
            merger: VerdictMerger::default(),
            suppress_output: false,
            in_hooks: Duration::ZERO,
            settled: 0,
            taken: 0,
            closed: Vec::new(),
        };
        let progress = course.enter_stage();
        (course, progress)
    }

    /// The event as the host sent it.
    pub fn event(&self) -> &Arc<Event> {
        &self.event
    }

    /// The directories from which its hooks take no programs.
    pub(super) fn project_roots(&self) -> &Arc<[PathBuf]> {
        self.snapshot.project_roots()
    }

    /// Removes the secrets of every hook of the snapshot from texts about the event.
    pub(super) fn redactor(&self) -> &Redactor {
        self.snapshot.redactor()
    }

    /// The event with the patches so far.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Where its hooks run.
    pub fn workspace(&self) -> &Arc<Workspace> {
        self.snapshot.workspace()
    }

    /// A step of the plan.
    pub fn step(&self, step: usize) -> &Arc<RegisteredHook> {
        &self.plan.steps()[step]
    }

    /// Whether a step asks where the links in the event's paths lead.
    pub(super) fn follows_links(&self, step: usize) -> bool {
        self.snapshot.follows_links() && self.step(step).hook.link_needs().is_some()
    }

    /// What there is to look up of the links in the event's paths, as it is now.
    pub(super) fn link_query(&self) -> LinkQuery {
        LinkQuery::of(&self.draft, self.workspace(), self.plan.steps().iter().map(|step| &step.hook))
    }

    /// The input of a step's hook. Hooks of one dialect share it until a patch changes the draft.
    pub fn envelope(&mut self, step: usize) -> Bytes {
        let dialect = self.plan.steps()[step].hook.dialect;
        match &self.envelope {
            Some((known, revision, bytes))
                if is_same(*known, dialect) && *revision == self.draft.revision() =>
            {
                bytes.clone()
            }
            _ => {
                let bytes = dialect.envelope(&self.draft, self.snapshot.workspace());
                self.envelope = Some((dialect, self.draft.revision(), bytes.clone()));
                bytes
            }
        }
    }

    /// Records how the invocation of a step ended. A conclusion for a step that does not run changes nothing.
    pub fn conclude(&mut self, step: usize, conclusion: Conclusion) -> Progress {
        if !self.is_running(step) {
            return Progress::Wait;
        }
        self.states[step] = StepState::Concluded(conclusion);
        let Some(stage) = self.plan.stage(self.stage) else { return Progress::Done };
        // The stage waits for its slowest step, so that effects come in plan order, not in the order of completion.
        if self.states[stage.clone()].iter().any(StepState::is_running) {
            return Progress::Wait;
        }
        self.in_hooks += self.states[stage.clone()].iter().map(StepState::duration).max().unwrap_or_default();
        let input = Arc::clone(&self.draft);
        self.settled = stage.end;
        let mut ends = false;
        for step in stage {
            ends |= self.settle(step, &input);
        }
        self.stage += 1;
        if ends { Progress::Done } else { self.enter_stage() }
    }

    /// How long hooks ran so far: the sum over the stages of their slowest hooks.
    pub fn time_in_hooks(&self) -> Duration {
        self.in_hooks
    }

    /// Records when the invocation of a step was submitted to its pool; a cancelled one is timed from then on.
    pub fn submitted(&mut self, step: usize, at: Instant) {
        self.states[step].submitted(at);
    }

    /// Whether the invocation of a step is running or queued.
    pub fn is_running(&self, step: usize) -> bool {
        self.states.get(step).is_some_and(StepState::is_running)
    }

    /// The hooks whose invocations are running or queued, in plan order.
    pub fn running_hooks(&self) -> impl Iterator<Item = &Arc<RegisteredHook>> {
        let running = self.states.iter().map(StepState::is_running);
        self.plan.steps().iter().zip(running).filter_map(|(step, running)| running.then_some(step))
    }

    /// Ends every running invocation as cancelled at `now`. Steps of the same stage that have ended keep their
    /// results.
    pub fn cancel(&mut self, why: &str, now: Instant) {
        let input = Arc::clone(&self.draft);
        self.settled = self.states.len();
        for step in 0..self.states.len() {
            self.states[step].cancel(why, now);
            if matches!(self.states[step], StepState::Concluded(_)) {
                self.settle(step, &input);
            }
        }
    }

    /// The reports of the steps that have ended since the last call, in plan order, each with its hook.
    pub fn new_reports(&mut self) -> impl Iterator<Item = (&Arc<RegisteredHook>, &HookReport)> {
        let new = self.taken..self.settled;
        self.taken = self.settled;
        let steps = self.plan.steps()[new.clone()].iter().zip(&self.states[new]);
        steps.filter_map(|(step, state)| match state {
            StepState::Reported(report) => Some((step, report)),
            StepState::NotRun | StepState::Running(_) | StepState::Concluded(_) => None,
        })
    }

    /// The outcome, with the reports of the hooks that ran so far.
    pub fn into_outcome(self, decision_id: DecisionId) -> Outcome {
        let mut patched = Targets::default();
        for target in self.changed {
            if let Some(value) = self.draft.target(target) {
                patched.set(target, value.clone());
            }
        }
        let report = |step_state| match step_state {
            StepState::Reported(report) => Some(report),
            StepState::NotRun | StepState::Running(_) | StepState::Concluded(_) => None,
        };
        let MergedVerdict { verdict, notes, native } = self.merger.into_verdict();
        let mut outcome = Outcome {
            decision_id,
            event: self.event.kind,
            verdict: verdict.verdict,
            reason: verdict.reason,
            by: verdict.by,
            patched,
            notes,
            suppress_output: self.suppress_output,
            native,
            hooks: self.states.into_iter().filter_map(report).collect(),
            snapshot_version: self.snapshot.version(),
            snapshot_content: Some(Arc::clone(self.snapshot.content())).filter(|content| !content.is_empty()),
        };
        outcome.drop_unused_patches();
        outcome
    }

    /// Starts the next stage. Stages of closed dialects are skipped; their steps stay `NotRun`.
    fn enter_stage(&mut self) -> Progress {
        while let Some(steps) = self.plan.stage(self.stage) {
            let stage = &self.plan.steps()[steps.clone()];
            if !stage.iter().all(|step| self.closed.contains(&step.hook.dialect.name())) {
                self.states[steps.clone()].fill_with(|| StepState::Running(None));
                return Progress::Run(steps);
            }
            self.stage += 1;
        }
        Progress::Done
    }
}

/// The state of one step of the plan. Reads no clock: the present is an argument.
#[derive(Debug)]
pub(super) enum StepState {
    /// The stage of the step has not begun, or was skipped.
    NotRun,
    /// The hook runs; the moment it was submitted to its pool is unknown for hooks that run inside the actor.
    Running(Option<Instant>),
    /// The invocation has ended, and other steps of the stage have not.
    Concluded(Conclusion),
    /// The conclusion has taken effect on the event.
    Reported(HookReport),
}

impl StepState {
    pub(super) fn is_running(&self) -> bool {
        matches!(self, Self::Running(_))
    }

    /// Running => Running, with the moment of its submission.
    pub(super) fn submitted(&mut self, at: Instant) {
        if let Self::Running(since) = self {
            *since = Some(at);
        }
    }

    /// Running => Concluded as cancelled; other states stay as they are.
    pub(super) fn cancel(&mut self, why: &str, now: Instant) {
        if let Self::Running(since) = self {
            let duration = since.map(|since| now.saturating_duration_since(since)).unwrap_or_default();
            *self = Self::Concluded(Conclusion { duration, ..Conclusion::not_run(Ended::Cancelled, why) });
        }
    }

    /// How long the hook ran; zero while it is unknown.
    pub(super) fn duration(&self) -> Duration {
        match self {
            Self::NotRun | Self::Running(_) => Duration::ZERO,
            Self::Concluded(conclusion) => conclusion.duration,
            Self::Reported(report) => report.duration,
        }
    }
}
