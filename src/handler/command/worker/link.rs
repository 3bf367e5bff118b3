//! The caller's end of one worker. Owns what is sent to the worker's life and how its beginning is waited for;
//! refuses to touch the process.

use std::sync::{Arc, Once};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    task::AbortHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{line::Question, terms::MOST_OPEN};
use crate::model::Failure;

/// What a worker said about an event: the output, as JSON.
pub(super) type Answer = Result<Bytes, Failure>;

/// How many events a worker, or all of a fleet, take at once: one each, or many once a worker said that it can.
#[derive(Debug)]
pub(super) struct Seats {
    workers: usize,
    free: Arc<Semaphore>,
    widened: Once,
}

impl Seats {
    pub(super) fn of(workers: usize) -> Self {
        Self { workers, free: Arc::new(Semaphore::new(workers)), widened: Once::new() }
    }

    /// Waits for a free seat.
    pub(super) async fn take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    fn try_take(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// Each worker takes many events.
    pub(super) fn widen(&self) {
        self.widened.call_once(|| self.free.add_permits(self.workers.saturating_mul(MOST_OPEN - 1)));
    }

    /// How many are taken.
    fn taken(&self) -> usize {
        let each = if self.widened.is_completed() { MOST_OPEN } else { 1 };
        self.workers.saturating_mul(each).saturating_sub(self.free.available_permits())
    }
}

/// The right to ask a worker about one event: one place of the fleet's and one of the worker's. It is held until
/// the worker has answered, also when nobody waits for the answer any more.
pub(super) type Place = (OwnedSemaphorePermit, OwnedSemaphorePermit);

/// An event for a worker.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) question: Question,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<Answer>,
    pub(super) place: Place,
}

/// What callers tell a worker's life.
#[derive(Debug)]
pub(super) enum Message {
    Event(Request),
    /// Nobody waits for this event any more.
    Cancel(u64),
}

/// How far a worker has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Starting,
    /// It said hello.
    Ready,
    /// It serves, and has done nearly all of its share.
    Waning,
}

/// One worker, as its fleet sees it. Dropping it ends the worker.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) messages: mpsc::UnboundedSender<Message>,
    pub(super) phase: watch::Receiver<Phase>,
    pub(super) seats: Arc<Seats>,
    /// Kills the worker at once.
    pub(super) life: AbortHandle,
}

impl Link {
    /// Whether it takes no more events.
    pub(super) fn is_closed(&self) -> bool {
        self.messages.is_closed()
    }

    pub(super) fn is_in(&self, phase: Phase) -> bool {
        *self.phase.borrow() == phase
    }

    pub(super) fn take_seat(&self) -> Option<OwnedSemaphorePermit> {
        self.seats.try_take()
    }

    /// How many events it has.
    pub(super) fn load(&self) -> usize {
        self.seats.taken()
    }

    /// Waits until the worker said hello; returns whether it did.
    pub(super) async fn is_ready(&self) -> bool {
        !self.is_in(Phase::Starting)
            || self.phase.clone().wait_for(|phase| *phase != Phase::Starting).await.is_ok()
    }

    /// Asks the worker about an event. Dropping the future tells the worker that nobody waits.
    ///
    /// Returns `None` if the worker never got the event.
    pub(super) async fn ask(
        &self,
        question: Question,
        deadline: Instant,
        place: Place,
        cancel: &CancellationToken,
    ) -> Option<Answer> {
        let (reply, answer) = oneshot::channel();
        let id = question.id;
        let request = Request { question, deadline, reply, place };
        self.messages.send(Message::Event(request)).ok()?;
        let mut waiting = Waiting { link: self, id, answered: false };
        tokio::select! {
            biased;
            answer = answer => {
                waiting.answered = true;
                answer.ok()
            }
            () = cancel.cancelled() => {
                Some(Err(Failure::cancelled()))
            }
        }
    }
}

/// Somebody waits for an event's answer.
struct Waiting<'a> {
    link: &'a Link,
    id: u64,
    answered: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.answered {
            // A send fails only if the worker is gone, and its events with it.
            drop(self.link.messages.send(Message::Cancel(self.id)));
        }
    }
}
