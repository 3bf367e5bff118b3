//! The part of Python and JavaScript in which guards are written.

use std::rc::Rc;

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScriptStatement {
    Assign(String, ScriptExpression),
    /// `{ a, b } = x`.
    Unpack(Vec<String>, ScriptExpression),
    /// `x += y`.
    Append(String, ScriptExpression),
    If(Vec<(ScriptExpression, ScriptBlock)>, ScriptBlock),
    For(String, ScriptExpression, ScriptBlock),
    Define(String, Rc<ScriptFunction>),
    Return(Option<ScriptExpression>),
    Try {
        body: ScriptBlock,
        handler: ScriptBlock,
        catches: CaughtErrors,
    },
    Expression(ScriptExpression),
}

/// Statements, one after the other.
pub(super) type ScriptBlock = Vec<ScriptStatement>;

/// The errors that a script catches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CaughtErrors {
    /// All, also the end of the script.
    AndExits,
    All,
    /// Those of its input, which is always right.
    OfInput,
}

/// A function.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ScriptFunction {
    pub(super) parameters: Vec<String>,
    pub(super) body: ScriptBlock,
}

/// An expression.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum ScriptExpression {
    Text(String),
    Number(i64),
    Truth(bool),
    Nothing,
    List(Vec<ScriptExpression>),
    Object(Vec<(String, ScriptExpression)>),
    Name(String),
    Member(Box<ScriptExpression>, String),
    Index(Box<ScriptExpression>, Box<ScriptExpression>),
    Call(Box<ScriptExpression>, Vec<ScriptExpression>),
    Named(String, Box<ScriptExpression>),
    Not(Box<ScriptExpression>),
    And(Box<ScriptExpression>, Box<ScriptExpression>),
    Or(Box<ScriptExpression>, Box<ScriptExpression>),
    /// `??`.
    Otherwise(Box<ScriptExpression>, Box<ScriptExpression>),
    Equal(Box<ScriptExpression>, Box<ScriptExpression>),
    /// `a in b`.
    In(Box<ScriptExpression>, Box<ScriptExpression>),
    Add(Vec<ScriptExpression>),
    /// `one if condition else other`.
    Choice {
        condition: Box<ScriptExpression>,
        one: Box<ScriptExpression>,
        other: Box<ScriptExpression>,
    },
    Regex {
        source: String,
        flags: String,
    },
    Function(Rc<ScriptFunction>),
    /// `item for name in list`.
    Each {
        item: Box<ScriptExpression>,
        name: String,
        list: Box<ScriptExpression>,
    },
}

impl ScriptExpression {
    pub(super) fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }

    /// A name with its members, such as `sys.stdin.read`.
    pub(super) fn dotted(&self) -> Option<String> {
        match self {
            Self::Name(name) => Some(name.clone()),
            Self::Member(of, name) => Some(format!("{}.{name}", of.dotted()?)),
            // `require('fs')` is the module.
            Self::Call(callee, arguments) => match (callee.as_ref(), arguments.as_slice()) {
                (Self::Name(name), [Self::Text(module)]) if name == "require" => {
                    Some(module.trim_start_matches("node:").to_owned())
                }
                _ => None,
            },
            _ => None,
        }
    }
}
