//! Bounded places to run handlers. Owns queues, limits and what becomes of work that does not fit; hides the
//! factory's type parameters. Refuses to know runs or verdicts.

mod job;
mod native;
mod workers;

use std::sync::Arc;

pub(crate) use job::{Class, Job, ReplyPort};
pub(crate) use native::NativePool;
pub(crate) use workers::{Pool, PoolBounds};

use crate::model::{Conclusion, Ended, HandlerKind};

/// The pools of one orchestrator.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    /// The pools with workers, which have to be started and may die; one for each kind of handler.
    pub(crate) staffed: Arc<[Pool]>,
    /// The pool of native hooks, which needs no workers.
    pub(crate) native: NativePool,
}

impl Pools {
    /// The pool with workers for a kind of handler.
    pub(crate) fn of(&self, kind: HandlerKind) -> Option<&Pool> {
        self.staffed.iter().find(|pool| pool.kind() == kind)
    }

    /// Hands a job to the pool for its handler. It always concludes.
    pub(crate) fn submit(&self, job: Job) {
        let kind = job.invocation.hook.hook.handler.kind();
        match self.of(kind) {
            Some(pool) => pool.submit(job),
            None => {
                job.reply.send(Conclusion::not_run(Ended::SpawnFailed, format!("there is no {kind} pool")));
            }
        }
    }
}
