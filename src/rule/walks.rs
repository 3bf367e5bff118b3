//! Looks for expressions that go through as much as the sender of an event sends: whole inputs, and lists without a bound. For the
//! largest events they take more steps than a rule has, or all of them for an answer that one field would give.

use super::{
    budget::{LONGEST_LIST, MOST_STEPS},
    cost,
    expression::{Comparison, Expression, ExpressionKind, Literal, Loop, SentValue},
    mistake::RuleMistake,
    scope::RuleScope,
    types::Type,
    variables::Source,
};

/// Reports what goes through as much as is sent.
pub(super) fn unbounded(
    expression: &Expression,
    text: &str,
    scope: &RuleScope<'_>,
    fails_open: bool,
) -> Vec<RuleMistake> {
    let mut search = Search::new(text, scope, fails_open);
    search.look(expression);
    search.found
}

/// Whether a named expression is as the sender of the event wrote it.
pub(super) fn sent(expression: &Expression, scope: &RuleScope<'_>) -> Option<SentValue> {
    Search::new("", scope, false).sent(expression)
}

struct Search<'s> {
    text: &'s str,
    scope: &'s RuleScope<'s>,
    /// Whether an event goes on where there are too few steps. A guard that stops it then has said what it wants.
    fails_open: bool,
    /// Of the macros around, whether their elements are of the event.
    locals: Vec<Option<SentValue>>,
    /// Lists whose size is compared before they are gone through, as they are written.
    bounded: Vec<&'s str>,
    found: Vec<RuleMistake>,
}

impl<'s> Search<'s> {
    fn new(text: &'s str, scope: &'s RuleScope<'s>, fails_open: bool) -> Self {
        Self { text, scope, fails_open, locals: Vec::new(), bounded: Vec::new(), found: Vec::new() }
    }

