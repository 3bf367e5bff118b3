//! How events end: answered, abandoned by their callers, or cancelled.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::Instant;

use super::{
    actor::RunActor,
    actor_state::{CourseRole, InFlightEvent, RunActorState},
    answer_gate::AnswerGate,
    decision_id::next_decision_id,
    directory::RunDirectory,
    halt::Halt,
    message::{Caller, OutcomeSender, RunLease, RunRejection},
    notify::{EndedEvent, NoticeKind},
    record::{HaltReceipt, RunRecord},
    run_state::RunState,
};
#[cfg(feature = "store")]
use crate::store::StoredRun;
use crate::{
    dialect,
    model::{DecisionId, Event, EventKind, Failure, Outcome, RunId, RunKey, Verdict, WorkspaceId},
};

/// Why interceptor events of a run that was cancelled are halted. A guard may have been stopped in the middle of
/// its check, so nothing milder would be right.
const CANCELLED: &str = "the run was cancelled";

impl RunActor {
    /// An event is done: tell the observers, apply its effects on the run, answer the callers.
    pub(super) fn finish(&self, state: &mut RunActorState, running: InFlightEvent) {
        let InFlightEvent { course, key, role, callers, detached, accepted, ticket, claim, .. } = running;
        let event = Arc::clone(course.event());
        let redactor = course.redactor().clone();
        let in_hooks = course.time_in_hooks();
        let mut outcome = course.into_outcome(decision_id(&event, role));
        let ended =
            |outcome| EndedEvent { event: &event, outcome, waited: accepted.elapsed(), redactor: &redactor };
        let is_answered = role == CourseRole::Answering && detached.is_none();
        if let Some(ticket) = ticket {
            ticket.report(&outcome.hooks, &redactor, is_answered);
        }
        if role == CourseRole::Background {
            return self.context.announce(&self.key, ended(&outcome), NoticeKind::Background);
        }
        self.break_loop(state, &mut outcome);
        let is_halted = outcome.verdict == Verdict::Halt && event.is_interceptor();
        let receipt = is_halted.then(|| self.halt(state, &event, &outcome)).flatten();
        self.save_change(state);
        if detached.is_none() {
            self.answered(event.kind, outcome.verdict, accepted.elapsed(), in_hooks);
        }
        self.context.announce(&self.key, ended(&outcome), NoticeKind::Outcome);
        state.ended |= event.ends_run() && !event.is_repeated();
        // The run ends before the answer is sent: what the host sends next belongs to a new run.
        drop(detached);
        let waiters = callers.into_iter().map(Caller::into_waiter).collect();
        self.leave_if_over(state);
        let commitment = self.context.commitment(&self.key, claim);
        if let (Some(key), Ok(_)) = (key, &commitment) {
            state.run_state.answers.remember(key, &outcome, &self.context.answers);
        }
        let gate = AnswerGate { receipt, commitment };
        if gate.is_open() {
            return answer(waiters, outcome);
        }
        tokio::spawn(async move {
            match gate.opened().await {
                Ok(()) => answer(waiters, outcome),
                Err(rejection) => refuse(waiters, rejection),
            }
        });
    }

    /// Lets an agent stop that hooks have kept from stopping too often without any work in between.
    fn break_loop(&self, state: &mut RunActorState, outcome: &mut Outcome) {
        if outcome.event != EventKind::AgentStopping {
            return;
        }
        let is_kept = outcome.verdict == Verdict::Block;
        if !self.context.directory.keep_idle(&state.record, is_kept) {
            state.run_state.stops_begin();
        }
        state.run_state.break_loop(outcome, self.context.stop_blocks);
        if outcome.verdict != Verdict::Block {
            self.context.directory.keep_idle(&state.record, false);
        }
    }

    /// Halts the run. Returns what to wait for before the answer.
    fn halt(&self, state: &mut RunActorState, event: &Event, outcome: &Outcome) -> Option<HaltReceipt> {
        let directory = &self.context.directory;
        let prompt = dialect::prompt_of(event).map(Into::into);
        let halt = Halt { reason: outcome.reason.clone(), by: outcome.by.clone(), prompt };
        directory.halt(&state.record, halt);
        state.run_state.take_change();
        directory.save(&self.key, &state.record, &state.run_state, true);
        directory.receipt(&self.key, &state.record)
    }

