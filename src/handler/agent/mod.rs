//! Agent hooks: a model with a role that may look around the workspace before it answers.

mod runner;
mod tools;

pub(crate) use runner::AgentRunner;
