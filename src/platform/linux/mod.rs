//! The form of Linux.

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

/// What hookyard cannot promise on this system: nothing that it promises on any.
pub(crate) const LOST_PROMISES: &[&str] = &[];
