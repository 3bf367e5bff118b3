//! What the conclusion of a step does to its event: verdict, patches, notes and the step's report. Pure, as the course.

use std::sync::Arc;

use super::course::{Course, StepState};
use crate::model::{
    Capability, Draft, Ended, Failure, FailureHandling, FailureMode, FailurePolicy, Hook, HookReport, Json,
    JsonError, MergeRule, NoteKind, Patch, PatchResult, PatchScope, Reply, Target, TrustState, Verdict,
};

impl Course {
    /// Concluded => Reported: applies a conclusion to the event. `input` is the draft that the hook was given.
    /// Returns whether the chain ends after the stage.
    pub(super) fn settle(&mut self, step: usize, input: &Draft) -> bool {
        let StepState::Concluded(conclusion) = std::mem::replace(&mut self.states[step], StepState::NotRun)
        else {
            return false;
        };
        let registered = Arc::clone(&self.plan.steps()[step]);
        let hook = &registered.hook;
        let mut report = HookReport {
            tokens: conclusion.tokens,
            started: conclusion.started,
            queued: conclusion.queued,
            content: hook.source.content.clone(),
            warnings: conclusion.warnings,
            trust: hook.trust.state(),
            ..HookReport::completed(hook.name.clone(), hook.handler.kind(), conclusion.duration)
        };
        let (failure, reply) = match conclusion.result {
            Ok(mut reply) => (reply.failure.take(), Some(reply)),
            Err(failure) => (Some(Box::new(failure)), None),
        };
        if let Some(failure) = failure {
            // A hook that failed and gave a verdict all the same counts by its verdict, not by its policy.
            let has_verdict =
                reply.as_ref().is_some_and(|reply| reply.decision.verdict() != Verdict::Proceed);
            let failure_mode = self.fail(hook, *failure, &mut report);
            report.failure_mode = failure_mode.filter(|_| !has_verdict);
        }
        match reply {
            Some(reply) if self.event.is_interceptor() => self.intercept(hook, reply, input, &mut report),
            Some(reply) => self.observe(hook, reply, input, &mut report),
            None => self.keep_patches(hook, input),
        }
        let verdict = report.verdict;
        self.states[step] = StepState::Reported(report);
        self.ends_chain(hook, verdict)
    }

    /// Whether a verdict ends the chain for all dialects. One that is milder than a block closes the chain for its
    /// own dialect only: what another dialect's hook would forbid, no hook of this one can permit.
    fn ends_chain(&mut self, hook: &Hook, verdict: Verdict) -> bool {
        let ends = hook.dialect.ends_chain(self.event.kind, verdict);
        if ends && verdict < Verdict::Block {
            self.closed.push(hook.dialect.name());
        }
        ends && verdict >= Verdict::Block
    }

    /// Applies the reply of an interceptor: its verdict counts, and its patches unless it blocks.
    fn intercept(&mut self, hook: &Hook, reply: Reply, input: &Draft, report: &mut HookReport) {
        let kind = self.event.kind;
        let own = reply.decision.verdict();
        let reply = self.merger.combine(hook, kind, input, reply);
        report.warnings.extend(reply.warnings);
        let (verdict, reason) = reply.decision.into_parts();
        report.verdict = report.verdict.max(own);
        for patch in reply.patches {
            if verdict < Verdict::Block || matches!(patch, Patch::HooksOnly(..)) {
                self.patch(hook, patch, report);
            }
        }
        if reply.suppress_output && Capability::SuppressOutput.applies_to(kind) {
            if hook.capabilities.contains(Capability::SuppressOutput) {
                self.suppress_output = true;
            } else {
                let warning = "suppressOutput ignored: the hook lacks the capability `suppress_output`";
                report.warnings.push(warning.into());
            }
        }
        self.merger.add_notes(hook, kind, reply.notes);
        if hook.dialect.name() == self.event.dialect {
            self.merger.keep_native(hook, kind, reply.native);
        }
        let reason = reason.map(Arc::from);
        match hook.dialect.merge_rule(kind) {
            MergeRule::Strictest => self.merger.decide(&hook.name, verdict, reason),
            MergeRule::Combined | MergeRule::CombinedLatestNotes => {
                self.merger.decide_combined(hook, own, verdict, reason);
            }
        }
    }

