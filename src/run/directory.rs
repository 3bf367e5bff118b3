//! The directory of all runs: one record each, with its actor while it has one.

use std::{
    collections::{BinaryHeap, HashSet, VecDeque},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use dashmap::{DashMap, mapref::one::RefMut};
use parking_lot::{Mutex, RwLock};
use tokio::{sync::oneshot, time::Instant};

use super::{
    halt::Halt,
    message::{RunHandle, RunMessage},
    record::{HaltReceipt, RunRecord},
    run_state::RunState,
    status::{RunPhase, RunStatus},
};
use crate::{
    model::{RunId, RunKey, SessionId, WorkspaceId},
    store::{ENDED_REMEMBERED, RunStore},
};

/// The number of shards, each with a lock of its own. A walk locks one at a time: with 256 of them and a million runs, a
/// new run waits for the walk over a few thousand records at most.
const SHARDS: usize = 256;

/// All runs.
#[derive(Debug)]
pub(crate) struct RunDirectory {
    pub(super) runs: DashMap<RunKey, Arc<RunRecord>>,
    made: Instant,
    /// How many records there are.
    pub(super) known: AtomicUsize,
    /// How many actors there are, as far as the supervisor knows.
    actors: AtomicUsize,
    /// How many records are halted, so that the others need no look-up.
    pub(super) halted: AtomicUsize,
    /// How many records are of agents that hooks keep from stopping, and that have done nothing since.
    pub(super) kept_idle: AtomicUsize,
    /// The sessions of runs with an actor, and how many of those each has.
    sessions: Arc<DashMap<SessionId, usize>>,
    pub(super) ended: Mutex<EndedRuns>,
    /// Where changes go that survive a restart.
    pub(super) store: RwLock<Option<Arc<dyn RunStore>>>,
}

/// RAII guard: a run with an actor counts for its session for as long as it lives.
#[derive(Debug)]
pub(crate) struct SessionGuard {
    pub(super) session: SessionId,
    sessions: Arc<DashMap<SessionId, usize>>,
}

impl Drop for SessionGuard {
    fn drop(&mut self) {
        self.sessions.remove_if_mut(&self.session, |_, runs| {
            *runs -= 1;
            *runs == 0
        });
    }
}

#[derive(Debug, Default)]
pub(super) struct EndedRuns {
    /// Oldest first.
    pub(super) order: VecDeque<RunKey>,
    set: HashSet<RunKey>,
}

/// A run in the directory.
#[derive(Debug)]
pub(crate) struct RunEntry {
    pub(crate) key: RunKey,
    pub(crate) record: Arc<RunRecord>,
}

impl Default for RunDirectory {
    fn default() -> Self {
        Self {
            runs: DashMap::with_shard_amount(SHARDS),
            made: Instant::now(),
            known: AtomicUsize::new(0),
            actors: AtomicUsize::new(0),
            halted: AtomicUsize::new(0),
            kept_idle: AtomicUsize::new(0),
            sessions: Arc::default(),
            ended: Mutex::default(),
            store: RwLock::default(),
        }
    }
}

impl RunDirectory {
    /// Where changes go that survive a restart. Nothing that happens for each event asks for it.
    pub(crate) fn store(&self) -> Option<Arc<dyn RunStore>> {
        self.store.read().clone()
    }

    /// Sends changes to this store from now on, or to none. Returns the former one.
    #[cfg(any(feature = "store", test))]
    pub(crate) fn set_store(&self, store: Option<Arc<dyn RunStore>>) -> Option<Arc<dyn RunStore>> {
        let asks_others = store.as_ref().is_some_and(|store| store.asks_others());
        let former = std::mem::replace(&mut *self.store.write(), store);
        // Whether the others know the halts that are known here, this store has not been asked.
        for record in self.runs.iter().filter(|record| asks_others && record.halted().is_some()) {
            record.is_halt_settled.store(false, Ordering::Release);
        }
        former
    }

    /// The record of a run.
    pub(crate) fn find(&self, key: &RunKey) -> Option<Arc<RunRecord>> {
        self.runs.get(key).map(|record| Arc::clone(&record))
    }

    /// Why a run is halted, if it is, and what to wait for before anybody hears of it. Costs one atomic load while no
    /// run is.
    pub(crate) fn halted(
        &self,
        workspace: &WorkspaceId,
        run: &RunId,
    ) -> Option<(Arc<Halt>, Option<HaltReceipt>)> {
        if self.halted.load(Ordering::Acquire) == 0 {
            return None;
        }
        let record = self.runs.get(&RunKey::new(workspace, run))?;
        record.rested.store(self.now(), Ordering::Relaxed);
        let halt = record.halted()?;
        Some((halt, self.receipt(&RunKey::new(workspace, run), &record)))
    }

    /// What to wait for before anybody hears of the halt of a run; none if it is on disk or there is no store.
    pub(super) fn receipt(&self, key: &RunKey, record: &Arc<RunRecord>) -> Option<HaltReceipt> {
        let store = self.store.read();
        let store = store.as_ref()?;
        if record.is_halt_settled.load(Ordering::Acquire) {
            return None;
        }
        Some(HaltReceipt {
            record: Arc::clone(record),
            saved: store.saved(key),
            patience: store.patience(),
            is_required: store.is_required(),
        })
    }

    /// Stores the state of a run, at once if it has just been halted. The store is not replaced meanwhile.
    pub(super) fn save(&self, key: &RunKey, record: &RunRecord, run_state: &RunState, is_urgent: bool) {
        let store = self.store.read();
        let Some(store) = store.as_ref() else { return };
        let mut run = run_state.to_stored();
        run.halt = record.halted().map(|halt| halt.to_stored());
        if run.is_empty() {
            if record.is_stored.load(Ordering::Acquire) {
                store.forget(key);
            }
            return;
        }
        record.is_stored.store(true, Ordering::Release);
        if is_urgent {
            store.save_now(key, run);
        } else {
            store.save(key, run);
        }
    }

    /// Removes what the store has of a run. Called while its shard is locked, so that a new run of the same id is stored
    /// after it.
    pub(super) fn forget_stored(&self, key: &RunKey, record: &RunRecord, is_over: bool) {
        if record.is_stored.load(Ordering::Acquire)
            && let Some(store) = self.store.read().as_ref()
        {
            store.forget(key);
            store.leave(key, is_over);
        }
    }

    /// Tells the store that a run goes on that was halted.
    pub(super) fn release_stored(&self, key: &RunKey) {
        if let Some(store) = self.store.read().as_ref() {
            store.release(key);
        }
    }

    /// The record of a run, made if there is none and fewer than `limit` are kept. It stays in the directory as
    /// long as it is borrowed: a run that ended meanwhile would leave its new actor with a record nobody finds.
    pub(crate) fn find_or_make(
        &self,
        key: &RunKey,
        limit: usize,
    ) -> Option<RefMut<'_, RunKey, Arc<RunRecord>>> {
        if let Some(record) = self.runs.get_mut(key) {
            return Some(record);
        }
        let make = || {
            self.known.fetch_add(1, Ordering::Relaxed);
            Arc::new(RunRecord::new(self.now()))
        };
        (self.known.load(Ordering::Relaxed) < limit)
            .then(|| self.runs.entry(key.clone()).or_insert_with(make))
    }

    /// Forgets a run whose actor is gone, because the run has ended. Returns whether it was known.
    pub(crate) fn end(&self, key: &RunKey) -> bool {
        let forgotten = self.remove_if(key, true, |record| !record.is_active());
        self.remember_ended(key);
        forgotten
    }

    /// Replaces a record by a new one with the same actor: the run has ended, and another event of its id is in flight
    /// already.
    pub(super) fn renew(&self, key: &RunKey, old: &Arc<RunRecord>) -> Arc<RunRecord> {
        let fresh = Arc::new(RunRecord::new(self.now()));
        let mut entry = self.runs.get_mut(key).filter(|known| Arc::ptr_eq(known, old));
        if let Some(handle) = old.handle() {
            fresh.attach(handle);
        }
        if let Some(known) = entry.as_deref_mut() {
            *known = Arc::clone(&fresh);
            self.forget_stored(key, old, true);
            if self.unhalt(old) {
                self.release_stored(key);
            }
            self.keep_idle(old, false);
        }
        fresh
    }

    /// Ends a run by an event that no hook wants, so that its actor has not seen it. Returns a receiver that the actor
    /// notifies, if there is one: what the host sends next belongs to a new run.
    pub(crate) fn end_unplanned(&self, key: &RunKey) -> Option<oneshot::Receiver<()>> {
        let Some(record) = self.find(key) else {
            if let Some(store) = self.store.read().as_ref() {
                store.end_elsewhere(key);
            }
            return None;
        };
        if let Some(Ok(lease)) = record.handle().map(|handle| handle.lease(u32::MAX)) {
            let actor = lease.actor().clone();
            let (reply, acknowledged) = oneshot::channel();
            // A send fails only if the actor has just died, and then the supervisor clears its record.
            drop(actor.cast(RunMessage::End(lease, reply)));
            return Some(acknowledged);
        }
        self.end(key);
        None
    }

    /// Removes the actor of a record, which is gone.
    pub(crate) fn detach(&self, record: &RunRecord, handle: &RunHandle) {
        let idle = u64::try_from(handle.idle_for().as_millis()).unwrap_or(u64::MAX);
        record.rested.store(self.now().saturating_sub(idle), Ordering::Relaxed);
        record.handle.store(None);
    }

    /// Removes a record that fulfils a condition: its run is over, or forgotten. Returns whether it did.
    pub(super) fn remove_if(
        &self,
        key: &RunKey,
        is_over: bool,
        condition: impl Fn(&Arc<RunRecord>) -> bool,
    ) -> bool {
        let removes = |record: &Arc<RunRecord>| {
            let is_removed = condition(record);
            if is_removed {
                self.forget_stored(key, record, is_over);
            }
            is_removed
        };
        let Some((_, record)) = self.runs.remove_if(key, |_, record| removes(record)) else { return false };
        self.removed(&record);
        true
    }

    /// A record is not in the directory any more.
    pub(super) fn removed(&self, record: &Arc<RunRecord>) {
        self.known.fetch_sub(1, Ordering::Relaxed);
        self.unhalt(record);
        self.keep_idle(record, false);
    }

    /// Whether the run ended lately.
    pub(crate) fn has_ended(&self, key: &RunKey) -> bool {
        self.ended.lock().set.contains(key)
    }

    /// How many runs are kept, and how many of them have an actor.
    pub(crate) fn count(&self) -> (usize, usize) {
        let known = self.known.load(Ordering::Relaxed);
        (known, self.actors.load(Ordering::Relaxed).min(known))
    }

    /// Counts a run with an actor for a session.
    pub(super) fn count_session(&self, session: &SessionId) -> SessionGuard {
        *self.sessions.entry(session.clone()).or_default() += 1;
        SessionGuard { session: session.clone(), sessions: Arc::clone(&self.sessions) }
    }

    /// How many sessions have a run with an actor.
    pub(crate) fn sessions(&self) -> usize {
        self.sessions.len()
    }

    /// Sets the number of actors.
    pub(crate) fn count_actors(&self, actors: usize) {
        self.actors.store(actors, Ordering::Relaxed);
    }

    /// The oldest runs with an actor, oldest first, and how many more there are. Walks over all records: not for a thread
    /// that others wait for.
    pub(crate) fn oldest_active(
        &self,
        workspace: Option<&WorkspaceId>,
        most: usize,
    ) -> (Vec<RunEntry>, usize) {
        let mut oldest = BinaryHeap::with_capacity(most.min(self.actors.load(Ordering::Relaxed)));
        let mut left_out = 0;
        for entry in &self.runs {
            let (key, record) = entry.pair();
            if workspace.is_some_and(|workspace| *workspace != key.workspace) || !record.is_active() {
                continue;
            }
            oldest.push((record.began, key.clone()));
            if oldest.len() > most {
                oldest.pop();
                left_out += 1;
            }
        }
        let found = |(_, key): (u64, RunKey)| Some(RunEntry { record: self.find(&key)?, key });
        (oldest.into_sorted_vec().into_iter().filter_map(found).collect(), left_out)
    }

    /// All runs of a workspace. Walks over all records.
    pub(crate) fn of_workspace(&self, workspace: &WorkspaceId) -> Vec<RunKey> {
        let own = self.runs.iter().filter(|entry| entry.key().workspace == *workspace);
        own.map(|entry| entry.key().clone()).collect()
    }

    /// The status of a run, from its record.
    pub(crate) fn status(&self, RunEntry { key, record }: &RunEntry) -> RunStatus {
        let active = record.handle().filter(|_| record.is_active());
        let since = |then: u64| Duration::from_millis(self.now().saturating_sub(then));
        RunStatus {
            workspace_id: key.workspace.clone(),
            run_id: key.run.clone(),
            phase: if active.is_some() { RunPhase::Active } else { RunPhase::Passivated },
            halted: record.halted().map(Arc::unwrap_or_clone),
            age: since(record.began),
            idle: active
                .map_or_else(|| since(record.rested.load(Ordering::Relaxed)), |handle| handle.idle_for()),
            events: record.events().into(),
            in_hand: None,
        }
    }

    pub(super) fn now(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn remember_ended(&self, key: &RunKey) {
        if let Some(store) = self.store.read().as_ref() {
            store.end(key);
        }
        self.keep_ended(key);
    }

    pub(super) fn keep_ended(&self, key: &RunKey) {
        let mut ended = self.ended.lock();
        if ended.set.insert(key.clone()) {
            ended.order.push_back(key.clone());
            if ended.order.len() > ENDED_REMEMBERED
                && let Some(oldest) = ended.order.pop_front()
            {
                ended.set.remove(&oldest);
            }
        }
    }
}
