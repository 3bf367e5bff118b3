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
    telemetry::{Shed, ShedReason, ShedWhere},
};

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

    /// Runs a native hook's future; it is dropped at its deadline and when it is cancelled.
    pub(crate) fn submit(
        &self,
        make: Arc<dyn Fn(Draft) -> BoxFuture<'static, NativeReply> + Send + Sync>,
        draft: Draft,
        timeout: Duration,
        cancel: CancellationToken,
        reply: ReplyPort,
    ) {
        let (places, queue_deadline) = (Arc::clone(&self.places), self.queue_deadline);
        let work = async move {
            let Ok(place) = tokio::time::timeout(queue_deadline, places.acquire_owned()).await else {
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

async fn run(
    make: &(dyn Fn(Draft) -> BoxFuture<'static, NativeReply> + Send + Sync),
    draft: Draft,
    timeout: Duration,
) -> Conclusion {
    let started = Instant::now();
    // The closure itself may panic as well as the future it makes.
    let caught = AssertUnwindSafe(async { make(draft).await }).catch_unwind();
    let result = match tokio::time::timeout(timeout, caught).await {
        Ok(Ok(reply)) => native::read(reply),
        Ok(Err(panic)) => Err(native::panicked(&*panic)),
        Err(_) => Err(Failure::new(Ended::TimedOut, format!("no reply within {timeout:?}"))),
    };
    Conclusion { result, duration: started.elapsed() }
}