    /// Applies what earlier hooks of its dialect patched, after a hook without a reply: hooks may have been shown
    /// something else than what the host gets.
    fn keep_patches(&mut self, hook: &Hook, input: &Draft) {
        let kind = self.event.kind;
        if !self.event.is_interceptor() || hook.dialect.merge_rule(kind) == MergeRule::Strictest {
            return;
        }
        let reply = self.merger.combine(hook, kind, input, Reply::proceed());
        if reply.decision.verdict() < Verdict::Block {
            // They were counted for the hooks that gave them.
            reply.patches.into_iter().for_each(|patch| drop(self.try_patch(hook, patch)));
        }
    }

    /// Applies the reply of a lifecycle hook: only its notes count.
    fn observe(&mut self, hook: &Hook, reply: Reply, input: &Draft, report: &mut HookReport) {
        let kind = self.event.kind;
        let verdict = reply.decision.verdict();
        let reply = self.merger.combine(hook, kind, input, reply);
        report.warnings.extend(reply.warnings);
        if verdict != Verdict::Proceed {
            report.warnings.push(format!("verdict `{verdict}` ignored: hooks on {kind} only watch"));
        }
        for patch in reply.patches {
            report.warnings.push(format!("patch of `{}` ignored: hooks on {kind} only watch", patch.name()));
            report.patch_results.add(PatchScope::of(kind, patch.target()), PatchResult::Rejected);
        }
        self.merger.add_notes(hook, kind, reply.notes);
        if hook.dialect.name() == self.event.dialect {
            self.merger.keep_native(hook, kind, reply.native);
        }
    }

    /// Takes down a failure, which is a verdict only where a policy of the hook makes it one. Returns what the policy
    /// made of it, or `None` where no policy applies: for cancelled invocations and lifecycle hooks.
    fn fail(&mut self, hook: &Hook, failure: Failure, report: &mut HookReport) -> Option<FailureMode> {
        report.ended = failure.ended;
        let policy = match failure.ended {
            Ended::Cancelled => None,
            _ if !self.event.is_interceptor() => None,
            _ if hook.execution.required => Some(("required", FailurePolicy::Deny)),
            // Its files are not what was signed. Whoever could change them must not decide what that counts as.
            Ended::Untrusted if hook.source.bundle.is_some() => Some(("bundle", FailurePolicy::Deny)),
            _ if failure.handling == FailureHandling::Ignore => Some(("on_error", FailurePolicy::Ignore)),
            _ if failure.handling == FailureHandling::ByStricterPolicy => {
                Some(stricter_policy(hook, failure.ended))
            }
            Ended::TimedOut => Some(("on_timeout", hook.on_timeout)),
            _ => Some(("on_error", hook.on_error)),
        };
        if let Some((key, policy)) = policy {
            report.verdict = policy.verdict();
            if report.verdict != Verdict::Proceed {
                let (name, ended) = (&hook.name, failure.ended.phrase());
                let reason =
                    format!("hook `{name}` {ended}: {} ({key}: {})", failure.message, policy.as_str());
                self.merger.decide(name, report.verdict, Some(reason.into()));
            }
        }
        if hook.trust.refusal().is_some() && report.verdict == Verdict::Proceed {
            self.note_missing_guard(hook, &failure.message);
        }
        report.error = Some(failure.message.into());
        policy.map(|(_, policy)| match policy {
            FailurePolicy::Ignore => FailureMode::FailOpen,
            FailurePolicy::Deny | FailurePolicy::Ask => FailureMode::FailClosed,
        })
    }

