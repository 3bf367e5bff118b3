//! The outbox of a cluster with a queue: on a node, events go from it into the queue; on a worker, those that are taken out of
//! the queue are in it until their hooks have ended.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, Semaphore},
    time::Instant,
};

use super::{
    Outbox, OutboxLimits, OutboxOrigin, OutboxRefusal,
    state::{OutboxEntry, OutboxState},
    ticket::written,
};
use crate::{
    model::{Event, HookName, Workspace},
    store::{EventIntake, OutboxRow, OutboxStore, StoredOutbox},
    telemetry::{DeliveryEnded, LetterDied},
};

/// Why an event is not accepted for the queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NotAccepted {
    /// There is no room.
    Refused(OutboxRefusal),
    /// It cannot be written to disk.
    NotStored(Arc<str>),
}

/// RAII guard: an event that is being written. If nobody waits for that any more, it goes into the queue all the same.
struct BeingWritten<'o> {
    outbox: &'o Outbox,
    id: u64,
    is_refused: bool,
}

impl Drop for BeingWritten<'_> {
    fn drop(&mut self) {
        let mut state = self.outbox.state.lock();
        if self.is_refused {
            Outbox::forget(&mut state, self.id);
        } else {
            state.mark_unsent(self.id, true);
            state.wait(self.id, Instant::now());
        }
        drop(state);
        self.outbox.changed.notify_one();
    }
}

impl Outbox {
    /// The outbox of a worker, which gives so many events to their hooks at a time.
    pub(crate) fn of_queue(store: Arc<dyn OutboxStore>, at_once: usize) -> Arc<Self> {
        DeliveryEnded::expect_all();
        LetterDied::expect_all();
        // What is in it is in the queue already, which has limits of its own.
        let limits = OutboxLimits { size: usize::MAX, dead: usize::MAX, dead_size: usize::MAX };
        // One workspace may have half of what is under way.
        let state = OutboxState::new(store, limits, at_once.saturating_mul(2), StoredOutbox::default());
        Arc::new(Self {
            state: Mutex::new(state),
            changed: Notify::new(),
            places: Arc::new(Semaphore::new(at_once.min(Semaphore::MAX_PERMITS))),
            origin: OutboxOrigin::Queue,
        })
    }

    /// Takes an event in that goes into the queue. It is on disk then.
    ///
    /// Returns an error if it is not.
    pub(crate) async fn accept_for_queue(
        &self,
        workspace: &Workspace,
        event: &Arc<Event>,
        required: Vec<HookName>,
    ) -> Result<(), NotAccepted> {
        let (id, stored) = self.add_row(workspace, event, required, false).map_err(NotAccepted::Refused)?;
        let mut being_written = BeingWritten { outbox: self, id, is_refused: false };
        let Some(stored) = stored else { return Ok(()) };
        let stored = written(stored).await;
        being_written.is_refused = stored.is_err();
        stored.map_err(NotAccepted::NotStored)
    }

    /// The queue has an event.
    pub(crate) fn forwarded(&self, id: u64) {
        Self::forget(&mut self.state.lock(), id);
        self.changed.notify_one();
    }

    /// The queue does not have an event, or may have it: it is sent again.
    pub(crate) fn not_forwarded(&self, id: u64, is_unsent: bool, pause: Duration) {
        let mut state = self.state.lock();
        state.mark_unsent(id, is_unsent);
        state.wait(id, Instant::now() + pause);
        drop(state);
        self.changed.notify_one();
    }
}

impl OutboxState {
    fn mark_unsent(&mut self, id: u64, is_unsent: bool) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.is_unsent = is_unsent;
        }
    }
}

impl EventIntake for Outbox {
    fn take_in(&self, row: OutboxRow) {
        let mut state = self.state.lock();
        let id = row.id;
        state.insert(id, OutboxEntry::of_stored(row, Instant::now()));
        drop(state);
        self.changed.notify_one();
    }

    fn settled(&self, id: u64) {
        self.state.lock().remove(id);
        self.changed.notify_one();
    }
}
