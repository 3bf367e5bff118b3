//! Bounded pools that run handlers: queues, limits of single hooks, and what is shed.

mod hook_limit;
mod job;
mod job_queue;
mod native;
mod places;
mod wait_queue;
mod workers;

use std::{path::Path, sync::Arc};

pub(crate) use hook_limit::HookLimits;
pub(crate) use job::{Job, ReplyPort};
pub(crate) use native::{NativeTask, NativeTaskPool};
pub(crate) use places::JobClass;
pub(crate) use workers::{Pool, PoolLimits};

use hook_limit::{PermitTurn, QueueLimits, Waiting};

#[cfg(feature = "daemon")]
use crate::telemetry::PoolOccupancy;
use crate::{
    handler::HookWorkers,
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
        let capacity = || pool.capacity(&job.invocation);
        let Some(limit) = self.hook_limits.of_invocation(&job.invocation, capacity) else {
            return pool.submit(job, deadline);
        };
        let Job { class, submitted, mut invocation, cancel, reply, place, placeless } = job;
        let limits = QueueLimits { queue, deadline };
        let waiting = Waiting { class, submitted, cancel: cancel.clone(), limits };
        let pools = self.clone();
        limit.pass(waiting, reply, move |PermitTurn { permit, reply, left }| {
            if let Some(pool) = pools.of(kind) {
                // With the invocation, so that a worker holds it until it has answered, even to nobody.
                invocation.permit = Some(Arc::new(permit));
                pool.submit(Job { class, submitted, invocation, cancel, reply, place, placeless }, left);
            }
        });
    }

    /// Runs the future of a native hook. It always concludes.
    pub(crate) fn submit_task(&self, root: &Path, task: NativeTask) {
        let limits = self.native.queue_limits();
        let Some(limit) = self.hook_limits.of_task(root, &task.hook) else {
            return self.native.submit(task, limits);
        };
        let NativeTask { class, submitted, hook, make, draft, cancel, reply } = task;
        let native = self.native.clone();
        let waiting = Waiting { class, submitted, cancel: cancel.clone(), limits };
        limit.pass(waiting, reply, move |PermitTurn { permit, reply, left }| {
            let reply = permit.until_concluded(reply);
            let left = QueueLimits { deadline: left, ..limits };
            native.submit(NativeTask { class, submitted, hook, make, draft, cancel, reply }, left);
        });
    }

    /// Updates the gauges of all pools.
    pub(crate) fn sample(&self) {
        self.native.sample();
        self.staffed.iter().for_each(Pool::sample);
    }

    /// How much of each pool is in use, that of native hooks last.
    #[cfg(feature = "daemon")]
    pub(crate) fn occupancies(&self) -> Vec<(HandlerKind, PoolOccupancy)> {
        let staffed = self.staffed.iter().map(|pool| (pool.kind(), pool.occupancy()));
        staffed.chain([(HandlerKind::Native, self.native.occupancy())]).collect()
    }

    /// The workers of each hook that has any.
    pub(crate) fn hook_workers(&self) -> Vec<HookWorkers> {
        self.staffed.iter().flat_map(Pool::hook_workers).collect()
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
