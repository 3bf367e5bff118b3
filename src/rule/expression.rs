//! Expressions as they are evaluated: checked, with every name resolved and every pattern compiled.

use super::{functions::Function, globs::Globs, mistake::TextPlace, types::Type, variables::Source};
use crate::model::Matcher;

/// One expression.
pub(super) struct Expression {
    pub(super) kind: ExpressionKind,
    pub(super) result: Type,
    pub(super) place: TextPlace,
}

/// An expression with a name.
pub(super) struct NamedExpression {
    pub(super) name: Box<str>,
    pub(super) expression: Expression,
    pub(super) ahead: KnownAhead,
}

/// What is known of a named expression before there is an event. It is found once, since those that use it may use it often.
pub(super) struct KnownAhead {
    /// Its value in each situation.
    pub(super) values: Box<[Option<Literal>]>,
    /// The integers that it may be.
    pub(super) range: Option<IntegerRange>,
    /// How much of it is as the sender of the event wrote it.
    pub(super) sent: Option<SentValue>,
}

/// The least and the greatest integer that an expression may be.
pub(super) type IntegerRange = (i128, i128);

/// A value as the sender of the event wrote it, whatever its length.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum SentValue {
    /// A whole part of the event, by its name.
    Whole(&'static str),
    /// A value in one, or the lines or parts of a text.
    Inside,
}

impl Expression {
    /// The named expressions that it uses itself, by their number.
    pub(super) fn named(&self) -> &[usize] {
        match &self.kind {
            ExpressionKind::Let(at) => std::slice::from_ref(at),
            ExpressionKind::Matches(_, pattern) => &pattern.named,
            ExpressionKind::Glob(_, patterns) => &patterns.named,
            _ => &[],
        }
    }

    /// The expressions in it.
    pub(super) fn parts(&self) -> Vec<&Self> {
        match &self.kind {
            ExpressionKind::Literal(_)
            | ExpressionKind::Variable(_)
            | ExpressionKind::HasVariable(_)
            | ExpressionKind::Fact(_)
            | ExpressionKind::Let(_)
            | ExpressionKind::Local(_) => Vec::new(),
            ExpressionKind::Field(operand, _)
            | ExpressionKind::HasField(operand, _)
            | ExpressionKind::Not(operand)
            | ExpressionKind::Negate(operand)
            | ExpressionKind::Matches(operand, _)
            | ExpressionKind::Glob(operand, _) => vec![operand],
            ExpressionKind::And(parts)
            | ExpressionKind::Or(parts)
            | ExpressionKind::List(parts)
            | ExpressionKind::Call(_, parts) => parts.iter().collect(),
            ExpressionKind::Element(parts)
            | ExpressionKind::Compare(_, parts)
            | ExpressionKind::In(parts)
            | ExpressionKind::Arithmetic(_, parts) => parts.iter().collect(),
            ExpressionKind::Conditional(parts) => parts.iter().collect(),
            ExpressionKind::Map(entries) => entries.iter().flat_map(|(key, value)| [key, value]).collect(),
            ExpressionKind::Quantifier(_, over) | ExpressionKind::Collect(over) => {
                [&over.over, &over.body].into_iter().chain(&over.filter).collect()
            }
        }
    }
}

pub(super) enum ExpressionKind {
    Literal(Literal),
    Variable(Source),
    /// Whether the event has a variable.
    HasVariable(Source),
    /// What a file has that the rule was loaded with.
    Fact(usize),
    /// A named expression of the rule.
    Let(usize),
    /// The variable of a macro, by its depth.
    Local(usize),
    Field(Box<Expression>, Box<str>),
    HasField(Box<Expression>, Box<str>),
    Element(Box<[Expression; 2]>),
    Not(Box<Expression>),
    Negate(Box<Expression>),
    And(Box<[Expression]>),
    Or(Box<[Expression]>),
    Compare(Comparison, Box<[Expression; 2]>),
    Arithmetic(Operator, Box<[Expression; 2]>),
    In(Box<[Expression; 2]>),
    /// Condition, and the results if it is true and false.
    Conditional(Box<[Expression; 3]>),
    List(Box<[Expression]>),
    Map(Box<[(Expression, Expression)]>),
    Quantifier(Quantifier, Box<Loop>),
    /// `map` and `filter`.
    Collect(Box<Loop>),
    Call(&'static Function, Box<[Expression]>),
    Matches(Box<Expression>, Box<KnownPattern<Matcher>>),
    Glob(Box<Expression>, Box<KnownPattern<Globs>>),
}

/// A pattern that was compiled when the rule was loaded.
pub(super) struct KnownPattern<T> {
    pub(super) compiled: T,
    /// The named expressions that it was made of.
    pub(super) named: Box<[usize]>,
}

/// A constant.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Literal {
    Null,
    Bool(bool),
    Int(i64),
    Double(f64),
    Text(Box<str>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Comparison {
    /// The same with the sides exchanged.
    pub(super) fn mirrored(self) -> Self {
        match self {
            Self::Less => Self::Greater,
            Self::LessOrEqual => Self::GreaterOrEqual,
            Self::Greater => Self::Less,
            Self::GreaterOrEqual => Self::LessOrEqual,
            Self::Equal | Self::NotEqual => self,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

/// What must hold for the elements of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Quantifier {
    All,
    Exists,
    ExistsOne,
}

/// A macro that goes through a list, or the keys of a map.
pub(super) struct Loop {
    pub(super) over: Expression,
    /// The depth of its variable.
    pub(super) depth: usize,
    /// Which elements are taken, for `filter` and `map` with three arguments.
    pub(super) filter: Option<Expression>,
    pub(super) body: Expression,
}
