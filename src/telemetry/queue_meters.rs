//! What happens to events of the queue of a cluster.

use super::names;

/// An event was put into the queue, or could not be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueuePut {
    Stored,
    /// The queue had it already.
    Repeated,
    Failed,
}

impl QueuePut {
    /// Creates the series at zero, so that the rate of the first is seen.
    pub(crate) fn expect_all() {
        for put in [Self::Stored, Self::Repeated, Self::Failed] {
            put.add(0);
        }
    }

    pub(crate) fn emit(self) {
        self.add(1);
    }

    fn add(self, count: u64) {
        let result = match self {
            Self::Stored => "stored",
            Self::Repeated => "repeated",
            Self::Failed => "failed",
        };
        names::QUEUE_PUTS.counter([result]).increment(count);
    }
}

/// A worker is done with an event of the queue.
#[derive(Debug, Clone, Copy)]
pub(crate) enum QueuedEnded {
    Acknowledged,
    /// It is a dead letter.
    Dead,
    /// Another worker gets it.
    Returned,
}

impl QueuedEnded {
    /// Creates the series at zero, so that the rate of the first is seen.
    pub(crate) fn expect_all() {
        for ended in [Self::Acknowledged, Self::Dead, Self::Returned] {
            ended.add(0);
        }
    }

    pub(crate) fn emit(self) {
        self.add(1);
    }

    fn add(self, count: u64) {
        let result = match self {
            Self::Acknowledged => "acknowledged",
            Self::Dead => "dead",
            Self::Returned => "returned",
        };
        names::QUEUE_ENDED.counter([result]).increment(count);
    }
}

/// What waited in the queue is lost.
#[derive(Debug)]
pub(crate) struct QueueReplaced;

impl QueueReplaced {
    /// Creates the series at zero, so that the rate of the first is seen.
    pub(crate) fn expect() {
        Self::add(0);
    }

    pub(crate) fn emit() {
        Self::add(1);
    }

    fn add(count: u64) {
        names::QUEUE_REPLACED.counter([]).increment(count);
    }
}
