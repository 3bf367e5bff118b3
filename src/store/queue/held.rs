//! The messages that a worker has, and what becomes of them: what its outbox writes down, the queue is told.

use std::{collections::BTreeMap, sync::Arc};

use async_nats::jetstream::message::Acker;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use super::streams::Death;
use crate::store::{DeliveryProgress, OutboxRow, OutboxStore};

/// The messages that a worker has.
#[derive(Debug)]
pub(crate) struct HeldMessages {
    messages: Mutex<BTreeMap<u64, HeldMessage>>,
    /// Notified when there are fewer.
    pub(super) fewer: Notify,
    endings: mpsc::UnboundedSender<(u64, Ending)>,
}

/// A message that is not acknowledged.
#[derive(Clone)]
pub(super) struct HeldMessage {
    pub(super) acker: Arc<Acker>,
    pub(super) payload: Bytes,
    pub(super) taken: u32,
    /// The queue is about to hear what has become of it.
    is_ending: bool,
}

/// How a message ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Ending {
    /// Its hooks have ended, or nobody wants it any more.
    Done,
    /// It cannot be delivered.
    Dead(Death),
}

impl std::fmt::Debug for HeldMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeldMessage").field("taken", &self.taken).finish_non_exhaustive()
    }
}

impl HeldMessages {
    /// None, and a receiver of those that end. There are at most as many as are held.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<(u64, Ending)>) {
        let (endings, ended) = mpsc::unbounded_channel();
        (Self { messages: Mutex::default(), fewer: Notify::new(), endings }, ended)
    }

    pub(super) fn len(&self) -> usize {
        self.messages.lock().len()
    }

    /// Takes in a message. Returns whether it is new: one that the queue gives out again is acknowledged by its last copy.
    pub(super) fn hold(&self, id: u64, acker: Acker, payload: Bytes, taken: u32) -> bool {
        let mut messages = self.messages.lock();
        let acker = Arc::new(acker);
        if let Some(known) = messages.get_mut(&id) {
            known.acker = acker;
            return false;
        }
        messages.insert(id, HeldMessage { acker, payload, taken, is_ending: false });
        true
    }

    pub(super) fn get(&self, id: u64) -> Option<HeldMessage> {
        self.messages.lock().get(&id).cloned()
    }

    pub(super) fn ackers(&self) -> Vec<Arc<Acker>> {
        self.messages.lock().values().map(|held| Arc::clone(&held.acker)).collect()
    }

    /// Whether the queue is about to hear of one.
    pub(super) fn are_ending(&self) -> bool {
        self.messages.lock().values().any(|held| held.is_ending)
    }

    pub(super) fn release(&self, id: u64) {
        self.messages.lock().remove(&id);
        self.fewer.notify_waiters();
    }

    /// Has the queue hear what becomes of a message: the first that is said of it counts.
    pub(super) fn end(&self, id: u64, ending: Ending) {
        let mut messages = self.messages.lock();
        let Some(held) = messages.get_mut(&id) else { return };
        if !std::mem::replace(&mut held.is_ending, true) {
            // Fails only while the worker ends, and then another one gets it.
            self.endings.send((id, ending)).ok();
        }
    }
}

/// What an outbox writes down is what the queue is told. Nothing else is kept: it is in the queue.
impl OutboxStore for HeldMessages {
    fn add(&self, _: OutboxRow) {}

    fn add_now(&self, _: OutboxRow) -> oneshot::Receiver<Result<(), Arc<str>>> {
        written()
    }

    fn update(&self, id: u64, progress: &DeliveryProgress) {
        let Some(letter) = progress.dead else { return };
        let taken = self.get(id).map_or(0, |held| held.taken);
        let error = progress.error.as_deref().map(str::to_owned);
        self.end(id, Ending::Dead(Death { reason: letter.reason.as_str(), error, taken }));
    }

    fn update_now(&self, id: u64, progress: &DeliveryProgress) -> oneshot::Receiver<Result<(), Arc<str>>> {
        self.update(id, progress);
        written()
    }

    fn remove(&self, id: u64) {
        self.end(id, Ending::Done);
    }
}

fn written() -> oneshot::Receiver<Result<(), Arc<str>>> {
    let (sender, receiver) = oneshot::channel();
    // The receiver is there.
    sender.send(Ok(())).ok();
    receiver
}
