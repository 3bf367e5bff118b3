//! How a pool's factory gives places to jobs, the queue of those that wait, and what becomes of those that it discards.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use ractor::{
    ActorProcessingErr,
    factory::{
        self, DiscardHandler, DiscardReason, WorkerId, WorkerProperties,
        queues::Queue,
        routing::{QueuerRouting, RouteResult, Router},
    },
};

use super::{
    job::{Job, JobKey},
    places::{JobClass, Place, PoolLoad},
    wait_queue::WaitQueue,
};
use crate::{
    model::{Conclusion, Ended, HandlerKind},
    telemetry::{ShedReason, ShedStage},
};

type FactoryJob = factory::Job<JobKey, Job>;

/// Gives a job to a worker that is free, if there is a place for its class.
pub(super) struct PlaceRouter {
    free: QueuerRouting<JobKey, Job>,
    load: Arc<PoolLoad>,
    /// The place for the job whose worker was chosen last: jobs outside of the factory take places, too.
    reserved: Option<Place>,
}

impl PlaceRouter {
    pub(super) fn new(load: Arc<PoolLoad>) -> Self {
        Self { free: QueuerRouting::default(), load, reserved: None }
    }
}

impl Router<JobKey, Job> for PlaceRouter {
    fn route_message(
        &mut self,
        mut job: FactoryJob,
        pool_size: usize,
        worker_hint: Option<WorkerId>,
        worker_pool: &mut HashMap<WorkerId, WorkerProperties<JobKey, Job>>,
    ) -> Result<RouteResult<JobKey, Job>, ActorProcessingErr> {
        let chosen = self.choose_target_worker(&job, pool_size, worker_hint, worker_pool);
        let place = self.reserved.take();
        let Some(worker) = chosen.and_then(|id| worker_pool.get_mut(&id)) else {
            return Ok(RouteResult::Backlog(job));
        };
        job.msg.place = place;
        job.msg.placeless = None;
        worker.enqueue_job(job)?;
        Ok(RouteResult::Handled)
    }

    fn choose_target_worker(
        &mut self,
        job: &FactoryJob,
        pool_size: usize,
        worker_hint: Option<WorkerId>,
        worker_pool: &HashMap<WorkerId, WorkerProperties<JobKey, Job>>,
    ) -> Option<WorkerId> {
        let class = job.key.class;
        let reserved = self.reserved.take().filter(|place| place.is_for(class));
        let place = reserved.or_else(|| Place::try_take(&self.load, class))?;
        let worker = self.free.choose_target_worker(job, pool_size, worker_hint, worker_pool)?;
        self.reserved = Some(place);
        Some(worker)
    }

    fn is_factory_queueing(&self) -> bool {
        true
    }

    fn on_worker_availability_change(&mut self, worker: WorkerId, available: bool) {
        self.free.on_worker_availability_change(worker, available);
    }
}

/// Jobs that wait for a worker.
pub(super) struct JobQueue {
    waiting: WaitQueue<FactoryJob>,
    /// The class of the job that was looked at last. That job is the next to be taken out, even if a place has become free
    /// for another one since.
    peeked: Cell<Option<JobClass>>,
    load: Arc<PoolLoad>,
}

impl JobQueue {
    pub(super) fn new(load: Arc<PoolLoad>) -> Self {
        Self { waiting: WaitQueue::default(), peeked: Cell::default(), load }
    }

    /// The class of the next job: the first for which there is a place, or the first of all.
    fn next(&self) -> Option<JobClass> {
        self.waiting.next(|class| self.load.has_room(class)).or_else(|| self.waiting.next(|_| true))
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
        let peeked = self.peeked.take().and_then(|class| self.waiting.pop(class));
        let first = peeked.or_else(|| self.waiting.pop(self.next()?));
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
        self.peeked.set(self.next());
        self.waiting.first(self.peeked.get()?)
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
