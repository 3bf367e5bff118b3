//! Policies in Rego that judge an event in process. They are checked when they are loaded, read nothing but the event and
//! their own files, and end within a number of steps.
//!
//! The interpreter is that of the crate `regorus`, in the form of OPA 1; a policy in the older form is read as such.

mod answer;
mod bounded;
mod budget;
mod builtins;
mod compile;
mod document;
mod engine;
mod evaluator;
mod graph;
mod mistake;
mod native;
mod package;
mod policy;
mod routing;
mod size;
mod source;
mod syntax;
#[cfg(test)]
mod tests;
#[cfg(any(feature = "cli", feature = "daemon"))]
mod trace;
mod verb;

pub(crate) use compile::{PolicyRules, compile};
pub(crate) use mistake::PolicyMistake;
pub(crate) use policy::{InputField, PolicyInput};
pub(crate) use source::PolicySource;
