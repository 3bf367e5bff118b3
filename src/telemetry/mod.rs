//! What hookyard tells operators: every metric's name, and typed occurrences that emit them. The only place
//! that touches the `metrics` macros; refuses labels that are neither registered names nor closed sets.

mod meters;
mod names;
mod occurrence;

pub(crate) use meters::{HookMeters, HttpClass, PatchResult};
pub(crate) use occurrence::{
    ActorRestarted, EventAnswered, LateReply, Panicked, ProcessExit, ProcessLeak, ProcessRunning,
    ProcessesTerminating, Shed, ShedReason, ShedWhere, Spawned,
};
