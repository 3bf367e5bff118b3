//! Rules: expressions in CEL that judge an event in process. They are checked when they are loaded, read nothing but the
//! event, and end within a number of steps.
//!
//! The language is the Common Expression Language, without messages, bytes and unsigned numbers, and with the functions of
//! [`functions`].

mod budget;
mod calls;
mod compile;
mod constants;
mod context;
mod cost;
mod doubts;
mod evaluate;
mod expression;
mod facts;
mod failure;
mod file_fact;
mod functions;
mod globs;
mod hook_rule;
mod json_tree;
mod led_commands;
mod link_needs;
mod loop_form;
mod mistake;
mod named_paths;
mod operation;
mod operators;
mod paths;
mod processor_time;
mod ranges;
#[cfg(feature = "rego")]
pub(crate) mod rego;
mod rule_set;
mod scope;
mod secrets;
mod shell;
mod situation;
mod syntax;
#[cfg(test)]
mod tests;
mod texts;
mod tokens;
#[cfg(any(feature = "cli", feature = "daemon"))]
mod trace;
mod tree;
mod types;
mod value;
mod variables;
mod walks;
mod words;

pub(crate) use hook_rule::{RuleDecision, RuleText};
pub(crate) use mistake::{RuleHelp, RuleMistake};
pub(crate) use named_paths::named_paths;
#[cfg(feature = "rego")]
pub(crate) use paths::normalized as normalized_path;
pub(crate) use rule_set::RuleSet;
