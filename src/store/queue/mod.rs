//! The queue of a cluster: lifecycle events that nodes have accepted, in streams of NATS `JetStream`, from which workers take them.
//!
//! A node keeps an event in its outbox until the queue confirms it, and a worker acknowledges it once its hooks have ended. What
//! cannot be delivered goes into a second stream, of dead letters.
//!
//! ```text
//! node: run::Outbox ── LifecycleQueue::put ──▶ QUEUE_<name> ──┐
//! worker: run::Outbox ◀── EventIntake ── QueueWorker ◀────────┘
//!              └── HeldMessages ─┬─ acknowledged
//!                                └─▶ DEAD_<name>
//! ```

mod damage;
mod held;
mod message;
#[cfg(feature = "cli")]
mod operator;
mod passed;
mod roll_call;
mod seen;
mod streams;
#[cfg(test)]
pub(super) mod tests;
mod watch;
mod worker;

use std::time::Duration;

use super::{OutboxRow, shared::ClusterOptions};

pub(crate) use message::QueuedEvent;
#[cfg(feature = "cli")]
pub(crate) use operator::{DeadMessage, NotRetried, QueueOperator, QueueReport};
pub(crate) use streams::{LifecycleQueue, NotPut};
pub(crate) use worker::QueueWorker;

/// How events of a cluster are queued.
#[derive(Debug, Clone)]
pub(crate) struct QueueOptions {
    pub(crate) cluster: ClusterOptions,
    /// The bytes that may wait.
    pub(crate) size: usize,
    /// The number of dead letters, and their bytes.
    pub(crate) dead: usize,
    pub(crate) dead_size: usize,
    /// How long a worker may say nothing of an event before another one gets it.
    pub(crate) silence: Duration,
    /// How many events a worker has at the same time.
    pub(crate) at_once: usize,
}

/// What gives the events of a queue to their hooks.
pub(crate) trait EventIntake: Send + Sync {
    /// Takes in an event.
    fn take_in(&self, row: OutboxRow);

    /// The queue has heard what has become of an event.
    fn settled(&self, id: u64);
}
