//! What is in the outbox, and what is due. Writes nothing itself.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::{Duration, SystemTime},
};

use tokio::time::Instant;

use super::{
    queue::DeliveryQueue,
    ticket::{HookResults, OutboxCounts, OutboxLimits, OutboxRefusal},
};
use crate::{
    model::{Event, HookName, RunKey, WorkspaceId},
    store::{DeadLetter, DeliveryProgress, OutboxRow, OutboxStore, StoredOutbox},
};

/// An event in the outbox.
#[derive(Debug, Clone)]
pub(crate) struct OutboxEntry {
    pub(crate) workspace: WorkspaceId,
    pub(crate) event: Arc<Event>,
    pub(crate) progress: DeliveryProgress,
    pub(crate) phase: OutboxPhase,
    /// The bytes of its record.
    pub(super) size: usize,
    /// How old it was at `since`, by the machine's clock. From then on its age does not depend on that clock.
    age: Duration,
    since: Instant,
    /// Since when its workspace is missing.
    pub(super) without_workspace: Option<Instant>,
    /// No queue can have it: it was accepted by this process, and not sent.
    #[cfg(feature = "cluster")]
    pub(super) is_unsent: bool,
}

/// What becomes of an event in the outbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutboxPhase {
    /// Its hooks run.
    UnderWay,
    /// It is given to its hooks again at this time.
    Waiting(Instant),
    /// It is not delivered any more.
    Dead,
}

impl OutboxPhase {
    /// The name, in lists and as a metric label.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::UnderWay => "under_way",
            Self::Waiting(_) => "waiting",
            Self::Dead => "dead",
        }
    }
}

impl OutboxEntry {
    /// An event whose first delivery begins.
    pub(super) fn new(
        workspace: &WorkspaceId,
        event: &Arc<Event>,
        size: usize,
        progress: DeliveryProgress,
    ) -> Self {
        Self {
            workspace: workspace.clone(),
            event: Arc::clone(event),
            progress,
            phase: OutboxPhase::UnderWay,
            size,
            age: Duration::ZERO,
            since: Instant::now(),
            without_workspace: None,
            #[cfg(feature = "cluster")]
            is_unsent: false,
        }
    }

    /// An event that a store had.
    pub(super) fn of_stored(row: OutboxRow, now: Instant) -> Self {
        let arrived = row.event.arrival.map(|arrival| arrival.time());
        // A clock that was set back makes it new.
        let age = arrived.and_then(|arrived| SystemTime::now().duration_since(arrived).ok());
        let is_dead = row.progress.dead.is_some();
        Self {
            phase: if is_dead { OutboxPhase::Dead } else { OutboxPhase::Waiting(now) },
            workspace: row.workspace,
            event: row.event,
            progress: row.progress,
            size: row.text.len(),
            age: age.unwrap_or_default(),
            since: now,
            without_workspace: None,
            #[cfg(feature = "cluster")]
            is_unsent: false,
        }
    }

    /// How long ago it was accepted.
    pub(crate) fn age(&self) -> Duration {
        self.age.saturating_add(self.since.elapsed())
    }
}

/// An event that is to be delivered again.
#[derive(Debug)]
pub(crate) struct DueEvent {
    pub(crate) id: u64,
    pub(crate) workspace: WorkspaceId,
    pub(crate) event: Arc<Event>,
    pub(crate) progress: DeliveryProgress,
    /// Since when its workspace is missing, if it is known to be.
    pub(crate) without_workspace: Option<Instant>,
    /// No queue can have it.
    #[cfg(feature = "cluster")]
    pub(crate) is_unsent: bool,
}

/// What is in the outbox.
#[derive(Debug)]
pub(super) struct OutboxState {
    /// Where changes go.
    pub(super) store: Arc<dyn OutboxStore>,
    limits: OutboxLimits,
    /// In the order in which the events were accepted.
    pub(super) entries: BTreeMap<u64, OutboxEntry>,
    /// Those that wait.
    queue: DeliveryQueue,
    /// The dead letters, oldest first.
    pub(super) dead: Vec<u64>,
    /// Those that a daemon which was replaced still delivers. They count as under way.
    pub(super) held: BTreeSet<u64>,
    /// The one that is about to be given to its run. It may still be taken back.
    pub(super) taken: Option<u64>,
    pub(super) last_id: u64,
    /// The bytes of all events that are to be delivered.
    pub(super) size: usize,
    /// The bytes of the dead letters.
    pub(super) dead_size: usize,
    pub(super) is_closed: bool,
    /// Whether another daemon delivers again what waits.
    pub(super) is_handed_over: bool,
}

fn run_key(entry: &OutboxEntry) -> RunKey {
    RunKey::new(&entry.workspace, &entry.event.run_id)
}

