//! What a rule that is not saved would have decided about the last events. Evaluates rules and runs nothing.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use serde::Serialize;
use tokio::time::Instant;

use super::decision::{DecisionSummary, brief, lacks_payload};
use crate::{
    FinishedEvent,
    model::{HandlerKind, Hook, HookName, HookReport, Redactor, Verdict},
    registry::Snapshot,
    run::{Rehearsal, RehearsedEvent, RehearsedTrust},
};

/// How many of the last events a rule is tried with.
pub(super) const MOST_EVENTS: usize = 1000;

/// How long a trial may take. Each rule has a bound of its own, so that one event does not take much longer.
const LONGEST: Duration = Duration::from_secs(5);

/// How many changed events are listed.
const MOST_LISTED: usize = 100;

/// How many hooks that were not asked are named of one event.
const MOST_HOOKS: usize = 16;

/// A rule, and the hooks that it would be one of.
pub(in crate::daemon) struct RuleTrial {
    pub(in crate::daemon) snapshot: Arc<Snapshot>,
    /// The hook that it would take the place of.
    pub(in crate::daemon) replaced: Option<HookName>,
    pub(in crate::daemon) rule: Hook,
}

/// What came of a trial.
#[derive(Debug, Default, Serialize)]
pub(in crate::daemon) struct RuleTrialView {
    /// The events that were looked at.
    events: usize,
    /// Those of the last events for which there was no time; they are the newest.
    not_reached: usize,
    /// To how many of them the rule applies as it is written now, and as it is in force.
    applies: usize,
    applied: usize,
    /// Of those to which one of the two applies, how many have which verdicts.
    verdicts: Vec<VerdictChange>,
    /// Of those, the ones that cannot be judged anew, by the reason.
    left_out: BTreeMap<TrialGap, usize>,
    /// For how many events the rule has no value, and why for the last of these.
    failed: usize,
    failure: Option<String>,
    /// How many had another verdict then than by the hooks of now.
    otherwise: usize,
    /// Whether the rule has counted what a run does. Counts begin with the first event that is kept.
    counts: bool,
    /// The events whose verdict or payload changes, newest first.
    changes: Vec<ChangedEvent>,
    /// How many more there are.
    changes_left_out: usize,
}

/// How many events have one verdict by the hooks in force, and one with the rule.
#[derive(Debug, Serialize)]
struct VerdictChange {
    now: Verdict,
    tried: Verdict,
    events: usize,
}

/// Why an event cannot be judged anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
enum TrialGap {
    /// Its payload was too large to be kept.
    PayloadNotKept,
    /// Other hooks had changed the payload, and what they made of it is not kept.
    InputNotKept,
    /// No hook was asked: its run was halted, or a required hook was missing.
    NotAsked,
}

#[derive(Debug, Serialize)]
struct ChangedEvent {
    /// As it was decided then.
    #[serde(flatten)]
    decision: DecisionSummary,
    now: TriedVerdict,
    tried: TriedVerdict,
    /// Whether the payload would be another one.
    payload: bool,
    /// The hooks that would be asked and were not, so that nobody knows what they would say.
    unasked: Vec<String>,
}

#[derive(Debug, Serialize)]
struct TriedVerdict {
    verdict: Verdict,
    by: Option<String>,
    reason: Option<String>,
}

impl RuleTrial {
    /// Tries the rule with events in their order.
    pub(super) fn run(self, events: &[FinishedEvent]) -> RuleTrialView {
        let Self { snapshot, replaced, rule } = self;
        let begun = Instant::now();
        let name = rule.name.clone();
        let tried = Arc::new(snapshot.with_hook(replaced.as_ref(), rule));
        let mut pair = RehearsedPair {
            now: Rehearsal::new(snapshot, replaced.unwrap_or_else(|| name.clone()), RehearsedTrust::Needed),
            tried: Rehearsal::new(tried, name.clone(), RehearsedTrust::Assumed),
        };
        let mut view = RuleTrialView::default();
        let mut verdicts = BTreeMap::new();
        for (at, finished) in events.iter().enumerate() {
            if begun.elapsed() >= LONGEST {
                view.not_reached = events.len() - at;
                break;
            }
            view.events += 1;
            view.add(finished, &mut pair, &name, &mut verdicts);
        }
        let changes = verdicts.into_iter().map(|((now, tried), events)| VerdictChange { now, tried, events });
        view.verdicts = changes.collect();
        view.counts = pair.tried.has_counted();
        view.changes.reverse();
        view.changes_left_out = view.changes.len().saturating_sub(MOST_LISTED);
        view.changes.truncate(MOST_LISTED);
        view
    }
}

