//! What a run's actor knows: the events in its hands, and the answers it gave. Owns which events are the same
//! and which nobody waits for any more; refuses to start or finish any.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use ractor::ActorRef;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    course::Course,
    decision_id::next_decision_id,
    directory::SessionGuard,
    idempotency::IdempotencyKey,
    message::{Caller, EventRequest, InFlightGuard, RunMessage},
    record::RunRecord,
    run_state::RunState,
    status::{ActiveEvent, RunActivity},
};
use crate::{
    model::{Delivery, Event, Outcome},
    telemetry::SnapshotMeters,
};

/// What the actor knows.
#[derive(Debug)]
pub(crate) struct RunActorState {
    pub(super) myself: ActorRef<RunMessage>,
    /// Events under way, by number. Boxed: the map keeps room for several also when it is empty, as it mostly is.
    pub(super) running: BTreeMap<u64, Box<InFlightEvent>>,
    /// Interceptor events that wait for their turn.
    pub(super) pending: VecDeque<EventRequest>,
    pub(super) record: Arc<RunRecord>,
    pub(super) run_state: RunState,
    /// The session of its first event.
    pub(super) session: Option<SessionGuard>,
    pub(super) next_number: u64,
    pub(super) ended: bool,
    /// Whether a look at the queue is due when its first event has waited too long.
    pub(super) deadline_set: bool,
}

/// An event under way.
#[derive(Debug)]
pub(super) struct InFlightEvent {
    pub(super) course: Course,
    pub(super) meters: SnapshotMeters,
    pub(super) key: Option<IdempotencyKey>,
    /// The one whose event it is, and those that sent it again.
    pub(super) callers: Vec<Caller>,
    /// What is set aside for it where it goes on without anyone waiting.
    pub(super) detached: Option<Arc<InFlightGuard>>,
    /// Whether it has a say.
    pub(super) role: CourseRole,
    pub(super) cancel: CancellationToken,
    /// Cancels its invocations when the event is dropped, also by the death of the actor.
    pub(super) _cancel_on_drop: DropGuard,
    pub(super) accepted: Instant,
}

/// Whether an event under way has a say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CourseRole {
    /// Its outcome is the answer.
    Answering,
    /// It was only started beside the one that answers.
    Background,
}

impl InFlightEvent {
    /// An event whose course begins; nobody waits for it yet.
    pub(super) fn new(course: Course, meters: SnapshotMeters, role: CourseRole, accepted: Instant) -> Self {
        let cancel = CancellationToken::new();
        Self {
            course,
            meters,
            role,
            key: None,
            callers: Vec::with_capacity(1),
            detached: None,
            _cancel_on_drop: cancel.clone().drop_guard(),
            cancel,
            accepted,
        }
    }

    /// Counts the invocations that have ended since the last call.
    pub(super) fn record_reports(&mut self) {
        let kind = self.course.event().kind;
        for (step, report) in self.course.new_reports() {
            self.meters.of(step.rank).record(kind, report);
        }
    }

    /// Takes in one who sent the event: to be answered with it, or at once if it goes on without them.
    pub(super) fn take_in(&mut self, event: &Event, snapshot_version: u64, caller: Caller) {
        if event.delivery == Delivery::Detached && !event.is_interceptor() {
            let guard = caller.dismiss(Outcome::proceed(next_decision_id(), event.kind, snapshot_version));
            self.detached.get_or_insert(guard);
        } else {
            self.callers.push(caller);
        }
    }
}

impl RunActorState {
    /// Joins an event to the one it repeats: it gets the first answer, now or when it is there. Returns an event
    /// that repeats none.
    pub(super) fn join(&mut self, request: EventRequest) -> Option<EventRequest> {
        let Some(key) = IdempotencyKey::of(&request.event) else { return Some(request) };
        if let Some(outcome) = self.run_state.answers.get(&key) {
            request.caller.answer(Ok(outcome.clone()));
            return None;
        }
        let twin =
            |running: &&mut Box<InFlightEvent>| running.key.as_ref().is_some_and(|known| known.is_same(&key));
        let Some(running) = self.running.values_mut().find(twin) else { return Some(request) };
        running.take_in(&request.event, request.snapshot_version, request.caller);
        None
    }

    /// Joins the waiting events that repeat one which has just been started or answered.
    pub(super) fn join_pending(&mut self) {
        for request in std::mem::take(&mut self.pending) {
            let new = self.join(request);
            self.pending.extend(new);
        }
    }

    pub(super) fn interceptors_running(&self) -> usize {
        let running = self.running.values().filter(|running| running.role == CourseRole::Answering);
        running.filter(|running| running.course.event().is_interceptor()).count()
    }

    /// Some caller is gone: takes out the events that nobody waits for any more.
    pub(super) fn abandoned(&mut self) -> Vec<InFlightEvent> {
        self.pending.retain(|request| !request.caller.is_gone());
        for running in self.running.values_mut() {
            running.callers.retain(|caller| !caller.is_gone());
        }
        let unwanted = |running: &InFlightEvent| running.callers.is_empty() && running.detached.is_none();
        self.running.extract_if(.., |_, running| unwanted(running)).map(|(_, running)| *running).collect()
    }

    /// Closes the run's handle if nothing is in hand.
    pub(super) fn go_away(&self) -> bool {
        let idle = self.running.is_empty() && self.pending.is_empty();
        let mine = self.record.handle().filter(|handle| handle.actor.get_id() == self.myself.get_id());
        idle && mine.is_none_or(|handle| handle.close())
    }

    /// What is in hand, for those who look.
    pub(super) fn in_hand(&self) -> RunActivity {
        let under_way = |running: &InFlightEvent| ActiveEvent {
            event: running.course.event().kind,
            since: running.accepted.elapsed(),
            hooks: running.course.running_hooks().map(|step| step.hook.name.clone()).collect(),
        };
        RunActivity {
            session_id: self.session.as_ref().map(|seat| seat.session.clone()),
            under_way: self.running.values().map(|running| under_way(running)).collect(),
            pending: self.pending.len(),
        }
    }
}
