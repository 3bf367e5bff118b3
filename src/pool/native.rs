//! The pool of native hooks that are futures: tasks under a limit. A hop through a factory would cost more
//! than most of them do. Refuses closures that are not futures; a run's actor runs those itself.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::{FutureExt, future::BoxFuture};
use tokio::{sync::Semaphore, time::Instant};
use tokio_util::sync::CancellationToken;

use super::job::ReplyPort;
use crate::{
    handler::native,
    model::{Conclusion, Draft, Ended, Failure, NativeReply},
    registry::Registered,
    telemetry::{Shed, ShedReason, ShedWhere},
};

/// A closure that makes a native hook's future.
type Make = dyn Fn(Draft) -> BoxFuture<'static, NativeReply> + Send + Sync;

/// One run of a native hook that is a future.
pub(crate) struct Task {
    pub(crate) hook: Arc<Registered>,
    pub(crate) make: Arc<Make>,
    pub(crate) draft: Draft,
    /// Ends it early; nobody waits for its conclusion then.
    pub(crate) cancel: CancellationToken,
    pub(crate) reply: ReplyPort,
}

/// Tasks under a limit.
#[derive(Debug, Clone)]
pub(crate) struct NativePool {
    places: Arc<Semaphore>,
    queue_deadline: Duration,
}

impl NativePool {
    /// A pool that runs so many tasks at once and lets others wait so long.
    pub(crate) fn new(concurrency: usize, queue_deadline: Duration) -> Self {
        Self { places: Arc::new(Semaphore::new(concurrency)), queue_deadline }
    }

    /// How long one may wait.
    pub(super) fn queue_deadline(&self) -> Duration {
        self.queue_deadline
    }

    /// Runs a native hook's future, which may wait so long; it is dropped at its deadline and when it is cancelled.
    pub(super) fn submit(&self, task: Task, patience: Duration) {
        let Task { hook, make, draft, cancel, reply } = task;
        let (places, timeout) = (Arc::clone(&self.places), hook.hook.timeout);
        let work = async move {
            let Ok(place) = tokio::time::timeout(patience, places.acquire_owned()).await else {
                Shed { at: ShedWhere::Pool, reason: ShedReason::Deadline }.emit();
                return Conclusion::not_run(Ended::Shed, "it waited too long for a place in the native pool");
            };
            let conclusion = run(&*make, draft, timeout).await;
            drop(place);
            conclusion
        };
        tokio::spawn(async move {
            let cancelled = async {
                cancel.cancelled().await;
                Conclusion::not_run(Ended::Cancelled, "nobody waits for the outcome any more")
            };
            reply.send(tokio::select! {
                conclusion = work => conclusion,
                conclusion = cancelled => conclusion,
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
    Conclusion::ran(result, started.elapsed())
}
