//! Looks for comparisons of numbers that hold for no event, since one side is never so small or so large.

use super::{
    expression::{Comparison, Expression, ExpressionKind, IntegerRange, Literal, Operator},
    mistake::RuleMistake,
    scope::RuleScope,
    types::Type,
};

/// The greatest minute since 1970 that `now()` may be: milliseconds are counted in 64 bits.
const LAST_MINUTE: i128 = u64::MAX as i128 / 60_000;

/// What a named expression may be. A number that stands there by itself is a setting, which somebody may change.
pub(super) fn named(expression: &Expression, scope: &RuleScope<'_>) -> Option<IntegerRange> {
    range(expression, scope).filter(|_| !matches!(expression.kind, ExpressionKind::Literal(_)))
}

/// What an expression may be, as far as that is known when the rule is loaded.
fn range(expression: &Expression, scope: &RuleScope<'_>) -> Option<IntegerRange> {
    match &expression.kind {
        ExpressionKind::Literal(Literal::Int(number)) => Some(((*number).into(), (*number).into())),
        ExpressionKind::Literal(Literal::Double(number)) => around(*number),
        ExpressionKind::Call(function, _) => match function.name {
            "size" => Some((0, i64::MAX.into())),
            "run.count" => Some((1, u32::MAX.into())),
            "now" => Some((0, LAST_MINUTE)),
            _ => None,
        },
        ExpressionKind::Let(at) => scope.named[*at].ahead.range,
        ExpressionKind::Negate(operand) => range(operand, scope).map(|(least, greatest)| (-greatest, -least)),
        // Of doubles only the integers around them are known.
        ExpressionKind::Arithmetic(Operator::Divide | Operator::Remainder, parts)
            if parts.iter().any(|part| part.result != Type::Int) =>
        {
            None
        }
        ExpressionKind::Arithmetic(operator, parts) => {
            calculated(*operator, range(&parts[0], scope)?, range(&parts[1], scope)?)
        }
        ExpressionKind::Conditional(parts) => {
            let (yes, no) = (range(&parts[1], scope)?, range(&parts[2], scope)?);
            Some((yes.0.min(no.0), yes.1.max(no.1)))
        }
        _ => None,
    }
}

/// The integers around a double.
#[expect(clippy::cast_possible_truncation, reason = "it is far smaller than the largest integer")]
fn around(number: f64) -> Option<IntegerRange> {
    const LARGEST: f64 = 1e18;
    (number.abs() < LARGEST).then(|| (number.floor() as i128, number.ceil() as i128))
}

/// The range of a calculation. What does not fit into an integer is an error of the rule, so that wider is right as well.
fn calculated(
    operator: Operator,
    (low, high): IntegerRange,
    (from, to): IntegerRange,
) -> Option<IntegerRange> {
    Some(match operator {
        Operator::Add => (low.checked_add(from)?, high.checked_add(to)?),
        Operator::Subtract => (low.checked_sub(to)?, high.checked_sub(from)?),
        Operator::Multiply => {
            let mut products = Vec::new();
            for (one, other) in [(low, from), (low, to), (high, from), (high, to)] {
                products.push(one.checked_mul(other)?);
            }
            (*products.iter().min()?, *products.iter().max()?)
        }
        Operator::Divide if low >= 0 && from > 0 => (low / to, high / from),
        Operator::Remainder if low >= 0 && from > 0 => (0, high.min(to - 1)),
        Operator::Divide | Operator::Remainder => return None,
    })
}

/// What a comparison is, if it is the same for every event.
pub(super) fn compared(
    comparison: Comparison,
    left: &Expression,
    right: &Expression,
    scope: &RuleScope<'_>,
) -> Option<bool> {
    let ((low, high), (from, to)) = (range(left, scope)?, range(right, scope)?);
    let known = |always: bool, never: bool| (always || never).then_some(always);
    match comparison {
        Comparison::Less => known(high < from, low >= to),
        Comparison::LessOrEqual => known(high <= from, low > to),
        Comparison::Greater => known(low > to, high <= from),
        Comparison::GreaterOrEqual => known(low >= to, high < from),
        Comparison::Equal => known(false, high < from || low > to),
        Comparison::NotEqual => known(high < from || low > to, false),
    }
}

