//! With `audit.required`, no event is answered without a line in the audit.

use std::{sync::Arc, time::SystemTime};

use crate::{
    FinishedEvent, RunRef,
    daemon::{
        audit::{Audit, UnaskedReason},
        error::ApiError,
        state::DaemonState,
    },
    model::{DialectName, Event, EventOrigin, Outcome},
};

/// An event whose answer needs a line.
#[derive(Debug)]
pub(super) struct AuditedEvent<'s> {
    audit: &'s Audit,
    event: Arc<Event>,
}

impl<'s> AuditedEvent<'s> {
    /// The event, if the settings require a line for its answer.
    pub(super) fn of(state: &'s DaemonState, event: &Event) -> Option<Self> {
        state.required_audit().map(|audit| Self { audit, event: Arc::new(event.clone()) })
    }

    /// Waits for the line of the event's outcome. What no run has recorded is recorded here: no hook wanted the event, or
    /// its host does not wait for them.
    ///
    /// Returns an error if the line could not be written.
    pub(super) async fn confirm(self, state: &DaemonState, outcome: &Outcome) -> Result<(), ApiError> {
        let Self { audit, event } = self;
        let finished = || finished(state, event, outcome);
        if audit.confirm(outcome.decision_id, finished).await { Ok(()) } else { Err(ApiError::not_audited()) }
    }
}

/// An event with its outcome; nothing if its workspace is not there any more.
fn finished(state: &DaemonState, event: Arc<Event>, outcome: &Outcome) -> Option<FinishedEvent> {
    let snapshot = state.orchestrator.snapshot(event.workspace_id.as_ref())?;
    let run = RunRef {
        workspace_id: snapshot.workspace().id.clone(),
        session_id: event.session_id.clone(),
        run_id: event.run_id.clone(),
    };
    Some(FinishedEvent {
        run: Arc::new(run),
        event,
        outcome: Arc::new(outcome.clone()),
        at: SystemTime::now(),
        redactor: snapshot.redactor().clone(),
    })
}

/// Records an answer that no hook was asked for, if the settings require it. Returns whether it may be given.
pub(super) async fn confirm_unasked(
    state: &DaemonState,
    outcome: &Outcome,
    error: &ApiError,
    (origin, dialect): (Option<&EventOrigin>, DialectName),
) -> bool {
    let Some(audit) = state.required_audit() else { return true };
    let reason = UnaskedReason { status: error.status().as_u16(), code: error.code() };
    audit.confirm_unasked(outcome, reason, origin, dialect).await
}