    /// Stores what has changed of the run's state.
    pub(super) fn save_change(&self, state: &mut RunActorState) {
        if state.run_state.take_change() {
            self.context.directory.save(&self.key, &state.record, &state.run_state, false);
        }
    }

    /// A caller is gone: cancels the events that nobody waits for any more and kills their processes.
    pub(super) fn abandon(&self, state: &mut RunActorState) {
        for mut running in state.abandoned() {
            running.cancel_delivery();
            self.cancel_unanswered(running, Failure::ABANDONED);
        }
    }

    /// Shutdown: cancels every event. Callers get no answer; their closed channel tells them. What is in the outbox stays
    /// there for the next start.
    pub(super) fn cancel_all(&self, state: &mut RunActorState) {
        for running in std::mem::take(&mut state.running).into_values() {
            self.cancel_unanswered(*running, "hookyard is shutting down");
        }
    }

    /// Cancels every event in flight or pending and ends the run. Returns how many events that were. An event that is on
    /// its way to this actor becomes the first of the next run of this id.
    pub(super) fn cancel(&self, state: &mut RunActorState, lease: RunLease) -> usize {
        let mut answers: Vec<(Vec<OutcomeSender>, Outcome)> = Vec::new();
        for mut running in std::mem::take(&mut state.running).into_values() {
            running.cancel_delivery();
            let accepted = running.accepted;
            let is_detached = running.detached.is_some();
            if running.role == CourseRole::Background {
                self.cancel_unanswered(*running, CANCELLED);
                continue;
            }
            let redactor = running.course.redactor().clone();
            let (event, waiters, mut outcome) = cancel_course(*running, CANCELLED);
            if event.is_interceptor() {
                outcome.verdict = Verdict::Halt;
                outcome.reason = Some(CANCELLED.into());
                outcome.by = None;
                outcome.drop_unused_patches();
            }
            let waited = accepted.elapsed();
            if !is_detached {
                self.context.meters.answered(event.kind, outcome.verdict, waited);
            }
            let ended = EndedEvent { event: &event, outcome: &outcome, waited, redactor: &redactor };
            self.context.announce(&self.key, ended, NoticeKind::Outcome);
            answers.push((waiters, outcome));
        }
        let halt = Halt { reason: Some(CANCELLED.into()), by: None, prompt: None };
        for request in std::mem::take(&mut state.pending) {
            if request.caller.is_gone() {
                continue;
            }
            let event = &request.event;
            let outcome = halt.outcome(event.kind, request.snapshot.version());
            let waited = request.accepted.elapsed();
            self.context.meters.answered(event.kind, outcome.verdict, waited);
            let ended =
                EndedEvent { event, outcome: &outcome, waited, redactor: request.snapshot.redactor() };
            self.context.announce(&self.key, ended, NoticeKind::Outcome);
            answers.push((vec![request.caller.into_waiter()], outcome));
        }
        drop(lease);
        // The run ends before the answers are sent, as in `finish`.
        state.ended = true;
        if !self.leave_if_over(state) {
            state.record = self.context.directory.renew(&self.key, &state.record);
            state.run_state = RunState::default();
            state.session = None;
            state.ended = false;
        }
        let events = answers.len();
        for (waiters, outcome) in answers {
            answer(waiters, outcome);
        }
        events
    }

    /// Records how long a host waited, and how much of it was not spent in hooks.
    pub(super) fn answered(&self, kind: EventKind, verdict: Verdict, waited: Duration, in_hooks: Duration) {
        self.context.meters.answered(kind, verdict, waited);
        self.context.meters.spent(kind, waited.saturating_sub(in_hooks));
    }

    /// Cancels an event that gets no outcome.
    fn cancel_unanswered(&self, running: InFlightEvent, why: &str) {
        let waited = running.accepted.elapsed();
        let redactor = running.course.redactor().clone();
        let kind = if running.role == CourseRole::Background {
            NoticeKind::Background
        } else {
            NoticeKind::Abandoned
        };
        let (event, _, outcome) = cancel_course(running, why);
        let ended = EndedEvent { event: &event, outcome: &outcome, waited, redactor: &redactor };
        self.context.announce(&self.key, ended, kind);
    }

