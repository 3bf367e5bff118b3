//! The rules of a hook: how they are put together, and what they say of an event.

use std::{
    fmt,
    sync::{Arc, OnceLock, atomic::AtomicU32},
};

#[cfg(any(feature = "cli", feature = "daemon"))]
use super::trace;
use super::{
    budget::{Budget, MOST_STEPS},
    compile::compile,
    constants,
    context::CallContext,
    cost, doubts,
    evaluate::Evaluation,
    expression::{Expression, KnownAhead, NamedExpression},
    facts::{EventFacts, EventReading},
    failure::EvaluationError,
    file_fact::FileFact,
    hook_rule::{HookRule, RuleDecision, RuleExpression, RuleText},
    link_needs,
    mistake::RuleMistake,
    ranges,
    scope::{RuleScope, wants},
    situation::{Situation, situations},
    types::Type,
    walks,
};
#[cfg(any(feature = "cli", feature = "daemon"))]
use crate::model::TracedExpression;
use crate::model::{
    Ended, EventKind, Failure, HookDecision, Json, LinkNeeds, MatchField, Matcher, Reply, RuleCall,
    RuleProgram, Target,
};

/// The most rules of one hook.
const MOST_RULES: usize = 256;

/// The most named expressions of one hook.
const MOST_NAMED: usize = 512;

/// Whether a rule stops every event, so that nothing gets any further.
#[derive(Debug, Clone, Copy)]
enum AlwaysStops {
    No,
    InThisRule(RuleDecision),
    Before,
    /// It is told.
    Told,
}

/// The rules of a hook, in their order.
pub(crate) struct RuleSet {
    kinds: Vec<EventKind>,
    /// What the hook's matcher leaves, and how it is written.
    situations: Vec<Situation>,
    left_to_fold: AtomicU32,
    matcher: Option<Box<str>>,
    facts: Vec<FileFact>,
    /// The expressions that have names: first those of all rules, then those of each.
    named: Vec<NamedExpression>,
    shared: usize,
    rules: Vec<HookRule>,
    /// What looks wrong in the expression that was added last, though it works.
    doubts: Vec<RuleMistake>,
    always_stops: AlwaysStops,
    /// Whether an event goes on where a rule takes too many steps.
    fails_open: bool,
    /// What the rules want to know of links, found when it is first asked for.
    link_needs: OnceLock<Option<Arc<LinkNeeds>>>,
}

impl RuleSet {
    /// No rule yet, for events of these kinds.
    pub(crate) fn new(kinds: Vec<EventKind>) -> Self {
        let situations = situations(&kinds, None, |_| None);
        let (facts, named, rules, doubts) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self {
            kinds,
            situations,
            left_to_fold: AtomicU32::new(constants::MOST_FOLDED),
            matcher: None,
            facts,
            named,
            shared: 0,
            rules,
            doubts,
            always_stops: AlwaysStops::No,
            fails_open: false,
            link_needs: OnceLock::new(),
        }
    }

    /// The same for a hook that has a matcher, which looks at such a field of each kind.
    #[must_use]
    pub(crate) fn matched(
        self,
        matcher: Option<&Matcher>,
        field: impl Fn(EventKind) -> Option<MatchField>,
    ) -> Self {
        let situations = situations(&self.kinds, matcher, field);
        Self { situations, matcher: matcher.map(|matcher| matcher.pattern().into()), ..self }
    }

    /// The same for a hook whose failures and timeouts are ignored, if they are.
    #[must_use]
    pub(crate) fn failing_open(self, fails_open: bool) -> Self {
        Self { fails_open, ..self }
    }

    /// Names what a file has.
    pub(crate) fn fact(&mut self, name: &str, json: Json) -> Result<(), RuleMistake> {
        check_name(name)?;
        self.facts.push(FileFact::new(name, json));
        Ok(())
    }

    /// Names an expression. Before the first rule it is one of all rules, and then one of the last rule.
    pub(crate) fn name(&mut self, name: &str, text: &str) -> Result<(), RuleMistake> {
        if self.named.len() == MOST_NAMED {
            return Err(RuleMistake::new(format!("more than {MOST_NAMED} names"), "use fewer"));
        }
        check_name(name)?;
        let expression = self.compiled(text)?;
        let scope = self.scope();
        let ahead = KnownAhead {
            values: constants::values(&expression, text, &scope),
            range: ranges::named(&expression, &scope),
            sent: walks::sent(&expression, &scope),
        };
        self.named.push(NamedExpression { name: name.into(), expression, ahead });
        if self.rules.is_empty() {
            self.shared = self.named.len();
        }
        Ok(())
    }

