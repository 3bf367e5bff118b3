//! Bounded pools that run handlers: queues, limits of single hooks, and what is shed.

mod hook_limit;
mod job;
mod job_queue;
mod load;
mod native;
mod stderr_log;
mod wait_queue;
mod workers;

use std::{path::Path, sync::Arc};

pub(crate) use hook_limit::HookLimits;
pub(crate) use job::{Job, JobClass, ReplyPort};
pub(crate) use native::{NativeTask, NativeTaskPool};
pub(crate) use workers::{Pool, PoolLimits};

use hook_limit::QueueLimits;

use crate::{
    model::{Conclusion, Ended, HandlerKind},
    registry::RegisteredHook,
};

/// The pools of one orchestrator.
#[derive(Debug, Clone)]
pub(crate) struct HandlerPools {
    /// One pool with workers for each kind of handler but native. They have to be started and may die.
    pub(crate) staffed: Arc<[Pool]>,
    /// The pool of native hooks, which needs no workers.
    pub(crate) native: NativeTaskPool,
    /// The limits of hooks with a `max_concurrency`.
    pub(crate) hook_limits: Arc<HookLimits>,
}

impl HandlerPools {
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
        let PoolLimits { queue, queue_deadline: deadline, .. } = pool.bounds();
        let Some(limit) = self.hook_limits.of(&job.invocation.root, &job.invocation.hook) else {
            return pool.submit(job, deadline);
        };
        let Job { class, submitted, invocation, cancel, reply } = job;
        let (pools, cancelled) = (self.clone(), cancel.clone());
        limit.pass(class, cancelled, QueueLimits { queue, deadline }, reply, move |reply, left| {
            if let Some(pool) = pools.of(kind) {
                pool.submit(Job { class, submitted, invocation, cancel, reply }, left);
            }
        });
    }

    /// Runs the future of a native hook. It always concludes.
    pub(crate) fn submit_task(&self, root: &Path, class: JobClass, task: NativeTask) {
        let deadline = self.native.queue_deadline();
        let Some(limit) = self.hook_limits.of(root, &task.hook) else {
            return self.native.submit(task, deadline);
        };
        let NativeTask { submitted, hook, make, draft, cancel, reply } = task;
        let (native, cancelled) = (self.native.clone(), cancel.clone());
        // The queue of the native pool is unbounded, so this one is too.
        limit.pass(
            class,
            cancelled,
            QueueLimits { queue: usize::MAX, deadline },
            reply,
            move |reply, left| {
                native.submit(NativeTask { submitted, hook, make, draft, cancel, reply }, left);
            },
        );
    }

    /// Updates the gauges of all pools.
    pub(crate) fn sample(&self) {
        self.native.sample();
        self.staffed.iter().for_each(Pool::sample);
    }

    /// Tells the pools which hooks a workspace has now.
    pub(crate) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.hook_limits.reloaded(root, hooks);
        self.native.reloaded(hooks);
        for pool in self.staffed.iter() {
            pool.reloaded(root, hooks);
        }
    }
}