    fn look(&mut self, expression: &'s Expression) {
        match &expression.kind {
            ExpressionKind::Quantifier(_, over) | ExpressionKind::Collect(over) => {
                self.loops(expression, over);
            }
            ExpressionKind::Compare(Comparison::Equal | Comparison::NotEqual, parts) => {
                self.compares(expression, parts);
                parts.iter().for_each(|part| self.look(part));
            }
            ExpressionKind::In(parts) => {
                if let Some(SentValue::Whole(name)) = self.sent(&parts[0]) {
                    self.compares_whole(name, expression);
                }
                parts.iter().for_each(|part| self.look(part));
            }
            ExpressionKind::And(parts) => self.look_after(parts, Holds::Before),
            ExpressionKind::Or(parts) => self.look_after(parts, Holds::NotBefore),
            ExpressionKind::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                self.look(condition);
                self.look_with(condition, Holds::Before, yes);
                self.look_with(condition, Holds::NotBefore, no);
            }
            _ => expression.parts().into_iter().for_each(|part| self.look(part)),
        }
    }

    /// Parts of `&&` and `||`: what stands before a part bounds it.
    fn look_after(&mut self, parts: &'s [Expression], holds: Holds) {
        let known = self.bounded.len();
        for part in parts {
            self.look(part);
            self.bounded.extend(self.bound(part, holds));
        }
        self.bounded.truncate(known);
    }

    fn look_with(&mut self, condition: &'s Expression, holds: Holds, part: &'s Expression) {
        let known = self.bounded.len();
        self.bounded.extend(self.bound(condition, holds));
        self.look(part);
        self.bounded.truncate(known);
    }

    /// The list that a condition bounds where it holds, or where it does not.
    fn bound(&self, condition: &'s Expression, holds: Holds) -> Option<&'s str> {
        let ExpressionKind::Compare(comparison, parts) = &condition.kind else { return None };
        let (sized, comparison) = match (&parts[0].kind, &parts[1].kind) {
            (ExpressionKind::Call(function, arguments), ExpressionKind::Literal(Literal::Int(_)))
                if function.name == "size" =>
            {
                (&arguments[0], *comparison)
            }
            (ExpressionKind::Literal(Literal::Int(_)), ExpressionKind::Call(function, arguments))
                if function.name == "size" =>
            {
                (&arguments[0], comparison.mirrored())
            }
            _ => return None,
        };
        let bounds = match holds {
            Holds::Before => {
                matches!(comparison, Comparison::Less | Comparison::LessOrEqual | Comparison::Equal)
            }
            Holds::NotBefore => {
                matches!(comparison, Comparison::Greater | Comparison::GreaterOrEqual | Comparison::NotEqual)
            }
        };
        self.written(sized).filter(|_| bounds)
    }

    fn written(&self, expression: &Expression) -> Option<&'s str> {
        self.text.get(expression.place.start..expression.place.end)
    }

    fn is_bounded(&self, expression: &Expression) -> bool {
        self.written(expression).is_some_and(|written| self.bounded.contains(&written))
    }

    fn loops(&mut self, expression: &'s Expression, over: &'s Loop) {
        self.look(&over.over);
        let sent = self.sent(&over.over);
        match &sent {
            _ if self.is_bounded(&over.over) => {}
            Some(SentValue::Whole(name)) => {
                let message = format!("this goes through all of `{name}`, which may have 16 MiB");
                let help = format!("ask for the fields that matter: `has({name}.…)`, `{name}.…`");
                self.report(expression, message, &help);
            }
            Some(SentValue::Inside) if self.fails_open && is_too_long(over) => {
                let written = self.written(&over.over).unwrap_or("the list");
                let message = format!(
                    "of a long list this takes more than {MOST_STEPS} steps, and the event goes on unjudged"
                );
                let help = format!(
                    "write `size({written}) > 100 || …` before it in what stops an event, or `on_error: deny` beside `handler`; of a text, `matches` goes through all lines at once"
                );
                self.report(expression, message, &help);
            }
            Some(SentValue::Inside) | None => {}
        }
        self.locals.truncate(over.depth);
        self.locals.push(sent.map(|_| SentValue::Inside));
        over.filter.iter().chain([&over.body]).for_each(|part| self.look(part));
        self.locals.truncate(over.depth);
    }

    fn compares(&mut self, expression: &'s Expression, parts: &'s [Expression; 2]) {
        let [left, right] = parts;
        for (one, other) in [(left, right), (right, left)] {
            let is_structure = matches!(other.result, Type::Map(_) | Type::List(_));
            match self.sent(one) {
                _ if self.is_bounded(one) => {}
                Some(SentValue::Whole(name)) if is_structure || self.sent(other).is_some() => {
                    return self.compares_whole(name, expression);
                }
                Some(SentValue::Inside) if is_structure && self.fails_open => {
                    let message =
                        "this compares a whole list or object; of a large one the event goes on unjudged";
                    let help = "compare its `size(…)` before, or the elements and fields that matter, or write `on_error: deny` beside `handler`";
                    return self.report(expression, message.to_owned(), help);
                }
                _ => {}
            }
        }
    }

    fn compares_whole(&mut self, name: &str, expression: &Expression) {
        let message = format!("this compares all of `{name}`, which may have 16 MiB");
        let help = format!("compare the fields that matter: `{name}.… == …`");
        self.report(expression, message, &help);
    }

    fn report(&mut self, expression: &Expression, message: String, help: &str) {
        self.found.push(RuleMistake::new(message, help).at(expression.place));
    }

    /// Whether a value is as the sender of the event wrote it, whatever its length.
    fn sent(&self, expression: &Expression) -> Option<SentValue> {
        match &expression.kind {
            ExpressionKind::Variable(source @ Source::Part(_)) => Some(SentValue::Whole(source.path())),
            ExpressionKind::Let(at) => self.scope.named[*at].ahead.sent.clone(),
            ExpressionKind::Local(depth) => self.locals.get(*depth).cloned().flatten(),
            ExpressionKind::Field(object, _) => self.sent(object).map(|_| SentValue::Inside),
            ExpressionKind::Element(parts) => self.sent(&parts[0]).map(|_| SentValue::Inside),
            ExpressionKind::Conditional(parts) => self.sent(&parts[1]).or_else(|| self.sent(&parts[2])),
            ExpressionKind::Call(function, arguments) => {
                let keeps_length = [
                    "lines",
                    "split",
                    "lowerAscii",
                    "upperAscii",
                    "trim",
                    "replace",
                    "texts",
                    "secrets.redact",
                ];
                let given = arguments.first().filter(|_| keeps_length.contains(&function.name))?;
                self.sent(given).map(|_| SentValue::Inside)
            }
            _ => None,
        }
    }
}

/// Whether a condition bounds a list where it holds, or where it does not.
#[derive(Debug, Clone, Copy)]
enum Holds {
    Before,
    NotBefore,
}

/// Whether going through the longest list takes more steps than there are.
fn is_too_long(over: &Loop) -> bool {
    let each = cost::of(&over.body) + over.filter.as_ref().map_or(0, cost::of);
    u64::try_from(LONGEST_LIST).unwrap_or(u64::MAX).saturating_mul(each) > MOST_STEPS
}
