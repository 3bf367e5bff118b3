//! What an expression is before there is an event: the same value wherever the hook runs, as far as that can be known.

use std::{borrow::Cow, collections::HashMap, sync::atomic::Ordering::Relaxed};

use super::{
    budget::Budget,
    expression::{Comparison, Expression, ExpressionKind, Literal},
    operators, ranges,
    scope::RuleScope,
    situation::MatchedText,
    variables::Source,
};
use crate::model::Matcher;

/// The longest text that is kept of a named expression, or that a pattern is searched for in, in bytes.
const LONGEST_TEXT: usize = 64;

/// How many parts of expressions are looked at for one hook. Of what is left nothing is known.
pub(super) const MOST_FOLDED: u32 = 100_000;

/// Whether an expression is true for every event that its hook runs for, and has no part that may fail.
pub(super) fn is_always_true(expression: &Expression, text: &str, scope: &RuleScope<'_>) -> bool {
    is_everywhere(true, Folded::Certain, expression, text, scope)
}

/// Whether an expression is false, or fails, for every event that its hook runs for.
fn is_never_true(expression: &Expression, text: &str, scope: &RuleScope<'_>) -> bool {
    is_everywhere(false, Folded::UnlessItFails, expression, text, scope)
}

fn is_everywhere(
    wanted: bool,
    known: Folded,
    expression: &Expression,
    text: &str,
    scope: &RuleScope<'_>,
) -> bool {
    let is_it = |at| Folding { text, scope, at, known }.condition(expression) == Some(wanted);
    (0..scope.situations.len()).all(is_it)
}

/// The value of an expression in each of the situations that its hook runs in, where it is known and short.
pub(super) fn values(expression: &Expression, text: &str, scope: &RuleScope<'_>) -> Box<[Option<Literal>]> {
    let is_short = |value: &Cow<'_, Literal>| match &**value {
        Literal::Text(text) => text.len() <= LONGEST_TEXT,
        _ => true,
    };
    // What somebody has written there for others to change is a setting, and a condition that asks for it no mistake.
    let is_setting = match &expression.kind {
        ExpressionKind::Literal(Literal::Text(text)) => text.is_empty(),
        ExpressionKind::Literal(_) => true,
        _ => false,
    };
    if is_setting {
        return scope.situations.iter().map(|_| None).collect();
    }
    let known = Folded::UnlessItFails;
    let value =
        |at| Folding { text, scope, at, known }.value(expression).filter(is_short).map(Cow::into_owned);
    (0..scope.situations.len()).map(value).collect()
}

/// The parts of a condition that hold for no event, each of which would be enough to make it true.
pub(super) fn never_true<'e>(
    expression: &'e Expression,
    text: &str,
    scope: &RuleScope<'_>,
) -> Vec<&'e Expression> {
    if is_never_true(expression, text, scope) {
        return vec![expression];
    }
    match &expression.kind {
        ExpressionKind::Or(parts) => parts.iter().flat_map(|part| never_true(part, text, scope)).collect(),
        _ => Vec::new(),
    }
}

/// What counts as known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Folded {
    /// What a part of the event is, wherever that has a value at all.
    UnlessItFails,
    /// What no event can make fail.
    Certain,
}

/// Evaluates an expression with what is known in one situation.
#[derive(Clone, Copy)]
struct Folding<'s> {
    text: &'s str,
    scope: &'s RuleScope<'s>,
    /// The situation, by its number.
    at: usize,
    known: Folded,
}

impl<'s> Folding<'s> {
    fn condition(self, expression: &'s Expression) -> Option<bool> {
        match *self.value(expression)? {
            Literal::Bool(value) => Some(value),
            _ => None,
        }
    }

