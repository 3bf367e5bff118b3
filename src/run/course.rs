//! The course of one event through the stages of its plan. Pure: it is told how invocations ended and says
//! what to run next; refuses clocks, I/O and actors, and cannot fail.
//!
//! ```text
//! begin ──▶ Run(steps of stage 0) ──conclude──▶ Wait … ──▶ Run(steps of stage 1) … ──▶ Done ──▶ outcome
//! ```

use std::{ops::Range, sync::Arc, time::Duration};

use bytes::Bytes;
use tokio::time::Instant;

use super::{
    step_state::StepState,
    verdict_merge::{MergedVerdict, VerdictMerger},
};
use crate::{
    model::{
        Capability, Conclusion, DecisionId, DialectName, Draft, Ended, Event, Failure, FailureHandling,
        FailureMode, FailurePolicy, Hook, HookReport, Json, MergeRule, Outcome, Patch, Redactor, Reply,
        Target, Targets, Verdict, Workspace,
    },
    registry::{Plan, RegisteredHook},
    telemetry::PatchResult,
};

/// What a course wants next.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a course that is not driven never ends"]
pub enum Progress {
    /// Run these steps of the plan, all at the same time, with the draft as it is now.
    Run(Range<usize>),
    /// Nothing: other steps of the stage are still running.
    Wait,
    /// Nothing ever again: take the outcome.
    Done,
}

/// One event on its way through its plan.
#[derive(Debug)]
pub struct Course {
    event: Arc<Event>,
    plan: Plan,
    workspace: Arc<Workspace>,
    snapshot_version: u64,
    draft: Draft,
    stage: usize,
    states: Vec<StepState>,
    envelope: Option<(DialectName, u32, Bytes)>,
    changed: Vec<Target>,
    merger: VerdictMerger,
    suppress_output: bool,
    /// How long the stages took so far.
    in_hooks: Duration,
    /// The dialects whose hooks have settled it among themselves.
    closed: Vec<DialectName>,
}

impl Course {
    /// Sets an event on its way; the plan must not be empty for there to be anything to run.
    pub fn begin(
        event: Arc<Event>,
        plan: Plan,
        workspace: Arc<Workspace>,
        snapshot_version: u64,
    ) -> (Self, Progress) {
        let states = plan.steps().iter().map(|_| StepState::NotRun).collect();
        let mut course = Self {
            draft: Draft::new(Arc::clone(&event)),
            event,
            plan,
            workspace,
            snapshot_version,
            stage: 0,
            states,
            envelope: None,
            changed: Vec::new(),
            merger: VerdictMerger::default(),
            suppress_output: false,
            in_hooks: Duration::ZERO,
            closed: Vec::new(),
        };
        let progress = course.enter_stage();
        (course, progress)
    }

    /// The event as the host sent it.
    pub fn event(&self) -> &Arc<Event> {
        &self.event
    }

    /// The secrets of all hooks that it might have concerned.
    pub(super) fn secrets(&self) -> Option<&Arc<Redactor>> {
        self.plan.secrets()
    }

    /// The event with the patches so far.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Where its hooks run.
    pub fn workspace(&self) -> &Arc<Workspace> {
        &self.workspace
    }

    /// A step of the plan.
    pub fn step(&self, step: usize) -> &Arc<RegisteredHook> {
        &self.plan.steps()[step]
    }

    /// What the hook of a step is told now. Hooks of one dialect share it until a patch changes the draft.
    pub fn envelope(&mut self, step: usize) -> Bytes {
        let dialect = self.plan.steps()[step].hook.dialect;
        match &self.envelope {
            Some((name, revision, bytes))
                if *name == dialect.name() && *revision == self.draft.revision() =>
            {
                bytes.clone()
            }
            _ => {
                let bytes = dialect.envelope(&self.draft, &self.workspace);
                self.envelope = Some((dialect.name(), self.draft.revision(), bytes.clone()));
                bytes
            }
        }
    }

    /// Takes note of how the invocation of a step ended. A step that is not running is left alone.
    pub fn conclude(&mut self, step: usize, conclusion: Conclusion) -> Progress {
        if !self.is_running(step) {
            return Progress::Wait;
        }
        self.states[step] = StepState::Concluded(conclusion);
        let Some(stage) = self.plan.stage(self.stage) else { return Progress::Done };
        if self.states[stage.clone()].iter().any(StepState::is_running) {
            return Progress::Wait;
        }
        self.in_hooks += self.states[stage.clone()].iter().map(StepState::duration).max().unwrap_or_default();
        let told = self.draft.clone();
        // Configured order, whatever the order of completion was.
        let ends = stage.fold(false, |ends, step| self.settle(step, &told) | ends);
        self.stage += 1;
        if ends { Progress::Done } else { self.enter_stage() }
    }

    /// How long hooks ran so far: of each stage that is over, the one that took longest.
    pub fn time_in_hooks(&self) -> Duration {
        self.in_hooks
    }

    /// The invocation of a step has gone to its pool. One that is cancelled counts from here.
    pub fn submitted(&mut self, step: usize, at: Instant) {
        self.states[step].submitted(at);
    }

