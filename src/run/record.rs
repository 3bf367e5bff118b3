//! What is kept of one run, and its actor's handle. Owns the protocol by which an actor may go away without losing
//! a message; refuses to know other runs.
//!
//! A sender takes a [`RunLease`] before its message and the actor holds it until the event is answered. An actor
//! goes away by closing the handle, which works only while no lease is out. So a message is either handed to
//! an actor that will see it, or not sent.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use ractor::{ActorRef, ActorStatus};
use serde::Serialize;
use tokio::time::Instant;

use super::{decision_id::next_decision_id, message::RunMessage, run_state::RunState};
use crate::model::{EventKind, HookName, Outcome, Verdict};

/// The lease count of an actor that is going away.
const CLOSED: u32 = u32::MAX;

/// Why a run is over for its interceptors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Halt {
    /// In the words of whoever ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// The hook that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<HookName>,
}

impl Halt {
    /// The answer to an interceptor event of a run that is over.
    pub(crate) fn outcome(&self, event: EventKind, snapshot_version: u64) -> Outcome {
        Outcome {
            verdict: Verdict::Halt,
            reason: self.reason.clone(),
            by: self.by.clone(),
            ..Outcome::proceed(next_decision_id(), event, snapshot_version)
        }
    }
}

/// What is known of a run, whether or not it has an actor. There may be a million, so it is kept small; points in
/// time are milliseconds since the directory was made.
#[derive(Debug)]
pub(crate) struct RunRecord {
    pub(super) handle: ArcSwapOption<RunHandle>,
    pub(super) halted: OnceLock<Box<Halt>>,
    /// What its last actor left for the next.
    parked: Mutex<Option<Box<RunState>>>,
    /// When its first planned event came.
    pub(super) began: u64,
    /// How many planned events came.
    pub(super) events: AtomicU64,
    /// Since when its last actor had had nothing to do when it went away.
    pub(super) rested: AtomicU64,
    /// Which actor it had last, so that a note about a former one is recognised as old.
    pub(super) last_actor: AtomicU64,
    /// Whether it was asked for since it was last considered for being forgotten.
    pub(super) asked: AtomicBool,
}

/// A word more, and an allocator that rounds up to 16 bytes takes 16 MB more for a million runs.
const _: () = assert!(size_of::<RunRecord>() <= 80);

impl RunRecord {
    pub(super) fn new(began: u64) -> Self {
        Self {
            handle: ArcSwapOption::empty(),
            halted: OnceLock::new(),
            parked: Mutex::default(),
            began,
            events: AtomicU64::new(0),
            rested: AtomicU64::new(began),
            last_actor: AtomicU64::new(0),
            asked: AtomicBool::new(false),
        }
    }

    /// Its actor, if it has one.
    pub(crate) fn handle(&self) -> Option<Arc<RunHandle>> {
        self.handle.load_full()
    }

    /// Gives it an actor.
    pub(crate) fn attach(&self, handle: Arc<RunHandle>) {
        self.last_actor.store(handle.actor.get_id().pid(), Ordering::Relaxed);
        self.handle.store(Some(handle));
    }

    /// Whether its actor takes events.
    pub(super) fn is_active(&self) -> bool {
        self.handle.load().as_ref().is_some_and(|handle| handle.is_open() && handle.is_alive())
    }

    /// Counts a planned event.
    pub(super) fn count_event(&self) {
        self.events.fetch_add(1, Ordering::Relaxed);
    }

    /// Why it is over, if it is.
    pub(crate) fn halted(&self) -> Option<&Halt> {
        self.halted.get().map(|halt| &**halt)
    }

    pub(super) fn park(&self, run_state: RunState) {
        if !run_state.is_empty() {
            *self.parked.lock() = Some(Box::new(run_state));
        }
    }

    /// Forgets all but the latest of the parked answers, unless the next actor has them already.
    pub(super) fn shrink_parked(&self, most: usize) {
        let mut parked = self.parked.lock();
        if let Some(run_state) = parked.as_deref_mut() {
            run_state.shrink(most);
        }
    }

    pub(super) fn unpark(&self) -> RunState {
        let parked = self.parked.lock().take();
        parked.map_or_else(RunState::default, |run_state| *run_state)
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
pub(crate) enum LeaseError {
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
    pub(crate) fn lease(self: &Arc<Self>, limit: u32) -> Result<RunLease, LeaseError> {
        let taken = self.leases.fetch_update(Ordering::AcqRel, Ordering::Acquire, |leases| {
            (leases < limit.min(CLOSED - 1)).then(|| leases + 1)
        });
        match taken {
            Ok(_) => Ok(RunLease(Arc::clone(self))),
            Err(CLOSED) => Err(LeaseError::Closed),
            Err(_) => Err(LeaseError::Full),
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

    /// Whether no event is in its hands.
    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.leases.load(Ordering::Acquire), 0 | CLOSED)
    }

    /// Whether its actor still takes messages: one that was killed never closed its handle.
    pub(crate) fn is_alive(&self) -> bool {
        !matches!(self.actor.get_status(), ActorStatus::Stopping | ActorStatus::Stopped)
    }

    /// How long no event has been in its hands; zero while one is.
    pub(crate) fn idle_for(&self) -> Duration {
        if !self.is_idle() {
            return Duration::ZERO;
        }
        self.started.elapsed().saturating_sub(Duration::from_millis(self.idle_since.load(Ordering::Relaxed)))
    }
}

/// The right to have one event in a run's hands; given back when dropped.
#[derive(Debug)]
pub(crate) struct RunLease(Arc<RunHandle>);

impl RunLease {
    /// The actor it is a lease of.
    pub(crate) fn actor(&self) -> &ActorRef<RunMessage> {
        &self.0.actor
    }

    /// Whether the actor still takes messages.
    pub(crate) fn is_alive(&self) -> bool {
        self.0.is_alive()
    }
}

impl Drop for RunLease {
    fn drop(&mut self) {
        let since_start = u64::try_from(self.0.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.0.idle_since.store(since_start, Ordering::Relaxed);
        self.0.leases.fetch_sub(1, Ordering::AcqRel);
    }
}
