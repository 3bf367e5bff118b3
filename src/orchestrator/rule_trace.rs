//! Finds which expressions of rules decide an event, and from which values.

use crate::{
    handler::links::LinkQuery,
    model::{Draft, Handler, Hook, KeyCounts, KnownLinks, RuleCache, RuleCall, TracedExpression},
    registry::{Plan, Snapshot},
};

/// Evaluates rules for a draft of an event, in a run that has counted nothing.
pub(crate) struct RuleTracer<'a> {
    snapshot: &'a Snapshot,
    draft: &'a Draft,
    links: Option<KnownLinks>,
    cache: RuleCache,
}

impl<'a> RuleTracer<'a> {
    /// For the hooks of a plan. If one of them asks where links lead, they are looked up, which may take a while.
    pub(crate) fn new(snapshot: &'a Snapshot, plan: &Plan, draft: &'a Draft) -> Self {
        let hooks = || plan.steps().iter().map(|step| &step.hook);
        let asks = hooks().any(|hook| hook.link_needs().is_some());
        let links = asks.then(|| LinkQuery::of(draft, snapshot.workspace(), hooks()).run_here());
        Self { snapshot, draft, links, cache: RuleCache::default() }
    }

    /// The expressions of a hook, up to the one that decides; none if it has no rules or nobody has agreed to it.
    pub(crate) fn expressions(&mut self, hook: &Hook) -> Option<Vec<TracedExpression>> {
        let (Handler::Rule(rule) | Handler::Rego(rule)) = &hook.handler else { return None };
        if hook.trust.refusal().is_some() {
            return None;
        }
        let workspace = hook.subject(self.snapshot.workspace());
        let mut counts = KeyCounts::default();
        let (draft, links) = (self.draft, self.links.as_ref());
        let call = RuleCall { draft, workspace, links, cache: &mut self.cache, counts: &mut counts };
        Some(rule.program.explain(call))
    }
}
