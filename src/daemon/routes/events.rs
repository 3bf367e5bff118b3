//! Takes canonical events and answers with what their hooks decided; what native events have in common with that.

use std::{sync::Arc, time::SystemTime};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    http::{
        Extensions, HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE, request::Parts,
    },
    response::Response,
};

use crate::{
    FinishedEvent, RunRef,
    daemon::{
        audit::{Audit, UnaskedReason},
        client,
        error::{ApiError, HOOK_EVENT_HEADER},
        request_body,
        schema::Component,
        state::{DaemonState, RequestContext},
    },
    dialect,
    handler::command::is_own_mark,
    model::{DialectName, Event, EventError, EventOrigin, Outcome},
    run::EventSender,
};

/// The W3C trace context of the host.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

pub(super) static EVENT: Component =
    Component::file("Event", include_str!("../../../config/schema/canonical-event.schema.json"));

pub(super) static OUTCOME: Component =
    Component::file("Outcome", include_str!("../../../config/schema/canonical-outcome.schema.json"));

/// Answers a canonical event with its outcome.
pub(in crate::daemon) async fn send_event(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    request: Request,
) -> Result<Response, ApiError> {
    let (Parts { headers, extensions, .. }, body) = request.into_parts();
    refuse_own_hook(&headers)?;
    let bytes = request_body::read(&headers, body, share.event_bounds(&state.settings)).await?;
    let outcome = match read(&state, DialectName::Canonical, &headers, &bytes) {
        Ok(mut event) => {
            event.origin = extensions.get().cloned();
            event.workspace_id = state.locator.locate(&state.orchestrator, share.sender, &event).await?;
            let audited = AuditedEvent::of(&state, &event);
            let outcome = state.orchestrator.dispatch_from(share.sender, event).await?;
            if let Some(audited) = audited {
                audited.confirm(&state, &outcome).await?;
            }
            outcome
        }
        Err(error) => Box::pin(block_unreadable(&state, share.sender, &bytes, error, &extensions)).await?,
    };
    let bytes = serde_json::to_vec(&outcome).map_err(|error| {
        let message = format!("cannot serialize the outcome: {error}");
        ApiError::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "unwritten",
            message,
            "report this as a bug, with the event",
        )
    })?;
    Ok(to_json(bytes))
}

/// The block for a canonical event that cannot be read, where a guard would have had to see it.
async fn block_unreadable(
    state: &DaemonState,
    sender: EventSender,
    bytes: &[u8],
    error: EventError,
    extensions: &Extensions,
) -> Result<Outcome, ApiError> {
    let dialect = DialectName::Canonical;
    if let Some(cwd) = dialect::named(dialect).cwd_of(bytes) {
        // Hosts with canonical events get an error, which they do not take for consent, where no guard is known.
        drop(state.locator.register_for_unreadable(&state.orchestrator, sender, &cwd).await);
    }
    let Some(outcome) = state.orchestrator.block_unreadable(None, dialect, bytes, &error) else {
        return Err(error.into());
    };
    let sender = (extensions.get(), dialect);
    let is_audited = confirm_unasked(state, &outcome, &error.into(), sender).await;
    if is_audited { Ok(outcome) } else { Err(ApiError::not_audited()) }
}

/// Refuses a request that comes from a hook of hookyard, or from what such a hook has started.
pub(super) fn refuse_own_hook(headers: &HeaderMap) -> Result<(), ApiError> {
    let has_mark = headers.get(client::HOOK_MARK).is_some_and(|mark| is_own_mark(mark.as_bytes()));
    if !has_mark && !headers.contains_key(HOOK_EVENT_HEADER) {
        return Ok(());
    }
    Err(ApiError::own_hook())
}

pub(super) fn read(
    state: &DaemonState,
    dialect: DialectName,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<Event, EventError> {
    let mut event = state.orchestrator.read(dialect, bytes)?;
    state.activity.note(dialect, event.kind, SystemTime::now());
    state.sent.note(dialect, &event, bytes);
    let trace = headers.get(TRACEPARENT).and_then(|header| header.to_str().ok());
    // An invalid traceparent is ignored, as W3C Trace Context requires.
    event.trace = trace.and_then(|text| text.parse().ok());
    if let Some(tracer) = &state.observers.tracer {
        tracer.begin(&mut event);
    }
    Ok(event)
}

pub(super) fn to_json(bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(bytes.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// An event whose answer needs a line in the audit.
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
