//! One YAML or JSON document: its tree with spans, typed reading of it, and what is wrong with it.

mod error;
mod json;
mod node;
mod parse;
mod places;
mod read;
mod span;
#[cfg(test)]
mod tests;

pub(crate) use error::Mistake;
pub(crate) use json::without_comments;
pub(super) use json::{with_finite_numbers, without_trailing_commas};
pub(crate) use read::{Document, Mapping, Value};
pub(crate) use span::Span;
