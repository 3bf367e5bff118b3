//! The actor of one run: takes interceptor events one after the other and lifecycle events as they come. It never waits
//! for a handler: it submits jobs and returns, and their conclusions come back as messages.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::Arc,
    time::Duration,
};

use ractor::{Actor, ActorProcessingErr, ActorRef};

use super::{
    actor_state::{CourseRole, InFlightEvent, RunActorState},
    context::RunContext,
    course::{Course, Progress},
    log,
    message::{EventRequest, InvocationId, RunMessage, RunRejection},
    notify::{EndedEvent, NoticeKind},
    outbox::CourseTicket,
    record::RunRecord,
    run_state::once_hooks,
};
use crate::{
    model::{Conclusion, RunKey, Verdict},
    telemetry::{LateReply, ShedReason, ShedStage},
};

/// How many outcomes a run without an actor keeps: enough for a host that repeats its last event.
const OUTCOMES_PARKED: usize = 4;

/// The actor of one run.
#[derive(Debug)]
pub(crate) struct RunActor {
    pub(crate) context: Arc<RunContext>,
    pub(crate) key: RunKey,
    /// The record that outlives the actor.
    pub(crate) record: Arc<RunRecord>,
}

impl Actor for RunActor {
    type Msg = RunMessage;
    type State = RunActorState;
    type Arguments = ();

    async fn pre_start(
        &self,
        myself: ActorRef<RunMessage>,
        (): (),
    ) -> Result<RunActorState, ActorProcessingErr> {
        Ok(RunActorState {
            myself,
            running: BTreeMap::new(),
            pending: VecDeque::new(),
            record: Arc::clone(&self.record),
            run_state: self.record.unpark(),
            session: None,
            next_number: 0,
            ended: false,
            deadline_set: false,
        })
    }

    async fn handle(
        &self,
        myself: ActorRef<RunMessage>,
        message: RunMessage,
        state: &mut RunActorState,
    ) -> Result<(), ActorProcessingErr> {
        let mut end_reply = None;
        match message {
            RunMessage::Dispatch(request) => self.accept(state, *request),
            RunMessage::Concluded { invocation, conclusion } => self.conclude(state, invocation, *conclusion),
            RunMessage::LinksKnown { course, links } => self.go_on(state, course, links),
            RunMessage::Abandoned => self.abandon(state),
            RunMessage::PendingDeadline => self.refuse_overdue(state),
            RunMessage::End(lease, reply) => {
                state.ended = true;
                drop(lease);
                end_reply = Some(reply);
            }
            // A send fails only if whoever asked has stopped waiting.
            RunMessage::Describe(reply) => drop(reply.send(state.in_hand())),
            RunMessage::Cancel(lease, reply) => {
                let events = self.cancel(state, lease);
                reply.send(events).ok();
            }
            #[cfg(feature = "store")]
            RunMessage::Adopt(lease, run, reply) => {
                let stops = run.stops_blocked;
                state.run_state.adopt(*run);
                if stops > 0 {
                    self.context.directory.keep_idle(&state.record, true);
                }
                state.run_state.take_change();
                let is_halted = state.record.halted().is_some();
                self.context.directory.save(&self.key, &state.record, &state.run_state, is_halted);
                drop(lease);
                reply.send(()).ok();
            }
            #[cfg(feature = "cluster")]
            RunMessage::Moved(_lease) => state.run_state.forget(),
            RunMessage::Passivate => {
                // The state is parked before the handle is closed: from then on the next actor may start at any
                // moment. It is parked whole: if a lease is out, this actor goes on and needs all of it.
                state.record.park(std::mem::take(&mut state.run_state));
                if state.go_away() {
                    state.record.shrink_parked(OUTCOMES_PARKED);
                    myself.stop(None);
                    return Ok(());
                }
                state.run_state = state.record.unpark();
            }
        }
        self.start_pending(state);
        self.leave_if_over(state);
        if let Some(reply) = end_reply {
            // A send fails only if the sender of `End` has stopped waiting.
            reply.send(()).ok();
        }
        Ok(())
    }

    /// Stopped with events in flight: hookyard is shutting down.
    async fn post_stop(
        &self,
        _: ActorRef<RunMessage>,
        state: &mut RunActorState,
    ) -> Result<(), ActorProcessingErr> {
        self.cancel_all(state);
        Ok(())
    }
}

impl RunActor {
    /// Accepts an event: starts it, or queues it if it is an interceptor event. A repeated event does not wait for its
    /// turn, since it runs no hook.
    fn accept(&self, state: &mut RunActorState, request: EventRequest) {
        if state.ended {
            tracing::warn!(run = %self.key.run, event = %request.event.kind, "an event came for a run that has ended");
        }
        state.record.count_event();
        state.session.get_or_insert_with(|| self.context.directory.count_session(&request.event.session_id));
        if state.reuses_id(&request) {
            log::reused_id(&self.key, &request);
        }
        match state.join(request, &self.key, &self.context) {
            Some(request) if request.event.is_interceptor() => state.pending.push_back(request),
            Some(request) => self.start(state, request),
            None => {}
        }
    }

