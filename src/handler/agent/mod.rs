//! Agent hooks: a model with a system prompt that may read files of the workspace before it answers.

mod runner;
mod tools;

pub(crate) use runner::AgentRunner;
