//! What is said to a run's actor and what it says to others. Refuses to act.

use std::sync::Arc;

use serde::Serialize;
use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    time::Instant,
};

use super::{record::RunLease, status::RunActivity};
use crate::{
    model::{Conclusion, Event, EventKind, HookReport, Outcome, RunId, SessionId, Workspace, WorkspaceId},
    registry::Plan,
    telemetry::SnapshotMeters,
};

/// What a run's actor is told.
#[derive(Debug)]
pub(crate) enum RunMessage {
    /// Take this event through its plan.
    Dispatch(Box<EventRequest>),
    /// An invocation ended.
    Concluded {
        /// Which one.
        invocation: InvocationId,
        /// How.
        conclusion: Box<Conclusion>,
    },
    /// A caller stopped waiting.
    Abandoned,
    /// A pending event may have waited long enough.
    PendingDeadline,
    /// The run is over: go away once the work in hand is done. The lease keeps the actor from going away before
    /// it knows.
    End(RunLease, oneshot::Sender<()>),
    /// Say what is in hand. Sent without a lease: looking at a run must not keep it from being idle.
    Describe(oneshot::Sender<RunActivity>),
    /// Cut short what is in hand, end the run, and say how many events that were. The lease keeps the actor from
    /// going away before it knows.
    Cancel(RunLease, oneshot::Sender<usize>),
    /// Nothing happened for a while: make room if nothing is going on.
    Passivate,
}

/// One event for a run, with everything its course needs.
#[derive(Debug)]
pub(crate) struct EventRequest {
    pub(crate) event: Arc<Event>,
    pub(crate) plan: Plan,
    pub(crate) workspace: Arc<Workspace>,
    pub(crate) meters: SnapshotMeters,
    pub(crate) snapshot_version: u64,
    /// When it was accepted, for what the host waited.
    pub(crate) accepted: Instant,
    pub(crate) caller: Caller,
}

/// Who sent an event, with what is set aside for it.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Where the answer goes.
    pub(crate) waiter: OutcomeSender,
    pub(crate) guard: Arc<InFlightGuard>,
}

/// What is set aside for one event; given back when the last that works on it drops it.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    /// Keeps the actor from going away while the event is in its hands.
    pub(crate) _lease: RunLease,
    /// Its share of what hookyard does at a time.
    pub(crate) _permit: OwnedSemaphorePermit,
}

impl Caller {
    /// Whether nobody waits any more.
    pub(super) fn is_gone(&self) -> bool {
        self.waiter.is_closed()
    }

    /// Answers, and hands back what was set aside: before the answer, or the caller's next event could find
    /// it still taken.
    pub(super) fn answer(self, answer: Result<Outcome, RunRejection>) {
        drop(self.guard);
        // A send fails only if the caller has stopped waiting.
        drop(self.waiter.send(answer));
    }

    /// Hands back what was set aside, and leaves the answer to be given.
    pub(super) fn into_waiter(self) -> OutcomeSender {
        self.waiter
    }

    /// Answers at once, and returns what stays set aside while the event goes on.
    pub(super) fn dismiss(self, outcome: Outcome) -> Arc<InFlightGuard> {
        // A send fails only if the caller has stopped waiting.
        drop(self.waiter.send(Ok(outcome)));
        self.guard
    }
}

/// Where an answer goes.
pub(crate) type OutcomeSender = oneshot::Sender<Result<Outcome, RunRejection>>;

/// Why a run's actor did not take an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunRejection {
    /// It waited too long for its turn.
    PendingDeadline,
}

/// Names one invocation under way. Numbers are never reused within an actor, so a late reply is recognised.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InvocationId {
    pub(crate) course: u64,
    pub(crate) step: usize,
}

/// Something that finished, for those who watch.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// One hook ran once.
    Invocation {
        /// The run it ran for.
        run: Arc<RunRef>,
        /// The kind of event.
        event: EventKind,
        /// How it fared.
        report: HookReport,
    },
    /// An event got its outcome.
    Outcome {
        /// The run it belongs to.
        run: Arc<RunRef>,
        /// The outcome.
        outcome: Arc<Outcome>,
    },
}

/// Which run a notice is about.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct RunRef {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// The session.
    pub session_id: SessionId,
    /// The run.
    pub run_id: RunId,
}
