//! The state of a run's actor: the events in flight and the events that wait for their turn.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
};

use ractor::ActorRef;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{
    context::RunContext,
    course::Course,
    decision_id::next_decision_id,
    directory::SessionGuard,
    idempotency::IdempotencyKey,
    message::{Caller, EventRequest, InFlightGuard, RunMessage},
    outbox::CourseTicket,
    record::RunRecord,
    run_state::RunState,
    status::{ActiveEvent, RunActivity},
};
use crate::{
    model::{Delivery, Event, KnownLinks, Outcome, RuleCache, RunKey},
    telemetry::SnapshotMeters,
};

/// The state of a run's actor.
#[derive(Debug)]
pub(crate) struct RunActorState {
    pub(super) myself: ActorRef<RunMessage>,
    /// The events in flight, by number. Boxed: an empty map, the usual case, keeps room for several entries.
    pub(super) running: BTreeMap<u64, Box<InFlightEvent>>,
    /// The interceptor events that wait for their turn.
    pub(super) pending: VecDeque<EventRequest>,
    pub(super) record: Arc<RunRecord>,
    pub(super) run_state: RunState,
    /// The session of its first event.
    pub(super) session: Option<SessionGuard>,
    pub(super) next_number: u64,
    pub(super) ended: bool,
    /// Whether a timer for the pending deadline is set.
    pub(super) deadline_set: bool,
}

/// An event in flight.
#[derive(Debug)]
pub(super) struct InFlightEvent {
    pub(super) course: Course,
    pub(super) meters: SnapshotMeters,
    pub(super) key: Option<IdempotencyKey>,
    /// Who waits for the outcome: the sender, and those that sent the same event again.
    pub(super) callers: Vec<Caller>,
    /// Keeps an event in flight that nobody waits for: its host was answered at once.
    pub(super) detached: Option<Arc<InFlightGuard>>,
    /// Whether its outcome is the answer.
    pub(super) role: CourseRole,
    pub(super) cancel: CancellationToken,
    /// Cancels the invocations when the event is dropped, also by the death of the actor.
    pub(super) _cancel_on_drop: DropGuard,
    pub(super) accepted: Instant,
    /// What the outbox waits for, if the event is in it.
    pub(super) ticket: Option<CourseTicket>,
    /// The epoch of the claim on the run, if what the event leaves behind has to hold on all daemons of a cluster.
    pub(super) claim: Option<u64>,
    /// What rules have read of the event.
    pub(super) rule_cache: RuleCache,
    /// The links in its paths, if rules ask for them.
    pub(super) links: EventLinks,
}

/// The links in the paths of an event, for rules that ask where they lead.
#[derive(Debug, Default)]
pub(super) struct EventLinks {
    /// What was looked up last. Boxed: few events have such rules.
    pub(super) known: Option<Box<KnownLinks>>,
    /// The revision of the draft that it is about.
    pub(super) revision: u32,
    /// The steps that wait for it.
    pub(super) waiting: Vec<usize>,
}

/// Whether the outcome of a course is the answer to its event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CourseRole {
    /// It is.
    Answering,
    /// It runs detached hooks in the background and has no influence.
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
            claim: None,
            callers: Vec::with_capacity(1),
            detached: None,
            _cancel_on_drop: cancel.clone().drop_guard(),
            cancel,
            accepted,
            ticket: None,
            rule_cache: RuleCache::default(),
            links: EventLinks::default(),
        }
    }

    /// Counts the invocations that have ended since the last call.
    pub(super) fn record_reports(&mut self) {
        let kind = self.course.event().kind;
        for (step, report) in self.course.new_reports() {
            self.meters.of(step.rank).record(kind, report);
        }
    }

    /// Whether only anonymous senders want the outcome.
    pub(super) fn is_anonymous(&self) -> bool {
        let mut guards = self.callers.iter().map(|caller| &caller.guard).chain(&self.detached);
        guards.all(|guard| guard.is_anonymous())
    }

    /// Takes over the ticket of a repetition that is on disk already, since its host was told so. Any other repetition
    /// needs none of its own.
    fn join_ticket(&mut self, repeated: Option<CourseTicket>) {
        let spare =
            if self.detached.is_some() { std::mem::replace(&mut self.ticket, repeated) } else { repeated };
        spare.into_iter().for_each(CourseTicket::repeats);
    }

    /// The event is not to be delivered again.
    pub(super) fn cancel_delivery(&mut self) {
        self.ticket.take().into_iter().for_each(CourseTicket::cancel);
    }

    /// Adds a caller: it waits for the outcome, or is answered at once if the event is detached.
    pub(super) fn take_in(&mut self, event: &Event, snapshot_version: u64, caller: Caller) {
        if event.delivery == Delivery::Detached && !event.is_interceptor() {
            let id = event.arrival.map_or_else(next_decision_id, |arrival| arrival.decision_id());
            let guard = caller.dismiss(Outcome::proceed(id, event.kind, snapshot_version));
            self.detached.get_or_insert(guard);
        } else {
            self.callers.push(caller);
        }
    }
}

