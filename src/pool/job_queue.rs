//! The queue of a pool's factory, and what becomes of the jobs that the factory discards.

use std::sync::{Arc, atomic::Ordering};

use ractor::factory::{self, DiscardHandler, DiscardReason, queues::Queue};

use super::{
    job::{Job, JobKey},
    load::PoolLoad,
    wait_queue::WaitQueue,
};
use crate::{
    model::{Conclusion, Ended, HandlerKind},
    telemetry::{ShedReason, ShedStage},
};

type FactoryJob = factory::Job<JobKey, Job>;

/// Jobs that wait for a worker.
pub(super) struct JobQueue {
    waiting: WaitQueue<FactoryJob>,
    load: Arc<PoolLoad>,
}

impl JobQueue {
    pub(super) fn new(load: Arc<PoolLoad>) -> Self {
        Self { waiting: WaitQueue::default(), load }
    }

    /// Publishes how many jobs wait.
    fn update_load(&self) {
        self.load.waiting.store(self.len(), Ordering::Relaxed);
    }
}

impl Drop for JobQueue {
    fn drop(&mut self) {
        self.load.waiting.store(0, Ordering::Relaxed);
    }
}

impl Queue<JobKey, Job> for JobQueue {
    fn len(&self) -> usize {
        self.waiting.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn pop_front(&mut self) -> Option<FactoryJob> {
        let first = self.waiting.pop();
        self.update_load();
        first
    }

    /// Called when the queue is too long; which job goes is [`WaitQueue::shed`]'s choice.
    fn discard_oldest(&mut self) -> Option<FactoryJob> {
        let discarded = self.waiting.shed(|job| job.msg.cancel.is_cancelled());
        self.update_load();
        discarded
    }

    fn peek(&self) -> Option<&FactoryJob> {
        self.waiting.peek()
    }

    fn push_back(&mut self, job: FactoryJob) {
        self.waiting.push(job.key.class, job);
        self.update_load();
    }

    fn remove_expired_items(&mut self, handler: &Option<Arc<dyn DiscardHandler<JobKey, Job>>>) -> usize {
        let before = self.len();
        self.waiting.retain_mut(|job| {
            let expired = job.is_expired() || job.msg.cancel.is_cancelled();
            if let Some(handler) = handler.as_ref().filter(|_| expired) {
                handler.discard(DiscardReason::TtlExpired, job);
            }
            !expired
        });
        self.update_load();
        before - self.len()
    }
}

/// Concludes the jobs that the factory discards.
pub(super) struct ShedJobs {
    pub(super) kind: HandlerKind,
    pub(super) load: Arc<PoolLoad>,
}

impl DiscardHandler<JobKey, Job> for ShedJobs {
    fn discard(&self, reason: DiscardReason, job: &mut FactoryJob) {
        // Before the conclusion, so that a host that has its answer finds the permit free.
        drop(job.msg.invocation.permit.take());
        // Cancelled jobs leave the queue together with expired ones, but nothing was shed.
        if job.msg.cancel.is_cancelled() {
            return job.msg.reply.deliver(Conclusion::cancelled());
        }
        let kind = self.kind;
        let (reason, message) = match reason {
            DiscardReason::TtlExpired => {
                (ShedReason::Deadline, format!("it waited too long for a place in the {kind} pool"))
            }
            DiscardReason::Shutdown => (ShedReason::Shutdown, format!("the {kind} pool is shutting down")),
            DiscardReason::Loadshed | DiscardReason::RateLimited => {
                (ShedReason::Full, format!("the queue of the {kind} pool is full"))
            }
        };
        self.load.meters.shed(ShedStage::Pool, reason);
        let shed = Conclusion::not_run(Ended::Shed, message).after_wait(job.msg.submitted.elapsed());
        job.msg.reply.deliver(shed);
    }
}
