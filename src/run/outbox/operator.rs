//! What operators do with the outbox: they list it, try events again, drop them, cancel runs and remove workspaces.

use std::{collections::BTreeSet, time::SystemTime};

use tokio::time::Instant;

use super::{Outbox, OutboxCounts, OutboxEntry, OutboxPhase, state::OutboxState};
use crate::{
    model::{Delivery, WorkspaceId},
    store::{DeadLetter, DeadLetterReason},
    telemetry::{DeliveryEnded, LetterDied},
};

impl Outbox {
    /// Has events delivered again soon, dead letters among them. Returns the ids that were found.
    pub(crate) fn retry(&self, ids: &[u64]) -> Vec<u64> {
        let now = Instant::now();
        let mut state = self.state.lock();
        // Each is named once, even if it was twice.
        let ids: BTreeSet<u64> = ids.iter().copied().collect();
        let retried: Vec<u64> = ids.into_iter().filter(|id| state.revive(*id, now)).collect();
        for id in &retried {
            if let Some(entry) = state.entry(*id) {
                state.store.update(*id, &entry.progress);
            }
        }
        drop(state);
        self.changed.notify_one();
        retried
    }

    /// Removes events that are not under way. Returns the ids that were found.
    pub(crate) fn discard(&self, ids: &[u64]) -> Vec<u64> {
        let mut state = self.state.lock();
        let idle = |state: &OutboxState, id: u64| {
            state.entry(id).is_some_and(|entry| entry.phase != OutboxPhase::UnderWay)
        };
        let ids: BTreeSet<u64> = ids.iter().copied().collect();
        let dropped: Vec<u64> = ids.into_iter().filter(|id| idle(&state, *id)).collect();
        for id in &dropped {
            state.remove(*id);
            state.store.remove(*id);
        }
        drop(state);
        self.changed.notify_one();
        dropped
    }

    /// The ids of all dead letters.
    pub(crate) fn dead_letters(&self) -> Vec<u64> {
        self.state.lock().dead_letters()
    }

    /// Copies of all entries for which the condition holds, in the order in which they were accepted, up to `most`; and how
    /// many more there are.
    pub(crate) fn list(
        &self,
        most: usize,
        wanted: impl Fn(&OutboxEntry) -> bool,
    ) -> (Vec<(u64, OutboxEntry)>, usize) {
        let state = self.state.lock();
        let mut found = state.entries().filter(|(_, entry)| wanted(entry));
        let listed: Vec<_> = found.by_ref().take(most).map(|(id, entry)| (id, entry.clone())).collect();
        (listed, found.count())
    }

    /// How much there is.
    pub(crate) fn counts(&self) -> OutboxCounts {
        self.state.lock().counts()
    }

    /// Takes the events of cancelled runs back that wait to be delivered again, or are about to be, or that another daemon
    /// still delivers.
    /// Returns how many. Others that are under way are cancelled by the actors of their runs.
    pub(crate) fn cancel(&self, is_cancelled: impl Fn(&OutboxEntry) -> bool) -> usize {
        let mut state = self.state.lock();
        let has_no_actor = |id: &u64, entry: &OutboxEntry| {
            let is_about_to = state.taken == Some(*id) && entry.phase == OutboxPhase::UnderWay;
            is_about_to || state.held.contains(id) || matches!(entry.phase, OutboxPhase::Waiting(_))
        };
        let found = state.entries().filter(|(id, entry)| has_no_actor(id, entry) && is_cancelled(entry));
        let found: Vec<u64> = found.map(|(id, _)| id).collect();
        for id in &found {
            Self::forget(&mut state, *id);
            DeliveryEnded::Cancelled.emit();
        }
        drop(state);
        self.changed.notify_one();
        found.len()
    }

    /// A workspace is removed: what it has in the outbox are dead letters, except events that are under way and whose hosts
    /// wait for them.
    pub(crate) fn workspace_removed(&self, workspace: &WorkspaceId) {
        let mut state = self.state.lock();
        let gone = state.entries().filter(|(id, entry)| {
            let is_new = entry.phase == OutboxPhase::UnderWay && !state.held.contains(id);
            let is_answered =
                is_new && entry.progress.deliveries <= 1 && entry.event.delivery == Delivery::Awaited;
            entry.workspace == *workspace && entry.phase != OutboxPhase::Dead && !is_answered
        });
        let gone: Vec<u64> = gone.map(|(id, _)| id).collect();
        let letter = DeadLetter { reason: DeadLetterReason::WorkspaceGone, at: SystemTime::now() };
        for id in &gone {
            if let Some(entry) = state.bury(*id, letter) {
                state.store.update(*id, &entry.progress);
                LetterDied(letter.reason.as_str()).emit();
            }
        }
        if !gone.is_empty() {
            tracing::warn!(
                %workspace,
                events = gone.len(),
                "the events of a workspace that is removed are dead letters now: their hooks have not ended"
            );
        }
        Self::trim(&mut state);
        drop(state);
        self.changed.notify_one();
    }
}

impl OutboxState {
    /// Has an event that is not under way be due, with all tries before it. Returns whether there is one.
    pub(super) fn revive(&mut self, id: u64, now: Instant) -> bool {
        let Some(entry) = self.entries.get_mut(&id) else { return false };
        match entry.phase {
            OutboxPhase::UnderWay => return false,
            OutboxPhase::Waiting(_) => {}
            OutboxPhase::Dead => {
                let size = entry.size;
                self.dead.retain(|known| *known != id);
                self.dead_size = self.dead_size.saturating_sub(size);
                self.size += size;
            }
        }
        entry.progress.tries = 0;
        let letter = entry.progress.dead.take();
        if letter.is_some_and(|letter| letter.reason == DeadLetterReason::WorkspaceGone) {
            // A person sends it to the workspace as it is now.
            entry.progress.root = None;
        }
        entry.without_workspace = None;
        self.wait(id, now);
        true
    }

    pub(super) fn dead_letters(&self) -> Vec<u64> {
        self.dead.clone()
    }
}
