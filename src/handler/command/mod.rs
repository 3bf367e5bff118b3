//! Command handlers: a process that gets the envelope on its standard input. Owns everything about processes;
//! refuses to read what they say, which is their dialect's part.

mod capture;
mod environment;
mod files;
mod group;
mod ledger;
mod oneshot;
mod prespawn;
pub mod process;
mod reap;
mod runner;
mod spawn;
mod standing;
mod streams;
mod worker;

pub(crate) use environment::BaseEnvironment;
#[cfg(feature = "cli")]
pub(crate) use environment::{OF_A_HOOK, TRACEPARENT};
pub use ledger::{GroupLedger, LedgerError, Reaped};
pub use reap::dying;
pub(crate) use runner::{CommandLimits, CommandRunner};
