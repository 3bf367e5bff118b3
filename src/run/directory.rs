//! Where runs are found: one record for each, with its actor while it has one. Owns the protocol by which an
//! actor may go away without losing a message; refuses to spawn actors, which is the supervisor's part.
//!
//! A sender takes a [`Lease`] before its message and the actor holds it until the event is answered. An actor
//! goes away by closing the handle, which works only while no lease is out. So a message is either handed to
//! an actor that will see it, or not sent.

use std::{
    collections::{HashSet, VecDeque},
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use dashmap::{DashMap, mapref::one::RefMut};
use ractor::{ActorRef, ActorStatus};
use tokio::time::Instant;

use super::{memory::Memory, message::RunMessage};
use crate::model::{EventKind, HookName, Outcome, RunId, Verdict, WorkspaceId};

/// How many ended runs are remembered, to warn when an event comes for one of them.
const ENDED_REMEMBERED: usize = 4096;

/// The lease count of an actor that is going away.
const CLOSED: u32 = u32::MAX;

/// Names one run across workspaces.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct RunKey {
    pub(crate) workspace: WorkspaceId,
    pub(crate) run: RunId,
}

/// Why a run is over for its interceptors.
#[derive(Debug, Clone)]
pub(crate) struct Halt {
    pub(crate) reason: Option<Arc<str>>,
    pub(crate) by: Option<HookName>,
}

impl Halt {
    /// The answer to an interceptor event of a run that is over.
    pub(crate) fn outcome(&self, event: EventKind, snapshot_version: u64) -> Outcome {
        Outcome {
            verdict: Verdict::Halt,
            reason: self.reason.clone(),
            by: self.by.clone(),
            ..Outcome::proceed(event, snapshot_version)
        }
    }
}

/// What is known of a run, whether or not it has an actor.
#[derive(Debug, Default)]
pub(crate) struct RunRecord {
    handle: ArcSwapOption<RunHandle>,
    halted: OnceLock<Halt>,
    /// What its last actor left for the next.
    parked: Mutex<Option<Box<Memory>>>,
    /// How many actors it has had, so that a note about a former one is recognised as old.
    actors: AtomicU32,
    /// Whether it was asked for since it was last considered for being forgotten.
    asked: AtomicBool,
}

impl RunRecord {
    /// Its actor, if it has one.
    pub(crate) fn handle(&self) -> Option<Arc<RunHandle>> {
        self.handle.load_full()
    }

    /// Gives it an actor.
    pub(crate) fn attach(&self, handle: Arc<RunHandle>) {
        self.actors.fetch_add(1, Ordering::Relaxed);
        self.handle.store(Some(handle));
    }

    /// Takes note that its actor is gone. Returns how many it has had.
    pub(crate) fn detach(&self) -> u32 {
        self.handle.store(None);
        self.actors.load(Ordering::Relaxed)
    }

    /// Why it is over, if it is.
    pub(crate) fn halted(&self) -> Option<&Halt> {
        self.halted.get()
    }

    pub(super) fn park(&self, memory: Memory) {
        if !memory.is_empty() {
            *self.parked.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(memory));
        }
    }

    /// Forgets all but the latest of the parked answers, unless the next actor has them already.
    pub(super) fn shrink_parked(&self, most: usize) {
        let mut parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(memory) = parked.as_deref_mut() {
            memory.shrink(most);
        }
    }

    pub(super) fn unpark(&self) -> Memory {
        let parked = self.parked.lock().unwrap_or_else(PoisonError::into_inner).take();
        parked.map_or_else(Memory::default, |memory| *memory)
    }
}

/// A run's actor, and how many events are in its hands.
#[derive(Debug)]
pub(crate) struct RunHandle {
    pub(crate) actor: ActorRef<RunMessage>,
    leases: AtomicU32,
    /// When a lease was last given back, in milliseconds since `started`.
    idle_since: AtomicU64,
    started: Instant,
}

/// Why no lease was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoLease {
    /// The actor is going away.
    Closed,
    /// The run has as many events in hand as it may.
    Full,
}

impl RunHandle {
    pub(crate) fn new(actor: ActorRef<RunMessage>) -> Self {
        Self { actor, leases: AtomicU32::new(0), idle_since: AtomicU64::new(0), started: Instant::now() }
    }

    /// Takes a lease, unless the actor is going away or has `limit` events in hand.
    pub(crate) fn lease(self: &Arc<Self>, limit: u32) -> Result<Lease, NoLease> {
        let taken = self.leases.fetch_update(Ordering::AcqRel, Ordering::Acquire, |leases| {
            (leases < limit.min(CLOSED - 1)).then(|| leases + 1)
        });
        match taken {
            Ok(_) => Ok(Lease(Arc::clone(self))),
            Err(CLOSED) => Err(NoLease::Closed),
            Err(_) => Err(NoLease::Full),
        }
    }

