//! The directory of runs takes over what a store has, and what another daemon knows.

#[cfg(feature = "daemon")]
use std::path::PathBuf;
use std::{
    num::NonZeroUsize,
    path::Path,
    sync::{Arc, atomic::Ordering},
    thread,
};

use dashmap::Entry;
use tokio::sync::oneshot;

use super::{
    context::RunContext,
    directory::RunDirectory,
    halt::Halt,
    message::RunMessage,
    outbox::{Outbox, OutboxLimits},
    record::RunRecord,
    run_state::RunState,
};
use crate::{
    model::RunKey,
    store::{FileRunStore, OutboxStore, RunStore, StoreError, StoredOutbox, StoredRun, StoredRuns},
};

/// The fewest stored runs for which a thread is started.
const LEAST_RESTORED: usize = 16_384;

/// Who delivers what is in the outbox when the store is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Courier {
    /// This process.
    Own,
    /// The daemon that this one replaces, until it has ended.
    #[cfg(feature = "daemon")]
    Predecessor,
}

/// Whose outbox is in a store that is opened again.
#[cfg(feature = "daemon")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutboxOwner {
    /// This process's.
    Own,
    /// Another daemon's, whose ids are its own. It is left to the next start.
    Successor,
}

/// A store that is open: what takes the changes of runs, and what takes those of the outbox.
struct OpenStore {
    runs: Arc<dyn RunStore>,
    outbox: Arc<dyn OutboxStore>,
}

impl OpenStore {
    fn of<S: RunStore + OutboxStore + 'static>(store: Arc<S>) -> Self {
        Self { runs: Arc::clone(&store) as Arc<dyn RunStore>, outbox: store }
    }
}

impl Courier {
    fn outbox(self, store: Arc<dyn OutboxStore>, limits: OutboxLimits, stored: StoredOutbox) -> Arc<Outbox> {
        match self {
            Self::Own => Outbox::new(store, limits, stored),
            #[cfg(feature = "daemon")]
            Self::Predecessor => Outbox::held(store, limits, stored),
        }
    }
}

impl RunContext {
    /// Opens the store in a directory of files, takes over what it has, and sends all changes to it from now on. Blocks.
    pub(crate) fn open_store(
        &self,
        data: &Path,
        limits: OutboxLimits,
        courier: Courier,
    ) -> Result<(), StoreError> {
        let (store, outbox) = self.open_files(data)?;
        self.outbox.store(Some(courier.outbox(store.outbox, limits, outbox)));
        self.directory.set_store(Some(store.runs));
        self.directory.save_halts();
        Ok(())
    }

    /// Opens the store, and takes over what it has of runs. Returns what it has of the outbox as well.
    fn open_files(&self, data: &Path) -> Result<(OpenStore, StoredOutbox), StoreError> {
        #[cfg(all(test, feature = "daemon"))]
        if let Some(mount) = self.simulated_disk.get() {
            let (store, stored) = mount.open(data)?;
            return Ok(self.restore(OpenStore::of(store), stored));
        }
        let (store, stored) = FileRunStore::open(data)?;
        Ok(self.restore(OpenStore::of(Arc::new(store)), stored))
    }

    /// Takes over what a store has of runs.
    fn restore(&self, store: OpenStore, stored: StoredRuns) -> (OpenStore, StoredOutbox) {
        let StoredRuns { runs, ended, outbox } = stored;
        self.directory.restore(runs, &ended);
        (store, outbox)
    }

    /// Sends all changes to this store from now on, writes what is left for the former one and closes it, so that another
    /// process may open it. Returns its directory, if there was one. Blocks.
    #[cfg(feature = "daemon")]
    pub(crate) fn hand_store_over(
        &self,
        successor: Arc<dyn RunStore>,
        outbox_of_successor: Arc<dyn OutboxStore>,
    ) -> Option<PathBuf> {
        if let Some(outbox) = self.outbox.load_full() {
            outbox.hand_over(outbox_of_successor);
        }
        let former = self.directory.set_store(Some(successor))?;
        let directory = former.status().directory;
        former.close();
        Some(directory)
    }

    /// Opens the store again that was handed over. What it has and is not known is taken over. Blocks.
    #[cfg(feature = "daemon")]
    pub(crate) fn reopen_store(
        &self,
        data: &Path,
        limits: OutboxLimits,
        owner: OutboxOwner,
    ) -> Result<Arc<dyn RunStore>, StoreError> {
        let (store, stored) = self.open_files(data)?;
        let OpenStore { runs: store, outbox: of_outbox } = store;
        match (owner, self.outbox.load_full()) {
            (OutboxOwner::Successor, _) => {}
            (OutboxOwner::Own, Some(outbox)) => outbox.take_back(of_outbox, stored),
            (OutboxOwner::Own, None) => self.outbox.store(Some(Outbox::new(of_outbox, limits, stored))),
        }
        Ok(store)
    }
}