    fn string(self, expression: &'s Expression) -> Option<Cow<'s, str>> {
        match self.value(expression)? {
            Cow::Borrowed(Literal::Text(text)) => Some(Cow::Borrowed(text)),
            Cow::Owned(Literal::Text(text)) => Some(Cow::Owned(text.into())),
            _ => None,
        }
    }

    fn value(self, expression: &'s Expression) -> Option<Cow<'s, Literal>> {
        let left = &self.scope.left_to_fold;
        left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).ok()?;
        let is_certain = self.known == Folded::Certain;
        let condition = match &expression.kind {
            ExpressionKind::Literal(literal) => return Some(Cow::Borrowed(literal)),
            ExpressionKind::Let(_) if is_certain => None,
            ExpressionKind::Let(at) => {
                return self.scope.named[*at].ahead.values[self.at].as_ref().map(Cow::Borrowed);
            }
            ExpressionKind::Variable(Source::Text(text)) => {
                let known = self.scope.situations[self.at].text(*text)?;
                return Some(Cow::Owned(Literal::Text(known.into())));
            }
            ExpressionKind::HasVariable(Source::Text(text)) => {
                self.scope.situations[self.at].matched(*text).map(|_| true)
            }
            ExpressionKind::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                return self.value(if self.condition(condition)? { yes } else { no });
            }
            ExpressionKind::Call(function, arguments) => return self.called(function.name, arguments),
            ExpressionKind::Not(operand) => self.condition(operand).map(|value| !value),
            ExpressionKind::And(parts) if !is_certain && contradict(parts, self.text) => Some(false),
            ExpressionKind::And(parts) => self.all(parts, true),
            ExpressionKind::Or(parts) => self.all(parts, false),
            ExpressionKind::Compare(comparison, parts) => self.compared(*comparison, &parts[0], &parts[1]),
            ExpressionKind::In(parts) => self.is_in(&parts[0], &parts[1]),
            ExpressionKind::Matches(operand, pattern) => decides(&pattern.compiled, &*self.value(operand)?),
            _ => None,
        };
        condition.map(|value| Cow::Owned(Literal::Bool(value)))
    }

    /// Whether all parts are so, or one is not.
    fn all(self, parts: &'s [Expression], wanted: bool) -> Option<bool> {
        let mut are_known = true;
        for part in parts {
            match self.condition(part) {
                Some(value) if value != wanted => return Some(!wanted),
                Some(_) => {}
                None => are_known = false,
            }
        }
        are_known.then_some(wanted)
    }

