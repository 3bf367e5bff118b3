//! One invocation on its way to a handler, and the port for its conclusion. Every invocation concludes exactly once.

use std::fmt;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::places::{JobClass, Place, Placeless};
use crate::{
    handler::Invocation,
    model::{Conclusion, Ended},
};

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
    /// Its place, once its pool has given it one.
    pub(crate) place: Option<Place>,
    /// Held while its pool has it and has no place for it.
    pub(crate) placeless: Option<Placeless>,
}

impl Job {
    /// A job that no pool has yet.
    pub(crate) fn new(
        class: JobClass,
        submitted: Instant,
        invocation: Invocation,
        cancel: CancellationToken,
        reply: ReplyPort,
    ) -> Self {
        Self { class, submitted, invocation, cancel, reply, place: None, placeless: None }
    }
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