    /// Tells the person that the event goes on without a hook that was once agreed to.
    fn note_missing_guard(&mut self, hook: &Hook, why: &str) {
        if matches!(hook.trust.state(), Some(TrustState::Modified | TrustState::Missing | TrustState::Broken))
        {
            let text = format!("the hook `{}` did not run: {why}", hook.name);
            self.merger.add_notes(hook, self.event.kind, vec![(NoteKind::SystemMessage, text)]);
        }
    }

    /// Applies one patch, or warns why not, and counts its result.
    fn patch(&mut self, hook: &Hook, patch: Patch, report: &mut HookReport) {
        let target = patch.target();
        let result = self.try_patch(hook, patch).unwrap_or_else(|refused| {
            report.warnings.push(refused.warning);
            refused.result
        });
        report.patch_results.add(PatchScope::of(self.event.kind, target), result);
        if let (Some(target), PatchResult::Applied) = (target, result) {
            if !report.patched.contains(&target) {
                report.patched.push(target);
            }
            if let Some(value) = self.draft.target(target) {
                report.values.get_or_insert_default().set(target, value.clone());
            }
        }
    }

    fn try_patch(&mut self, hook: &Hook, patch: Patch) -> Result<PatchResult, RefusedPatch> {
        let kind = self.event.kind;
        let (target, value) = match patch {
            Patch::Target(target, value) => (target, value),
            Patch::HooksOnly(target, value) => {
                self.set_for_later_hooks(hook, target, value);
                return Ok(PatchResult::Unchanged);
            }
            Patch::Unsupported(name) => {
                return Err(RefusedPatch::rejected(&name, "hooks may not change it"));
            }
        };
        if kind.target() != Some(target) {
            let why = format!("it is not what hooks on {kind} may change");
            return Err(RefusedPatch::rejected(target.as_str(), &why));
        }
        let capability = target.capability();
        if !hook.capabilities.contains(capability) {
            let capability = capability.as_str();
            let warning =
                format!("patch of `{target}` ignored: the hook lacks the capability `{capability}`");
            return Err(RefusedPatch { result: PatchResult::NoCapability, warning });
        }
        let current = self.draft.target(target);
        let patched = hook.dialect.apply_patch(target, current, &value);
        let patched = patched.map_err(|error| RefusedPatch::invalid(target, &error))?;
        if Some(&patched) == current {
            return Ok(PatchResult::Unchanged);
        }
        Arc::make_mut(&mut self.draft).set(target, patched);
        if !self.changed.contains(&target) {
            self.changed.push(target);
        }
        Ok(PatchResult::Applied)
    }

    /// Changes what later hooks of the same dialect are given, if there are any, and not what the host gets.
    fn set_for_later_hooks(&mut self, hook: &Hook, target: Target, value: Json) {
        let later = self.plan.stage(self.stage).map_or(&[][..], |stage| &self.plan.steps()[stage.end..]);
        if later.iter().any(|step| step.hook.dialect.name() == hook.dialect.name()) {
            Arc::make_mut(&mut self.draft).set(target, value);
        }
    }
}

/// The stricter of a hook's policies. Where both are as strict, the one for how it ended.
fn stricter_policy(hook: &Hook, ended: Ended) -> (&'static str, FailurePolicy) {
    let on_timeout = hook.on_timeout.verdict();
    let on_error = hook.on_error.verdict();
    if on_timeout > on_error || on_timeout == on_error && ended == Ended::TimedOut {
        ("on_timeout", hook.on_timeout)
    } else {
        ("on_error", hook.on_error)
    }
}

/// Why a patch was not applied.
struct RefusedPatch {
    result: PatchResult,
    warning: String,
}

impl RefusedPatch {
    fn rejected(name: &str, why: &str) -> Self {
        Self { result: PatchResult::Rejected, warning: format!("patch of `{name}` rejected: {why}") }
    }

    fn invalid(target: Target, error: &JsonError) -> Self {
        Self::rejected(target.as_str(), &error.to_string())
    }
}
