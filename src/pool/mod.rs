//! Bounded places to run handlers. Owns queues, limits and what becomes of work that does not fit; hides the
//! factory's type parameters. Refuses to know runs or verdicts.

mod command;
mod job;
mod native;

use std::sync::Arc;

pub(crate) use command::{CommandPool, CommandPoolSettings, Factory};
pub(crate) use job::{Class, Job, ReplyPort};
pub(crate) use native::NativePool;

/// The pools of one orchestrator.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    pub(crate) command: Arc<CommandPool>,
    pub(crate) native: NativePool,
}