impl OutboxState {
    /// What a store had, of which so many deliveries may be under way.
    pub(super) fn new(
        store: Arc<dyn OutboxStore>,
        limits: OutboxLimits,
        most: usize,
        stored: StoredOutbox,
    ) -> Self {
        let now = Instant::now();
        let mut state = Self {
            store,
            limits,
            entries: BTreeMap::new(),
            queue: DeliveryQueue::new(most),
            dead: Vec::new(),
            held: BTreeSet::new(),
            taken: None,
            last_id: stored.last_id,
            size: 0,
            dead_size: 0,
            is_closed: false,
            is_handed_over: false,
        };
        for row in stored.rows {
            state.insert(row.id, OutboxEntry::of_stored(row, now));
        }
        let died = |id: &u64| state.entries.get(id).and_then(|entry| Some(entry.progress.dead?.at));
        state.dead.sort_by_key(died);
        state
    }

    /// Takes over an event that is known elsewhere.
    pub(super) fn insert(&mut self, id: u64, entry: OutboxEntry) {
        self.last_id = self.last_id.max(id);
        match entry.phase {
            OutboxPhase::Dead => self.dead.push(id),
            OutboxPhase::Waiting(at) => self.queue.wait(&run_key(&entry), id, at),
            OutboxPhase::UnderWay => drop(self.held.insert(id)),
        }
        let size = if entry.phase == OutboxPhase::Dead { &mut self.dead_size } else { &mut self.size };
        *size += entry.size;
        self.entries.insert(id, entry);
    }

    /// Adds an event.
    ///
    /// Returns an error if there is no room for it.
    pub(super) fn add(
        &mut self,
        workspace: &WorkspaceId,
        event: &Arc<Event>,
        size: usize,
        progress: DeliveryProgress,
    ) -> Result<u64, OutboxRefusal> {
        let limit = self.limits.size;
        if size > limit {
            return Err(OutboxRefusal::TooLarge { size, limit });
        }
        if self.size.saturating_add(size) > limit {
            return Err(OutboxRefusal::Full);
        }
        self.last_id += 1;
        self.size += size;
        self.entries.insert(self.last_id, OutboxEntry::new(workspace, event, size, progress));
        Ok(self.last_id)
    }

    pub(super) fn entry(&self, id: u64) -> Option<&OutboxEntry> {
        self.entries.get(&id)
    }

    pub(super) fn entries(&self) -> impl Iterator<Item = (u64, &OutboxEntry)> {
        self.entries.iter().map(|(id, entry)| (*id, entry))
    }

    /// Takes the first event that is due, or returns when there will be one. It counts as under way until something else
    /// is said of it.
    pub(super) fn take_due(&mut self, now: Instant) -> Result<DueEvent, Option<Instant>> {
        let id = self.queue.take(now)?;
        // What waits is there.
        let Some(entry) = self.entries.get_mut(&id) else { return Err(Some(now)) };
        entry.phase = OutboxPhase::UnderWay;
        self.taken = Some(id);
        Ok(DueEvent {
            id,
            workspace: entry.workspace.clone(),
            event: Arc::clone(&entry.event),
            progress: entry.progress.clone(),
            without_workspace: entry.without_workspace,
            #[cfg(feature = "cluster")]
            is_unsent: entry.is_unsent,
        })
    }

    /// Counts another delivery.
    pub(super) fn begin(&mut self, id: u64) -> Option<OutboxEntry> {
        let entry = self.entries.get_mut(&id)?;
        entry.without_workspace = None;
        entry.progress.deliveries = entry.progress.deliveries.saturating_add(1);
        entry.progress.tries = entry.progress.tries.saturating_add(1);
        Some(entry.clone())
    }

    /// The event that was taken goes to its run now. Returns whether it may: it was neither cancelled nor buried meanwhile.
    pub(super) fn hand_out(&mut self, id: u64) -> bool {
        self.taken = None;
        self.entries.get(&id).is_some_and(|entry| entry.phase == OutboxPhase::UnderWay)
    }

    /// Counts the delivery under way as no try.
    pub(super) fn give_try_back(&mut self, id: u64) -> Option<DeliveryProgress> {
        let progress = &mut self.entries.get_mut(&id)?.progress;
        progress.tries = progress.tries.saturating_sub(1);
        Some(progress.clone())
    }

    /// Notes that hooks that run once in a run begin.
    pub(super) fn begun(&mut self, id: u64, hooks: Vec<HookName>) -> Option<DeliveryProgress> {
        let progress = &mut self.entries.get_mut(&id)?.progress;
        for hook in hooks {
            if !progress.unfinished.contains(&hook) {
                progress.unfinished.push(hook);
            }
        }
        Some(progress.clone())
    }

