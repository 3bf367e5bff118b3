//! The supervisor: publishes snapshots, spawns runs and pools, and restarts what dies. An event that finds its run's
//! actor does not meet it.

mod actor;
mod message;

pub(crate) use actor::{Supervisor, SupervisorArguments};
pub(crate) use message::{PublishedSnapshot, SpawnRunError, SupervisorMessage, WorkspaceSnapshots};
