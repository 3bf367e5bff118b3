//! One invocation on its way to a handler, and the port its conclusion comes back through. Owns the promise
//! that every invocation concludes exactly once, whatever becomes of the job.

use std::fmt;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    handler::Invocation,
    model::{Conclusion, Ended},
};

/// Which jobs go first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum JobClass {
    /// A host waits for it before it goes on.
    Interceptor,
    /// It only watches.
    Lifecycle,
}

/// What a pool's factory identifies jobs by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct JobKey {
    pub(super) number: u64,
    pub(super) class: JobClass,
}

/// One invocation for a pool.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) class: JobClass,
    /// Since when it waits for a place.
    pub(crate) submitted: Instant,
    pub(crate) invocation: Invocation,
    /// Ends the invocation early; nobody waits for its conclusion then.
    pub(crate) cancel: CancellationToken,
    pub(crate) reply: ReplyPort,
}

/// Where a conclusion goes. Dropped without one, it says that the job was lost, so that no run waits for ever.
pub(crate) struct ReplyPort(Option<Box<dyn FnOnce(Conclusion) + Send>>);

impl ReplyPort {
    pub(crate) fn new(deliver: impl FnOnce(Conclusion) + Send + 'static) -> Self {
        Self(Some(Box::new(deliver)))
    }

    pub(crate) fn send(mut self, conclusion: Conclusion) {
        self.deliver(conclusion);
    }

    /// Concludes in place, for a holder that cannot give the port away.
    pub(super) fn deliver(&mut self, conclusion: Conclusion) {
        if let Some(deliver) = self.0.take() {
            deliver(conclusion);
        }
    }
}

impl Drop for ReplyPort {
    fn drop(&mut self) {
        self.deliver(Conclusion::not_run(Ended::Failed, "the pool that ran the hook died"));
    }
}

impl fmt::Debug for ReplyPort {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReplyPort")
    }
}
