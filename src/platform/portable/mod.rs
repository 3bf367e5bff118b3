//! The form of every Unix. What not every one can do is refused here, and callers say what that means.

mod cgroup;
mod files;
mod machine;
mod processes;
mod sandbox;
mod sockets;
#[cfg(feature = "daemon")]
mod watcher;

pub(crate) use cgroup::*;
pub(crate) use files::*;
pub(crate) use machine::*;
pub(crate) use processes::*;
pub(crate) use sandbox::*;
pub(crate) use sockets::*;
#[cfg(feature = "daemon")]
pub(crate) use watcher::*;

/// What hookyard cannot promise on this system.
pub(crate) const LOST_PROMISES: &[&str] = &[
    "hooks cannot be kept from files and the network: a sandbox that is required, or has no network, starts nothing",
    "what hooks leave is not adopted: what left its group and took the mark from its environment goes on, and may control \
     the daemon",
    "the memory of the daemon is as open to hooks as the system leaves it",
    "changed hook files are found by looking, twice a second",
];
