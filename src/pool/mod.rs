//! Bounded places to run handlers. Owns queues, limits, the gates of single hooks and what becomes of work that does
//! not fit; hides the factory's type parameters. Refuses to know runs or verdicts.

mod gate;
mod job;
mod log;
mod native;
mod workers;

use std::{path::Path, sync::Arc};

pub(crate) use gate::Gates;
pub(crate) use job::{Class, Job, ReplyPort};
pub(crate) use native::{NativePool, Task};
pub(crate) use workers::{Pool, PoolBounds};

use gate::Patience;

use crate::{
    model::{Conclusion, Ended, HandlerKind},
    registry::Registered,
};

/// The pools of one orchestrator.
#[derive(Debug, Clone)]
pub(crate) struct Pools {
    /// The pools with workers, which have to be started and may die; one for each kind of handler.
    pub(crate) staffed: Arc<[Pool]>,
    /// The pool of native hooks, which needs no workers.
    pub(crate) native: NativePool,
    /// What keeps single hooks from taking all places of their pool.
    pub(crate) gates: Arc<Gates>,
}

impl Pools {
    /// The pool with workers for a kind of handler.
    pub(crate) fn of(&self, kind: HandlerKind) -> Option<&Pool> {
        self.staffed.iter().find(|pool| pool.kind() == kind)
    }

    /// Hands a job to the pool for its handler. It always concludes.
    pub(crate) fn submit(&self, job: Job) {
        let kind = job.invocation.hook.hook.handler.kind();
        let Some(pool) = self.of(kind) else {
            let conclusion = Conclusion::not_run(Ended::SpawnFailed, format!("there is no {kind} pool"));
            return job.reply.send(conclusion);
        };
        let PoolBounds { queue, queue_deadline: deadline, .. } = pool.bounds();
        let Some(gate) = self.gates.of(&job.invocation.root, &job.invocation.hook) else {
            return pool.submit(job, deadline);
        };
        let Job { class, submitted, invocation, cancel, reply } = job;
        let (pools, cancelled) = (self.clone(), cancel.clone());
        gate.pass(class, cancelled, Patience { queue, deadline }, reply, move |reply, left| {
            if let Some(pool) = pools.of(kind) {
                pool.submit(Job { class, submitted, invocation, cancel, reply }, left);
            }
        });
    }

    /// Runs the future of a native hook. It always concludes.
    pub(crate) fn submit_task(&self, root: &Path, class: Class, task: Task) {
        let deadline = self.native.queue_deadline();
        let Some(gate) = self.gates.of(root, &task.hook) else {
            return self.native.submit(task, deadline);
        };
        let Task { submitted, hook, make, draft, cancel, reply } = task;
        let (native, cancelled) = (self.native.clone(), cancel.clone());
        // As many may wait as for the pool itself: it has no bound.
        gate.pass(class, cancelled, Patience { queue: usize::MAX, deadline }, reply, move |reply, left| {
            native.submit(Task { submitted, hook, make, draft, cancel, reply }, left);
        });
    }

    /// Has the metrics say how full the pools are now.
    pub(crate) fn sample(&self) {
        self.native.sample();
        self.staffed.iter().for_each(Pool::sample);
    }

    /// Tells the pools which hooks a workspace has now.
    pub(crate) fn reloaded(&self, root: &Path, hooks: &[Arc<Registered>]) {
        self.gates.reloaded(root, hooks);
        self.native.reloaded(hooks);
        for pool in self.staffed.iter() {
            pool.reloaded(root, hooks);
        }
    }
}
