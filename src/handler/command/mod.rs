//! Command handlers: a process that gets the envelope on its standard input.

mod capture;
mod command_files;
mod direct;
mod environment;
mod group;
mod ledger;
#[cfg(feature = "daemon")]
mod lineage;
mod oneshot;
mod prespawn;
pub mod process;
mod reap;
mod runner;
pub mod sandbox;
mod spawn;
mod streams;
mod warm_pool;
mod worker;

#[cfg(feature = "cli")]
pub(crate) use direct::needs_no_shell;
pub(crate) use environment::BaseEnvironment;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use environment::TRACEPARENT;
#[cfg(feature = "cli")]
pub(crate) use environment::is_inside_hook;
#[cfg(feature = "daemon")]
pub(crate) use ledger::LockedLedger;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use ledger::mark_of_environment;
pub use ledger::{GroupLedger, LedgerError, Reaped};
#[cfg(feature = "daemon")]
pub(crate) use lineage::{AdoptedHooks, Lineage, is_own_mark, lineage};
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use reap::Adoption;
pub use reap::unreaped;
pub(crate) use runner::CommandRunner;
