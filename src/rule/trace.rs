//! Shows what the expressions of rules are for an event, and from which values.

use std::collections::BTreeSet;

use super::{
    evaluate::Evaluation,
    expression::{Expression, ExpressionKind, NamedExpression},
    failure::EvaluationFailure,
    hook_rule::{HookRule, RuleExpression},
    secrets,
    value::RuleValue,
};
use crate::model::{TracedExpression, TracedValue};

/// The longest text of a value or an expression that is shown, in characters.
const LONGEST_SHOWN: usize = 200;

/// How much of a value is written to be shown, in bytes, before secrets are taken out of it.
const LONGEST_READ: usize = 64 << 10;

/// How much of what a value is made of is looked through for secrets, in bytes.
const LONGEST_SOURCE: usize = 1 << 20;

/// As many letters and digits of a secret are a part of it.
const PART_OF_SECRET: usize = 8;

/// What is shown of a value with a part of a secret that no longer looks like one.
const HIDDEN: &str = "[hidden: it has a part of a secret]";

/// The most values of one expression that are shown.
const MOST_VALUES: usize = 12;

/// The expressions that were evaluated, in their order, up to the one that decides.
pub(super) fn of<'a>(
    rules: &'a [HookRule],
    named: &'a [NamedExpression],
    evaluation: &Evaluation<'a>,
) -> Vec<TracedExpression> {
    let mut traced = Vec::new();
    let mut has_failed = false;
    for rule in rules {
        let first = traced.len();
        let mut is_decided = false;
        for (decision, condition) in &rule.decisions {
            let result = evaluation.truth(&condition.expression);
            has_failed |= result.is_err();
            // What is allowed where a stricter condition has no value is not known.
            is_decided = result == Ok(true) && !(has_failed && decision.as_str() == "allow");
            let result = result.map(|value| value.to_string());
            traced.push(traced_expression(rule, decision.as_str(), condition, result, evaluation, named));
            if is_decided {
                break;
            }
        }
        if is_decided || rule.decisions.is_empty() {
            let texts = rule.texts.iter().map(|(which, text)| (which.as_str(), text));
            let patches = rule.patches.iter().map(|(target, change)| (target.as_str(), change));
            for (key, part) in texts.chain(patches) {
                let result = evaluation.value(&part.expression);
                let result = result.map(|value| shown(&value, &part.expression, named, evaluation));
                has_failed |= result.is_err() && rule.decisions.is_empty();
                traced.push(traced_expression(rule, key, part, result, evaluation, named));
            }
        }
        if is_decided {
            if let Some(deciding) = traced[first..].iter_mut().find(|one| one.result == "true") {
                deciding.decides = true;
            }
            break;
        }
    }
    traced
}

fn traced_expression<'a>(
    rule: &'a HookRule,
    key: &'static str,
    part: &'a RuleExpression,
    result: Result<String, EvaluationFailure>,
    evaluation: &Evaluation<'a>,
    named: &'a [NamedExpression],
) -> TracedExpression {
    let mut values = Vec::new();
    collect(&part.expression, &part.text, named, evaluation, &mut values);
    TracedExpression {
        rule: rule.label.as_ref().map(ToString::to_string),
        key,
        expression: shortened(&secrets::redact(&part.text.split_whitespace().collect::<Vec<_>>().join(" "))),
        result: result.unwrap_or_else(|failure| format!("no value: {}", failure.error)),
        decides: false,
        values,
    }
}

/// Collects the parts of the event that an expression reads, and the named expressions that it uses.
fn collect<'a>(
    expression: &'a Expression,
    text: &'a str,
    named: &'a [NamedExpression],
    evaluation: &Evaluation<'a>,
    values: &mut Vec<TracedValue>,
) {
    let of = match &expression.kind {
        ExpressionKind::Let(at) => Some(&*named[*at].name),
        _ if is_path(expression) => text.get(expression.place.start..expression.place.end),
        _ => None,
    };
    let Some(of) = of else {
        return expression
            .parts()
            .into_iter()
            .for_each(|part| collect(part, text, named, evaluation, values));
    };
    if values.len() < MOST_VALUES && !values.iter().any(|value| value.of == of) {
        let value = evaluation.value(expression);
        let value = value.map_or_else(
            |failure| format!("no value: {}", failure.error),
            |value| shown(&value, expression, named, evaluation),
        );
        values.push(TracedValue { of: of.to_owned(), value });
    }
}

/// Whether an expression is a part of the event or of a file, such as `tool.input.command`.
fn is_path(expression: &Expression) -> bool {
    match &expression.kind {
        ExpressionKind::Variable(_) | ExpressionKind::Fact(_) => true,
        ExpressionKind::Field(object, _) => is_path(object),
        _ => false,
    }
}

/// The value of an expression as people see it: JSON without secrets, and without parts of those that it is made of.
fn shown<'a>(
    value: &RuleValue<'a>,
    expression: &'a Expression,
    named: &'a [NamedExpression],
    evaluation: &Evaluation<'a>,
) -> String {
    let text = secrets::redact(&json(value, LONGEST_READ));
    if !is_path(expression) {
        let mut known = PartsOfSecrets { named, evaluation, seen: BTreeSet::new(), parts: BTreeSet::new() };
        known.collect(expression);
        let parts = known.parts;
        if !parts.is_empty() && letters(&text).windows(PART_OF_SECRET).any(|part| parts.contains(part)) {
            return HIDDEN.to_owned();
        }
    }
    shortened(&text)
}

/// The beginning of a value as JSON.
fn json(value: &RuleValue<'_>, longest: usize) -> String {
    let mut json = String::new();
    // The rest is not shown.
    let _too_long = value.write_json(&mut json, longest);
    json.truncate(json.floor_char_boundary(longest));
    json
}

/// The parts of the secrets in what expressions read, whatever becomes of their case and their punctuation.
struct PartsOfSecrets<'a, 'e> {
    named: &'a [NamedExpression],
    evaluation: &'e Evaluation<'a>,
    /// The named expressions whose parts are collected.
    seen: BTreeSet<usize>,
    parts: BTreeSet<Vec<u8>>,
}

impl<'a> PartsOfSecrets<'a, '_> {
    fn collect(&mut self, expression: &'a Expression) {
        match &expression.kind {
            ExpressionKind::Let(at) if self.seen.insert(*at) => self.collect(&self.named[*at].expression),
            ExpressionKind::Let(_) => {}
            _ if is_path(expression) => self.collect_of_path(expression),
            _ => expression.parts().into_iter().for_each(|inner| self.collect(inner)),
        }
    }

    fn collect_of_path(&mut self, path: &'a Expression) {
        let Ok(value) = self.evaluation.value(path) else { return };
        let source = json(&value, LONGEST_SOURCE);
        for secret in secrets::find(&source) {
            let secret = letters(&source[secret.range]);
            self.parts.extend(secret.windows(PART_OF_SECRET).map(<[u8]>::to_vec));
        }
    }
}

/// The letters and digits of a text, as small ones.
fn letters(text: &str) -> Vec<u8> {
    text.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase()).collect()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
