//! Shows which expressions of rules decide an event, and from which values.

use std::time::SystemTime;

use serde::Serialize;

use super::{escape, paint::Paint};
use crate::{
    handler::links::LinkQuery,
    model::{Arrival, Draft, Event, Handler, KeyCounts, RuleCache, RuleCall, TracedExpression},
    registry::{Plan, Snapshot},
    run::next_decision_id,
};

/// The expressions of one hook.
#[derive(Serialize)]
pub(super) struct RuleTrace {
    pub(super) hook: String,
    pub(super) expressions: Vec<TracedExpression>,
}

/// The expressions of the rules in a plan, for an event as it was sent: of a run that has counted nothing, and without the
/// patches of other hooks. Hooks that nobody has agreed to are left out.
pub(super) fn of(snapshot: &Snapshot, plan: &Plan, event: &Event) -> Vec<RuleTrace> {
    let mut event = event.clone();
    event.arrival.get_or_insert_with(|| Arrival::new(SystemTime::now(), next_decision_id()));
    let draft = Draft::new(event.into());
    let hooks = || plan.steps().iter().map(|step| &step.hook);
    let asks = hooks().any(|hook| hook.link_needs().is_some());
    let links = asks.then(|| LinkQuery::of(&draft, snapshot.workspace(), hooks()).run_here());
    let mut cache = RuleCache::default();
    let mut traces = Vec::new();
    for step in plan.steps() {
        let (Handler::Rule(rule) | Handler::Rego(rule)) = &step.hook.handler else { continue };
        if step.hook.trust.refusal().is_some() {
            continue;
        }
        let workspace = step.hook.subject(snapshot.workspace());
        let mut counts = KeyCounts::default();
        let links = links.as_ref();
        let call = RuleCall { draft: &draft, workspace, links, cache: &mut cache, counts: &mut counts };
        let expressions = rule.program.explain(call);
        traces.push(RuleTrace { hook: step.hook.name.to_string(), expressions });
    }
    traces
}

impl RuleTrace {
    /// Its expressions, a line each, with the values below them.
    pub(super) fn lines(&self, paint: Paint) -> Vec<String> {
        let mut lines = Vec::new();
        for traced in &self.expressions {
            let rule =
                traced.rule.as_ref().map(|rule| format!("{} ", escape::short(rule, 40))).unwrap_or_default();
            let result = escape::line(&traced.result);
            let result = if traced.decides { paint.bold(&result) } else { result.into_owned() };
            let key = format!("{rule}{}", traced.key);
            lines.push(format!("{key} is {result}: {}", escape::line(&traced.expression)));
            for value in &traced.values {
                let line = format!("  {} = {}", escape::line(&value.of), escape::line(&value.value));
                lines.push(paint.dim(&line));
            }
        }
        lines
    }
}