    /// Whether the invocation of a step is under way.
    pub fn is_running(&self, step: usize) -> bool {
        self.states.get(step).is_some_and(StepState::is_running)
    }

    /// The hooks whose invocations are under way, in plan order.
    pub fn under_way(&self) -> impl Iterator<Item = &Arc<RegisteredHook>> {
        let running = self.states.iter().map(StepState::is_running);
        self.plan.steps().iter().zip(running).filter_map(|(step, running)| running.then_some(step))
    }

    /// Ends every invocation that is under way as cancelled. Those of the same stage that have ended keep
    /// their ends.
    pub fn cancel(&mut self, why: &str) {
        let told = self.draft.clone();
        for step in 0..self.states.len() {
            self.states[step].cancel(why);
            if matches!(self.states[step], StepState::Concluded(_)) {
                self.settle(step, &told);
            }
        }
    }

    /// The outcome, with the reports of the hooks that ran so far.
    pub fn into_outcome(self) -> Outcome {
        let mut patched = Targets::default();
        for target in self.changed {
            if let Some(value) = self.draft.target(target) {
                patched.set(target, value.clone());
            }
        }
        let report = |step_state| match step_state {
            StepState::Reported(report) => Some(report),
            StepState::NotRun | StepState::InFlightEvent(_) | StepState::Concluded(_) => None,
        };
        let MergedVerdict { decision, notes, native } = self.merger.into_verdict();
        Outcome {
            decision_id: DecisionId::next(),
            event: self.event.kind,
            verdict: decision.verdict,
            reason: decision.reason,
            by: decision.by,
            patched,
            notes,
            suppress_output: self.suppress_output,
            native,
            hooks: self.states.into_iter().filter_map(report).collect(),
            snapshot_version: self.snapshot_version,
        }
    }

    fn enter_stage(&mut self) -> Progress {
        while let Some(steps) = self.plan.stage(self.stage) {
            let stage = &self.plan.steps()[steps.clone()];
            if !stage.iter().all(|step| self.closed.contains(&step.hook.dialect.name())) {
                self.states[steps.clone()].fill_with(|| StepState::InFlightEvent(None));
                return Progress::Run(steps);
            }
            self.stage += 1;
        }
        Progress::Done
    }

    /// Turns the conclusion of a step, which was told this draft, into its report and lets it act on the event.
    /// Returns whether it ends the chain.
    fn settle(&mut self, step: usize, told: &Draft) -> bool {
        let StepState::Concluded(conclusion) = std::mem::replace(&mut self.states[step], StepState::NotRun)
        else {
            return false;
        };
        let registered = Arc::clone(&self.plan.steps()[step]);
        let hook = &registered.hook;
        let mut report = HookReport {
            tokens: conclusion.tokens,
            started: conclusion.started,
            warnings: conclusion.warnings,
            ..HookReport::completed(hook, conclusion.duration)
        };
        let mut accepted_failure = None;
        let (failure, reply) = match conclusion.result {
            Ok(mut reply) => (reply.failure.take(), Some(reply)),
            Err(failure) => (Some(Box::new(failure)), None),
        };
        if let Some(failure) = failure {
            let spoke = reply.as_ref().is_some_and(|reply| reply.decision.verdict() != Verdict::Proceed);
            accepted_failure = self.fail(&registered, *failure, &mut report).filter(|_| !spoke);
        }
        match reply {
            Some(reply) if self.event.is_interceptor() => {
                self.intercept(&registered, reply, told, &mut report);
            }
            Some(reply) => self.watch(&registered, reply, told, &mut report),
            None => {}
        }
        report.failure_mode = accepted_failure
            .map(|ignored| if ignored { FailureMode::FailOpen } else { FailureMode::FailClosed });
        registered.meters.ended(self.event.kind, &report, accepted_failure);
        let verdict = report.verdict;
        self.states[step] = StepState::Reported(report);
        let ends = verdict == Verdict::Halt || hook.dialect.ends_chain(self.event.kind, verdict);
        if ends && verdict < Verdict::Block {
            // What another dialect's hook would forbid, no hook of this one can permit.
            self.closed.push(hook.dialect.name());
        }
        ends && verdict >= Verdict::Block
    }

    /// The reply of an interceptor: its verdict counts, and its patches unless it blocks.
    fn intercept(
        &mut self,
        registered: &RegisteredHook,
        reply: Reply,
        told: &Draft,
        report: &mut HookReport,
    ) {
        let (hook, kind) = (&registered.hook, self.event.kind);
        let own = reply.decision.verdict();
        let reply = self.merger.join(hook, kind, told, reply);
        report.warnings.extend(reply.warnings);
        let (verdict, reason) = reply.decision.into_parts();
        report.verdict = report.verdict.max(own);
        if verdict < Verdict::Block {
            for patch in reply.patches {
                let (target, result) = self.apply(registered, patch, &mut report.warnings);
                registered.meters.patched(self.event.kind, target, result);
                if let (Some(target), PatchResult::Applied) = (target, result)
                    && !report.patched.contains(&target)
                {
                    report.patched.push(target);
                }
            }
        }
        if reply.suppress_output && Capability::SuppressOutput.applies_to(self.event.kind) {
            if hook.capabilities.contains(Capability::SuppressOutput) {
                self.suppress_output = true;
            } else {
                report
                    .warnings
                    .push("suppressOutput ignored: the hook lacks the capability `suppress_output`".into());
            }
        }
        self.merger.note(hook, kind, reply.notes);
        if hook.dialect.name() == self.event.dialect {
            self.merger.keep_words(hook, kind, reply.native);
        }
        let reason = reason.map(Arc::from);
        match hook.dialect.merge_rule(kind) {
            MergeRule::Strictest => self.merger.decide(&hook.name, verdict, reason),
            MergeRule::Combined | MergeRule::CombinedLatestNotes => {
                self.merger.decide_together(hook, own, verdict, reason);
            }
        }
    }

