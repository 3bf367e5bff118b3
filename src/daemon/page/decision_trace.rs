//! What each hook of a decision was told, and which expressions of its rules decided. Neither is kept: both are found anew from
//! the event, for hooks that are as they were.

use serde::Serialize;

use super::decision::lacks_payload;
use crate::{
    FinishedEvent,
    model::{
        Draft, Ended, Handler, Hook, HookReport, Json, MergeRule, Redactor, Target, TracedExpression,
        TracedValue, Verdict,
    },
    orchestrator::RuleTracer,
    registry::{Plan, Snapshot},
};

/// The longest input of a hook that is shown, and of all hooks of a decision, in bytes.
const LONGEST_INPUT: usize = 64 << 10;
const LONGEST_INPUTS: usize = 1 << 20;

/// The most expressions of a decision that are shown.
const MOST_EXPRESSIONS: usize = 500;

/// What the hooks of a decision were told, in the order of its reports.
#[derive(Debug, Serialize)]
pub(in crate::daemon) struct DecisionTrace {
    hooks: Vec<HookTrace>,
}

#[derive(Debug, Serialize)]
struct HookTrace {
    hook: String,
    /// The parts of the payload that hooks before it had changed.
    changed_before: Vec<Target>,
    /// The input of a program, a server or a model.
    told: Option<Json>,
    /// The expressions of rules, up to the one that decided.
    expressions: Vec<TracedExpression>,
    gap: Option<TraceGap>,
}

/// Why something is not shown, or may have been otherwise.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
enum TraceGap {
    /// The hook has changed since, or is gone.
    HookChanged,
    /// It did not run.
    NotRun,
    /// Hooks before it had changed the payload, and what they made of it is not kept.
    InputNotKept,
    /// The payload of the event was too large to be kept.
    PayloadNotKept,
    /// It is too large to be shown.
    TooLarge,
    /// Evaluated anew, the rules come to something else: they count in the run, or files or links have changed.
    Differs,
}

/// What there is still room for in an answer.
struct Room {
    input: usize,
    expressions: usize,
}

/// A decision with the hooks of its workspace as they are now.
struct TracedDecision<'a> {
    finished: &'a FinishedEvent,
    snapshot: &'a Snapshot,
    plan: Plan,
    /// Whether the hooks of the workspace are those of the decision, so that its stages are known.
    is_same: bool,
}

impl DecisionTrace {
    /// Finds it by the hooks of the workspace, if that is still there.
    pub(super) fn of(finished: &FinishedEvent, snapshot: Option<&Snapshot>) -> Self {
        let decision = snapshot.map(|snapshot| {
            let plan = snapshot.plan(&finished.event).split(&finished.event).0;
            let content = finished.outcome.snapshot_content.as_deref();
            TracedDecision { finished, snapshot, plan, is_same: content == Some(&**snapshot.content()) }
        });
        let mut room = Room { input: LONGEST_INPUTS, expressions: MOST_EXPRESSIONS };
        let reports = finished.outcome.hooks.iter().enumerate();
        let hooks = reports.map(|(at, report)| {
            let mut trace = HookTrace {
                hook: finished.redactor.text(report.hook.as_str()).into_owned(),
                changed_before: Vec::new(),
                told: None,
                expressions: Vec::new(),
                gap: None,
            };
            let found = decision.as_ref().ok_or(TraceGap::HookChanged);
            trace.gap = found.and_then(|decision| trace.fill(decision, at, &mut room)).err();
            trace
        });
        Self { hooks: hooks.collect() }
    }
}

