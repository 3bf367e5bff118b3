//! Evaluates expressions, within a number of steps.

use std::cell::{OnceCell, RefCell};

use super::{
    budget::LONGEST_LIST,
    context::CallContext,
    expression::{Expression, ExpressionKind, Loop, NamedExpression, Operator, Quantifier},
    failure::{EvaluationError, EvaluationFailure},
    file_fact::FileFact,
    operators::{calculate_numbers, compare, element, field, has_field, literal_value, negated, truth},
    value::{RuleString, RuleValue},
    variables::Source,
};

type Evaluated<'a> = Result<RuleValue<'a>, EvaluationFailure>;

/// The evaluation of the expressions of one hook for one event.
pub(super) struct Evaluation<'a> {
    context: &'a CallContext<'a>,
    facts: &'a [FileFact],
    named: &'a [NamedExpression],
    values: Vec<OnceCell<Evaluated<'a>>>,
    locals: RefCell<Vec<RuleValue<'a>>>,
}

impl<'a> Evaluation<'a> {
    /// Of a hook with what its files have, and these named expressions.
    pub(super) fn new(
        context: &'a CallContext<'a>,
        facts: &'a [FileFact],
        named: &'a [NamedExpression],
    ) -> Self {
        let values = named.iter().map(|_| OnceCell::new()).collect();
        Self { context, facts, named, values, locals: RefCell::default() }
    }

    /// The value of an expression.
    pub(super) fn value(&self, expression: &'a Expression) -> Evaluated<'a> {
        self.evaluated(expression).map_err(|fault| match fault {
            Fault::Here(error) => EvaluationFailure { error, place: expression.place },
            Fault::Inside(failure) => failure,
        })
    }

    fn evaluated(&self, expression: &'a Expression) -> Result<RuleValue<'a>, Fault> {
        self.context.budget.take(1)?;
        let value = match &expression.kind {
            ExpressionKind::Literal(literal) => literal_value(literal),
            ExpressionKind::Variable(source) => self.variable(*source)?,
            ExpressionKind::HasVariable(source) => RuleValue::Bool(self.has(*source)),
            // A place in the named expression would be none in this one.
            ExpressionKind::Let(at) => self.named_value(*at).map_err(|failure| failure.error)?,
            ExpressionKind::Local(depth) => self.locals.borrow()[*depth].clone(),
            ExpressionKind::Field(object, name) => field(&self.value(object)?, name)?,
            ExpressionKind::HasField(object, name) => RuleValue::Bool(has_field(&self.value(object)?, name)?),
            ExpressionKind::Fact(at) => RuleValue::of_json(self.facts[*at].value(self.context.budget)),
            ExpressionKind::Element(parts) => element(&self.value(&parts[0])?, &self.value(&parts[1])?)?,
            ExpressionKind::Conditional(parts) => {
                let [condition, yes, no] = &**parts;
                if self.truth(condition)? { self.value(yes)? } else { self.value(no)? }
            }
            ExpressionKind::List(items) => {
                RuleValue::List(items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?)
            }
            ExpressionKind::Map(entries) => self.map(entries)?,
            ExpressionKind::Collect(over) => self.collect(over)?,
            ExpressionKind::Call(function, arguments) => {
                let arguments = arguments.iter().map(|argument| self.value(argument));
                (function.body)(self.context, &arguments.collect::<Result<Vec<_>, _>>()?)?
            }
            ExpressionKind::Negate(operand) => negated(&self.value(operand)?)?,
            ExpressionKind::Arithmetic(operator, parts) => {
                self.calculate(*operator, &self.value(&parts[0])?, &self.value(&parts[1])?)?
            }
            _ => RuleValue::Bool(self.test(expression)?),
        };
        // Some steps are spent by what cannot fail.
        self.context.budget.check()?;
        Ok(value)
    }

    /// The value of an expression that is a test.
    fn test(&self, expression: &'a Expression) -> Result<bool, Fault> {
        Ok(match &expression.kind {
            ExpressionKind::Not(operand) => !self.truth(operand)?,
            ExpressionKind::And(parts) => self.connect(parts, false)?,
            ExpressionKind::Or(parts) => self.connect(parts, true)?,
            ExpressionKind::Compare(comparison, parts) => {
                compare(*comparison, &self.value(&parts[0])?, &self.value(&parts[1])?, self.context.budget)?
            }
            ExpressionKind::In(parts) => self.is_in(&self.value(&parts[0])?, &self.value(&parts[1])?)?,
            ExpressionKind::Quantifier(quantifier, over) => self.quantify(*quantifier, over)?,
            ExpressionKind::Matches(text, pattern) => {
                let (text, pattern) = (self.value(text)?, &pattern.compiled);
                let text = self.readable(&text)?;
                self.context.budget.search(pattern.steps(text.len()), || pattern.decides(text))?
            }
            ExpressionKind::Glob(text, patterns) => {
                let (path, globs) = (self.value(text)?, &patterns.compiled);
                let path = self.readable(&path)?;
                let steps = globs.steps(path.len());
                self.context.budget.search(steps, || globs.decide(path))?
            }
            _ => truth(&self.value(expression)?)?,
        })
    }

    /// The value of an expression that must be a boolean.
    pub(super) fn truth(&self, expression: &'a Expression) -> Result<bool, EvaluationFailure> {
        let value = self.value(expression)?;
        truth(&value).map_err(|error| EvaluationFailure { error, place: expression.place })
    }

    fn named_value(&self, at: usize) -> Evaluated<'a> {
        let evaluated = || {
            // Its macros count their variables from the first.
            let locals = self.locals.take();
            let value = self.value(&self.named[at].expression);
            self.locals.replace(locals);
            value
        };
        self.values[at].get_or_init(evaluated).clone()
    }

    fn variable(&self, source: Source) -> Result<RuleValue<'a>, EvaluationError> {
        let facts = &self.context.facts;
        let found = match source {
            Source::Text(which) => facts.text(which).map(RuleValue::Text),
            Source::Part(target) => facts.part(target, self.context.budget).map(RuleValue::of_json),
        };
        found.ok_or_else(|| EvaluationError::NoSuchVariable(source.path()))
    }