    /// Closes the handle for good if no lease is out.
    pub(super) fn close(&self) -> bool {
        self.leases.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Whether it takes leases.
    pub(crate) fn is_open(&self) -> bool {
        self.leases.load(Ordering::Acquire) != CLOSED
    }

    /// How long no event has been in its hands; zero while one is.
    pub(crate) fn idle_for(&self) -> Duration {
        if self.leases.load(Ordering::Acquire) != 0 {
            return Duration::ZERO;
        }
        self.started.elapsed().saturating_sub(Duration::from_millis(self.idle_since.load(Ordering::Relaxed)))
    }
}

/// The right to have one event in a run's hands; given back when dropped.
#[derive(Debug)]
pub(crate) struct Lease(Arc<RunHandle>);

impl Lease {
    /// The actor it is a lease of.
    pub(crate) fn actor(&self) -> &ActorRef<RunMessage> {
        &self.0.actor
    }

    /// Whether the actor still takes messages: one that was killed never closed its handle.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.0.actor.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let since_start = u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.idle_since.store(since_start, Ordering::Relaxed);
        self.0.leases.fetch_sub(1, Ordering::AcqRel);
    }
}

/// All runs.
#[derive(Debug, Default)]
pub(crate) struct Directory {
    runs: DashMap<RunKey, Arc<RunRecord>>,
    /// How many records are halted, so that the others need no look-up.
    halted: AtomicUsize,
    ended: Mutex<Ended>,
}

#[derive(Debug, Default)]
struct Ended {
    order: VecDeque<RunKey>,
    set: HashSet<RunKey>,
}

impl Directory {
    /// The record of a run.
    pub(crate) fn find(&self, key: &RunKey) -> Option<Arc<RunRecord>> {
        self.runs.get(key).map(|record| Arc::clone(&record))
    }

    /// Why a run is over, if it is. Costs one load while no run is.
    pub(crate) fn halted(&self, key: &RunKey) -> Option<Halt> {
        if self.halted.load(Ordering::Acquire) == 0 {
            return None;
        }
        let record = self.runs.get(key)?;
        record.asked.store(true, Ordering::Relaxed);
        record.halted().cloned()
    }

    /// Ends a run for its interceptors; the first halt stays.
    pub(super) fn halt(&self, record: &RunRecord, halt: Halt) {
        if record.halted.set(halt).is_ok() {
            self.halted.fetch_add(1, Ordering::AcqRel);
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
        (self.runs.len() < limit).then(|| self.runs.entry(key.clone()).or_default())
    }

    /// Forgets a run whose actor is gone, because the run has ended.
    pub(super) fn end(&self, key: &RunKey) {
        self.remove_if(key, |record| record.handle().is_none_or(|handle| !handle.is_open()));
        self.remember_ended(key);
    }

    /// Takes note that a run has ended without its actor being told: no hook wanted the event.
    pub(crate) fn end_quietly(&self, key: &RunKey) {
        let Some(record) = self.find(key) else { return };
        match record.handle().map(|handle| handle.lease(u32::MAX)) {
            Some(Ok(lease)) => {
                let actor = lease.actor().clone();
                // A send fails only if the actor has just died, and then the supervisor clears its record.
                drop(actor.cast(RunMessage::End(lease)));
            }
            Some(Err(_)) | None => self.end(key),
        }
    }

    /// Forgets a run that has had no actor since its `actors`-th, unless it was asked for meanwhile. Returns
    /// whether it should be considered again later.
    pub(crate) fn forget(&self, key: &RunKey, actors: u32) -> bool {
        let Some(record) = self.find(key) else { return false };
        let unused = |record: &Arc<RunRecord>| record.actors.load(Ordering::Relaxed) == actors;
        if record.asked.swap(false, Ordering::Relaxed) {
            return unused(&record);
        }
        self.remove_if(key, |record| record.handle().is_none() && unused(record));
        false
    }

    fn remove_if(&self, key: &RunKey, condition: impl Fn(&Arc<RunRecord>) -> bool) {
        let removed = self.runs.remove_if(key, |_, record| condition(record));
        if removed.is_some_and(|(_, record)| record.halted().is_some()) {
            self.halted.fetch_sub(1, Ordering::AcqRel);
        }
    }

    /// Whether the run ended lately.
    pub(crate) fn has_ended(&self, key: &RunKey) -> bool {
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).set.contains(key)
    }

    /// How many runs are kept, and how many of them have an actor.
    pub(crate) fn count(&self) -> (usize, usize) {
        let active = self.runs.iter().filter(|record| record.handle().is_some()).count();
        (self.runs.len(), active)
    }

    fn remember_ended(&self, key: &RunKey) {
        let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
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
