//! Estimates what an expression costs at most, so that one that would take too long is an error of its file.

use super::{
    budget::MOST_STEPS,
    expression::{Expression, ExpressionKind, Loop},
    mistake::RuleMistake,
};

/// How many elements a list is taken to have whose length is not known.
const USUAL_LENGTH: u64 = 64;

/// Reports an expression that would use up the steps of its rule with lists of a usual length.
pub(super) fn check(expression: &Expression) -> Result<(), RuleMistake> {
    let cost = of(expression);
    if cost <= MOST_STEPS {
        return Ok(());
    }
    let message =
        format!("the expression would take about {cost} steps, and at most {MOST_STEPS} are allowed");
    let help = format!("nest fewer macros: a list counts as {USUAL_LENGTH} elements");
    Err(RuleMistake::new(message, help).at(expression.place))
}

/// The steps that an expression takes with lists of a usual length.
pub(super) fn of(expression: &Expression) -> u64 {
    let inner = match &expression.kind {
        ExpressionKind::Quantifier(_, over) | ExpressionKind::Collect(over) => looped(over),
        ExpressionKind::Matches(operand, _) | ExpressionKind::Glob(operand, _) => {
            of(operand).saturating_add(8)
        }
        ExpressionKind::In(parts) => sum(parts.iter()).saturating_add(USUAL_LENGTH / 8),
        ExpressionKind::Call(function, arguments) => sum(arguments.iter()).saturating_add(function.cost),
        _ => sum(expression.parts()),
    };
    inner.saturating_add(1)
}

fn sum<'e>(parts: impl IntoIterator<Item = &'e Expression>) -> u64 {
    parts.into_iter().map(of).fold(0, u64::saturating_add)
}

fn looped(over: &Loop) -> u64 {
    let length = match &over.over.kind {
        ExpressionKind::List(items) => u64::try_from(items.len()).unwrap_or(u64::MAX),
        _ => USUAL_LENGTH,
    };
    let body = of(&over.body).saturating_add(over.filter.as_ref().map_or(0, of));
    of(&over.over).saturating_add(length.saturating_mul(body))
}
