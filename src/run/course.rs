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
    slot::Slot,
    voices::{Upshot, Voices},
};
use crate::{
    model::{
        Capability, Conclusion, DecisionId, DialectName, Draft, Ended, Event, Failure, FailurePolicy, Hook,
        HookReport, Json, Outcome, Patch, Place, Redaction, Reply, Target, Targets, Ties, Upheld, Verdict,
        Weight,
    },
    registry::{Plan, Registered},
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
    place: Arc<Place>,
    snapshot_version: u64,
    draft: Draft,
    stage: usize,
    slots: Vec<Slot>,
    envelope: Option<(DialectName, u32, Bytes)>,
    changed: Vec<Target>,
    voices: Voices,
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
        place: Arc<Place>,
        snapshot_version: u64,
    ) -> (Self, Progress) {
        let slots = plan.steps().iter().map(|_| Slot::NotRun).collect();
        let mut course = Self {
            draft: Draft::new(Arc::clone(&event)),
            event,
            plan,
            place,
            snapshot_version,
            stage: 0,
            slots,
            envelope: None,
            changed: Vec::new(),
            voices: Voices::default(),
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
    pub(super) fn secrets(&self) -> Option<&Arc<Redaction>> {
        self.plan.secrets()
    }

    /// The event with the patches so far.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// Where its hooks run.
    pub fn place(&self) -> &Arc<Place> {
        &self.place
    }

    /// A step of the plan.
    pub fn step(&self, step: usize) -> &Arc<Registered> {
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
                let bytes = dialect.envelope(&self.draft, &self.place);
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
        self.slots[step] = Slot::Concluded(conclusion);
        let Some(stage) = self.plan.stage(self.stage) else { return Progress::Done };
        if self.slots[stage.clone()].iter().any(Slot::is_running) {
            return Progress::Wait;
        }
        self.in_hooks += self.slots[stage.clone()].iter().map(Slot::duration).max().unwrap_or_default();
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
        self.slots[step].submitted(at);
    }

    /// Whether the invocation of a step is under way.
    pub fn is_running(&self, step: usize) -> bool {
        self.slots.get(step).is_some_and(Slot::is_running)
    }

    /// The hooks whose invocations are under way, in plan order.
    pub fn under_way(&self) -> impl Iterator<Item = &Arc<Registered>> {
        let running = self.slots.iter().map(Slot::is_running);
        self.plan.steps().iter().zip(running).filter_map(|(step, running)| running.then_some(step))
    }

    /// Ends every invocation that is under way as cancelled. Those of the same stage that have ended keep
    /// their ends.
    pub fn cancel(&mut self, why: &str) {
        let told = self.draft.clone();
        for step in 0..self.slots.len() {
            self.slots[step].cancel(why);
            if matches!(self.slots[step], Slot::Concluded(_)) {
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
        let report = |slot| match slot {
            Slot::Reported(report) => Some(report),
            Slot::NotRun | Slot::Running(_) | Slot::Concluded(_) => None,
        };
        let Upshot { decision, notes, native } = self.voices.into_upshot();
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
            hooks: self.slots.into_iter().filter_map(report).collect(),
            snapshot_version: self.snapshot_version,
        }
    }

    fn enter_stage(&mut self) -> Progress {
        while let Some(steps) = self.plan.stage(self.stage) {
            let stage = &self.plan.steps()[steps.clone()];
            if !stage.iter().all(|step| self.closed.contains(&step.hook.dialect.name())) {
                self.slots[steps.clone()].fill_with(|| Slot::Running(None));
                return Progress::Run(steps);
            }
            self.stage += 1;
        }
        Progress::Done
    }

    /// Turns the conclusion of a step, which was told this draft, into its report and lets it act on the event.
    /// Returns whether it ends the chain.
    fn settle(&mut self, step: usize, told: &Draft) -> bool {
        let Slot::Concluded(conclusion) = std::mem::replace(&mut self.slots[step], Slot::NotRun) else {
            return false;
        };
        let registered = Arc::clone(&self.plan.steps()[step]);
        let hook = &registered.hook;
        let mut report = HookReport {
            tokens: conclusion.tokens,
            began: conclusion.began,
            warnings: conclusion.warnings,
            ..HookReport::completed(hook, conclusion.duration)
        };
        let mut accepted_failure = None;
        let (failure, reply) = match conclusion.result {
            Ok(mut reply) => (reply.failure.take(), Some(reply)),
            Err(failure) => (Some(Box::new(failure)), None),
        };
        if let Some(failure) = failure {
            let spoke = reply.as_ref().is_some_and(|reply| reply.opinion.verdict() != Verdict::Proceed);
            accepted_failure = self.fail(&registered, *failure, &mut report).filter(|_| !spoke);
        }
        match reply {
            Some(reply) if self.event.is_interceptor() => {
                self.intercept(&registered, reply, told, &mut report);
            }
            Some(reply) => self.watch(&registered, reply, told, &mut report),
            None => {}
        }
        report.policy =
            accepted_failure.map(|let_pass| if let_pass { Upheld::FailOpen } else { Upheld::FailClosed });
        registered.meters.ended(self.event.kind, &report, accepted_failure);
        let verdict = report.verdict;
        self.slots[step] = Slot::Reported(report);
        let ends = verdict == Verdict::Halt || hook.dialect.ends_chain(self.event.kind, verdict);
        if ends && verdict < Verdict::Block {
            // What another dialect's hook would forbid, no hook of this one can permit.
            self.closed.push(hook.dialect.name());
        }
        ends && verdict >= Verdict::Block
    }

    /// The reply of an interceptor: its verdict counts, and its patches unless it blocks.
    fn intercept(&mut self, registered: &Registered, reply: Reply, told: &Draft, report: &mut HookReport) {
        let (hook, kind) = (&registered.hook, self.event.kind);
        let own = reply.opinion.verdict();
        let reply = self.voices.join(hook, kind, told, reply);
        report.warnings.extend(reply.warnings);
        let (verdict, reason) = reply.opinion.into_parts();
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
        self.voices.note(hook, kind, reply.notes);
        if hook.dialect.name() == self.event.dialect {
            self.voices.keep_words(hook, kind, reply.native);
        }
        let reason = reason.map(Arc::from);
        match hook.dialect.ties(kind) {
            Ties::FirstDecides => self.voices.decide(&hook.name, verdict, reason),
            Ties::Joined | Ties::Replaced => self.voices.decide_together(hook, own, verdict, reason),
        }
    }

    /// The reply of a lifecycle hook: only its notes count.
    fn watch(&mut self, registered: &Registered, reply: Reply, told: &Draft, report: &mut HookReport) {
        let (hook, kind) = (&registered.hook, self.event.kind);
        let verdict = reply.opinion.verdict();
        let reply = self.voices.join(hook, kind, told, reply);
        report.warnings.extend(reply.warnings);
        if verdict != Verdict::Proceed {
            report.warnings.push(format!("verdict `{verdict}` ignored: hooks on {kind} only watch"));
        }
        for patch in reply.patches {
            report.warnings.push(format!("patch of `{}` ignored: hooks on {kind} only watch", patch.name()));
            registered.meters.patched(kind, patch.target(), PatchResult::Rejected);
        }
        self.voices.note(hook, kind, reply.notes);
        if hook.dialect.name() == self.event.dialect {
            self.voices.keep_words(hook, kind, reply.native);
        }
    }

    /// A failure is no verdict, unless a policy of the hook makes it one. Returns whether it was let pass,
    /// where there was a choice.
    fn fail(&mut self, registered: &Registered, failure: Failure, report: &mut HookReport) -> Option<bool> {
        let hook = &registered.hook;
        report.ended = failure.ended;
        let choice = match failure.ended {
            Ended::Cancelled => None,
            _ if !self.event.is_interceptor() => None,
            _ if failure.weight == Weight::LetPass => Some(("on_error", FailurePolicy::Ignore)),
            Ended::TimedOut => Some(("on_timeout", hook.on_timeout)),
            _ => Some(("on_error", hook.on_error)),
        };
        if let Some((policy, choice)) = choice {
            report.verdict = choice.verdict();
            if report.verdict != Verdict::Proceed {
                let (name, ended, message) = (&hook.name, failure.ended.phrase(), &failure.message);
                let reason = format!("hook `{name}` {ended}: {message} ({policy}: {})", choice.as_str());
                self.voices.decide(name, report.verdict, Some(reason.into()));
            }
        }
        report.error = Some(failure.message.into());
        choice.map(|(_, choice)| choice == FailurePolicy::Ignore)
    }

    /// Applies one patch, or warns why not.
    fn apply(
        &mut self,
        registered: &Registered,
        patch: Patch,
        warnings: &mut Vec<String>,
    ) -> (Option<Target>, PatchResult) {
        let hook = &registered.hook;
        let kind = self.event.kind;
        let (target, value) = match patch {
            Patch::Target(target, value) => (target, value),
            Patch::Onward(target, value) => {
                self.hand_on(hook, target, value);
                return (Some(target), PatchResult::Unchanged);
            }
            Patch::Foreign(name) => {
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
        match hook.dialect.fold(target, current, &value) {
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
