//! The pool of one kind of handler: a `ractor` factory whose workers run one hook at a time.

use std::{
    panic::AssertUnwindSafe,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use futures_util::FutureExt;
use ractor::{
    Actor, ActorCell, ActorId, ActorProcessingErr, ActorRef, SpawnErr,
    factory::{
        self, DiscardMode, DiscardSettings, FactoryArguments, FactoryMessage, JobOptions, Worker, WorkerId,
    },
};
use tokio::{
    sync::{OwnedRwLockReadGuard, RwLock, watch},
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    job::{Job, JobKey},
    job_queue::{JobQueue, PlaceRouter, ShedJobs},
    places::{Place, PlaceShares, Placeless, PoolLoad},
};
use crate::{
    handler::{BackgroundSwitch, HandlerOutput, HookWorkers, Invocation, Runner},
    model::{Conclusion, Ended, Failure, HandlerKind, RawReply, Reply},
    registry::RegisteredHook,
    telemetry::{EVENTS_TARGET, Meters, Panicked, PoolMeters, PoolOccupancy, ShedReason, ShedStage},
};

/// The factory's actor.
type Factory = ActorRef<FactoryMessage<JobKey, Job>>;

/// How much of a program's standard error is logged, in bytes.
const MOST_LOGGED: usize = 4096;

/// Bounds of a pool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolLimits {
    /// How many hooks run at once; see [`PlaceShares::of_pool`].
    pub(crate) concurrency: usize,
    /// How many invocations may wait.
    pub(crate) queue: usize,
    /// How long one may wait.
    pub(crate) queue_deadline: Duration,
}

impl PoolLimits {
    fn usage(self, load: &PoolLoad) -> PoolOccupancy {
        PoolOccupancy {
            used: load.held().total(),
            limit: self.concurrency,
            depth: load.waiting.load(Ordering::Relaxed),
            queue_limit: Some(self.queue),
        }
    }
}

/// A pool of workers for one kind of handler, which takes jobs.
#[derive(Debug)]
pub(crate) struct Pool {
    kind: HandlerKind,
    factory: ArcSwapOption<Factory>,
    bounds: PoolLimits,
    runner: Arc<dyn Runner>,
    number: AtomicU64,
    running: Running,
    meters: Arc<PoolMeters>,
    load: Arc<PoolLoad>,
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
        let load = PoolLoad::new(PlaceShares::of_pool(bounds.concurrency), meters);
        Self {
            meters: Arc::new(PoolMeters::resolve(kind, bounds.usage(&load))),
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
        let worker = self.worker();
        let arguments = FactoryArguments::builder()
            .worker_builder(Box::new(factory::worker_builder(move |_| (worker.clone(), ()))))
            .num_initial_workers(PlaceShares::of_pool(self.bounds.concurrency).total())
            .router(PlaceRouter::new(Arc::clone(&self.load)))
            .queue(JobQueue::new(Arc::clone(&self.load)))
            .discard_handler(Arc::new(ShedJobs { kind: self.kind, load: Arc::clone(&self.load) }))
            .discard_settings(DiscardSettings::Static { limit: self.bounds.queue, mode: DiscardMode::Oldest })
            .build();
        let definition = factory::Factory::<JobKey, Job, (), HookWorker, PlaceRouter, JobQueue>::default();
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

    /// How many invocations of a hook its runner takes at once; see [`Runner::capacity`].
    pub(super) fn capacity(&self, invocation: &Invocation) -> Option<watch::Receiver<usize>> {
        self.runner.capacity(invocation)
    }

    /// The workers of each hook that has any.
    pub(crate) fn hook_workers(&self) -> Vec<HookWorkers> {
        self.runner.hook_workers()
    }

    /// Tells the runner which hooks a workspace has now.
    pub(super) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        if hooks.iter().any(|known| known.hook.enabled && known.hook.handler.kind() == self.kind) {
            self.meters.expect();
        }
        self.runner.reloaded(root, hooks);
    }

    /// Updates the gauges.
    pub(crate) fn sample(&self) {
        self.meters.set(self.occupancy());
        self.runner.sample();
    }

    /// How much of it is in use.
    pub(super) fn occupancy(&self) -> PoolOccupancy {
        self.bounds.usage(&self.load)
    }

    /// Ends what escaped from the hooks that ran here.
    pub(crate) async fn end_escaped(&self) {
        self.runner.end_escaped().await;
    }

    /// Waits until no hook runs. Workers that are killed kill their processes, but only when they are next
    /// looked at, so their supervisor's end is not the processes' end.
    pub(crate) async fn settled(&self) {
        drop(self.running.write().await);
    }

    /// Runs a job that has its place without the factory, which spares three messages.
    fn run_beside(&self, job: Job, running: OwnedRwLockReadGuard<()>, factory: Arc<Factory>, key: JobKey) {
        let worker = self.worker();
        let load = Arc::clone(&self.load);
        tokio::spawn(async move {
            worker.run(job, running).await;
            // Its place may be what a job in the factory waits for.
            if load.has_placeless() {
                drop(factory.cast(FactoryMessage::Finished(NO_WORKER, key)));
            }
        });
    }

    fn worker(&self) -> HookWorker {
        HookWorker {
            kind: self.kind,
            runner: Arc::clone(&self.runner),
            running: Arc::clone(&self.running),
            meters: Arc::clone(&self.meters),
        }
    }