impl RunDirectory {
    /// Takes over what a store has.
    pub(super) fn restore(&self, mut runs: Vec<(RunKey, StoredRun)>, ended: &[RunKey]) {
        for key in ended {
            self.keep_ended(key);
        }
        let threads = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let share = runs.len().div_ceil(threads).max(LEAST_RESTORED);
        thread::scope(|scope| {
            for share in runs.chunks_mut(share) {
                scope.spawn(move || {
                    for (key, run) in share {
                        self.restore_run(key, std::mem::take(run));
                    }
                });
            }
        });
    }

    /// Takes over a run that a store has.
    fn restore_run(&self, key: &RunKey, mut run: StoredRun) {
        // Looked up once: there may be a million.
        let entry = self.runs.entry(key.clone());
        let is_new = matches!(entry, Entry::Vacant(_));
        let record = entry.or_insert_with(|| Arc::new(RunRecord::new(self.now())));
        record.is_stored.store(true, Ordering::Release);
        record.is_halt_settled.store(run.halt.is_some(), Ordering::Release);
        if let Some(halt) = run.halt.take() {
            self.halt(&record, Halt::of_stored(halt));
        }
        if is_new {
            self.keep_idle(&record, run.stops_blocked > 0);
            record.park(RunState::of_stored(run));
            self.known.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Stores the halts that the store does not have.
    pub(super) fn save_halts(&self) {
        for entry in self.runs.iter().filter(|entry| !entry.is_stored.load(Ordering::Acquire)) {
            if entry.halted().is_some() {
                self.save(entry.key(), entry.value(), &RunState::default(), true);
            }
        }
    }
}

#[cfg(feature = "daemon")]
impl RunDirectory {
    /// Takes over the state of a run that another daemon has changed, and stores it. Returns a receiver that is notified
    /// once it is in the hands of the store, unless it is already.
    pub(crate) fn adopt(&self, key: &RunKey, run: StoredRun) -> Option<oneshot::Receiver<()>> {
        // The record stays borrowed, so no actor starts without this state.
        let entry = self.find_or_make(key, usize::MAX)?;
        self.merge(key, &entry, run)
    }

    /// Forgets a run that another daemon has forgotten, unless it goes on here.
    pub(crate) fn adopt_forgotten(&self, key: &RunKey) {
        self.remove_if(key, false, |record| record.handle().is_none());
    }

    /// Stores the state of all runs, also of those that ended lately. Walks over all records. The receivers are notified
    /// once the rest is in the hands of the store.
    pub(crate) fn save_all(&self) -> Vec<oneshot::Receiver<()>> {
        let ended: Vec<RunKey> = self.ended.lock().order.iter().cloned().collect();
        if let Some(store) = self.store() {
            for key in &ended {
                store.end(key);
            }
        }
        let records: Vec<(RunKey, Arc<RunRecord>)> =
            self.runs.iter().map(|entry| (entry.key().clone(), Arc::clone(entry.value()))).collect();
        let saved = records.iter().map(|(key, record)| self.merge(key, record, StoredRun::default()));
        saved.flatten().collect()
    }
}

impl RunDirectory {
    /// Adds to the state of a run, and stores it. Its actor does so if it has one; then there is a receiver.
    pub(super) fn merge(
        &self,
        key: &RunKey,
        record: &Arc<RunRecord>,
        run: StoredRun,
    ) -> Option<oneshot::Receiver<()>> {
        if let Some(halt) = &run.halt {
            self.halt(record, Halt::of_stored(halt.clone()));
        }
        let lease = record.handle().and_then(|handle| handle.lease(u32::MAX).ok());
        if let Some(lease) = lease {
            let (reply, saved) = oneshot::channel();
            let actor = lease.actor().clone();
            // Fails only if the actor has just died, and then its state is lost as well.
            if actor.cast(RunMessage::Adopt(lease, Box::new(run.clone()), reply)).is_ok() {
                return Some(saved);
            }
        }
        let mut run_state = record.unpark();
        if run.stops_blocked > 0 {
            self.keep_idle(record, true);
        }
        run_state.adopt(run);
        run_state.take_change();
        self.save(key, record, &run_state, record.halted().is_some());
        record.park(run_state);
        None
    }
}
