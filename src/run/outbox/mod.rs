//! The outbox: lifecycle events from their acceptance until their hooks have ended, so that a crash loses none. What
//! fails is delivered again; what fails too often becomes a dead letter.
//!
//! ```text
//! accept ──▶ under way ── all hooks ended ──▶ removed
//!              │  ▲
//!   hooks failed  │ next, begin
//!              ▼  │
//!            waiting ── no try left, no workspace ──▶ dead letter ── retry ──▶ waiting
//! ```

#[cfg(feature = "daemon")]
mod handover;
mod operator;
mod queue;
#[cfg(feature = "cluster")]
mod queued;
mod state;
#[cfg(test)]
mod tests;
mod ticket;

use std::{
    sync::Arc,
    time::{Duration, SystemTime},
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

#[cfg(feature = "cluster")]
pub(crate) use queued::NotAccepted;
pub(crate) use state::{DueEvent, OutboxEntry, OutboxPhase};
pub(crate) use ticket::{
    AcceptedEvent, CourseTicket, HookResults, OutboxCounts, OutboxLimits, OutboxRefusal,
};

use self::{
    state::OutboxState,
    ticket::{DeliveryTicket, LONGEST_WRITE, Stored, TicketOwner},
};
use crate::{
    model::{Delivery, Event, HookName, Workspace, WorkspaceId},
    store::{
        DeadLetter, DeadLetterReason, DeliveryProgress, OutboxRow, OutboxStore, StoredOutbox, encode_event,
    },
    telemetry::{DeliveryEnded, LetterDied, LettersDropped},
};

/// How often an event is given to its hooks.
const MOST_TRIES: u32 = 5;

/// The wait before the second try; each further one is four times as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);

/// How many events are delivered again at the same time. One workspace has half of them at most, and less the more others
/// have.
const MOST_REPEATED: usize = 32;

/// The outbox of an orchestrator.
#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<OutboxState>,
    /// Notified when there may be something to deliver again.
    changed: Notify,
    /// Permits for deliveries after the first.
    places: Arc<Semaphore>,
    origin: OutboxOrigin,
}

/// Whose events are in an outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OutboxOrigin {
    /// This daemon has accepted them.
    Own,
    /// They are from a queue: others have accepted them, for hooks that are expected here.
    #[cfg(feature = "cluster")]
    Queue,
}

impl Outbox {
    /// An outbox with what its store has. Everything in it is due.
    pub(crate) fn new(store: Arc<dyn OutboxStore>, limits: OutboxLimits, stored: StoredOutbox) -> Arc<Self> {
        DeliveryEnded::expect_all();
        LetterDied::expect_all();
        LettersDropped(0).emit();
        let outbox = Self {
            state: Mutex::new(OutboxState::new(store, limits, MOST_REPEATED, stored)),
            changed: Notify::new(),
            places: Arc::new(Semaphore::new(MOST_REPEATED)),
            origin: OutboxOrigin::Own,
        };
        // The limits may be lower than they were.
        Self::trim(&mut outbox.state.lock());
        Arc::new(outbox)
    }

    /// Takes an event in that these required hooks want, among others. If nobody waits for its outcome, it is written to disk at once, else within a second: many have
    /// ended by then.
    ///
    /// Returns an error if there is no room for it.
    pub(crate) fn accept(
        self: &Arc<Self>,
        workspace: &Workspace,
        event: &Arc<Event>,
        required: Vec<HookName>,
        is_awaited: bool,
    ) -> Result<AcceptedEvent, OutboxRefusal> {
        let (id, stored) = self.add_row(workspace, event, required, is_awaited)?;
        Ok(AcceptedEvent { ticket: self.ticket(id, None), stored })
    }

    /// Adds a row. Whether nobody is told that it is there decides how soon it is on disk.
    ///
    /// Returns an error if there is no room for it.
    fn add_row(
        &self,
        workspace: &Workspace,
        event: &Arc<Event>,
        required: Vec<HookName>,
        is_awaited: bool,
    ) -> Result<(u64, Option<Stored>), OutboxRefusal> {
        let text: Arc<str> = encode_event(event).into();
        let mut state = self.state.lock();
        let root = Some(workspace.root.to_string_lossy().into());
        let progress = DeliveryProgress { root, required, ..DeliveryProgress::first() };
        let workspace = &workspace.id;
        let id = state.add(workspace, event, text.len(), progress.clone())?;
        let row = OutboxRow { id, workspace: workspace.clone(), event: Arc::clone(event), text, progress };
        // While the state is locked, so that nothing about the row can be written before it.
        let stored = if is_awaited {
            state.store.add(row);
            None
        } else {
            Some(state.store.add_now(row))
        };
        Ok((id, stored))
    }

