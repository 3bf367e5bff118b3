//! Command handlers: a process that gets the envelope on its standard input. Owns everything about processes;
//! refuses to read what they say, which is their dialect's part.

mod capture;
mod environment;
mod group;
mod oneshot;
pub mod process;
mod reap;
mod spawn;
mod streams;

pub(crate) use environment::BaseEnvironment;
pub(crate) use oneshot::{CommandLimits, CommandRunner};
pub use reap::dying;