    /// Ends the run if it is over and no event is in flight. Returns whether it did.
    pub(super) fn leave_if_over(&self, state: &RunActorState) -> bool {
        let leaves = state.ended && state.go_away();
        if leaves {
            self.context.directory.end(&self.key);
            state.myself.stop(None);
        }
        leaves
    }
}

impl RunDirectory {
    /// Halts a run; the first halt stays.
    pub(super) fn halt(&self, record: &RunRecord, halt: Halt) {
        let earlier = record.halted.compare_and_swap(&None::<Arc<Halt>>, Some(Arc::new(halt)));
        if earlier.is_none() {
            self.halted.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Ends the halt of a run. Returns whether it was halted.
    pub(super) fn unhalt(&self, record: &RunRecord) -> bool {
        let was_halted = record.halted.swap(None).is_some();
        if was_halted {
            record.is_halt_settled.store(false, Ordering::Release);
            self.halted.fetch_sub(1, Ordering::AcqRel);
        }
        was_halted
    }

    /// Lets a halted run go on, because its host works on another prompt. If the process dies before this is on disk, the
    /// run is halted again until the prompt after that.
    pub(crate) fn resume(&self, key: &RunKey) {
        // The record stays borrowed, so no actor starts without its state.
        let Some(record) = self.runs.get_mut(key) else { return };
        if self.unhalt(&record) {
            self.release_stored(key);
            // Nobody waits until it is stored.
            #[cfg(feature = "store")]
            drop(self.merge(key, &record, StoredRun::default()));
        }
    }

    /// Notes whether hooks have kept the agent of a run from stopping. Returns whether they had before, and it has done
    /// nothing since.
    pub(super) fn keep_idle(&self, record: &RunRecord, is_kept: bool) -> bool {
        let was_kept = record.is_kept_idle.swap(is_kept, Ordering::AcqRel);
        match (was_kept, is_kept) {
            (false, true) => drop(self.kept_idle.fetch_add(1, Ordering::AcqRel)),
            (true, false) => drop(self.kept_idle.fetch_sub(1, Ordering::AcqRel)),
            _ => {}
        }
        was_kept
    }

    /// An agent works. Costs one atomic load while hooks keep none from stopping.
    pub(crate) fn note_work(&self, workspace: &WorkspaceId, run: &RunId) {
        if self.kept_idle.load(Ordering::Acquire) > 0
            && let Some(record) = self.runs.get(&RunKey::new(workspace, run))
        {
            self.keep_idle(&record, false);
        }
    }
}

/// Ends the invocations of an event as cancelled, kills their processes and drops the guard of the event.
fn cancel_course(mut running: InFlightEvent, why: &str) -> (Arc<Event>, Vec<OutcomeSender>, Outcome) {
    running.cancel.cancel();
    running.course.cancel(why, Instant::now());
    running.record_reports();
    let InFlightEvent { course, callers, role, .. } = running;
    let event = Arc::clone(course.event());
    let id = decision_id(&event, role);
    (event, callers.into_iter().map(Caller::into_waiter).collect(), course.into_outcome(id))
}

/// The id of a decision. Hooks that answer were told it; those in the background decide nothing.
fn decision_id(event: &Event, role: CourseRole) -> DecisionId {
    let told = event.arrival.filter(|_| role == CourseRole::Answering);
    told.map_or_else(next_decision_id, |arrival| arrival.decision_id())
}

/// Tells all who wait that they get no answer.
fn refuse(waiters: Vec<OutcomeSender>, rejection: RunRejection) {
    for waiter in waiters {
        // A send fails only if the caller has stopped waiting.
        drop(waiter.send(Err(rejection)));
    }
}

/// Gives an answer to all who wait for it.
fn answer(mut waiters: Vec<OutcomeSender>, outcome: Outcome) {
    // A send fails only if the caller has stopped waiting.
    let Some(last) = waiters.pop() else { return };
    for waiter in waiters {
        drop(waiter.send(Ok(outcome.clone())));
    }
    drop(last.send(Ok(outcome)));
}
