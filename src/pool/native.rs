//! The pool of native hooks that are futures: tasks under a semaphore. A hop through a factory would cost more than most
//! of them take.

use std::{
    panic::AssertUnwindSafe,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::sync::CancellationToken;

use super::job::ReplyPort;
use crate::{
    handler::native,
    model::{Conclusion, Draft, Ended, Failure, Handler, HandlerKind, NativeHandler, NativeReply},
    registry::RegisteredHook,
    telemetry::{Meters, PoolMeters, PoolOccupancy, ShedReason, ShedStage},
};

/// A closure that makes a native hook's future.
type Make = dyn Fn(Draft) -> BoxFuture<'static, NativeReply> + Send + Sync;

/// One run of a native hook that is a future.
pub(crate) struct NativeTask {
    /// When it was submitted.
    pub(crate) submitted: Instant,
    pub(crate) hook: Arc<RegisteredHook>,
    pub(crate) make: Arc<Make>,
    pub(crate) draft: Draft,
    /// Cancelled when nobody waits for the conclusion any more.
    pub(crate) cancel: CancellationToken,
    pub(crate) reply: ReplyPort,
}

/// Tasks under a limit.
#[derive(Debug, Clone)]
pub(crate) struct NativeTaskPool {
    places: Arc<Semaphore>,
    queue_deadline: Duration,
    concurrency: usize,
    /// How many wait.
    waiting: Arc<AtomicUsize>,
    meters: Arc<Meters>,
    pool: Arc<PoolMeters>,
}

/// RAII guard: a task waits for as long as it lives.
struct Waiting(Arc<AtomicUsize>);

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl NativeTaskPool {
    /// A pool that runs so many tasks at once and lets others wait so long.
    pub(crate) fn new(concurrency: usize, queue_deadline: Duration, meters: &Arc<Meters>) -> Self {
        let empty = PoolOccupancy { used: 0, limit: concurrency, depth: 0, queue_limit: None };
        Self {
            places: Arc::new(Semaphore::new(concurrency)),
            queue_deadline,
            concurrency,
            waiting: Arc::default(),
            meters: Arc::clone(meters),
            pool: Arc::new(PoolMeters::resolve(HandlerKind::Native, empty)),
        }
    }

    /// Updates the gauges.
    pub(super) fn sample(&self) {
        self.pool.set(PoolOccupancy {
            used: self.concurrency.saturating_sub(self.places.available_permits()),
            limit: self.concurrency,
            depth: self.waiting.load(Ordering::Relaxed),
            queue_limit: None,
        });
    }

    /// Tells it which hooks a workspace has now.
    pub(super) fn reloaded(&self, hooks: &[Arc<RegisteredHook>]) {
        let uses = |hook: &Arc<RegisteredHook>| {
            matches!(hook.hook.handler, Handler::Native(NativeHandler::Task(_))) && hook.hook.enabled
        };
        if hooks.iter().any(uses) {
            self.pool.expect();
        }
    }

    /// How long one may wait.
    pub(super) fn queue_deadline(&self) -> Duration {
        self.queue_deadline
    }

    /// Runs a native hook's future, which may wait so long; it is dropped at its deadline and when it is cancelled.
    pub(super) fn submit(&self, task: NativeTask, patience: Duration) {
        let NativeTask { submitted, hook, make, draft, cancel, reply } = task;
        let Self { places, meters, pool, .. } = self.clone();
        let timeout = hook.hook.timeout;
        self.waiting.fetch_add(1, Ordering::Relaxed);
        let waiting = Waiting(Arc::clone(&self.waiting));
        let work = async move {
            let Ok(place) = tokio::time::timeout(patience, places.acquire_owned()).await else {
                meters.shed(ShedStage::Pool, ShedReason::Deadline);
                let shed =
                    Conclusion::not_run(Ended::Shed, "it waited too long for a place in the native pool");
                return shed.after_wait(submitted.elapsed());
            };
            drop(waiting);
            let queued = submitted.elapsed();
            pool.waited(queued);
            let conclusion = run(&*make, draft, timeout).await.after_wait(queued);
            drop(place);
            conclusion
        };
        tokio::spawn(async move {
            reply.send(tokio::select! {
                // In this order: nothing is started for an event that is cancelled.
                biased;
                () = cancel.cancelled() => Conclusion::cancelled(),
                conclusion = work => conclusion,
            });
        });
    }
}

async fn run(make: &Make, draft: Draft, timeout: Duration) -> Conclusion {
    let started = Instant::now();
    // The closure itself may panic as well as the future it makes.
    let caught = AssertUnwindSafe(async { make(draft).await }).catch_unwind();
    let result = match tokio::time::timeout(timeout, caught).await {
        Ok(Ok(reply)) => native::read(reply),
        Ok(Err(panic)) => Err(native::panicked(&*panic)),
        Err(_) => Err(Failure::new(Ended::TimedOut, format!("no reply within {timeout:?}"))),
    };
    Conclusion::ran(result, started.elapsed()).started_at(started.into_std())
}
