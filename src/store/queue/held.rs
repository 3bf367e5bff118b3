//! The messages that a worker has, and what becomes of them: what its outbox writes down, the queue is told.

use std::{
    collections::{BTreeMap, HashMap, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_nats::jetstream::{AckKind, message::Acker};
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
    are_last: AtomicBool,
}

/// The messages that have ended last.
#[derive(Debug, Default)]
struct EndedMessages {
    /// Oldest first.
    order: VecDeque<u64>,
    origins: HashMap<u64, Origin>,
}

/// Where a message comes from, since another stream has messages with the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Origin {
    /// When it was put into the queue, by the servers' clock.
    pub(super) put_at: i128,
    /// How often what waited in the queue was lost before this worker got it.
    pub(super) losses: u64,
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
    /// Another message had its number: the queue has lost that one.
    NumberAgain,
    /// A message of a former queue with its number is under way here.
    Later,
}

/// A message that is not acknowledged.
#[derive(Clone)]
pub(super) struct HeldMessage {
    pub(super) origin: Origin,
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
    pub(super) fn new(acker: Acker, payload: Bytes, taken: u32, (origin, connection): (Origin, u64)) -> Self {
        Self { origin, connection, acker: Arc::new(acker), payload, taken, is_ending: false }
    }

    /// Has the queue give the message out again after a pause.
    pub(super) async fn give_back(&self, pause: Duration) {
        // One that cannot be given back is given out again after a while.
        self.acker.ack_with(AckKind::Nak(Some(pause))).await.ok();
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
        let held = Self {
            messages: Mutex::default(),
            ended: Mutex::default(),
            fewer: Notify::new(),
            endings,
            are_last: AtomicBool::new(false),
        };
        (held, ended)
    }

    pub(super) fn len(&self) -> usize {
        self.messages.lock().len()
    }

    /// Takes in a message. Returns what it is.
    pub(super) fn hold(&self, id: u64, message: HeldMessage) -> Given {
        let ended = self.ended.lock().origins.get(&id).copied();
        if ended.is_some_and(|ended| ended.put_at == message.origin.put_at) {
            return Given::Ended;
        }
        let mut messages = self.messages.lock();
        let held = messages.get_mut(&id);
        let former = held.as_ref().map(|held| held.origin).or(ended);
        match held {
            Some(held) if held.origin.put_at == message.origin.put_at => {
                (held.acker, held.connection) = (message.acker, message.connection);
                return Given::Held;
            }
            _ if former.is_some_and(|former| former.losses == message.origin.losses) => {
                return Given::NumberAgain;
            }
            Some(_) => return Given::Later,
            None => {}
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

    /// This worker takes no further ones.
    pub(super) fn take_no_more(&self) {
        self.are_last.store(true, Ordering::Relaxed);
    }

    /// Whether this worker takes no further ones.
    pub(super) fn are_last(&self) -> bool {
        self.are_last.load(Ordering::Relaxed)
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
    pub(super) fn ended(&self, id: u64, origin: Origin) {
        let mut ended = self.ended.lock();
        if ended.origins.insert(id, origin).is_none() {
            ended.order.push_back(id);
            if ended.order.len() > ENDED_REMEMBERED
                && let Some(oldest) = ended.order.pop_front()
            {
                ended.origins.remove(&oldest);
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
