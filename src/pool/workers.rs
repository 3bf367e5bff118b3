//! The pool of one kind of handler: a `ractor` factory whose workers run one hook at a time. Owns its queue's
//! order and bounds; refuses to restart itself, which is the supervisor's part.

use std::{
    collections::VecDeque,
    panic::AssertUnwindSafe,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use futures_util::FutureExt;
use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SpawnErr,
    factory::{
        self, DiscardHandler, DiscardMode, DiscardReason, DiscardSettings, FactoryArguments, FactoryMessage,
        JobOptions, Worker, WorkerId, queues::Queue, routing::QueuerRouting,
    },
};
use tokio::{sync::RwLock, time::Instant};
use tokio_util::sync::CancellationToken;

use super::{
    job::{Job, JobClass},
    stderr_log::log_errors,
};
use crate::{
    handler::{Brought, Invocation, Runner},
    model::{Conclusion, Ended, Failure, HandlerKind},
    registry::RegisteredHook,
    telemetry::{Meters, Panicked, PoolMeters, PoolUsage, ShedReason, ShedStage},
};

/// What the factory tells jobs apart by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Key {
    number: u64,
    class: JobClass,
}

/// The factory's actor.
type Factory = ActorRef<FactoryMessage<Key, Job>>;

/// Bounds of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolLimits {
    /// How many hooks run at once.
    pub(crate) concurrency: usize,
    /// How many invocations may wait.
    pub(crate) queue: usize,
    /// How long one may wait.
    pub(crate) queue_deadline: Duration,
}

impl PoolLimits {
    fn filled(self, load: &Load) -> PoolUsage {
        PoolUsage {
            used: load.busy.load(Ordering::Relaxed),
            limit: self.concurrency,
            depth: load.waiting.load(Ordering::Relaxed),
            queue_limit: Some(self.queue),
        }
    }
}

/// The pool as others see it: a place to put jobs.
#[derive(Debug)]
pub(crate) struct Pool {
    kind: HandlerKind,
    factory: ArcSwapOption<Factory>,
    bounds: PoolLimits,
    runner: Arc<dyn Runner>,
    number: AtomicU64,
    running: Running,
    meters: Arc<PoolMeters>,
    load: Arc<Load>,
}

/// How much a pool has to do, and where what becomes of it is counted.
#[derive(Debug)]
struct Load {
    busy: AtomicUsize,
    waiting: AtomicUsize,
    meters: Arc<Meters>,
}

