//! One YAML or JSON document whose mistakes have places: what it holds, how it is read, what is wrong with it.

mod json;
mod mistake;
mod parse;
mod read;
mod span;

pub(crate) use mistake::Mistake;
pub(crate) use read::{Document, Mapping, Value};
pub(crate) use span::Span;
