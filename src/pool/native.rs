//! The pool of native hooks that are futures: tasks under a limit. A hop through a factory would cost more than most of
//! them take.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::{
    hook_limit::{HookLimit, PermitTurn, QueueLimits, Waiting},
    job::ReplyPort,
    places::JobClass,
};
use crate::{
    handler::native,
    model::{Conclusion, Draft, Ended, Failure, Handler, HandlerKind, NativeHandler, NativeReply},
    registry::RegisteredHook,
    telemetry::{Meters, PoolMeters, PoolOccupancy},
};

/// A closure that makes a native hook's future.
type Make = dyn Fn(Draft) -> BoxFuture<'static, NativeReply> + Send + Sync;

/// One run of a native hook that is a future.
pub(crate) struct NativeTask {
    pub(crate) class: JobClass,
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
    places: Arc<HookLimit>,
    queue_deadline: Duration,
    concurrency: usize,
    pool: Arc<PoolMeters>,
}

impl NativeTaskPool {
    /// A pool that runs so many tasks at once and lets others wait so long.
    pub(crate) fn new(concurrency: usize, queue_deadline: Duration, meters: &Arc<Meters>) -> Self {
        let empty = PoolOccupancy { used: 0, limit: concurrency, depth: 0, queue_limit: None };
        Self {
            places: HookLimit::of_native_pool(concurrency, meters),
            queue_deadline,
            concurrency,
            pool: Arc::new(PoolMeters::resolve(HandlerKind::Native, empty)),
        }
    }

    /// Updates the gauges.
    pub(super) fn sample(&self) {
        self.pool.set(self.occupancy());
    }

    /// How much of it is in use.
    pub(super) fn occupancy(&self) -> PoolOccupancy {
        let (used, depth) = self.places.occupancy();
        PoolOccupancy { used, limit: self.concurrency, depth, queue_limit: None }
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

    /// How many may wait, which has no bound, and how long.
    pub(super) fn queue_limits(&self) -> QueueLimits {
        QueueLimits { queue: usize::MAX, deadline: self.queue_deadline }
    }

    /// Runs a native hook's future, which may wait so long; it is dropped at its deadline and when it is cancelled.
    pub(super) fn submit(&self, task: NativeTask, limits: QueueLimits) {
        let NativeTask { class, submitted, hook, make, draft, cancel, reply } = task;
        let waiting = Waiting { class, submitted, cancel: cancel.clone(), limits };
        let pool = Arc::clone(&self.pool);
        Arc::clone(&self.places).pass(waiting, reply, move |PermitTurn { permit, reply, .. }| {
            tokio::spawn(async move {
                let queued = submitted.elapsed();
                pool.waited(class.is_interceptor(), queued);
                let conclusion = tokio::select! {
                    // In this order: nothing is started for an event that is cancelled.
                    biased;
                    () = cancel.cancelled() => Conclusion::cancelled(),
                    conclusion = run(&*make, draft, hook.hook.timeout) => conclusion.after_wait(queued),
                };
                // Before the conclusion, so that a host that has its answer finds the place free.
                drop(permit);
                reply.send(conclusion);
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