/// A worker runs a hook, for as long as this value lives.
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn with(busy: &'a AtomicUsize) -> Self {
        busy.fetch_add(1, Ordering::Relaxed);
        Self(busy)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Held for reading by each worker while it runs a hook.
type Running = Arc<RwLock<()>>;

impl Pool {
    /// A pool without workers yet.
    pub(crate) fn new(
        kind: HandlerKind,
        bounds: PoolLimits,
        runner: Arc<dyn Runner>,
        meters: &Arc<Meters>,
    ) -> Self {
        let load =
            Load { busy: AtomicUsize::new(0), waiting: AtomicUsize::new(0), meters: Arc::clone(meters) };
        Self {
            meters: Arc::new(PoolMeters::resolve(kind, bounds.filled(&load))),
            load: Arc::new(load),
            kind,
            factory: ArcSwapOption::empty(),
            bounds,
            runner,
            number: AtomicU64::new(0),
            running: Running::default(),
        }
    }

    /// The kind of handler it runs.
    pub(crate) fn kind(&self) -> HandlerKind {
        self.kind
    }

    /// How much it takes.
    pub(super) fn bounds(&self) -> PoolLimits {
        self.bounds
    }

    /// Starts the workers under a supervisor and takes jobs from then on.
    ///
    /// Returns an error if an actor cannot be started.
    pub(crate) async fn start(&self, supervisor: ActorCell) -> Result<ActorId, SpawnErr> {
        let worker = HookWorker {
            kind: self.kind,
            runner: Arc::clone(&self.runner),
            running: Arc::clone(&self.running),
            meters: Arc::clone(&self.meters),
            load: Arc::clone(&self.load),
        };
        let arguments = FactoryArguments::builder()
            .worker_builder(Box::new(factory::worker_builder(move |_| (worker.clone(), ()))))
            .num_initial_workers(self.bounds.concurrency)
            .router(QueuerRouting::default())
            .queue(JobQueue::new(Arc::clone(&self.load)))
            .discard_handler(Arc::new(ShedJobs { kind: self.kind, load: Arc::clone(&self.load) }))
            .discard_settings(DiscardSettings::Static { limit: self.bounds.queue, mode: DiscardMode::Oldest })
            .build();
        let definition =
            factory::Factory::<Key, Job, (), HookWorker, QueuerRouting<Key, Job>, JobQueue>::default();
        let (factory, _) = Actor::spawn_linked(None, definition, arguments, supervisor).await?;
        let id = factory.get_id();
        self.factory.store(Some(Arc::new(factory)));
        Ok(id)
    }

    /// The factory that takes the jobs now.
    #[cfg(test)]
    pub(crate) fn factory(&self) -> Option<ActorCell> {
        self.factory.load().as_ref().map(|factory| factory.get_cell())
    }

    /// Takes no jobs until it is started again.
    pub(crate) fn stop(&self) {
        self.factory.store(None);
        self.runner.stop();
    }

    /// Tells the runner which hooks a workspace has now.
    pub(super) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        if hooks.iter().any(|known| known.hook.enabled && known.hook.handler.kind() == self.kind) {
            self.meters.expect();
        }
        self.runner.reloaded(root, hooks);
    }

    /// Has the metrics say how full it is now.
    pub(crate) fn sample(&self) {
        self.meters.set(self.bounds.filled(&self.load));
    }

    /// Waits until no hook runs. Workers that are killed kill their processes, but only when they are next
    /// looked at, so their supervisor's end is not the processes' end.
    pub(crate) async fn settled(&self) {
        drop(self.running.write().await);
    }

    /// Hands a job over that may wait so long. It always concludes: it is run, shed, or reported as lost.
    pub(super) fn submit(&self, job: Job, patience: Duration) {
        let Some(factory) = self.factory.load_full() else {
            self.load.meters.shed(ShedStage::Pool, ShedReason::Shutdown);
            return job
                .reply
                .send(Conclusion::not_run(Ended::Shed, format!("the {} pool is down", self.kind)));
        };
        let key = Key { number: self.number.fetch_add(1, Ordering::Relaxed), class: job.class };
        let options = JobOptions::new(Some(patience));
        let job = factory::Job::with_options(key, job, options);
        // A failed send drops the job, and its port then reports the loss.
        drop(factory.cast(FactoryMessage::Dispatch(job)));
    }
}

/// Runs one hook at a time.
#[derive(Debug, Clone)]
struct HookWorker {
    kind: HandlerKind,
    runner: Arc<dyn Runner>,
    running: Running,
    meters: Arc<PoolMeters>,
    load: Arc<Load>,
}

impl HookWorker {
    /// Runs a hook and has its dialect read the answer. A panic on the way costs this invocation and no other.
    async fn conclude(&self, invocation: &Invocation, cancel: &CancellationToken) -> Conclusion {
        let started = Instant::now();
        let hook = &invocation.hook.hook;
        let run = async {
            let Brought { result: raw, warnings, tokens } = self.runner.run(invocation, cancel).await;
            let read = |raw| hook.dialect.read_reply(hook, invocation.event.kind, raw);
            log_errors(&invocation.hook, &raw);
            let (result, warnings) = match &invocation.hook.redactor {
                None => (raw.and_then(read), warnings),
                Some(redactor) => (
                    raw.map_err(|e| redactor.failure(e)).and_then(|raw| redactor.read(raw, read)),
                    warnings.into_iter().map(|text| redactor.text(text)).collect(),
                ),
            };
            Conclusion {
                result,
                warnings,
                tokens,
                started: Some(started.into_std()),
                duration: started.elapsed(),
            }
        };
        AssertUnwindSafe(run).catch_unwind().await.unwrap_or_else(|_| {
            Panicked(self.kind.as_str()).emit();
            let failure = Failure::new(Ended::Failed, "hookyard panicked while it ran the hook");
            Conclusion::ran(Err(failure), started.elapsed()).started_at(started.into_std())
        })
    }
}