    /// Submits a job that may wait for `queue_deadline`. It always concludes: it runs, is shed, or is reported lost.
    pub(super) fn submit(&self, mut job: Job, queue_deadline: Duration) {
        let Some(factory) = self.factory.load_full() else {
            self.load.meters.shed(ShedStage::Pool, ShedReason::Shutdown);
            return job
                .reply
                .send(Conclusion::not_run(Ended::Shed, format!("the {} pool is down", self.kind)));
        };
        let key = JobKey { number: self.number.fetch_add(1, Ordering::Relaxed), class: job.class };
        if self.runner.has_own_queue(&job.invocation)
            && !self.load.has_placeless()
            && let Some(place) = Place::try_take(&self.load, key.class)
            && let Ok(running) = Arc::clone(&self.running).try_read_owned()
        {
            job.place = Some(place);
            return self.run_beside(job, running, factory, key);
        }
        job.placeless = Some(Placeless::enter(&self.load));
        let options = JobOptions::new(Some(queue_deadline));
        let job = factory::Job::with_options(key, job, options);
        // A failed send drops the job, and its port then reports the loss.
        drop(factory.cast(FactoryMessage::Dispatch(job)));
    }
}

/// The number of no worker of a factory.
const NO_WORKER: WorkerId = WorkerId::MAX;

/// Logs the standard error of a program at level debug.
fn log_errors(registered: &RegisteredHook, raw: &Result<RawReply, Failure>) {
    let Ok(RawReply::Command { stderr, .. }) = raw else { return };
    if stderr.is_empty() || !tracing::enabled!(target: EVENTS_TARGET, tracing::Level::DEBUG) {
        return;
    }
    let text = String::from_utf8_lossy(stderr);
    // Redacted before it is cut: a part of a secret would not be recognised.
    let text = registered.redactor.text(&text);
    let shown = &text[..text.floor_char_boundary(MOST_LOGGED)];
    tracing::debug!(target: EVENTS_TARGET, hook = %registered.hook.name, stderr = shown.trim_end(), "standard error of a hook");
}

/// Runs one hook at a time.
#[derive(Debug, Clone)]
struct HookWorker {
    kind: HandlerKind,
    runner: Arc<dyn Runner>,
    running: Running,
    meters: Arc<PoolMeters>,
}

impl HookWorker {
    /// Runs the job's hook and sends the conclusion.
    async fn run(&self, job: Job, running: OwnedRwLockReadGuard<()>) {
        let Job { class, submitted, invocation, cancel, reply, mut place, placeless: _ } = job;
        let queued = submitted.elapsed();
        self.meters.waited(class.is_interceptor(), queued);
        let started = Instant::now();
        let conclusion = {
            let run = self.conclude(&invocation, &cancel);
            tokio::pin!(run);
            tokio::select! {
                biased;
                conclusion = &mut run => conclusion.after_wait(queued),
                () = in_background(&invocation.background, place.as_mut()) => {
                    let proceeds = Conclusion::ran(Ok(Reply::proceed()), started.elapsed());
                    reply.send(proceeds.started_at(started.into_std()).after_wait(queued));
                    return log_background(&invocation.hook, &run.await);
                }
            }
        };
        // Before the conclusion, so that a host that has its answer finds the permits free.
        drop((place, running, invocation));
        reply.send(conclusion);
    }

    /// Runs a hook and reads its reply in its dialect. A panic fails this invocation only.
    async fn conclude(&self, invocation: &Invocation, cancel: &CancellationToken) -> Conclusion {
        let started = Instant::now();
        let hook = &invocation.hook.hook;
        let run = async {
            let HandlerOutput { result: raw, warnings, tokens } = self.runner.run(invocation, cancel).await;
            let read = |raw| hook.read_reply(invocation.event.kind, raw);
            log_errors(&invocation.hook, &raw);
            let redactor = &invocation.hook.redactor;
            let raw = raw.map_err(|failure| redactor.failure(failure));
            let result = raw.and_then(|raw| redactor.read(raw, read));
            let warnings = warnings.into_iter().map(|text| redactor.string(text)).collect();
            Conclusion {
                result,
                warnings,
                tokens,
                started: Some(started.into_std()),
                duration: started.elapsed(),
                queued: Duration::ZERO,
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
    type Key = JobKey;
    type Message = Job;
    type Arguments = ();
    type State = ();

    async fn pre_start(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<JobKey, Job>>,
        (): (),
    ) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(
        &self,
        _: WorkerId,
        _: &ActorRef<FactoryMessage<JobKey, Job>>,
        factory::Job { key, msg: job, .. }: factory::Job<JobKey, Job>,
        (): &mut (),
    ) -> Result<JobKey, ActorProcessingErr> {
        let running = Arc::clone(&self.running).read_owned().await;
        self.run(job, running).await;
        Ok(key)
    }
}

/// Waits until a hook goes on in the background. It has to wait there for a place that no interceptor needs, as long as its
/// agent waits for it.
async fn in_background(background: &BackgroundSwitch, place: Option<&mut Place>) {
    background.asked().await;
    if place.is_some_and(|place| !place.leave_interceptors()) {
        std::future::pending::<()>().await;
    }
    background.agree();
}

/// Logs the failure of a hook in the background, whose event has been answered.
fn log_background(registered: &RegisteredHook, conclusion: &Conclusion) {
    if let Err(failure) = &conclusion.result {
        let hook = &registered.hook.name;
        tracing::warn!(target: EVENTS_TARGET, %hook, error = %failure.message, "a hook failed in the background");
    }
}
