//! Why an expression has no value.

use super::mistake::TextPlace;
use crate::model::LinkGap;

/// Why an expression has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum EvaluationError {
    /// The event lacks what the rule reads.
    #[error("the event has no `{0}`")]
    NoSuchVariable(&'static str),
    /// An object lacks a field.
    #[error("there is no field `{0}`")]
    NoSuchField(Box<str>),
    /// A list is shorter.
    #[error("the list has no element {0}")]
    NoSuchElement(i64),
    /// A value has another type than the expression needs.
    #[error("{found} stands where the rule needs {wanted}")]
    WrongType {
        /// What it is.
        found: &'static str,
        /// What is needed.
        wanted: &'static str,
    },
    /// A number does not fit.
    #[error("a number is too large")]
    Overflow,
    /// A division by zero.
    #[error("a division by zero")]
    DivisionByZero,
    /// A text is no number.
    #[error("the text is no number")]
    NoNumber,
    /// A value has no JSON form.
    #[error("a map has one key twice")]
    NoJson,
    /// A text or a list is too long.
    #[error("a text or a list is too long")]
    TooLong,
    /// A path in a home directory, which is not known here.
    #[error("the path begins with `~`, and whose home that is is not known")]
    UnknownHome,
    /// The links of a path are not known.
    #[error("where the links of {path:?} lead is not known: {gap}")]
    UnknownLinks {
        /// The path, or its beginning.
        path: Box<str>,
        /// Why.
        gap: LinkGap,
    },
    /// A run has too many keys.
    #[error("the hook counts too many keys in this run, or a key is too long")]
    TooManyKeys,
    /// The rule has used up its steps.
    #[error("the rule takes too many steps")]
    TooManySteps,
}

/// Why a rule has no verdict, and which part of an expression it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EvaluationFailure {
    /// What is wrong.
    pub(super) error: EvaluationError,
    /// Where in the expression.
    pub(super) place: TextPlace,
}
