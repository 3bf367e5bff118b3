//! Shows which expressions of rules decide an event, and from which values.

use std::time::SystemTime;

use serde::Serialize;

use super::{escape, paint::Paint};
use crate::{
    model::{Arrival, Draft, Event, Hook, TracedExpression},
    orchestrator::RuleTracer,
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
    let mut tracer = RuleTracer::new(snapshot, plan, &draft);
    let mut of_hook = |hook: &Hook| {
        let expressions = tracer.expressions(hook)?;
        Some(RuleTrace { hook: hook.name.to_string(), expressions })
    };
    plan.steps().iter().filter_map(|step| of_hook(&step.hook)).collect()
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