/// Reports comparisons in an expression that hold for no event.
pub(super) fn impossible(expression: &Expression, scope: &RuleScope<'_>) -> Vec<RuleMistake> {
    let mut found = Vec::new();
    collect(expression, scope, &mut found);
    found
}

fn collect(expression: &Expression, scope: &RuleScope<'_>, found: &mut Vec<RuleMistake>) {
    if is_impossible(expression, scope) {
        let help =
            "sizes and counts are never less than 0, `run.count` is at least 1; correct it, or remove it";
        found.push(RuleMistake::new("this is never true", help).at(expression.place));
        return;
    }
    expression.parts().into_iter().for_each(|part| collect(part, scope, found));
}

fn is_impossible(expression: &Expression, scope: &RuleScope<'_>) -> bool {
    match &expression.kind {
        ExpressionKind::Compare(comparison, parts) => {
            !are_literals(parts) && compared(*comparison, &parts[0], &parts[1], scope) == Some(false)
        }
        ExpressionKind::Not(operand) => match &operand.kind {
            ExpressionKind::Compare(comparison, parts) => {
                !are_literals(parts) && compared(*comparison, &parts[0], &parts[1], scope) == Some(true)
            }
            _ => false,
        },
        ExpressionKind::In(parts) => match &parts[1].kind {
            ExpressionKind::List(items) => {
                let differs = |item| compared(Comparison::Equal, &parts[0], item, scope) == Some(false);
                !items.is_empty() && items.iter().all(differs)
            }
            _ => false,
        },
        ExpressionKind::And(parts) => leave_nothing(parts, scope),
        _ => false,
    }
}

/// Whether both sides stand there as they are: `1 == 2` is a switch that somebody has set.
fn are_literals(parts: &[Expression; 2]) -> bool {
    parts.iter().all(|part| matches!(part.kind, ExpressionKind::Literal(_)))
}

/// Whether what the parts say of one number leaves none, as `size(x) > 5 && size(x) < 3`.
fn leave_nothing(parts: &[Expression], scope: &RuleScope<'_>) -> bool {
    let limits: Vec<(&Expression, IntegerRange)> =
        parts.iter().filter_map(|part| limited(part, scope)).collect();
    limits.iter().enumerate().any(|(at, (one, (low, high)))| {
        limits[at + 1..].iter().any(|(other, (from, to))| is_same(one, other) && (high < from || low > to))
    })
}

/// The integer that a part is about, and what it may be where the part holds.
fn limited<'e>(part: &'e Expression, scope: &RuleScope<'_>) -> Option<(&'e Expression, IntegerRange)> {
    let ExpressionKind::Compare(comparison, parts) = &part.kind else { return None };
    let [left, right] = &**parts;
    let (thing, number, comparison) = match (&left.kind, &right.kind) {
        (_, ExpressionKind::Literal(Literal::Int(number))) => (left, *number, *comparison),
        (ExpressionKind::Literal(Literal::Int(number)), _) => (right, *number, comparison.mirrored()),
        _ => return None,
    };
    let (low, high) = range(thing, scope)?;
    let number = i128::from(number);
    let allowed = match comparison {
        Comparison::Equal => (number, number),
        Comparison::Less => (low, number - 1),
        Comparison::LessOrEqual => (low, number),
        Comparison::Greater => (number + 1, high),
        Comparison::GreaterOrEqual => (number, high),
        Comparison::NotEqual => return None,
    };
    Some((thing, allowed))
}

/// Whether two expressions are the same number of the same event, as far as that is seen at once.
fn is_same(one: &Expression, other: &Expression) -> bool {
    match (&one.kind, &other.kind) {
        (ExpressionKind::Call(function, given), ExpressionKind::Call(called, with)) => {
            function.name == called.name
                && given.len() == with.len()
                && given.iter().zip(with).all(|(one, other)| is_same(one, other))
        }
        (ExpressionKind::Field(one, name), ExpressionKind::Field(other, named)) => {
            name == named && is_same(one, other)
        }
        (ExpressionKind::Let(one), ExpressionKind::Let(other))
        | (ExpressionKind::Local(one), ExpressionKind::Local(other)) => one == other,
        (ExpressionKind::Variable(one), ExpressionKind::Variable(other)) => one == other,
        (ExpressionKind::Literal(one), ExpressionKind::Literal(other)) => one == other,
        _ => false,
    }
}
