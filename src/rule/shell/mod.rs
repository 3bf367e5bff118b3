//! The commands that a shell runs for a text, found without running it.
//!
//! A shell is a program that takes texts apart in many ways. What is read here is the language of bash; where `sh`,
//! dash, ksh and zsh agree with it, it is theirs too. Whatever is not read with certainty makes the answer
//! `understood: false`: a guard can then ask, or deny.

mod braces;
mod command;
mod commands;
mod grammar;
mod list;
mod piece;
mod quotes;
mod reader;
mod run;
mod session;
mod simple;
mod substitutions;
#[cfg(test)]
mod tests;
mod word;
mod wrappers;

pub(super) use command::{LONGEST_TEXT, ShellCommand};
#[cfg(test)]
use command::{MOST_COMMANDS, ShellCommands};
pub(super) use commands::commands;
