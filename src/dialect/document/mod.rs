//! One YAML or JSON document whose mistakes have places: what it holds, how it is read, what is wrong with it.

mod grow;
mod json;
mod mistake;
mod place;
mod read;

pub(crate) use mistake::Mistake;
pub(crate) use place::Spot;
pub(crate) use read::{Document, Mapping, Value};
