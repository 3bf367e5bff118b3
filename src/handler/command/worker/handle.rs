//! The caller's end of one worker: commands for its event loop, its phase and its capacity.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use tokio::{
    sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch},
    task::AbortHandle,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    pace::MOST_AHEAD,
    protocol::{EventFlow, EventMessage},
};
use crate::{handler::runner::SharedPermit, model::Failure};

/// The result of an event: the worker's output as JSON, or a failure.
pub(super) type WorkerAnswer = Result<Bytes, Failure>;

/// How many events one worker, or all of a fleet together, take at once: one per worker, until a worker's hello says
/// that it takes more.
#[derive(Debug)]
pub(super) struct WorkerCapacity {
    workers: usize,
    free: Arc<Semaphore>,
    /// How many permits there are per worker.
    most: OnceLock<usize>,
    /// How many events each worker should have at present.
    window: AtomicUsize,
}

impl WorkerCapacity {
    pub(super) fn of(workers: usize) -> Self {
        Self {
            workers,
            free: Arc::new(Semaphore::new(workers)),
            most: OnceLock::new(),
            window: AtomicUsize::new(1),
        }
    }

    /// Waits for a permit.
    pub(super) async fn acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).acquire_owned().await.ok()
    }

    pub(super) fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.free).try_acquire_owned().ok()
    }

    /// From now on each worker takes as many events as its hello allows. Only the first call counts.
    pub(super) fn allow(&self, flow: EventFlow) {
        let (most, window) = match flow {
            EventFlow::Single => (1, 1),
            EventFlow::Pipeline => (MOST_AHEAD, 1),
            EventFlow::Multiplex(most) => (most.get(), most.get()),
        };
        if self.most.set(most).is_ok() {
            self.window.store(window, Ordering::Relaxed);
            self.free.add_permits(self.workers.saturating_mul(most - 1));
        }
    }

    /// Sets how many events each worker should have. Returns whether that is a change.
    pub(super) fn set_window(&self, window: usize) -> bool {
        self.window.load(Ordering::Relaxed) != window && self.window.swap(window, Ordering::Relaxed) != window
    }

    /// How many events it should have.
    pub(super) fn total(&self) -> usize {
        self.workers.saturating_mul(self.window.load(Ordering::Relaxed))
    }

    /// How many permits are in use.
    fn in_use(&self) -> usize {
        let most = self.most.get().copied().unwrap_or(1);
        self.workers.saturating_mul(most).saturating_sub(self.free.available_permits())
    }
}

/// The right to send a worker one event. It is held until the worker has answered, even if nobody waits for the answer
/// any more.
#[derive(Debug)]
#[expect(dead_code, reason = "its parts are only held, and dropped together")]
pub(super) struct WorkerPermit {
    pub(super) fleet: OwnedSemaphorePermit,
    pub(super) worker: OwnedSemaphorePermit,
    /// The permit by which the event came here.
    pub(super) hook: Option<SharedPermit>,
}

/// An event to be sent to a worker.
#[derive(Debug)]
pub(super) struct WorkerRequest {
    pub(super) event: EventMessage,
    pub(super) deadline: Instant,
    pub(super) reply: oneshot::Sender<WorkerAnswer>,
    pub(super) permit: WorkerPermit,
}

/// What callers send to a worker's event loop.
#[derive(Debug)]
pub(super) enum WorkerCommand {
    Event(WorkerRequest),
    /// Nobody waits for the event of this id any more.
    Cancel(u64),
}

/// The phases of a worker, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkerPhase {
    /// It has not said hello yet.
    Starting,
    /// It serves events.
    Ready,
    /// It serves events and is near its limit of requests, so that its successor may be started.
    Retiring,
}

/// One worker, as its fleet sees it. Once all handles are dropped, the worker finishes its open events and retires.
#[derive(Debug)]
pub(super) struct WorkerHandle {
    pub(super) commands: mpsc::UnboundedSender<WorkerCommand>,
    pub(super) phase: watch::Receiver<WorkerPhase>,
    pub(super) capacity: Arc<WorkerCapacity>,
    /// Kills the worker at once when aborted.
    pub(super) abort: AbortHandle,
}

impl WorkerHandle {
    /// Whether it takes no more events.
    pub(super) fn is_closed(&self) -> bool {
        self.commands.is_closed()
    }

    pub(super) fn is_in(&self, phase: WorkerPhase) -> bool {
        *self.phase.borrow() == phase
    }

    /// A permit, even if the event then waits behind others.
    pub(super) fn try_acquire(&self) -> Option<OwnedSemaphorePermit> {
        self.capacity.try_acquire()
    }

    /// A permit, if it should get more events than it has.
    pub(super) fn try_enter(&self) -> Option<OwnedSemaphorePermit> {
        if self.capacity.in_use() < self.capacity.total() { self.try_acquire() } else { None }
    }

    /// How many events it works on.
    pub(super) fn load(&self) -> usize {
        self.capacity.in_use()
    }

    /// Waits for the hello; returns false if the worker ended without one.
    pub(super) async fn is_ready(&self) -> bool {
        !self.is_in(WorkerPhase::Starting)
            || self.phase.clone().wait_for(|phase| *phase != WorkerPhase::Starting).await.is_ok()
    }

    /// Sends the worker an event and waits for the answer. Dropping the future cancels the event.
    ///
    /// Returns `None` if the worker ended before it began with the event.
    pub(super) async fn ask(
        &self,
        event: EventMessage,
        deadline: Instant,
        permit: WorkerPermit,
        cancel: &CancellationToken,
    ) -> Option<WorkerAnswer> {
        let (reply, answer) = oneshot::channel();
        let id = event.id;
        let request = WorkerRequest { event, deadline, reply, permit };
        self.commands.send(WorkerCommand::Event(request)).ok()?;
        let mut guard = CancelOnDrop { handle: self, id, answered: false };
        tokio::select! {
            biased;
            answer = answer => {
                guard.answered = true;
                answer.ok()
            }
            () = cancel.cancelled() => {
                Some(Err(Failure::cancelled()))
            }
        }
    }
}

/// Tells the worker that nobody waits for an event any more, unless it was answered.
struct CancelOnDrop<'a> {
    handle: &'a WorkerHandle,
    id: u64,
    answered: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if !self.answered {
            // Fails only if the worker is gone, and its events with it.
            drop(self.handle.commands.send(WorkerCommand::Cancel(self.id)));
        }
    }
}