    /// The reply of a lifecycle hook: only its notes count.
    fn watch(&mut self, registered: &RegisteredHook, reply: Reply, told: &Draft, report: &mut HookReport) {
        let (hook, kind) = (&registered.hook, self.event.kind);
        let verdict = reply.decision.verdict();
        let reply = self.merger.join(hook, kind, told, reply);
        report.warnings.extend(reply.warnings);
        if verdict != Verdict::Proceed {
            report.warnings.push(format!("verdict `{verdict}` ignored: hooks on {kind} only watch"));
        }
        for patch in reply.patches {
            report.warnings.push(format!("patch of `{}` ignored: hooks on {kind} only watch", patch.name()));
            registered.meters.patched(kind, patch.target(), PatchResult::Rejected);
        }
        self.merger.note(hook, kind, reply.notes);
        if hook.dialect.name() == self.event.dialect {
            self.merger.keep_words(hook, kind, reply.native);
        }
    }

    /// A failure is no verdict, unless a policy of the hook makes it one. Returns whether it was let pass,
    /// where there was a choice.
    fn fail(
        &mut self,
        registered: &RegisteredHook,
        failure: Failure,
        report: &mut HookReport,
    ) -> Option<bool> {
        let hook = &registered.hook;
        report.ended = failure.ended;
        let choice = match failure.ended {
            Ended::Cancelled => None,
            _ if !self.event.is_interceptor() => None,
            _ if failure.handling == FailureHandling::Ignore => Some(("on_error", FailurePolicy::Ignore)),
            Ended::TimedOut => Some(("on_timeout", hook.on_timeout)),
            _ => Some(("on_error", hook.on_error)),
        };
        if let Some((policy, choice)) = choice {
            report.verdict = choice.verdict();
            if report.verdict != Verdict::Proceed {
                let (name, ended, message) = (&hook.name, failure.ended.phrase(), &failure.message);
                let reason = format!("hook `{name}` {ended}: {message} ({policy}: {})", choice.as_str());
                self.merger.decide(name, report.verdict, Some(reason.into()));
            }
        }
        report.error = Some(failure.message.into());
        choice.map(|(_, choice)| choice == FailurePolicy::Ignore)
    }

    /// Applies one patch, or warns why not.
    fn apply(
        &mut self,
        registered: &RegisteredHook,
        patch: Patch,
        warnings: &mut Vec<String>,
    ) -> (Option<Target>, PatchResult) {
        let hook = &registered.hook;
        let kind = self.event.kind;
        let (target, value) = match patch {
            Patch::Target(target, value) => (target, value),
            Patch::HooksOnly(target, value) => {
                self.hand_on(hook, target, value);
                return (Some(target), PatchResult::Unchanged);
            }
            Patch::Unsupported(name) => {
                warnings.push(format!("patch of `{name}` rejected: hooks may not change it"));
                return (None, PatchResult::Rejected);
            }
        };
        if kind.target() != Some(target) {
            warnings.push(format!("patch of `{target}` rejected: it is not what hooks on {kind} may change"));
            return (Some(target), PatchResult::Rejected);
        }
        let capability = target.capability();
        if !hook.capabilities.contains(capability) {
            let capability = capability.as_str();
            warnings
                .push(format!("patch of `{target}` ignored: the hook lacks the capability `{capability}`"));
            return (Some(target), PatchResult::NoCapability);
        }
        let current = self.draft.target(target);
        match hook.dialect.apply_patch(target, current, &value) {
            Ok(folded) if Some(&folded) == current => (Some(target), PatchResult::Unchanged),
            Ok(folded) => {
                self.draft.set(target, folded);
                if !self.changed.contains(&target) {
                    self.changed.push(target);
                }
                (Some(target), PatchResult::Applied)
            }
            Err(error) => {
                warnings.push(format!("patch of `{target}` rejected: {error}"));
                (Some(target), PatchResult::Rejected)
            }
        }
    }

    /// Has later hooks of the same dialect, if there are any, told something else.
    fn hand_on(&mut self, hook: &Hook, target: Target, value: Json) {
        let later = self.plan.stage(self.stage).map_or(&[][..], |stage| &self.plan.steps()[stage.end..]);
        if later.iter().any(|step| step.hook.dialect.name() == hook.dialect.name()) {
            self.draft.set(target, value);
        }
    }
}