    /// Begins the next rule.
    pub(crate) fn begin(&mut self, label: Option<&str>) -> Result<(), RuleMistake> {
        if self.rules.len() == MOST_RULES {
            return Err(RuleMistake::new(
                format!("more than {MOST_RULES} rules"),
                "make several hooks of them",
            ));
        }
        self.rules.push(HookRule::new(label, self.named.len()));
        if let AlwaysStops::InThisRule(_) = self.always_stops {
            self.always_stops = AlwaysStops::Before;
        }
        Ok(())
    }

    /// Adds the condition of a decision to the last rule.
    pub(crate) fn decide(&mut self, decision: RuleDecision, text: &str) -> Result<(), RuleMistake> {
        let expression = self.compiled(text)?;
        wants(&expression, &Type::Bool)?;
        self.doubt_condition(decision, &expression, text);
        if let Some(rule) = self.rules.last_mut() {
            rule.decisions.push((decision, RuleExpression::new(text, expression)));
            rule.decisions.sort_by_key(|(decision, _)| *decision);
        }
        Ok(())
    }

    /// Tells what is never true in a condition, and remembers whether it is always.
    fn doubt_condition(&mut self, decision: RuleDecision, expression: &Expression, text: &str) {
        if let AlwaysStops::InThisRule(stricter) = self.always_stops {
            let message = format!("nothing gets here: `{}` is always true", stricter.as_str());
            let doubt = RuleMistake::new(message, "correct that, or remove this").at(expression.place);
            self.doubts.push(doubt);
            return;
        }
        for never in constants::never_true(expression, text, &self.scope()) {
            if !self.doubts.iter().any(|doubt| doubt.place == Some(never.place)) {
                let help = match &self.matcher {
                    Some(matcher) => format!(
                        "no event that the matcher `{matcher}` accepts makes it true; correct one of them, or remove it"
                    ),
                    None => "no event makes it true; correct it, or remove it".to_owned(),
                };
                self.doubts.push(RuleMistake::new("this is never true", help).at(never.place));
            }
        }
        if constants::is_always_true(expression, text, &self.scope()) && decision != RuleDecision::Allow {
            self.always_stops = AlwaysStops::InThisRule(decision);
        }
    }

    /// Adds a text to the last rule. Null means none.
    pub(crate) fn say(&mut self, which: RuleText, text: &str) -> Result<(), RuleMistake> {
        let expression = self.compiled(text)?;
        if expression.result != Type::Null {
            wants(&expression, &Type::String)?;
        }
        if let Some(rule) = self.rules.last_mut() {
            rule.texts.push((which, RuleExpression::new(text, expression)));
        }
        Ok(())
    }

    /// Adds a change of a part of the payload to the last rule. Null means none.
    pub(crate) fn patch(&mut self, target: Target, text: &str) -> Result<(), RuleMistake> {
        let expression = self.compiled(text)?;
        if let Some(rule) = self.rules.last_mut() {
            rule.patches.push((target, RuleExpression::new(text, expression)));
        }
        Ok(())
    }

    /// Takes what looks wrong in the expression that was added last.
    pub(crate) fn take_doubts(&mut self) -> Vec<RuleMistake> {
        std::mem::take(&mut self.doubts)
    }

    /// The named expressions that nothing uses, by their number.
    pub(crate) fn unused(&self) -> Vec<usize> {
        let mut is_used = vec![false; self.named.len()];
        self.all_expressions().for_each(|expression| mark_used(expression, &mut is_used));
        (0..is_used.len()).filter(|at| !is_used[*at]).collect()
    }

    fn all_expressions(&self) -> impl Iterator<Item = &Expression> {
        let named = self.named.iter().map(|named| &named.expression);
        named.chain(self.rules.iter().flat_map(HookRule::expressions).map(|one| &one.expression))
    }

    /// Reports rules that together take too many steps.
    pub(crate) fn check_cost(&self) -> Result<(), RuleMistake> {
        let named = self.named.iter().map(|named| cost::of(&named.expression));
        let rules = self.rules.iter().flat_map(HookRule::expressions).map(|one| cost::of(&one.expression));
        let steps = named.chain(rules).fold(0, u64::saturating_add);
        if steps <= MOST_STEPS {
            return Ok(());
        }
        let message =
            format!("the rules would take about {steps} steps, and at most {MOST_STEPS} are allowed");
        Err(RuleMistake::new(message, "make several hooks of them, or nest fewer macros"))
    }