impl HookTrace {
    /// Returns why it is not all there.
    fn fill(&mut self, decision: &TracedDecision<'_>, at: usize, room: &mut Room) -> Result<(), TraceGap> {
        let FinishedEvent { outcome, redactor, .. } = decision.finished;
        let report = &outcome.hooks[at];
        if matches!(report.ended, Ended::Shed | Ended::SpawnFailed | Ended::Untrusted) {
            return Err(TraceGap::NotRun);
        }
        let before = decision.before(at);
        let changed = before.iter().filter(|_| decision.is_same).flat_map(|report| &report.patched);
        self.changed_before.extend(changed.copied());
        self.changed_before.dedup();
        let hook = decision.unchanged(report).ok_or(TraceGap::HookChanged)?;
        let draft = decision.draft(&before, hook)?;
        match &hook.handler {
            Handler::Rule(_) | Handler::Rego(_) => {
                let mut tracer = RuleTracer::new(decision.snapshot, &decision.plan, &draft);
                let evaluated = tracer.expressions(hook).ok_or(TraceGap::NotRun)?;
                let agrees =
                    report.ended != Ended::Completed || verdict(&evaluated) == stopping(report.verdict);
                let wanted = evaluated.len();
                let shown = evaluated.into_iter().take(room.expressions);
                self.expressions = shown.map(|one| without_secrets(one, redactor)).collect();
                room.expressions -= self.expressions.len();
                if !agrees {
                    return Err(TraceGap::Differs);
                }
                if self.expressions.len() < wanted { Err(TraceGap::TooLarge) } else { Ok(()) }
            }
            Handler::Native(_) => Ok(()),
            _ => {
                let envelope = hook.dialect.envelope(&draft, decision.snapshot.workspace());
                if envelope.len() > LONGEST_INPUT.min(room.input) {
                    return Err(TraceGap::TooLarge);
                }
                room.input -= envelope.len();
                let text = String::from_utf8_lossy(&envelope);
                let told = Json::parse(&text).and_then(|json| redactor.json(&json));
                self.told = Some(told.map_err(|_| TraceGap::InputNotKept)?);
                Ok(())
            }
        }
    }
}

impl TracedDecision<'_> {
    /// The hook of a report, if it is as it was.
    fn unchanged(&self, report: &HookReport) -> Option<&Hook> {
        let known = self.snapshot.hooks().iter().find(|known| known.hook.name == report.hook)?;
        (known.hook.source.content == report.content).then_some(&known.hook)
    }

    /// The reports of the hooks that had ended before a hook was asked: those of earlier stages. Where the stages are not known,
    /// those of all hooks above it.
    fn before(&self, at: usize) -> Vec<&HookReport> {
        let outcome = &self.finished.outcome;
        let above = &outcome.hooks[..at];
        let own = self
            .plan
            .stages()
            .find(|stage| stage.iter().any(|step| step.hook.name == outcome.hooks[at].hook));
        let is_beside = |report: &&HookReport| {
            self.is_same && own.is_some_and(|own| own.iter().any(|step| step.hook.name == report.hook))
        };
        above.iter().filter(|report| !is_beside(report)).collect()
    }

    /// The event as a hook was given it.
    fn draft(&self, before: &[&HookReport], hook: &Hook) -> Result<Draft, TraceGap> {
        let FinishedEvent { event, outcome, .. } = self.finished;
        let target = event.kind.target();
        if lacks_payload(self.finished) {
            return Err(TraceGap::PayloadNotKept);
        }
        let mut draft = Draft::new(event.clone());
        // What a patch came to may be for hooks only, and is in no report then.
        if before.iter().all(|report| report.patch_results.iter().next().is_none()) {
            return Ok(draft);
        }
        let patches =
            outcome.hooks.iter().filter(|report| report.patch_results.iter().next().is_some()).count();
        let is_last = patches == before.iter().filter(|report| !report.patched.is_empty()).count();
        let is_plain = hook.dialect.merge_rule(event.kind) == MergeRule::Strictest;
        let last = target.and_then(|target| Some((target, outcome.patched.get(target)?)));
        let last = last.filter(|_| self.is_same && is_last && is_plain);
        let (target, value) = last.ok_or(TraceGap::InputNotKept)?;
        draft.set(target, value.clone());
        Ok(draft)
    }
}

/// The verdict of rules by their expressions, if it stops something.
fn verdict(expressions: &[TracedExpression]) -> Option<Verdict> {
    match expressions.iter().find(|one| one.decides)?.key {
        "halt" => Some(Verdict::Halt),
        // As policies in Rego may call it.
        "deny" | "block" | "violation" => Some(Verdict::Block),
        "ask" => Some(Verdict::Ask),
        _ => None,
    }
}

/// A verdict, if it stops something.
fn stopping(verdict: Verdict) -> Option<Verdict> {
    Some(verdict).filter(|verdict| matches!(verdict, Verdict::Halt | Verdict::Block | Verdict::Ask))
}

fn without_secrets(traced: TracedExpression, redactor: &Redactor) -> TracedExpression {
    let value = |TracedValue { of, value }| TracedValue { of, value: redactor.string(value) };
    TracedExpression {
        rule: traced.rule.map(|rule| redactor.string(rule)),
        expression: redactor.string(traced.expression),
        result: redactor.string(traced.result),
        values: traced.values.into_iter().map(value).collect(),
        ..traced
    }
}
