//! What hookyard tells operators: every metric's name, and typed occurrences that emit them. The only place
//! that touches the `metrics` macros; refuses labels that are neither registered names nor closed sets.

#[cfg(feature = "daemon")]
mod exporter;
mod meters;
mod names;
mod occurrence;

/// The target of what is logged about single events, so that it can be asked for and left out.
pub(crate) const EVENTS: &str = "hookyard::events";

#[cfg(feature = "daemon")]
pub(crate) use exporter::Exporter;
pub(crate) use meters::{HookMeters, HttpClass, PatchResult};
pub(crate) use occurrence::{
    ActorRestarted, ConfigLoaded, EventAnswered, LateReply, Panicked, ProcessExit, ProcessLeak,
    ProcessRunning, ProcessesTerminating, Shed, ShedReason, ShedWhere, Spawned,
};
#[cfg(feature = "daemon")]
pub(crate) use occurrence::{ApiRequest, AuditDropped, StreamDropped};
