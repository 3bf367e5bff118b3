//! The types of expressions, as they are known when a rule is loaded.

use std::{fmt, sync::Arc};

/// The type of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Type {
    /// Any JSON value: it is known when the rule is evaluated.
    Any,
    Null,
    Bool,
    Int,
    Double,
    String,
    List(Arc<Type>),
    /// An object of the event or one that the rule makes, with values of this type.
    Map(Arc<Type>),
    /// A command of a shell text.
    Command,
    /// A secret that was found in a text.
    Secret,
}

/// A field that each value of a type has.
pub(super) struct TypeField {
    pub(super) name: &'static str,
    pub(super) result: fn() -> Type,
}

const fn field(name: &'static str, result: fn() -> Type) -> TypeField {
    TypeField { name, result }
}

static COMMAND_FIELDS: [TypeField; 9] = [
    field("name", || Type::String),
    field("path", || Type::String),
    field("args", || Type::list(Type::String)),
    field("operands", || Type::list(Type::String)),
    field("text", || Type::String),
    field("via", || Type::list(Type::String)),
    field("input_from", || Type::String),
    field("writes", || Type::list(Type::String)),
    field("understood", || Type::Bool),
];

static SECRET_FIELDS: [TypeField; 2] = [field("kind", || Type::String), field("shown", || Type::String)];

impl Type {
    pub(super) fn list(of: Self) -> Self {
        Self::List(Arc::new(of))
    }

    pub(super) fn map(of: Self) -> Self {
        Self::Map(Arc::new(of))
    }

    /// The fields that each value of the type has; none for what has fields of its own or none.
    pub(super) fn fields(&self) -> &'static [TypeField] {
        match self {
            Self::Command => &COMMAND_FIELDS,
            Self::Secret => &SECRET_FIELDS,
            _ => &[],
        }
    }

    pub(super) fn is_number(&self) -> bool {
        matches!(self, Self::Any | Self::Int | Self::Double)
    }

    /// Whether a value of this type may be one of the other.
    pub(super) fn fits(&self, wanted: &Self) -> bool {
        match (self, wanted) {
            (Self::Any, _) | (_, Self::Any) => true,
            (Self::List(one), Self::List(other)) | (Self::Map(one), Self::Map(other)) => one.fits(other),
            (one, other) => one == other,
        }
    }

    /// Whether two values may be equal: numbers are, whatever their type.
    pub(super) fn is_comparable(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::List(one), Self::List(other)) | (Self::Map(one), Self::Map(other)) => {
                one.is_comparable(other)
            }
            (one, other) => one.fits(other) || one.is_number() && other.is_number(),
        }
    }

    /// The type of what may be either.
    pub(super) fn joined(&self, other: &Self) -> Self {
        match (self, other) {
            (one, other) if one == other => one.clone(),
            (Self::List(one), Self::List(other)) => Self::list(one.joined(other)),
            (Self::Map(one), Self::Map(other)) => Self::map(one.joined(other)),
            _ => Self::Any,
        }
    }
}

impl fmt::Display for Type {
    /// As a message names it, such as `a list of strings`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("any value"),
            Self::Null => f.write_str("null"),
            Self::Bool => f.write_str("a boolean"),
            Self::Int => f.write_str("an integer"),
            Self::Double => f.write_str("a double"),
            Self::String => f.write_str("a string"),
            Self::List(of) => match **of {
                Self::Any => f.write_str("a list"),
                Self::Bool => f.write_str("a list of booleans"),
                Self::Int => f.write_str("a list of integers"),
                Self::Double => f.write_str("a list of doubles"),
                Self::String => f.write_str("a list of strings"),
                Self::Command => f.write_str("a list of commands"),
                Self::Secret => f.write_str("a list of secrets"),
                Self::Null | Self::List(_) | Self::Map(_) => f.write_str("a list of lists or maps"),
            },
            Self::Map(_) => f.write_str("a map"),
            Self::Command => f.write_str("a command"),
            Self::Secret => f.write_str("a secret"),
        }
    }
}
