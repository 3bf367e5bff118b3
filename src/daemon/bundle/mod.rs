//! The signed bundle of this machine while the daemon runs: its server is asked for newer ones, and what is in force is
//! looked at again as time goes on.

mod clock;
mod copy;
mod fetch;
mod follow;
mod keeper;
mod schedule;

pub(super) use follow::follow;
pub(super) use keeper::BundleKeeper;
