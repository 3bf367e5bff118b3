//! What is kept of one run, whether or not it has an actor.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};

use super::{halt::Halt, message::RunHandle, remembered::LastAnswer, run_state::RunState};
use crate::telemetry::StoreFailure;

/// What is known of a run, whether or not it has an actor. There may be a million, so it is kept small; points in
/// time are milliseconds since the directory was made.
#[derive(Debug)]
pub(crate) struct RunRecord {
    pub(super) handle: ArcSwapOption<RunHandle>,
    pub(super) halted: ArcSwapOption<Halt>,
    /// The state that its last actor left for the next.
    parked: Mutex<ParkedState>,
    /// When its first planned event came.
    pub(super) began: u64,
    /// Since when nothing has been asked of it, if it has no actor.
    pub(super) rested: AtomicU64,
    /// How many planned events came.
    events: AtomicU32,
    /// Whether the store may have something of it.
    pub(super) is_stored: AtomicBool,
    /// Whether its halt is on disk, or will not be for a while, and known to the other daemons that have to know it.
    pub(super) is_halt_settled: AtomicBool,
    /// Whether hooks have kept the agent from stopping, and it has done nothing since.
    pub(super) is_kept_idle: AtomicBool,
    /// Whether all daemons of a cluster know that it is halted. It is kept as long as they do.
    pub(super) is_shared: AtomicBool,
}

/// One more word would cost 16 MB for a million runs, since the allocator rounds up to 16 bytes, with 16 of its own for
/// being shared.
const _: () = assert!(size_of::<RunRecord>() <= 64);

/// What the last actor of a run left.
#[derive(Debug, Default)]
enum ParkedState {
    #[default]
    Nothing,
    /// No more than an outcome.
    Answer(Box<LastAnswer>),
    Whole(Box<RunState>),
}

impl ParkedState {
    fn of(run_state: RunState) -> Self {
        if run_state.is_empty() {
            return Self::Nothing;
        }
        let last = run_state.into_last_answer();
        last.map_or_else(|whole| Self::Whole(Box::new(whole)), |last| Self::Answer(Box::new(last)))
    }

    fn into_state(self) -> RunState {
        match self {
            Self::Nothing => RunState::default(),
            Self::Answer(last) => RunState::from(*last),
            Self::Whole(run_state) => *run_state,
        }
    }
}

impl RunRecord {
    pub(super) fn new(began: u64) -> Self {
        Self {
            handle: ArcSwapOption::empty(),
            halted: ArcSwapOption::empty(),
            parked: Mutex::default(),
            began,
            rested: AtomicU64::new(began),
            events: AtomicU32::new(0),
            is_stored: AtomicBool::new(false),
            is_halt_settled: AtomicBool::new(false),
            is_kept_idle: AtomicBool::new(false),
            is_shared: AtomicBool::new(false),
        }
    }

    /// Its actor, if it has one.
    pub(crate) fn handle(&self) -> Option<Arc<RunHandle>> {
        self.handle.load_full()
    }

    /// Gives it an actor.
    pub(crate) fn attach(&self, handle: Arc<RunHandle>) {
        self.handle.store(Some(handle));
    }

    /// Whether its actor takes events.
    pub(super) fn is_active(&self) -> bool {
        self.handle.load().as_ref().is_some_and(|handle| handle.is_open() && handle.is_alive())
    }

    /// Counts a planned event. Only its actor does.
    pub(super) fn count_event(&self) {
        self.events.store(self.events().saturating_add(1), Ordering::Relaxed);
    }

    /// How many planned events came; the largest number stands for more.
    pub(super) fn events(&self) -> u32 {
        self.events.load(Ordering::Relaxed)
    }

    /// Why it is halted, if it is.
    pub(crate) fn halted(&self) -> Option<Arc<Halt>> {
        self.halted.load_full()
    }

    pub(super) fn park(&self, run_state: RunState) {
        *self.parked.lock() = ParkedState::of(run_state);
    }

    /// Forgets all but the latest of the parked answers, unless the next actor has them already.
    pub(super) fn shrink_parked(&self, most: usize) {
        let mut parked = self.parked.lock();
        let mut run_state = std::mem::take(&mut *parked).into_state();
        run_state.shrink(most);
        *parked = ParkedState::of(run_state);
    }

    /// How many bytes the parked answers count for.
    pub(super) fn parked_bytes(&self) -> usize {
        match &*self.parked.lock() {
            ParkedState::Nothing => 0,
            ParkedState::Answer(last) => last.bytes(),
            ParkedState::Whole(run_state) => run_state.answers.bytes(),
        }
    }

    pub(super) fn unpark(&self) -> RunState {
        std::mem::take(&mut *self.parked.lock()).into_state()
    }
}

/// A halt that is not on disk yet.
#[derive(Debug)]
pub(crate) struct HaltReceipt {
    pub(super) record: Arc<RunRecord>,
    pub(super) saved: oneshot::Receiver<()>,
    /// How long it is waited for.
    pub(super) patience: Duration,
    /// Nobody may hear of a halt that is not stored.
    pub(super) is_required: bool,
}

/// A halt is not stored, and nobody may hear of it before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HaltNotStored;

impl HaltReceipt {
    /// Waits until the halt is on disk or cannot be. A halt that cannot be stored is still a halt.
    ///
    /// Returns an error if it is not stored, and nobody may hear of it then.
    pub(crate) async fn settled(self) -> Result<(), HaltNotStored> {
        // An error means that the store is closed.
        if timeout(self.patience, self.saved).await.is_err() {
            StoreFailure::Slow.emit();
            if self.is_required {
                tracing::error!(
                    "a halt is not answered: the disk, or the store of the cluster, takes too long"
                );
                return Err(HaltNotStored);
            }
            tracing::error!(
                "a halt is answered before it is stored: the disk, or the store of the cluster, takes too long"
            );
        }
        self.record.is_halt_settled.store(true, Ordering::Release);
        Ok(())
    }
}
