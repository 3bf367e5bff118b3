//! What operators do with values.

use std::cmp::Ordering;

use super::{
    budget::Budget,
    expression::{Comparison, Literal, Operator},
    failure::EvaluationError,
    value::{RuleValue, ValuePart},
};

pub(super) fn literal_value(literal: &Literal) -> RuleValue<'_> {
    match literal {
        Literal::Null => RuleValue::Null,
        Literal::Bool(value) => RuleValue::Bool(*value),
        Literal::Int(value) => RuleValue::Int(*value),
        Literal::Double(value) => RuleValue::Double(*value),
        Literal::Text(text) => RuleValue::Text((&**text).into()),
    }
}

pub(super) fn truth(value: &RuleValue<'_>) -> Result<bool, EvaluationError> {
    match value {
        RuleValue::Bool(value) => Ok(*value),
        other => Err(EvaluationError::WrongType { found: other.kind(), wanted: "a boolean" }),
    }
}

pub(super) fn field<'a>(object: &RuleValue<'a>, name: &str) -> Result<RuleValue<'a>, EvaluationError> {
    match object.field(name) {
        ValuePart::Found(value) => Ok(value),
        ValuePart::Missing => Err(EvaluationError::NoSuchField(name.into())),
        ValuePart::NoSuchKind => Err(EvaluationError::WrongType { found: object.kind(), wanted: "a map" }),
    }
}

/// Whether an object has a field. What is no object has none.
pub(super) fn has_field(object: &RuleValue<'_>, name: &str) -> Result<bool, EvaluationError> {
    if object.is_too_long() {
        return Err(EvaluationError::TooLong);
    }
    Ok(object.field(name).found().is_some())
}

pub(super) fn element<'a>(
    list: &RuleValue<'a>,
    at: &RuleValue<'a>,
) -> Result<RuleValue<'a>, EvaluationError> {
    match at {
        RuleValue::Text(name) => field(list, name),
        RuleValue::Int(number) => match list.element(usize::try_from(*number).unwrap_or(usize::MAX)) {
            ValuePart::Found(value) => Ok(value),
            ValuePart::Missing => Err(EvaluationError::NoSuchElement(*number)),
            ValuePart::NoSuchKind => Err(EvaluationError::WrongType { found: list.kind(), wanted: "a list" }),
        },
        other => Err(EvaluationError::WrongType { found: other.kind(), wanted: "an integer or a string" }),
    }
}

pub(super) fn negated<'a>(value: &RuleValue<'a>) -> Result<RuleValue<'a>, EvaluationError> {
    match value {
        RuleValue::Int(number) => number.checked_neg().map(RuleValue::Int).ok_or(EvaluationError::Overflow),
        RuleValue::Double(number) => Ok(RuleValue::Double(-number)),
        other => Err(EvaluationError::WrongType { found: other.kind(), wanted: "a number" }),
    }
}

pub(super) fn compare(
    comparison: Comparison,
    left: &RuleValue<'_>,
    right: &RuleValue<'_>,
    budget: &Budget,
) -> Result<bool, EvaluationError> {
    match comparison {
        Comparison::Equal => return Ok(left.equals(right, budget)),
        Comparison::NotEqual => return Ok(!left.equals(right, budget)),
        _ => {}
    }
    let is_ordered = matches!(
        (left, right),
        (RuleValue::Int(_) | RuleValue::Double(_), RuleValue::Int(_) | RuleValue::Double(_))
            | (RuleValue::Text(_), RuleValue::Text(_))
            | (RuleValue::Bool(_), RuleValue::Bool(_))
    );
    if !is_ordered {
        let wanted = if matches!(left, RuleValue::Text(_)) { "a string" } else { "a number" };
        let found = if matches!(left, RuleValue::Int(_) | RuleValue::Double(_) | RuleValue::Text(_)) {
            right
        } else {
            left
        };
        return Err(EvaluationError::WrongType { found: found.kind(), wanted });
    }
    // A number that is none is neither less nor greater.
    let order = left.compare(right);
    Ok(match comparison {
        Comparison::Less => order == Some(Ordering::Less),
        Comparison::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
        Comparison::Greater => order == Some(Ordering::Greater),
        Comparison::GreaterOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
        Comparison::Equal | Comparison::NotEqual => false,
    })
}

pub(super) fn calculate_numbers<'a>(
    operator: Operator,
    left: &RuleValue<'a>,
    right: &RuleValue<'a>,
) -> Result<RuleValue<'a>, EvaluationError> {
    match (left, right) {
        (RuleValue::Int(_), RuleValue::Int(0))
            if matches!(operator, Operator::Divide | Operator::Remainder) =>
        {
            Err(EvaluationError::DivisionByZero)
        }
        (RuleValue::Int(one), RuleValue::Int(other)) => {
            let value = match operator {
                Operator::Add => one.checked_add(*other),
                Operator::Subtract => one.checked_sub(*other),
                Operator::Multiply => one.checked_mul(*other),
                Operator::Divide => one.checked_div(*other),
                Operator::Remainder => one.checked_rem(*other),
            };
            value.map(RuleValue::Int).ok_or(EvaluationError::Overflow)
        }
        (RuleValue::Int(_) | RuleValue::Double(_), RuleValue::Int(_) | RuleValue::Double(_))
            if operator == Operator::Remainder =>
        {
            Err(EvaluationError::WrongType { found: "a double", wanted: "an integer" })
        }
        (RuleValue::Int(_) | RuleValue::Double(_), RuleValue::Int(_) | RuleValue::Double(_)) => {
            let (one, other) = (as_double(left), as_double(right));
            Ok(RuleValue::Double(match operator {
                Operator::Add => one + other,
                Operator::Subtract => one - other,
                Operator::Multiply => one * other,
                Operator::Divide | Operator::Remainder => one / other,
            }))
        }
        (RuleValue::Int(_) | RuleValue::Double(_), other) => {
            Err(EvaluationError::WrongType { found: other.kind(), wanted: "a number" })
        }
        (other, _) => Err(EvaluationError::WrongType { found: other.kind(), wanted: "a number" }),
    }
}

#[expect(clippy::cast_precision_loss, reason = "an operation with a double rounds")]
fn as_double(value: &RuleValue<'_>) -> f64 {
    match value {
        RuleValue::Int(number) => *number as f64,
        RuleValue::Double(number) => *number,
        _ => f64::NAN,
    }
}