    fn scope(&self) -> RuleScope<'_> {
        let own = self.rules.last().map_or(self.shared, |rule| rule.own);
        RuleScope {
            kinds: &self.kinds,
            situations: &self.situations,
            left_to_fold: &self.left_to_fold,
            facts: &self.facts,
            named: &self.named,
            shared: self.shared,
            own,
        }
    }

    fn compiled(&mut self, text: &str) -> Result<Expression, RuleMistake> {
        let expression = compile(text, &self.scope())?;
        cost::check(&expression)?;
        self.doubts
            .extend(doubts::lookalikes(&expression).into_iter().chain(doubts::impossible(&expression)));
        let impossible = ranges::impossible(&expression, &self.scope());
        let unbounded = walks::unbounded(&expression, text, &self.scope(), self.fails_open);
        self.doubts.extend(impossible.into_iter().chain(unbounded));
        if let AlwaysStops::Before = self.always_stops {
            let help = "a rule before it stops every event: correct that, or remove this";
            self.doubts.push(RuleMistake::new("nothing gets here", help).at(expression.place));
            self.always_stops = AlwaysStops::Told;
        }
        Ok(expression)
    }

    /// Evaluates the rules for an event.
    fn evaluate<T>(
        &self,
        call: RuleCall<'_>,
        use_it: impl for<'e> FnOnce(&'e Self, &Evaluation<'e>) -> T,
    ) -> Result<T, Failure> {
        let RuleCall { draft, workspace, links, cache, counts } = call;
        let is_current = |reading: &EventReading| reading.is_of(draft);
        let reading = cache.get_or_make(is_current, || EventReading::new(draft));
        let Some(reading) = reading else {
            return Err(Failure::new(Ended::Failed, "the event cannot be read"));
        };
        let facts = EventFacts { draft, workspace, links, reading };
        let budget = Budget::new();
        let context = CallContext::new(facts, &budget, counts);
        Ok(use_it(self, &Evaluation::new(&context, &self.facts, &self.named)))
    }

    /// What the rules say, until the first one that decides. After a failure a decision counts only if it is stricter
    /// than none.
    fn judged<'a>(&'a self, evaluation: &Evaluation<'a>) -> Reply {
        let mut reply = Reply::proceed();
        for rule in &self.rules {
            let failed = rule.judge(evaluation, &mut reply);
            if let Some((what, failure)) = failed {
                let is_last = failure.error == EvaluationError::TooManySteps;
                let failure = Box::new(rule.failure(what, &failure));
                reply.failure.get_or_insert(failure);
                if is_last {
                    break;
                }
            }
            if reply.failure.is_some() && matches!(reply.decision, HookDecision::Allow(_)) {
                reply.decision = HookDecision::None;
            }
            if reply.decision != HookDecision::None {
                break;
            }
        }
        reply
    }
}

#[cfg(any(feature = "cli", feature = "daemon"))]
impl RuleSet {
    fn traced<'a>(&'a self, evaluation: &Evaluation<'a>) -> Vec<TracedExpression> {
        trace::of(&self.rules, &self.named, evaluation)
    }
}

impl RuleProgram for RuleSet {
    fn judge(&self, call: RuleCall<'_>) -> Result<Reply, Failure> {
        let mut reply = self.evaluate(call, Self::judged)?;
        let says_nothing =
            reply.decision == HookDecision::None && reply.patches.is_empty() && reply.notes.is_empty();
        match reply.failure.take_if(|_| says_nothing) {
            Some(failure) => Err(*failure),
            None => Ok(reply),
        }
    }

    fn link_needs(&self) -> Option<Arc<LinkNeeds>> {
        self.link_needs.get_or_init(|| link_needs::of(self.all_expressions(), &self.facts)).clone()
    }

    #[cfg(any(feature = "cli", feature = "daemon"))]
    fn explain(&self, call: RuleCall<'_>) -> Vec<TracedExpression> {
        self.evaluate(call, Self::traced).unwrap_or_default()
    }
}

impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet").field("rules", &self.rules.len()).finish_non_exhaustive()
    }
}

fn check_name(name: &str) -> Result<(), RuleMistake> {
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    if is_name {
        return Ok(());
    }
    Err(RuleMistake::new(format!("`{}` is no name", name.escape_default()), "use letters, digits and `_`"))
}

fn mark_used(expression: &Expression, is_used: &mut [bool]) {
    for at in expression.named() {
        is_used[*at] = true;
    }
    expression.parts().into_iter().for_each(|part| mark_used(part, is_used));
}
