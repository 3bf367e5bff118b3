//! What is said to a run's actor and what it says to others. Refuses to act.

use std::sync::Arc;

use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    time::Instant,
};

use super::directory::Lease;
use crate::{
    model::{Conclusion, Event, EventKind, HookReport, Outcome, Place, RunId, SessionId, WorkspaceId},
    registry::Plan,
};

/// What a run's actor is told.
#[derive(Debug)]
pub(crate) enum RunMessage {
    /// Take this event through its plan.
    Dispatch(Box<Request>),
    /// An invocation ended.
    Concluded {
        /// Which one.
        ticket: Ticket,
        /// How.
        conclusion: Conclusion,
    },
    /// A caller stopped waiting.
    Abandoned,
    /// A pending event may have waited long enough.
    PendingDeadline,
    /// The run is over: go away once the work in hand is done.
    End,
    /// Nothing happened for a while: make room if nothing is going on.
    Passivate,
}

/// One event for a run, with everything its course needs.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) event: Arc<Event>,
    pub(crate) plan: Plan,
    pub(crate) place: Arc<Place>,
    pub(crate) snapshot_version: u64,
    /// Where the answer goes.
    pub(crate) waiter: Waiter,
    /// When it was accepted, for what the host waited.
    pub(crate) accepted: Instant,
    /// Keeps the actor from going away while the event is in its hands.
    pub(crate) lease: Lease,
    /// Its share of what hookyard does at a time.
    pub(crate) permit: OwnedSemaphorePermit,
}

/// Where an answer goes.
pub(crate) type Waiter = oneshot::Sender<Result<Outcome, Refusal>>;

/// Why a run's actor did not take an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It waited too long for its turn.
    PendingDeadline,
}

/// Names one invocation under way. Numbers are never reused within an actor, so a late reply is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Ticket {
    pub(crate) course: u64,
    pub(crate) step: usize,
}

/// Something that finished, for those who watch.
#[derive(Debug, Clone)]
pub enum Notice {
    /// One hook ran once.
    Invocation {
        /// The run it ran for.
        run: Arc<RunPlace>,
        /// The kind of event.
        event: EventKind,
        /// How it fared.
        report: HookReport,
    },
    /// An event got its outcome.
    Outcome {
        /// The run it belongs to.
        run: Arc<RunPlace>,
        /// The outcome.
        outcome: Arc<Outcome>,
    },
}

/// Which run a notice is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunPlace {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The session.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
}
