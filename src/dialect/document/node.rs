//! The tree of a document: values with the spans at which they are written.

use std::rc::Rc;

use super::span::Span;

/// One value, and where it is written.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Node {
    pub(super) value: NodeValue,
    pub(super) span: Span,
}

/// The value. Copies share their contents, so that an alias costs nothing.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NodeValue {
    Null,
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(Rc<str>),
    List(Rc<[Node]>),
    Mapping(Rc<[MappingEntry]>),
}

/// A key of a mapping with its value.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct MappingEntry {
    pub(super) key: String,
    pub(super) key_span: Span,
    pub(super) node: Node,
}

impl Node {
    /// How many lists and mappings are in each other in it, itself included.
    pub(super) fn height(&self) -> usize {
        let highest = match &self.value {
            NodeValue::List(items) => items.iter().map(Self::height).max(),
            NodeValue::Mapping(entries) => entries.iter().map(|entry| entry.node.height()).max(),
            _ => return 0,
        };
        highest.unwrap_or(0) + 1
    }
}

impl NodeValue {
    /// What kind of value this is, as a message names it.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Null => "nothing",
            Self::Bool(_) => "a boolean",
            Self::Integer(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a string",
            Self::List(_) => "a list",
            Self::Mapping(_) => "a mapping",
        }
    }
}
