//! The supervisor: owns the registry, spawns runs and pools, and restarts what dies. Refuses to read files, to
//! run hooks and to stand on the path of an event that finds its run's actor.

mod actor;
mod message;

pub(crate) use actor::{Supervisor, SupervisorArguments};
pub(crate) use message::{PublishedSnapshot, SpawnRunError, SupervisorMessage, WorkspaceSnapshots};