    fn has(&self, source: Source) -> bool {
        match source {
            Source::Text(which) => self.context.facts.text(which).is_some(),
            Source::Part(target) => self.context.facts.has(target),
        }
    }

    /// `&&` and `||`: where one part decides, an error of another does not count, as CEL has it.
    fn connect(&self, parts: &'a [Expression], decisive: bool) -> Result<bool, EvaluationFailure> {
        let mut failed = None;
        for part in parts {
            match self.truth(part) {
                Ok(value) if value == decisive => return Ok(value),
                Ok(_) => {}
                Err(failure) if failure.error == EvaluationError::TooManySteps => return Err(failure),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        failed.map_or(Ok(!decisive), Err)
    }

    fn quantify(&self, quantifier: Quantifier, over: &'a Loop) -> Result<bool, Fault> {
        let (list, size) = self.looped(over)?;
        let decisive = quantifier == Quantifier::Exists;
        let mut failed = None;
        let mut holding = 0;
        for at in 0..size {
            match self.with_item(over, &list, at, |body| self.truth(body)) {
                Ok(value) if quantifier != Quantifier::ExistsOne && value == decisive => return Ok(value),
                Ok(value) => holding += usize::from(value),
                Err(failure) if failure.error == EvaluationError::TooManySteps => return Err(failure.into()),
                Err(failure) => failed = failed.or(Some(failure)),
            }
        }
        match (failed, quantifier) {
            (Some(failure), _) => Err(failure.into()),
            (None, Quantifier::ExistsOne) => Ok(holding == 1),
            (None, Quantifier::All | Quantifier::Exists) => Ok(!decisive),
        }
    }

    fn collect(&self, over: &'a Loop) -> Result<RuleValue<'a>, Fault> {
        let (list, size) = self.looped(over)?;
        let mut found = Vec::new();
        for at in 0..size {
            if let Some(filter) = &over.filter
                && !self.with_item(over, &list, at, |_| self.truth(filter))?
            {
                continue;
            }
            found.push(self.with_item(over, &list, at, |body| self.value(body))?);
        }
        Ok(RuleValue::List(found.into()))
    }

    fn looped(&self, over: &'a Loop) -> Result<(RuleValue<'a>, usize), Fault> {
        let list = self.value(&over.over)?;
        match list.size() {
            Some(size) if !matches!(list, RuleValue::Text(_)) => Ok((list, size)),
            _ => Err(EvaluationError::WrongType { found: list.kind(), wanted: "a list or a map" }.into()),
        }
    }

    /// Evaluates with an element of a list as the variable of a macro.
    fn with_item<T>(
        &self,
        over: &'a Loop,
        list: &RuleValue<'a>,
        at: usize,
        evaluate: impl FnOnce(&'a Expression) -> Result<T, EvaluationFailure>,
    ) -> Result<T, EvaluationFailure> {
        let item = list.item(at).unwrap_or(RuleValue::Null);
        self.locals.borrow_mut().truncate(over.depth);
        self.locals.borrow_mut().push(item);
        let value = evaluate(&over.body);
        self.locals.borrow_mut().truncate(over.depth);
        value
    }

    fn map(&self, entries: &'a [(Expression, Expression)]) -> Result<RuleValue<'a>, Fault> {
        let mut fields: Vec<(RuleString<'a>, RuleValue<'a>)> = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            let key = match self.value(key)? {
                RuleValue::Text(key) => key,
                other => {
                    return Err(EvaluationError::WrongType { found: other.kind(), wanted: "a string" }.into());
                }
            };
            fields.push((key, self.value(value)?));
        }
        Ok(RuleValue::Map(fields.into()))
    }

    fn calculate(
        &self,
        operator: Operator,
        left: &RuleValue<'a>,
        right: &RuleValue<'a>,
    ) -> Result<RuleValue<'a>, EvaluationError> {
        match (operator, left, right) {
            (Operator::Add, RuleValue::Text(one), RuleValue::Text(other)) => {
                self.context.budget.text_of(one.len() + other.len())?;
                Ok(RuleValue::Text([&**one, &**other].concat().into()))
            }
            (
                Operator::Add,
                RuleValue::List(_) | RuleValue::Json(_),
                RuleValue::List(_) | RuleValue::Json(_),
            ) => self.concatenated(left, right),
            _ => calculate_numbers(operator, left, right),
        }
    }

    fn concatenated(
        &self,
        left: &RuleValue<'a>,
        right: &RuleValue<'a>,
    ) -> Result<RuleValue<'a>, EvaluationError> {
        let mut items = Vec::new();
        for list in [left, right] {
            let wrong = EvaluationError::WrongType { found: list.kind(), wanted: "a list" };
            let size = list.size().filter(|_| list.is_list()).ok_or(wrong)?;
            self.context.budget.take(u64::try_from(size).unwrap_or(u64::MAX))?;
            items.extend((0..size).filter_map(|at| list.item(at)));
        }
        if items.len() > LONGEST_LIST {
            return Err(EvaluationError::TooLong);
        }
        Ok(RuleValue::List(items.into()))
    }

    fn is_in(&self, item: &RuleValue<'a>, of: &RuleValue<'a>) -> Result<bool, EvaluationError> {
        let size = of.size().filter(|_| !matches!(of, RuleValue::Text(_)));
        let wrong = EvaluationError::WrongType { found: of.kind(), wanted: "a list or a map" };
        let size = size.ok_or(wrong)?;
        let budget = self.context.budget;
        budget.spend_on_elements(size);
        Ok((0..size).any(|at| of.item(at).is_some_and(|found| found.equals(item, budget))))
    }

    /// A text whose reading is paid for.
    fn readable<'v>(&self, value: &'v RuleValue<'_>) -> Result<&'v str, EvaluationError> {
        match value {
            RuleValue::Text(text) => {
                self.context.budget.read(text.len())?;
                Ok(text)
            }
            other => Err(EvaluationError::WrongType { found: other.kind(), wanted: "a string" }),
        }
    }
}

/// Where the error of an expression arose.
enum Fault {
    Here(EvaluationError),
    /// In a part of it.
    Inside(EvaluationFailure),
}

impl From<EvaluationError> for Fault {
    fn from(error: EvaluationError) -> Self {
        Self::Here(error)
    }
}

impl From<EvaluationFailure> for Fault {
    fn from(failure: EvaluationFailure) -> Self {
        Self::Inside(failure)
    }
}
