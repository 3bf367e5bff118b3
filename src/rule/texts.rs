//! The texts in a value of an event, whatever its shape: a string in one agent, an object in another.

use super::{
    budget::{Budget, LONGEST_TEXT},
    failure::EvaluationError,
    json_tree::JsonLevel,
    secrets,
    value::{RuleString, RuleValue},
};

/// All strings of a value in their order, each in a line of its own; the keys of objects too, before what they name.
pub(super) fn joined(value: &RuleValue<'_>, budget: &Budget) -> Result<String, EvaluationError> {
    let mut joined = String::new();
    let mut add = |text: &str| {
        if !joined.is_empty() {
            joined.push('\n');
        }
        joined.push_str(text);
        budget.read(text.len())?;
        if joined.len() > LONGEST_TEXT { Err(EvaluationError::TooLong) } else { Ok(()) }
    };
    collect(value, budget, &mut add)?;
    Ok(joined)
}

fn collect(
    value: &RuleValue<'_>,
    budget: &Budget,
    add: &mut dyn FnMut(&str) -> Result<(), EvaluationError>,
) -> Result<(), EvaluationError> {
    match value {
        RuleValue::Text(text) => add(text),
        RuleValue::List(items) => items.iter().try_for_each(|item| collect(item, budget, add)),
        RuleValue::Map(fields) => fields.iter().try_for_each(|(key, value)| {
            add(key)?;
            collect(value, budget, add)
        }),
        RuleValue::Json(json) => match json.level() {
            JsonLevel::List(nodes) => {
                budget.spend_on_nodes(nodes.len());
                let mut items = nodes.iter().map(|node| RuleValue::of_json(json.with(node)));
                items.try_for_each(|item| collect(&item, budget, add))
            }
            JsonLevel::Object(fields) => {
                budget.spend_on_nodes(fields.len());
                fields.iter().try_for_each(|(key, node)| {
                    add(key)?;
                    collect(&RuleValue::of_json(json.with(node)), budget, add)
                })
            }
            JsonLevel::TooLong => Err(EvaluationError::TooLong),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// The value with a name for each secret in its strings in their place. Keys stay: a patch cannot take one out of an object.
pub(super) fn redacted<'a>(value: &RuleValue<'a>, budget: &Budget) -> Result<RuleValue<'a>, EvaluationError> {
    Ok(match value {
        RuleValue::Text(text) => {
            budget.read(8 * text.len())?;
            RuleValue::Text(secrets::redact(text).into())
        }
        RuleValue::List(items) => list(items.iter().cloned(), budget)?,
        RuleValue::Map(fields) => map(fields.iter().cloned(), budget)?,
        RuleValue::Json(json) => match json.level() {
            JsonLevel::List(nodes) => {
                list(nodes.iter().map(|node| RuleValue::of_json(json.with(node))), budget)?
            }
            JsonLevel::Object(fields) => {
                let fields = fields
                    .iter()
                    .map(|(key, node)| (RuleString::from(&**key), RuleValue::of_json(json.with(node))));
                map(fields, budget)?
            }
            JsonLevel::TooLong => return Err(EvaluationError::TooLong),
            _ => value.clone(),
        },
        other => other.clone(),
    })
}

fn list<'a>(
    items: impl ExactSizeIterator<Item = RuleValue<'a>>,
    budget: &Budget,
) -> Result<RuleValue<'a>, EvaluationError> {
    budget.spend_on_nodes(items.len());
    let items = items.map(|item| redacted(&item, budget));
    Ok(RuleValue::List(items.collect::<Result<Vec<_>, _>>()?.into()))
}

fn map<'a>(
    fields: impl ExactSizeIterator<Item = (RuleString<'a>, RuleValue<'a>)>,
    budget: &Budget,
) -> Result<RuleValue<'a>, EvaluationError> {
    budget.spend_on_nodes(fields.len());
    let fields = fields.map(|(key, value)| Ok((key, redacted(&value, budget)?)));
    Ok(RuleValue::Map(fields.collect::<Result<Vec<_>, EvaluationError>>()?.into()))
}