    fn called(self, name: &str, arguments: &'s [Expression]) -> Option<Cow<'s, Literal>> {
        let literal = match (name, arguments) {
            ("lowerAscii", [of]) => Literal::Text(self.string(of)?.to_ascii_lowercase().into()),
            ("upperAscii", [of]) => Literal::Text(self.string(of)?.to_ascii_uppercase().into()),
            ("contains", [of, part]) => Literal::Bool(self.string(of)?.contains(&*self.string(part)?)),
            ("startsWith", [of, start]) => Literal::Bool(self.string(of)?.starts_with(&*self.string(start)?)),
            ("endsWith", [of, end]) => Literal::Bool(self.string(of)?.ends_with(&*self.string(end)?)),
            _ => return None,
        };
        Some(Cow::Owned(literal))
    }

    fn compared(self, comparison: Comparison, left: &'s Expression, right: &'s Expression) -> Option<bool> {
        let is_unequal = match (self.value(left), self.value(right)) {
            (Some(left), Some(right)) => {
                let (left, right) = (operators::literal_value(&left), operators::literal_value(&right));
                return operators::compare(comparison, &left, &right, &Budget::new()).ok();
            }
            (None, Some(constant)) => self.is_not_matched(left, &constant),
            (Some(constant), None) => self.is_not_matched(right, &constant),
            (None, None) => false,
        };
        match comparison {
            Comparison::Equal if is_unequal => Some(false),
            Comparison::NotEqual if is_unequal => Some(true),
            _ if self.known == Folded::Certain => None,
            _ => ranges::compared(comparison, left, right, self.scope),
        }
    }

    /// Whether the matcher does not accept the text that what it looks at is compared with.
    fn is_not_matched(self, variable: &Expression, constant: &Literal) -> bool {
        let ExpressionKind::Variable(Source::Text(text)) = &variable.kind else { return false };
        match self.scope.situations[self.at].matched(*text) {
            Some(MatchedText::AcceptedBy(matcher)) => decides(matcher, constant) == Some(false),
            _ => false,
        }
    }

    fn is_in(self, value: &'s Expression, list: &'s Expression) -> Option<bool> {
        let items = match &list.kind {
            ExpressionKind::List(items) => items,
            ExpressionKind::Let(at) => match &self.scope.named[*at].expression.kind {
                // An empty one is to be filled by somebody.
                ExpressionKind::List(items) if !items.is_empty() && self.known != Folded::Certain => items,
                _ => return None,
            },
            _ => return None,
        };
        let mut found = Some(false);
        for item in items {
            match self.compared(Comparison::Equal, value, item) {
                Some(true) if self.known == Folded::UnlessItFails => return Some(true),
                Some(true) => found = found.map(|_| true),
                Some(false) => {}
                None => found = None,
            }
        }
        found
    }
}

/// Whether a pattern is found in a short text, if that is known.
fn decides(pattern: &Matcher, text: &Literal) -> Option<bool> {
    match text {
        Literal::Text(text) if text.len() <= LONGEST_TEXT => pattern.decides(text),
        _ => None,
    }
}

/// Whether one thing would have to equal two different constants.
fn contradict(parts: &[Expression], text: &str) -> bool {
    let mut wanted: HashMap<&str, &Literal> = HashMap::new();
    let mut equal = parts.iter().filter_map(|part| equality(part, text));
    equal.any(|(thing, constant)| differ(wanted.entry(thing).or_insert(constant), constant))
}

/// Whether two constants are unequal: `1` and `1.0` are not.
fn differ(one: &Literal, other: &Literal) -> bool {
    !operators::literal_value(one).equals(&operators::literal_value(other), &Budget::new())
}

/// The text of what has to equal a constant, and the constant.
fn equality<'e>(expression: &'e Expression, text: &'e str) -> Option<(&'e str, &'e Literal)> {
    let ExpressionKind::Compare(Comparison::Equal, parts) = &expression.kind else { return None };
    let (thing, constant) = match (&parts[0].kind, &parts[1].kind) {
        (_, ExpressionKind::Literal(constant)) => (&parts[0], constant),
        (ExpressionKind::Literal(constant), _) => (&parts[1], constant),
        _ => return None,
    };
    text.get(thing.place.start..thing.place.end).map(|thing| (thing, constant))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::{RuleDecision, RuleSet, mistake::RuleMistake, tests::judge};
    use crate::model::{
        Draft, Event, EventKind, HookDecision, Json, MatchField, Matcher, RunId, SessionId, Target,
    };

