//! The messages of a run's actor, the handle through which they are sent, and the notices for subscribers.
//!
//! A sender takes a [`RunLease`] before its message and the actor holds it until the event is answered. An actor
//! goes away by closing the handle, which works only while no lease is out. So a message is either handed to
//! an actor that will see it, or not sent.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    time::Duration,
};

use ractor::{ActorRef, ActorStatus};
use serde::Serialize;
use tokio::{
    sync::{OwnedSemaphorePermit, oneshot},
    time::Instant,
};

use super::{idempotency::IdempotencyKey, outbox::CourseTicket, status::RunActivity};
#[cfg(feature = "store")]
use crate::store::StoredRun;
use crate::{
    model::{Conclusion, Event, EventKind, HookReport, KnownLinks, Outcome, RunId, SessionId, WorkspaceId},
    registry::{Plan, Snapshot},
    telemetry::SnapshotMeters,
};

/// The messages of a run's actor.
#[derive(Debug)]
pub(crate) enum RunMessage {
    /// Run the hooks of this event.
    Dispatch(Box<EventRequest>),
    /// An invocation ended.
    Concluded {
        /// Which one.
        invocation: InvocationId,
        /// How.
        conclusion: Box<Conclusion>,
    },
    /// The links in the paths of an event were looked up.
    LinksKnown {
        /// The number of its course.
        course: u64,
        /// What is known of them.
        links: Box<KnownLinks>,
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
    /// Take over what another daemon knows of the run, and store the state. The lease keeps the actor from going away
    /// before it knows.
    #[cfg(feature = "store")]
    Adopt(RunLease, Box<StoredRun>, oneshot::Sender<()>),
    /// Another daemon of the cluster goes on with the run: forget what hooks have done in it.
    #[cfg(feature = "cluster")]
    Moved(RunLease),
    /// Nothing happened for a while: make room if nothing is going on.
    Passivate,
}

/// One event for a run, with everything its course needs.
#[derive(Debug)]
pub(crate) struct EventRequest {
    pub(crate) event: Arc<Event>,
    /// What a repetition of the event is recognised by.
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) plan: Plan,
    /// What it was planned by.
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) meters: SnapshotMeters,
    /// When it was accepted, for what the host waited.
    pub(crate) accepted: Instant,
    pub(crate) caller: Caller,
    /// Keeps the detached hooks of the event in flight once it is answered. Without one they are shed.
    pub(crate) detached: Option<InFlightGuard>,
    /// What the outbox waits for, if the event is in it.
    pub(crate) ticket: Option<CourseTicket>,
    /// The epoch of the claim on the run, if what the event leaves behind has to hold on all daemons of a cluster.
    pub(crate) claim: Option<u64>,
}

/// Who waits for an event, with the guard that keeps it in flight.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Where the answer goes.
    pub(crate) waiter: OutcomeSender,
    pub(crate) guard: Arc<InFlightGuard>,
}

/// Who sends an event, as far as its listener knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EventSender {
    /// The embedding program, a process of the daemon's user, or a client with a token.
    Known,
    /// Anybody who reaches an address without a token.
    Anonymous,
    /// The outbox, which delivers an event again.
    #[cfg_attr(not(feature = "store"), allow(dead_code, reason = "there is no store in this build"))]
    Outbox,
}

impl EventSender {
    /// How much of a limit of the whole process the events of this sender may take. The last quarter is kept for known
    /// ones.
    pub(crate) fn part_of(self, limit: usize) -> usize {
        match self {
            Self::Known | Self::Outbox => limit,
            Self::Anonymous => limit - limit / 4,
        }
    }
}

/// How much of a limit events may take that no host waits for, and detached hooks. A quarter, one at least, is kept for
/// those that some host waits for; a limit of one cannot be shared.
pub(crate) fn detached_part_of(limit: usize) -> usize {
    limit - (limit / 4).max(1).min(limit.saturating_sub(1))
}

/// The permits of one event in flight.
#[derive(Debug)]
pub(crate) struct AdmissionPermit {
    /// One of the permits of `limits.in_flight`.
    pub(crate) _permit: OwnedSemaphorePermit,
    /// One of those that anonymous senders share.
    pub(crate) anonymous: Option<OwnedSemaphorePermit>,
}

/// RAII guard of one event: its admission permit and its lease of the run.
#[derive(Debug)]
pub(crate) struct InFlightGuard {
    /// Keeps the actor from going away while the event is in its hands.
    pub(crate) _lease: RunLease,
    /// Shared by the event and its detached hooks.
    pub(crate) permit: Arc<AdmissionPermit>,
}