impl RunActorState {
    /// Answers an event that repeats an earlier one with the first outcome, now or when it is there. Returns an event
    /// that repeats none.
    pub(super) fn join(
        &mut self,
        request: EventRequest,
        run: &RunKey,
        context: &RunContext,
    ) -> Option<EventRequest> {
        let Some(key) = request.key else { return Some(request) };
        if let Some(outcome) = self.run_state.answers.get(key) {
            request.ticket.into_iter().for_each(CourseTicket::repeats);
            context.answer_known(run, &self.record, request.caller, outcome);
            return None;
        }
        let twin = |running: &&mut Box<InFlightEvent>| running.key.is_some_and(|known| known.is_same(key));
        let Some(running) = self.running.values_mut().find(twin) else { return Some(request) };
        running.take_in(&request.event, request.snapshot.version(), request.caller);
        running.join_ticket(request.ticket);
        None
    }

    /// Whether an earlier event, answered or not, had the event id of this one and another payload.
    pub(super) fn reuses_id(&self, request: &EventRequest) -> bool {
        let Some(key) = request.key else { return false };
        let in_flight = self.running.values().filter_map(|running| running.key);
        let pending = self.pending.iter().filter_map(|pending| pending.key);
        self.run_state.answers.reuses_id(key) || in_flight.chain(pending).any(|known| known.reuses_id(key))
    }

    /// Joins pending events to the ones that they repeat, after one was started or answered.
    pub(super) fn join_pending(&mut self, run: &RunKey, context: &RunContext) {
        for request in std::mem::take(&mut self.pending) {
            let new = self.join(request, run, context);
            self.pending.extend(new);
        }
    }

    pub(super) fn interceptors_running(&self) -> usize {
        let running = self.running.values().filter(|running| running.role == CourseRole::Answering);
        running.filter(|running| running.course.event().is_interceptor()).count()
    }

    /// Removes the callers that are gone, and returns the events that nobody waits for any more.
    pub(super) fn abandoned(&mut self) -> Vec<InFlightEvent> {
        self.pending.retain(|request| !request.caller.is_gone());
        for running in self.running.values_mut() {
            running.callers.retain(|caller| !caller.is_gone());
        }
        let unwanted = |running: &InFlightEvent| running.callers.is_empty() && running.detached.is_none();
        self.running.extract_if(.., |_, running| unwanted(running)).map(|(_, running)| *running).collect()
    }

    /// Closes the run's handle if no event is in flight or pending. Returns whether the actor may stop.
    pub(super) fn go_away(&self) -> bool {
        let idle = self.running.is_empty() && self.pending.is_empty();
        let mine = self.record.handle().filter(|handle| handle.actor.get_id() == self.myself.get_id());
        idle && mine.is_none_or(|handle| handle.close())
    }

    /// The events in flight and pending, for operators.
    pub(super) fn in_hand(&self) -> RunActivity {
        let under_way = |running: &InFlightEvent| ActiveEvent {
            event: running.course.event().kind,
            since: running.accepted.elapsed(),
            hooks: running.course.running_hooks().map(|step| step.hook.name.clone()).collect(),
        };
        RunActivity {
            session_id: self.session.as_ref().map(|guard| guard.session.clone()),
            under_way: self.running.values().map(|running| under_way(running)).collect(),
            pending: self.pending.len(),
        }
    }
}