    const KINDS: [EventKind; 2] = [EventKind::BeforeToolDispatch, EventKind::AfterToolDispatch];
    const TOOLS: [&str; 6] = ["Bash", "Read", "bash", "mcp__a", "mcp__Bash", ""];
    const MATCHERS: [&str; 6] = ["^Bash$", "^(Bash|Read|mcp__a)$", "^mcp__", "Bash", "a", ""];
    const NAMED: [(&str, &str); 3] = [
        ("tools", r#"["Bash", "mcp__a"]"#),
        ("is_bash", r#"tool.name == "Bash""#),
        ("small", "tool.name.lowerAscii()"),
    ];

    fn draft(kind: EventKind, tool: &str) -> Draft {
        let mut event = Event::new(kind, SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        event.attributes.tool_name = Some(tool.into());
        event.attributes.agent_type = Some("Explore".into());
        event.targets.set(Target::ToolInput, Json::parse(r#"{ "x": "Bash" }"#).unwrap());
        Draft::new(event.into())
    }

    fn stops(set: &RuleSet, draft: &Draft) -> bool {
        judge(set, draft).is_ok_and(|reply| matches!(reply.decision, HookDecision::Block(_)))
    }

    fn texts() -> impl Strategy<Value = String> {
        prop_oneof![
            Just("tool.name".to_owned()),
            Just("event.kind".to_owned()),
            Just("small".to_owned()),
            Just("tool.input.x".to_owned()),
            Just("tool.name.upperAscii()".to_owned()),
            prop::sample::select(vec!["Bash", "Read", "bash", "mcp__a", "BASH", "after_tool_dispatch", "a"])
                .prop_map(|text| format!("{text:?}")),
        ]
    }

    fn conditions() -> impl Strategy<Value = String> {
        let comparison = (texts(), prop::sample::select(vec!["==", "!=", "<"]), texts())
            .prop_map(|(left, operator, right)| format!("{left} {operator} {right}"));
        let call = (texts(), prop::sample::select(vec!["contains", "startsWith", "endsWith"]), texts())
            .prop_map(|(of, name, with)| format!("{of}.{name}({with})"));
        let other = prop::sample::select(vec![
            "is_bash",
            "tool.name in tools",
            r#"tool.name in ["Read", tool.input.x]"#,
            "has(tool.output)",
            "has(tool.name)",
            "has(tool.input.x)",
            r#"tool.name.matches("^[Bb]")"#,
            "size(tool.name) > 0",
            "true",
            "tool.input.missing == 'a'",
            "size(tool.input.missing) >= 0",
            "(tool.input.missing == 'a' && tool.input.missing == 'b')",
            "has(agent.type)",
            r#"tool.name in ["Bash", tool.input.missing]"#,
            "size(tool.name) / 4.0 > 1",
        ]);
        let leaf = prop_oneof![comparison, call, other.prop_map(str::to_owned)];
        leaf.prop_recursive(4, 24, 3, |inner| {
            prop_oneof![
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} && {b})")),
                (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} || {b})")),
                (inner.clone(), inner.clone(), inner.clone())
                    .prop_map(|(a, b, c)| format!("({a} ? {b} : {c})")),
                inner.prop_map(|a| format!("!({a})")),
            ]
        })
    }

    /// What is said about a condition, and how often it stops one of the events that its hook runs for.
    fn judged(condition: &str, matcher: &str) -> Option<(Vec<RuleMistake>, bool, Vec<bool>)> {
        let matcher = Matcher::search(matcher).unwrap();
        let mut set = RuleSet::new(KINDS.to_vec()).matched(Some(&matcher), |_| Some(MatchField::ToolName));
        for (name, text) in NAMED {
            set.name(name, text).unwrap();
        }
        set.begin(None).unwrap();
        set.decide(RuleDecision::Deny, condition).ok()?;
        let doubts = set.take_doubts();
        set.begin(None).unwrap();
        set.decide(RuleDecision::Allow, "has(tool.input.x)").unwrap();
        let nothing_gets_by = set.take_doubts().iter().any(|doubt| doubt.message == "nothing gets here");
        let tools = TOOLS.iter().filter(|tool| matcher.accepts(tool));
        let events = tools.flat_map(|tool| KINDS.map(|kind| draft(kind, tool)));
        Some((doubts, nothing_gets_by, events.map(|event| stops(&set, &event)).collect()))
    }

    proptest! {
        #[test]
        fn what_is_never_true_stops_no_event_and_what_is_always_true_stops_each(
            condition in conditions(),
            matcher in prop::sample::select(MATCHERS.to_vec()),
        ) {
            if let Some((doubts, nothing_gets_by, stopped)) = judged(&condition, matcher) {
                let whole = |doubt: &RuleMistake| doubt.place.is_some_and(|place| place.end - place.start >= condition.len());
                let is_never = doubts.iter().any(|doubt| doubt.message == "this is never true" && whole(doubt));
                prop_assert!(!is_never || stopped.iter().all(|stops| !stops), "{condition} {matcher}");
                prop_assert!(!nothing_gets_by || stopped.iter().all(|stops| *stops), "{condition} {matcher}");
            }
        }
    }

    #[test]
    fn what_the_matcher_decides_is_known() {
        for (condition, matcher, is_never, nothing_gets_by) in [
            (r#"tool.name == "Bash""#, "^Bash$", false, true),
            ("is_bash", "^Bash$", false, false),
            ("size(tool.input.missing) >= 0", "^Bash$", false, false),
            ("is_bash", "^Read$", true, false),
            (r#"tool.name.lowerAscii() == "bash""#, "^(Bash|bash)$", false, true),
            ("tool.name in tools", "^mcp__b", true, false),
            ("tool.name in tools", "^mcp__", false, false),
        ] {
            let (doubts, found, _) = judged(condition, matcher).unwrap();
            let never = doubts.iter().any(|doubt| doubt.message == "this is never true");
            assert_eq!((never, found), (is_never, nothing_gets_by), "{condition} {matcher}");
        }
    }
}