    /// A permit to deliver an event again.
    pub(crate) async fn place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.places).acquire_owned().await.ok()
    }

    /// Waits for an event that is to be delivered again, or for the end of the outbox.
    pub(crate) async fn next(&self) -> Option<DueEvent> {
        loop {
            let changed = self.changed.notified();
            let next = {
                let mut state = self.state.lock();
                if state.is_closed || state.is_handed_over {
                    return None;
                }
                state.take_due(Instant::now())
            };
            match next {
                Ok(due) => return Some(due),
                Err(Some(at)) => drop(tokio::time::timeout_at(at, changed).await),
                Err(None) => changed.await,
            }
        }
    }

    /// Begins another delivery of an event. Waits until that is on disk, so that an event whose hooks end hookyard itself
    /// does so a few times only. Returns the event as its hooks get it, and its ticket; nothing if it was cancelled meanwhile.
    pub(crate) async fn begin(
        self: &Arc<Self>,
        due: &DueEvent,
        place: OwnedSemaphorePermit,
    ) -> Option<(Event, CourseTicket)> {
        let (event, written) = {
            let mut state = self.state.lock();
            if due.progress.tries >= MOST_TRIES {
                // The process ended during each of them, else it would be a dead letter already.
                Self::bury(&mut state, due.id, DeadLetterReason::Interrupted);
                return None;
            }
            let OutboxEntry { event, progress, .. } = state.begin(due.id)?;
            let written = state.store.update_now(due.id, &progress);
            let mut event = Event::clone(&event);
            event.arrival = event.arrival.map(|arrival| arrival.delivered(progress.deliveries));
            event.delivery = Delivery::Detached;
            event.span = None;
            (event, written)
        };
        // An event is delivered all the same if that cannot be written.
        drop(timeout(LONGEST_WRITE, written).await);
        let is_wanted = self.state.lock().hand_out(due.id);
        is_wanted.then(|| (event, self.ticket(due.id, Some(place))))
    }

    fn ticket(self: &Arc<Self>, id: u64, place: Option<OwnedSemaphorePermit>) -> CourseTicket {
        CourseTicket::new(DeliveryTicket::new(Arc::clone(self) as Arc<dyn TicketOwner>, id, place))
    }

    /// Has a failed delivery tried again, unless it was the last try.
    fn failed(state: &mut OutboxState, id: u64, results: HookResults) {
        let is_interrupted = results.ended() == DeliveryEnded::Interrupted;
        let reason = if is_interrupted { DeadLetterReason::Interrupted } else { DeadLetterReason::Tries };
        let Some(progress) = state.note(id, results) else { return };
        if progress.tries >= MOST_TRIES {
            return Self::bury(state, id, reason);
        }
        state.store.update(id, &progress);
        state.wait(id, Instant::now() + pause_after(progress.tries));
    }

    /// Has a delivery repeated for which there was no place: that counts as no try.
    fn found_no_place(state: &mut OutboxState, id: u64, results: HookResults) {
        if state.note(id, results).is_none() {
            return;
        }
        let Some(progress) = state.give_try_back(id) else { return };
        state.store.update(id, &progress);
        state.wait(id, Instant::now() + pause_after(progress.deliveries.min(MOST_TRIES - 1)));
    }

    /// An event could not be given to its hooks for a reason of its own: that counts as a try.
    pub(crate) fn undeliverable(&self, due: &DueEvent, why: &str) {
        let mut state = self.state.lock();
        if state.begin(due.id).is_none() {
            return;
        }
        let results = HookResults { error: Some(why.into()), ..HookResults::default() };
        Self::failed(&mut state, due.id, results);
        drop(state);
        DeliveryEnded::Failed.emit();
        self.changed.notify_one();
    }

    /// There was no room for an event: it is tried again later, and that counts as no try.
    pub(crate) fn postpone(&self, id: u64, pause: Duration) {
        self.state.lock().wait(id, Instant::now() + pause);
        self.changed.notify_one();
    }

    /// No hook wants an event any more.
    pub(crate) fn unwanted(&self, id: u64) {
        #[cfg(feature = "cluster")]
        if self.origin == OutboxOrigin::Queue {
            Self::bury(&mut self.state.lock(), id, DeadLetterReason::Unwanted);
            return self.changed.notify_one();
        }
        Self::forget(&mut self.state.lock(), id);
        tracing::info!(id, "an event is not delivered again: no hook that is loaded now wants it");
        DeliveryEnded::Unwanted.emit();
        self.changed.notify_one();
    }

    fn forget(state: &mut OutboxState, id: u64) {
        state.remove(id);
        state.store.remove(id);
    }

    /// The workspace of an event is not registered: it waits for it.
    pub(crate) fn wait_for_workspace(&self, id: u64, pause: Duration) {
        let now = Instant::now();
        let mut state = self.state.lock();
        state.miss_workspace(id, now);
        state.wait(id, now + pause);
    }

    /// A workspace was loaded.
    pub(crate) fn workspace_loaded(&self, workspace: &WorkspaceId) {
        self.state.lock().find_workspace(workspace, Instant::now());
        self.changed.notify_one();
    }

    /// The workspaces that events wait for, each with the first of them.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only the daemon registers by directory"))]
    pub(crate) fn missing_workspaces(&self) -> Vec<(WorkspaceId, Arc<Event>)> {
        self.state.lock().workspaces_of_waiting()
    }

    /// The workspace of an event stays away.
    pub(crate) fn no_workspace(&self, id: u64) {
        Self::bury(&mut self.state.lock(), id, DeadLetterReason::NoWorkspace);
        self.changed.notify_one();
    }

    /// Another directory has the ID of the workspace of an event: its hooks do not get the event.
    pub(crate) fn workspace_moved(&self, id: u64) {
        Self::bury(&mut self.state.lock(), id, DeadLetterReason::WorkspaceGone);
        self.changed.notify_one();
    }

    /// Makes an event a dead letter.
    fn bury(state: &mut OutboxState, id: u64, reason: DeadLetterReason) {
        let letter = DeadLetter { reason, at: SystemTime::now() };
        let Some(entry) = state.bury(id, letter) else { return };
        let (workspace, event, tries) = (&entry.workspace, entry.event.kind, entry.progress.tries);
        tracing::warn!(
            id, %workspace, %event, tries, reason = reason.as_str(),
            "an event could not be delivered and is a dead letter now"
        );
        state.store.update(id, &entry.progress);
        LetterDied(reason.as_str()).emit();
        Self::trim(state);
    }

    /// Drops the oldest dead letters beyond the limits.
    fn trim(state: &mut OutboxState) {
        let dropped = state.trim_dead();
        for id in &dropped {
            state.store.remove(*id);
        }
        if !dropped.is_empty() {
            tracing::warn!(
                letters = dropped.len(),
                "the oldest dead letters are dropped: there are more than `outbox.dead_letters` and \
                 `outbox.dead_size` allow"
            );
            LettersDropped(dropped.len()).emit();
        }
    }

    /// Begins no more deliveries. What is interrupted from now on stays for the next start.
    pub(crate) fn close(&self) {
        self.state.lock().is_closed = true;
        self.changed.notify_one();
    }
}

