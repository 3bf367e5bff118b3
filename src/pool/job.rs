//! One invocation on its way to a handler, and the port for its conclusion. Every invocation concludes exactly once.

use std::fmt;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    handler::Invocation,
    model::{Conclusion, Ended},
};

/// Which jobs go first, in this order: those for events of known senders, and of these interceptors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum JobClass {
    /// A host waits for it before it goes on.
    Interceptor,
    /// Nobody waits before going on.
    Lifecycle,
    /// An interceptor for an event of an anonymous sender.
    AnonymousInterceptor,
    /// A lifecycle hook for one.
    AnonymousLifecycle,
}

impl JobClass {
    /// How many classes there are.
    pub(super) const NUMBER: usize = 4;

    pub(crate) fn of(is_interceptor: bool, is_anonymous: bool) -> Self {
        match (is_interceptor, is_anonymous) {
            (true, false) => Self::Interceptor,
            (false, false) => Self::Lifecycle,
            (true, true) => Self::AnonymousInterceptor,
            (false, true) => Self::AnonymousLifecycle,
        }
    }

    /// Its place in the order.
    pub(super) fn rank(self) -> usize {
        match self {
            Self::Interceptor => 0,
            Self::Lifecycle => 1,
            Self::AnonymousInterceptor => 2,
            Self::AnonymousLifecycle => 3,
        }
    }
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
    /// When it was submitted.
    pub(crate) submitted: Instant,
    pub(crate) invocation: Invocation,
    /// Cancelled when nobody waits for the conclusion any more.
    pub(crate) cancel: CancellationToken,
    pub(crate) reply: ReplyPort,
}

/// Where a conclusion goes. Dropped unused, it delivers a failure, so that no run waits for ever.
pub(crate) struct ReplyPort(Option<Box<dyn FnOnce(Conclusion) + Send>>);

impl ReplyPort {
    pub(crate) fn new(deliver: impl FnOnce(Conclusion) + Send + 'static) -> Self {
        Self(Some(Box::new(deliver)))
    }

    pub(crate) fn send(mut self, conclusion: Conclusion) {
        self.deliver(conclusion);
    }

    /// Delivers through a reference, for a holder that cannot move the port out.
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
