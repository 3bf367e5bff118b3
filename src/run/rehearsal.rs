//! An event taken through its hooks anew without running any: one hook's rules are evaluated, and the others say what they said
//! then. The verdicts are merged as those of a run are.

use std::{collections::HashMap, sync::Arc, time::Duration};

use super::{
    course::{Course, Progress},
    launch,
    notify::FinishedEvent,
};
use crate::{
    handler::native,
    model::{
        Conclusion, Event, Frequency, Handler, Hook, HookDecision, HookName, HookReport, KeyCounts,
        KnownLinks, Outcome, Patch, Reply, RuleCache, RuleCall, RunId, Verdict,
    },
    registry::{Plan, Snapshot},
};

/// Rehearses events in their order, so that rules count what a run does.
pub(crate) struct Rehearsal {
    snapshot: Arc<Snapshot>,
    /// The hook whose rules are evaluated.
    hook: HookName,
    trust: RehearsedTrust,
    counts: HashMap<(RunId, HookName), KeyCounts>,
}

/// Whether the hook in question runs only if somebody has agreed to it. It has rules, which start nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RehearsedTrust {
    /// It is one in force.
    Needed,
    /// Nobody could agree to it yet.
    Assumed,
}

/// An event as it would have ended.
pub(crate) struct RehearsedEvent {
    pub(crate) outcome: Outcome,
    /// The hooks that would have been asked and were not, whose opinion nobody knows. They count as having none.
    pub(crate) unasked: Vec<HookName>,
}

/// What is known of one event while it is rehearsed.
#[derive(Default)]
struct EventNotes {
    unasked: Vec<HookName>,
    cache: RuleCache,
    links: Option<(u32, KnownLinks)>,
}

impl Rehearsal {
    /// By the hooks of a snapshot, one of which is evaluated if it is there.
    pub(crate) fn new(snapshot: Arc<Snapshot>, hook: HookName, trust: RehearsedTrust) -> Self {
        Self { snapshot, hook, trust, counts: HashMap::new() }
    }

    /// Whether the hook is asked about an event.
    pub(crate) fn takes_part(&self, event: &Event) -> bool {
        self.plan(event).steps().iter().any(|step| step.hook.name == self.hook)
    }

    /// Whether the hook has counted something in a run.
    pub(crate) fn has_counted(&self) -> bool {
        self.counts.iter().any(|((_, hook), counts)| *hook == self.hook && !counts.is_empty())
    }

    /// The plan of the hooks that the host waits for.
    fn plan(&self, event: &Event) -> Plan {
        self.snapshot.plan(event).split(event).0
    }

    /// Takes an event through its hooks. Its links are those of now, and are looked up here, which may take a while.
    pub(crate) fn take(&mut self, finished: &FinishedEvent) -> RehearsedEvent {
        let event = Arc::clone(&finished.event);
        let plan = self.plan(&event);
        let (mut course, mut progress) = Course::begin(event, plan, Arc::clone(&self.snapshot));
        let mut notes = EventNotes::default();
        while let Progress::Run(steps) = progress {
            progress = Progress::Wait;
            // All but the last one get `Wait`.
            for step in steps {
                let conclusion = self.conclude(&course, step, &finished.outcome, &mut notes);
                progress = course.conclude(step, conclusion);
            }
        }
        RehearsedEvent { outcome: course.into_outcome(finished.outcome.decision_id), unasked: notes.unasked }
    }

    /// What a hook says: what it said then, unless it is the one in question, or has rules and is given another payload.
    fn conclude(
        &mut self,
        course: &Course,
        step: usize,
        then: &Outcome,
        notes: &mut EventNotes,
    ) -> Conclusion {
        let hook = &course.step(step).hook;
        let (Handler::Rule(rule) | Handler::Rego(rule)) = &hook.handler else {
            return said_or_unasked(hook, then, notes);
        };
        let is_same = hook.name != self.hook && course.draft().revision() == 0;
        if let Some(report) = report_of(&hook.name, then).filter(|_| is_same) {
            return said(report, then);
        }
        let is_assumed = hook.name == self.hook && self.trust == RehearsedTrust::Assumed;
        if let Some(refused) = launch::refuse(hook).filter(|_| !is_assumed) {
            return refused;
        }
        let revision = course.draft().revision();
        if course.follows_links(step) && notes.links.as_ref().is_none_or(|(of, _)| *of != revision) {
            notes.links = Some((revision, course.link_query().run_here()));
        }
        let links = notes.links.as_ref().map(|(_, links)| links);
        let counts = self.counts.entry((course.event().run_id.clone(), hook.name.clone())).or_default();
        let workspace = hook.subject(course.workspace());
        let call = RuleCall { draft: course.draft(), workspace, links, cache: &mut notes.cache, counts };
        native::run_rule(rule, call, hook.timeout)
    }
}

fn report_of<'o>(hook: &HookName, outcome: &'o Outcome) -> Option<&'o HookReport> {
    outcome.hooks.iter().find(|report| report.hook == *hook)
}

/// What a hook without rules said, or nothing if it was not asked.
fn said_or_unasked(hook: &Hook, then: &Outcome, notes: &mut EventNotes) -> Conclusion {
    if let Some(report) = report_of(&hook.name, then) {
        return said(report, then);
    }
    if let Some(refused) = launch::refuse(hook) {
        return refused;
    }
    // One that runs once may have had its turn before.
    if hook.execution.frequency == Frequency::Always {
        notes.unasked.push(hook.name.clone());
    }
    Conclusion::ran(Ok(Reply::proceed()), Duration::ZERO)
}

/// What a hook said, as its report and the outcome have it.
fn said(report: &HookReport, then: &Outcome) -> Conclusion {
    let decision = match report.verdict {
        Verdict::Proceed => HookDecision::None,
        Verdict::Allow => HookDecision::Allow(None),
        Verdict::Ask => HookDecision::Ask(None),
        Verdict::Block => HookDecision::Block(None),
        Verdict::Halt => HookDecision::Halt(None),
    };
    let changed = report.patched.iter();
    let patches =
        changed.filter_map(|target| Some(Patch::Target(*target, then.patched.get(*target)?.clone())));
    Conclusion::ran(Ok(Reply { decision, patches: patches.collect(), ..Reply::proceed() }), Duration::ZERO)
}