impl TicketOwner for Outbox {
    fn concluded(&self, id: u64, results: HookResults) {
        let mut state = self.state.lock();
        let ended = results.ended();
        let is_dead = state.entry(id).is_some_and(|entry| entry.phase == OutboxPhase::Dead);
        let is_first = state.entry(id).is_none_or(|entry| entry.progress.deliveries <= 1);
        match ended {
            DeliveryEnded::Delivered | DeliveryEnded::Unwanted | DeliveryEnded::Refused => {
                Self::forget(&mut state, id);
            }
            // Its workspace was removed meanwhile, which cancels its run.
            _ if is_dead => {}
            DeliveryEnded::Cancelled | DeliveryEnded::Repeated => Self::forget(&mut state, id),
            // When the event was accepted, nobody had agreed to the hook.
            DeliveryEnded::Untrusted if is_first && self.origin == OutboxOrigin::Own => {
                Self::forget(&mut state, id);
            }
            DeliveryEnded::Untrusted => {
                state.note(id, results);
                Self::bury(&mut state, id, DeadLetterReason::Untrusted);
            }
            // By a shutdown, which is no fault of the event: the next start has as many tries.
            DeliveryEnded::Interrupted if state.is_closed => {
                if let Some(progress) = state.give_try_back(id) {
                    state.store.update(id, &progress);
                }
            }
            DeliveryEnded::Failed if results.found_no_place() => {
                Self::found_no_place(&mut state, id, results);
            }
            DeliveryEnded::Failed | DeliveryEnded::Interrupted => Self::failed(&mut state, id, results),
        }
        drop(state);
        ended.emit();
        self.changed.notify_one();
    }

    fn begun(&self, id: u64, hooks: Vec<HookName>) {
        let mut state = self.state.lock();
        if let Some(progress) = state.begun(id, hooks) {
            state.store.update(id, &progress);
        }
    }

    fn unfinished(&self, id: u64) -> Vec<HookName> {
        self.state.lock().entry(id).map(|entry| entry.progress.unfinished.clone()).unwrap_or_default()
    }
}

/// The pause after this many tries.
fn pause_after(tries: u32) -> Duration {
    FIRST_WAIT.saturating_mul(4_u32.saturating_pow(tries.saturating_sub(1)))
}
