//! What expressions of a script are, and where one way through it is.

use std::{collections::BTreeMap, rc::Rc};

use super::ast::ScriptFunction;
use crate::cli::guard::{
    paths::ScriptPath,
    text::{FieldTest, GuardField, GuardText, Unclear},
};

/// A value.
#[derive(Debug, Clone)]
pub(super) enum ScriptValue {
    /// The text of all of the input, or a list of its parts.
    Input,
    /// The input, or an object in it, by its keys.
    Part(Vec<String>),
    Field(GuardField),
    Text(GuardText),
    Number(i64),
    Condition(ScriptCondition),
    Nothing,
    List(Vec<ScriptValue>),
    Object(Vec<(String, ScriptValue)>),
    /// A pattern that is not bound to a text.
    Pattern {
        source: String,
        is_case_ignored: bool,
    },
    Function(Rc<ScriptFunction>),
    /// What nothing may be asked of.
    Opaque,
}

/// Something that is true or not.
#[derive(Debug, Clone)]
pub(super) enum ScriptCondition {
    Known(bool),
    Test(GuardField, FieldTest),
    Not(Box<ScriptCondition>),
    Both(Box<ScriptCondition>, Box<ScriptCondition>),
    Either(Box<ScriptCondition>, Box<ScriptCondition>),
}

/// How a block goes on.
#[derive(Debug, Clone, Default)]
pub(super) enum ScriptFlow {
    #[default]
    On,
    Returned(Option<Box<ScriptValue>>),
    Failed,
}

/// Where one way through a script is.
#[derive(Debug, Clone, Default)]
pub(super) struct ScriptState {
    pub(super) path: ScriptPath,
    pub(super) variables: BTreeMap<String, ScriptValue>,
    pub(super) flow: ScriptFlow,
    pub(super) deferred: Option<Rc<ScriptFunction>>,
}

/// The ways on from a condition.
#[derive(Debug, Default)]
pub(super) struct ScriptBranches {
    pub(super) holds: Vec<ScriptState>,
    pub(super) fails: Vec<ScriptState>,
}

pub(super) type Ways = Result<Vec<ScriptState>, Unclear>;

impl ScriptState {
    pub(super) fn goes_on(&self) -> bool {
        self.path.end.is_none() && matches!(self.flow, ScriptFlow::On)
    }

    pub(super) fn with_path(&self, path: ScriptPath) -> Self {
        Self { path, ..self.clone() }
    }
}

impl ScriptCondition {
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Known(is) => Self::Known(!is),
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    pub(super) fn both(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(true), other) | (other, Self::Known(true)) => other,
            (Self::Known(false), _) => Self::Known(false),
            (one, other) => Self::Both(Box::new(one), Box::new(other)),
        }
    }

    pub(super) fn either(self, other: Self) -> Self {
        match (self, other) {
            (Self::Known(false), other) | (other, Self::Known(false)) => other,
            (Self::Known(true), _) => Self::Known(true),
            (one, other) => Self::Either(Box::new(one), Box::new(other)),
        }
    }
}

impl ScriptValue {
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(GuardText::literal(text))
    }

    pub(super) fn known_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => text.known(),
            _ => None,
        }
    }
}
