//! Shows what the rules of policies say of an event.

use regorus::Value;

use super::{super::secrets, answer::entries, package::Said, verb::Verb};
use crate::model::{Failure, TracedExpression, TracedValue};

/// The longest value that is shown, in characters.
const LONGEST_SHOWN: usize = 200;

/// The most values of one rule that are shown.
const MOST_VALUES: usize = 12;

/// The rules that say something, from what is strictest on, and what failed.
pub(super) fn of(said: &[Said], failed: Option<Failure>) -> Vec<TracedExpression> {
    let speaks = |one: &&Said| entries(one).map_or(true, |entries| !entries.is_empty());
    let mut spoken: Vec<&Said> = said.iter().filter(speaks).collect();
    spoken.sort_by_key(|one| one.verb);
    let decides = |verb: &Verb| matches!(verb, Verb::Halt | Verb::Deny | Verb::Ask | Verb::Allow);
    let strictest = spoken.first().map(|one| one.verb).filter(decides);
    // What is allowed where a stricter rule has no value is not known.
    let strictest = strictest.filter(|verb| *verb != Verb::Allow || failed.is_none());
    let failure = failed.map(|failure| TracedExpression {
        rule: None,
        key: "failure",
        expression: "the policies".to_owned(),
        result: shown(&failure.message),
        decides: false,
        values: Vec::new(),
    });
    spoken.into_iter().map(|one| traced(one, strictest)).chain(failure).collect()
}

fn traced(one: &Said, strictest: Option<Verb>) -> TracedExpression {
    let entries = entries(one).unwrap_or_default();
    let values = entries.into_iter().take(MOST_VALUES).enumerate().map(|(at, entry)| {
        let of = entry.rule_id.unwrap_or_else(|| format!("entry {}", at + 1));
        TracedValue { of: shown(&of), value: shown(&entry.reason.unwrap_or_default()) }
    });
    TracedExpression {
        rule: Some(one.package.to_string()),
        key: one.name,
        expression: format!("data.{}.{}", one.package, one.name),
        result: shown(&on_one_line(&one.value)),
        decides: strictest == Some(one.verb),
        values: values.collect(),
    }
}

/// A value as JSON without line breaks.
fn on_one_line(value: &Value) -> String {
    serde_json::to_string(value).unwrap_or_default()
}

/// A value as people see it, without secrets.
fn shown(text: &str) -> String {
    let redacted = secrets::redact(text);
    match redacted.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}…", &redacted[..end]),
        None => redacted,
    }
}