impl Worker for HookWorker {
    type Key = Key;
    type Message = Job;
    type Arguments = ();
    type State = ();

    async fn pre_start(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<Key, Job>>,
        (): (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<Key, Job>>,
        factory::Job { key, msg: job, .. }: factory::Job<Key, Job>,
        (): &mut (),
    ) -> Result<Key, ActorProcessingErr> {
        let running = self.running.read().await;
        self.meters.waited(job.submitted.elapsed());
        let busy = Busy::with(&self.load.busy);
        let conclusion = self.conclude(&job.invocation, &job.cancel).await;
        drop((busy, running));
        job.reply.send(conclusion);
        Ok(key)
    }
}

/// Jobs that wait for a worker: interceptors before lifecycle jobs, each in order of arrival.
struct JobQueue {
    interceptors: VecDeque<factory::Job<Key, Job>>,
    lifecycle: VecDeque<factory::Job<Key, Job>>,
    load: Arc<Load>,
}

impl JobQueue {
    fn new(load: Arc<Load>) -> Self {
        Self { interceptors: VecDeque::new(), lifecycle: VecDeque::new(), load }
    }

    /// Takes down how many wait now.
    fn count(&self) {
        self.load.waiting.store(self.len(), Ordering::Relaxed);
    }

    fn discard(&mut self) -> Option<factory::Job<Key, Job>> {
        for queue in [&mut self.interceptors, &mut self.lifecycle] {
            if let Some(dropped) = queue.iter().position(|job| job.msg.cancel.is_cancelled()) {
                return queue.remove(dropped);
            }
        }
        self.lifecycle.pop_front().or_else(|| self.interceptors.pop_back())
    }
}

impl Drop for JobQueue {
    fn drop(&mut self) {
        self.load.waiting.store(0, Ordering::Relaxed);
    }
}

impl Queue<Key, Job> for JobQueue {
    fn len(&self) -> usize {
        self.interceptors.len() + self.lifecycle.len()
    }

    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn pop_front(&mut self) -> Option<factory::Job<Key, Job>> {
        let first = self.interceptors.pop_front().or_else(|| self.lifecycle.pop_front());
        self.count();
        first
    }

    /// What goes when the queue is too long: a job that nobody waits for any more, or else a lifecycle job, or
    /// else the interceptor that came last, since those before it have waited longer for the same place.
    fn discard_oldest(&mut self) -> Option<factory::Job<Key, Job>> {
        let discarded = self.discard();
        self.count();
        discarded
    }

    fn peek(&self) -> Option<&factory::Job<Key, Job>> {
        self.interceptors.front().or_else(|| self.lifecycle.front())
    }

    fn push_back(&mut self, job: factory::Job<Key, Job>) {
        match job.key.class {
            JobClass::Interceptor => self.interceptors.push_back(job),
            JobClass::Lifecycle => self.lifecycle.push_back(job),
        }
        self.count();
    }

    fn remove_expired_items(&mut self, handler: &Option<Arc<dyn DiscardHandler<Key, Job>>>) -> usize {
        let before = self.len();
        for queue in [&mut self.interceptors, &mut self.lifecycle] {
            queue.retain_mut(|job| {
                let expired = job.is_expired() || job.msg.cancel.is_cancelled();
                if let Some(handler) = handler.as_ref().filter(|_| expired) {
                    handler.discard(DiscardReason::TtlExpired, job);
                }
                !expired
            });
        }
        self.count();
        before - self.len()
    }
}

/// Concludes the jobs that the factory turns away.
struct ShedJobs {
    kind: HandlerKind,
    load: Arc<Load>,
}

impl DiscardHandler<Key, Job> for ShedJobs {
    fn discard(&self, reason: DiscardReason, job: &mut factory::Job<Key, Job>) {
        // It leaves the queue together with those that waited too long, but nothing was turned away.
        if job.msg.cancel.is_cancelled() {
            let message = "nobody waits for the outcome any more";
            return job.msg.reply.deliver(Conclusion::not_run(Ended::Cancelled, message));
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
        job.msg.reply.deliver(Conclusion::not_run(Ended::Shed, message));
    }
}