    /// Notes how a delivery ended that was not the last.
    pub(super) fn note(&mut self, id: u64, results: HookResults) -> Option<DeliveryProgress> {
        let entry = self.entries.get_mut(&id)?;
        let progress = &mut entry.progress;
        // A hook that nobody had agreed to when the event was accepted is not waited for.
        let untrusted = if progress.deliveries <= 1 { results.untrusted } else { Vec::new() };
        for hook in results.done.into_iter().chain(untrusted) {
            if !progress.done.contains(&hook) {
                progress.done.push(hook);
            }
        }
        let done = &progress.done;
        progress.unfinished.retain(|hook| results.is_interrupted && !done.contains(hook));
        progress.unfinished.extend(results.failed);
        let interrupted = || "the actor of its run died".into();
        progress.error = Some(results.error.unwrap_or_else(interrupted));
        Some(progress.clone())
    }

    /// Has an event wait until this time.
    pub(super) fn wait(&mut self, id: u64, until: Instant) {
        let Some(entry) = self.entries.get_mut(&id) else { return };
        let key = run_key(entry);
        if let OutboxPhase::Waiting(former) = entry.phase {
            self.queue.remove(&key, id, former);
        }
        entry.phase = OutboxPhase::Waiting(until);
        self.queue.wait(&key, id, until);
    }

    /// Notes that the workspace of an event is missing.
    pub(super) fn miss_workspace(&mut self, id: u64, now: Instant) {
        if let Some(entry) = self.entries.get_mut(&id) {
            entry.without_workspace.get_or_insert(now);
        }
    }

    /// Has the events be due that wait for a workspace.
    pub(super) fn find_workspace(&mut self, workspace: &WorkspaceId, now: Instant) {
        let waits = |entry: &OutboxEntry| entry.without_workspace.is_some() && entry.workspace == *workspace;
        let found: Vec<u64> = self.entries().filter(|(_, entry)| waits(entry)).map(|(id, _)| id).collect();
        for id in found {
            if let Some(entry) = self.entries.get_mut(&id) {
                entry.without_workspace = None;
            }
            if matches!(self.entries.get(&id).map(|entry| entry.phase), Some(OutboxPhase::Waiting(_))) {
                self.wait(id, now);
            }
        }
    }

    /// The workspaces of all waiting events, each with its first event.
    pub(super) fn workspaces_of_waiting(&self) -> Vec<(WorkspaceId, Arc<Event>)> {
        let mut first: BTreeMap<&WorkspaceId, &Arc<Event>> = BTreeMap::new();
        let waiting = self.entries.values().filter(|entry| entry.phase != OutboxPhase::Dead);
        for entry in waiting.filter(|entry| entry.event.cwd.is_some()) {
            first.entry(&entry.workspace).or_insert(&entry.event);
        }
        first.into_iter().map(|(id, event)| (id.clone(), Arc::clone(event))).collect()
    }

    /// Makes an event a dead letter.
    pub(super) fn bury(&mut self, id: u64, letter: DeadLetter) -> Option<OutboxEntry> {
        let entry = self.entries.get_mut(&id).filter(|entry| entry.phase != OutboxPhase::Dead)?;
        let key = run_key(entry);
        match entry.phase {
            OutboxPhase::Waiting(at) => self.queue.remove(&key, id, at),
            _ => self.queue.finish(&key, id),
        }
        entry.phase = OutboxPhase::Dead;
        entry.progress.dead = Some(letter);
        let entry = entry.clone();
        self.held.remove(&id);
        self.size = self.size.saturating_sub(entry.size);
        self.dead_size += entry.size;
        self.dead.push(id);
        Some(entry)
    }

    /// Removes the oldest dead letters beyond the limits. Returns their ids.
    pub(super) fn trim_dead(&mut self) -> Vec<u64> {
        let mut dropped = Vec::new();
        while self.dead.len() > self.limits.dead || self.dead_size > self.limits.dead_size {
            let Some(oldest) = self.dead.first().copied() else { break };
            self.remove(oldest);
            dropped.push(oldest);
        }
        dropped
    }

    pub(super) fn remove(&mut self, id: u64) {
        let Some(entry) = self.entries.remove(&id) else { return };
        self.held.remove(&id);
        match entry.phase {
            OutboxPhase::Dead => {
                self.dead.retain(|known| *known != id);
                self.dead_size = self.dead_size.saturating_sub(entry.size);
                return;
            }
            OutboxPhase::Waiting(at) => self.queue.remove(&run_key(&entry), id, at),
            OutboxPhase::UnderWay => self.queue.finish(&run_key(&entry), id),
        }
        self.size = self.size.saturating_sub(entry.size);
    }

    pub(super) fn counts(&self) -> OutboxCounts {
        let waiting = self.queue.len();
        let dead = self.dead.len();
        let oldest = self.entries.values().find(|entry| entry.phase != OutboxPhase::Dead);
        OutboxCounts {
            under_way: self.entries.len().saturating_sub(waiting + dead),
            waiting,
            dead,
            oldest: oldest.map(OutboxEntry::age),
        }
    }
}