    /// Starts pending interceptor events up to the limit. A loop, since an event with inline hooks only ends at once.
    fn start_pending(&self, state: &mut RunActorState) {
        while state.interceptors_running() < self.context.interceptor_concurrency
            && let Some(request) = state.pending.pop_front()
        {
            if !request.caller.is_gone() {
                self.start(state, request);
                state.join_pending(&self.key, &self.context);
            }
        }
        if !state.pending.is_empty() && !state.deadline_set {
            self.set_deadline(state);
        }
    }

    fn start(&self, state: &mut RunActorState, request: EventRequest) {
        let EventRequest { event, key, plan, snapshot, meters, accepted, caller, detached, ticket, claim } =
            request;
        if event.is_interceptor()
            && let Some(halt) = state.record.halted()
        {
            let outcome = halt.outcome(event.kind, snapshot.version());
            let (waited, redactor) = (accepted.elapsed(), snapshot.redactor());
            self.context.meters.answered(event.kind, Verdict::Halt, waited);
            self.context.announce(
                &self.key,
                EndedEvent { event: &event, outcome: &outcome, waited, redactor },
                NoticeKind::Outcome,
            );
            return self.context.answer_known(&self.key, &state.record, caller, outcome);
        }
        let is_repeated = event.is_repeated();
        let again = ticket.as_ref().filter(|_| is_repeated).map(CourseTicket::unfinished);
        let plan = state.run_state.take_turns(&event, plan, &again.unwrap_or_default());
        if let Some(ticket) = &ticket {
            // Before the state of the run, so that no turn is on disk of which the outbox knows nothing.
            ticket.begun(once_hooks(&plan));
        }
        let (awaited, background) = plan.split(&event);
        // Under a claim, a hook had its turn once it has ended: if this daemon dies before, it runs on another one.
        if claim.is_none() {
            self.save_change(state);
        }
        if !background.is_empty() {
            let (course, progress) = Course::begin(Arc::clone(&event), background, Arc::clone(&snapshot));
            let mut running = InFlightEvent::new(course, meters.clone(), CourseRole::Background, accepted);
            running.detached = detached.map(Arc::new);
            running.ticket = ticket.as_ref().map(CourseTicket::for_course);
            self.drive(state, running, progress);
        }
        let version = snapshot.version();
        let (course, progress) = Course::begin(Arc::clone(&event), awaited, snapshot);
        let mut running = InFlightEvent::new(course, meters, CourseRole::Answering, accepted);
        running.key = key;
        running.claim = claim;
        running.ticket = ticket;
        running.take_in(&event, version, caller);
        if running.detached.is_some() && !is_repeated {
            self.answered(event.kind, Verdict::Proceed, accepted.elapsed(), Duration::ZERO);
        }
        self.drive(state, running, progress);
    }

    /// An invocation concluded. If its event is no longer in flight, the conclusion is late and dropped.
    fn conclude(&self, state: &mut RunActorState, invocation: InvocationId, conclusion: Conclusion) {
        match state.running.remove(&invocation.course) {
            Some(mut running) if running.course.is_running(invocation.step) => {
                let progress = running.course.conclude(invocation.step, conclusion);
                self.resume(state, invocation.course, running, progress);
            }
            // The event has ended, or its step was cancelled. An event that is still in flight goes back where it was.
            running => {
                LateReply::emit();
                state.running.extend(running.map(|running| (invocation.course, running)));
            }
        }
    }

    /// Starts a new course.
    fn drive(&self, state: &mut RunActorState, running: InFlightEvent, progress: Progress) {
        let number = state.next_number;
        state.next_number += 1;
        self.resume(state, number, Box::new(running), progress);
    }

    /// Launches the steps of a course until it has to wait for conclusions or is done.
    pub(super) fn resume(
        &self,
        state: &mut RunActorState,
        number: u64,
        mut running: Box<InFlightEvent>,
        mut progress: Progress,
    ) {
        loop {
            running.record_reports();
            match progress {
                Progress::Done => return self.finish(state, *running),
                Progress::Wait => {
                    state.running.insert(number, running);
                    return;
                }
                Progress::Run(steps) => progress = self.launch_all(state, number, &mut running, steps),
            }
        }
    }

    /// Rejects the interceptor events that have waited too long.
    fn refuse_overdue(&self, state: &mut RunActorState) {
        let deadline = self.context.pending_deadline;
        while state.pending.front().is_some_and(|request| request.accepted.elapsed() >= deadline) {
            if let Some(request) = state.pending.pop_front() {
                self.context.meters.shed(ShedStage::Run, ShedReason::Deadline);
                request.caller.answer(Err(RunRejection::PendingDeadline));
            }
        }
        state.deadline_set = false;
    }

    fn set_deadline(&self, state: &mut RunActorState) {
        let Some(first) = state.pending.front() else { return };
        // A duration, since `Instant` plus a very long deadline would overflow.
        let left = self.context.pending_deadline.saturating_sub(first.accepted.elapsed());
        let myself = state.myself.clone();
        state.deadline_set = true;
        tokio::spawn(async move {
            tokio::time::sleep(left).await;
            drop(myself.cast(RunMessage::PendingDeadline));
        });
    }
}