/// The hooks in force, and those with the rule.
struct RehearsedPair {
    now: Rehearsal,
    tried: Rehearsal,
}

impl RuleTrialView {
    fn add(
        &mut self,
        finished: &FinishedEvent,
        pair: &mut RehearsedPair,
        name: &HookName,
        verdicts: &mut BTreeMap<(Verdict, Verdict), usize>,
    ) {
        let in_force = pair.now.takes_part(&finished.event);
        let as_tried = pair.tried.takes_part(&finished.event);
        self.applied += usize::from(in_force);
        self.applies += usize::from(as_tried);
        if !in_force && !as_tried {
            return;
        }
        if let Some(gap) = gap(finished) {
            *self.left_out.entry(gap).or_default() += 1;
            return;
        }
        let (now, tried) = (pair.now.take(finished), pair.tried.take(finished));
        let redactor = &finished.redactor;
        let own = tried.outcome.hooks.iter().find(|report| report.hook == *name);
        if let Some(error) = own.and_then(|report| report.error.as_deref()) {
            self.failed += 1;
            self.failure = Some(brief(&redactor.text(error)).to_owned());
        }
        self.otherwise += usize::from(now.outcome.verdict != finished.outcome.verdict);
        *verdicts.entry((now.outcome.verdict, tried.outcome.verdict)).or_default() += 1;
        let payload = now.outcome.patched != tried.outcome.patched;
        if payload || now.outcome.verdict != tried.outcome.verdict {
            self.changes.push(ChangedEvent {
                decision: DecisionSummary::of(finished),
                payload,
                unasked: unasked(&now, &tried, redactor),
                now: TriedVerdict::of(&now, redactor),
                tried: TriedVerdict::of(&tried, redactor),
            });
        }
    }
}

impl TriedVerdict {
    fn of(rehearsed: &RehearsedEvent, redactor: &Redactor) -> Self {
        let outcome = &rehearsed.outcome;
        Self {
            verdict: outcome.verdict,
            by: outcome.by.as_ref().map(|hook| redactor.text(hook.as_str()).into_owned()),
            reason: outcome.reason.as_deref().map(|reason| brief(&redactor.text(reason)).to_owned()),
        }
    }
}

/// The hooks about which nobody knows what they would say, in one of the two cases.
fn unasked(now: &RehearsedEvent, tried: &RehearsedEvent, redactor: &Redactor) -> Vec<String> {
    let all = tried.unasked.iter().chain(now.unasked.iter().filter(|hook| !tried.unasked.contains(hook)));
    all.take(MOST_HOOKS).map(|hook| redactor.text(hook.as_str()).into_owned()).collect()
}

/// Why an event cannot be judged anew.
fn gap(finished: &FinishedEvent) -> Option<TrialGap> {
    let FinishedEvent { outcome, .. } = finished;
    if lacks_payload(finished) {
        return Some(TrialGap::PayloadNotKept);
    }
    if outcome.hooks.is_empty() && outcome.verdict >= Verdict::Block {
        return Some(TrialGap::NotAsked);
    }
    let has_rules = |report: &HookReport| matches!(report.handler, HandlerKind::Rule | HandlerKind::Rego);
    let changed = |report: &&HookReport| report.patch_results.iter().next().is_some();
    let mut others = outcome.hooks.iter().filter(|report| !has_rules(report)).filter(changed);
    // One change of a program is what the outcome has, if it has any and nobody else has changed the same.
    let is_known = |report: &HookReport| {
        let [target] = report.patched.as_slice() else { return false };
        let all = outcome.hooks.iter().filter(|report| report.patched.contains(target));
        all.count() == 1 && outcome.patched.get(*target).is_some()
    };
    others.any(|report| !is_known(report)).then_some(TrialGap::InputNotKept)
}
