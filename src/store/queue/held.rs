//! The messages that a worker has, and what becomes of them: what its outbox writes down, the queue is told.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::Arc,
};

use async_nats::jetstream::message::Acker;
use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc, oneshot};

use super::message::Death;
use crate::store::{DeliveryProgress, OutboxRow, OutboxStore};

/// How many messages are remembered that have ended. A server that was killed gives out again what it gave out just before.
const ENDED_REMEMBERED: usize = 4096;

/// The messages that a worker has.
#[derive(Debug)]
pub(crate) struct HeldMessages {
    messages: Mutex<BTreeMap<u64, HeldMessage>>,
    ended: Mutex<EndedMessages>,
    /// Notified when there are fewer.
    pub(super) fewer: Notify,
    endings: mpsc::UnboundedSender<(u64, Ending)>,
}

/// The messages that have ended last.
#[derive(Debug, Default)]
struct EndedMessages {
    /// Oldest first.
    order: VecDeque<u64>,
    /// When each was put into the queue: another stream has messages with the same numbers.
    put_at: HashMap<u64, i128>,
}

/// What a message is that comes out of the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Given {
    /// It is new here.
    New,
    /// It is under way here. It is acknowledged by its last copy.
    Held,
    /// It has ended here, and the queue has forgotten that.
    Ended,
}

/// A message that is not acknowledged.
#[derive(Clone)]
pub(super) struct HeldMessage {
    /// When it was put into the queue, by the servers' clock.
    pub(super) put_at: i128,
    /// Which connection of this worker it came by.
    pub(super) connection: u64,
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

impl HeldMessage {
    pub(super) fn new(acker: Acker, payload: Bytes, taken: u32, (put_at, connection): (i128, u64)) -> Self {
        Self { put_at, connection, acker: Arc::new(acker), payload, taken, is_ending: false }
    }
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
        (Self { messages: Mutex::default(), ended: Mutex::default(), fewer: Notify::new(), endings }, ended)
    }

    pub(super) fn len(&self) -> usize {
        self.messages.lock().len()
    }

    /// Takes in a message. Returns what it is.
    pub(super) fn hold(&self, id: u64, message: HeldMessage) -> Given {
        if self.ended.lock().put_at.get(&id) == Some(&message.put_at) {
            return Given::Ended;
        }
        let mut messages = self.messages.lock();
        if let Some(known) = messages.get_mut(&id) {
            (known.acker, known.connection) = (message.acker, message.connection);
            return Given::Held;
        }
        messages.insert(id, message);
        Given::New
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

    /// The queue may give a message to others.
    pub(super) fn release(&self, id: u64) {
        self.messages.lock().remove(&id);
        self.fewer.notify_waiters();
    }

    /// The queue has heard how a message has ended.
    pub(super) fn ended(&self, id: u64, put_at: i128) {
        let mut ended = self.ended.lock();
        if ended.put_at.insert(id, put_at).is_none() {
            ended.order.push_back(id);
            if ended.order.len() > ENDED_REMEMBERED
                && let Some(oldest) = ended.order.pop_front()
            {
                ended.put_at.remove(&oldest);
            }
        }
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