impl InFlightGuard {
    /// Whether the event comes from an anonymous sender.
    pub(super) fn is_anonymous(&self) -> bool {
        self.permit.anonymous.is_some()
    }
}

impl Caller {
    /// Whether nobody waits any more.
    pub(super) fn is_gone(&self) -> bool {
        self.waiter.is_closed()
    }

    /// Answers. The guard is dropped first, or the caller's next event could find the permit still taken.
    pub(super) fn answer(self, answer: Result<Outcome, RunRejection>) {
        drop(self.guard);
        // A send fails only if the caller has stopped waiting.
        drop(self.waiter.send(answer));
    }

    /// Drops the guard and returns where the answer goes.
    pub(super) fn into_waiter(self) -> OutcomeSender {
        self.waiter
    }

    /// Answers at once, and returns the guard for the event that goes on.
    pub(super) fn dismiss(self, outcome: Outcome) -> Arc<InFlightGuard> {
        // A send fails only if the caller has stopped waiting.
        drop(self.waiter.send(Ok(outcome)));
        self.guard
    }
}

/// Where an answer goes.
pub(crate) type OutcomeSender = oneshot::Sender<Result<Outcome, RunRejection>>;

/// Why a run's actor gives no outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunRejection {
    /// It waited too long for its turn.
    PendingDeadline,
    /// It was halted, and that may not be told before other daemons know it.
    HaltNotStored,
    /// Another daemon of the cluster goes on with the run.
    Moved,
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
        /// Its report.
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

/// The lease count of an actor that is going away.
const CLOSED: u32 = u32::MAX;

/// A run's actor, and how many leases of it are out.
#[derive(Debug)]
pub(crate) struct RunHandle {
    pub(crate) actor: ActorRef<RunMessage>,
    /// All leases.
    leases: AtomicU32,
    /// Those among them for detached hooks.
    detached: AtomicU32,
    /// When a lease was last given back, in milliseconds since `started`.
    idle_since: AtomicU64,
    started: Instant,
}

/// Why there is no lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LeaseError {
    /// The actor is going away.
    Closed,
    /// The run has as many events in hand as it may.
    Full,
}

impl RunHandle {
    pub(crate) fn new(actor: ActorRef<RunMessage>) -> Self {
        Self {
            actor,
            leases: AtomicU32::new(0),
            detached: AtomicU32::new(0),
            idle_since: AtomicU64::new(0),
            started: Instant::now(),
        }
    }

    /// Takes a lease, unless the actor is going away or has `limit` events in hand. Detached hooks do not count: an event
    /// that needs a verdict does not wait for those of earlier ones.
    pub(crate) fn lease(self: &Arc<Self>, limit: u32) -> Result<RunLease, LeaseError> {
        let detached = self.detached.load(Ordering::Acquire);
        let most = limit.saturating_add(detached).min(CLOSED - 1);
        let taken = self
            .leases
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |leases| (leases < most).then(|| leases + 1));
        match taken {
            Ok(_) => Ok(RunLease { handle: Arc::clone(self), is_detached: false }),
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

/// RAII guard: keeps the actor of a run from stopping while an event is sent to it or in flight.
#[derive(Debug)]
pub(crate) struct RunLease {
    handle: Arc<RunHandle>,
    /// Whether it is for the detached hooks of an event.
    is_detached: bool,
}

impl RunLease {
    /// The actor it is a lease of.
    pub(crate) fn actor(&self) -> &ActorRef<RunMessage> {
        &self.handle.actor
    }

    /// Whether the actor still takes messages.
    pub(crate) fn is_alive(&self) -> bool {
        self.handle.is_alive()
    }

    /// A lease for the detached hooks of the event that has this one, unless `limit` of them are out.
    pub(crate) fn for_detached(&self, limit: u32) -> Option<Self> {
        let detached = &self.handle.detached;
        let take = |taken: u32| (taken < limit).then(|| taken + 1);
        detached.fetch_update(Ordering::AcqRel, Ordering::Acquire, take).ok()?;
        // This lease is out, so the handle is open.
        self.handle.leases.fetch_add(1, Ordering::AcqRel);
        Some(Self { handle: Arc::clone(&self.handle), is_detached: true })
    }
}

impl Drop for RunLease {
    fn drop(&mut self) {
        let handle = &self.handle;
        let since_start = u64::try_from(handle.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        handle.idle_since.store(since_start, Ordering::Relaxed);
        if self.is_detached {
            handle.detached.fetch_sub(1, Ordering::AcqRel);
        }
        handle.leases.fetch_sub(1, Ordering::AcqRel);
    }
}
