//! Takes canonical events and answers with what their hooks decided; what native events have in common with that.

use std::{sync::Arc, time::SystemTime};

use axum::{
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, header::CONTENT_TYPE, request::Parts},
    response::Response,
    routing::on,
};
use futures_util::FutureExt;

use super::{
    addressed,
    extract::PathParameter,
    operation::{BodySchema::One, Operation, ResponseContent, RouteMethod, ok},
    shared::{EVENT_ERRORS, RUN_ID, UNKNOWN_WORKSPACE},
};
use crate::{
    DispatchError, FinishedEvent, RunRef,
    daemon::{
        audit::{Audit, UnaskedReason},
        auth::AccessRight,
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

pub(super) const SEND: Operation = Operation {
    method: RouteMethod::Post,
    id: "sendEvent",
    tag: "events",
    right: AccessRight::Events,
    summary: "Run the hooks for an event.",
    description: "Takes a canonical event and answers with its outcome. `/v1/events/{dialect}` takes the events of agents.",
    parameters: &[],
    request: Some(One(&EVENT)),
    success: &[ok("The outcome", ResponseContent::Json(One(&OUTCOME)))],
    errors: &[EVENT_ERRORS, UNKNOWN_WORKSPACE],
    handler: |method| on(method, send_event),
};

pub(super) const SEND_OF_RUN: Operation = Operation {
    id: "sendEventOfRun",
    summary: "Run the hooks for an event of a run.",
    description: "The same as `/v1/events`, for balancers that send each run to one daemon by its path. The run must be that of the event.",
    parameters: &[RUN_ID],
    handler: |method| on(method, send_event_of_run),
    ..SEND
};

/// An event that cannot be read, with the error that says why.
#[derive(Debug)]
pub(in crate::daemon) struct UnreadableEvent {
    pub(in crate::daemon) bytes: Bytes,
    pub(in crate::daemon) error: EventError,
    pub(in crate::daemon) origin: Option<EventOrigin>,
}

/// Answers a canonical event with its outcome.
pub(in crate::daemon) async fn send_event(
    State(context): State<RequestContext>,
    request: Request,
) -> Result<Response, ApiError> {
    let (Parts { headers, extensions, .. }, body) = request.into_parts();
    refuse_own_hook(&headers)?;
    let RequestContext { daemon: state, share } = &context;
    let body = request_body::read(&headers, body, share.event_bounds(&state.settings)).await?;
    let origin = extensions.get().cloned();
    let read = match read_canonical(state, &headers, origin, &body) {
        Ok(event) => Ok(event),
        Err((error, origin)) => Err(UnreadableEvent { bytes: body.to_bytes(), error, origin }),
    };
    let outcome = decide(&context, read).await?;
    let bytes = serde_json::to_vec(&outcome).map_err(|error| ApiError::unwritten(&error))?;
    Ok(to_json(bytes))
}

/// The same where the path says of which run the event is.
async fn send_event_of_run(
    context: State<RequestContext>,
    PathParameter(run): PathParameter,
    mut request: Request,
) -> Result<Response, ApiError> {
    addressed::name_run(request.headers_mut(), &run);
    send_event(context, request).await
}

/// Reads a canonical event that came so.
///
/// Returns the error and how it came if it is invalid.
pub(in crate::daemon) fn read_canonical(
    state: &DaemonState,
    headers: &HeaderMap,
    origin: Option<EventOrigin>,
    bytes: &[u8],
) -> Result<Event, (EventError, Option<EventOrigin>)> {
    match read(state, DialectName::Canonical, headers, bytes) {
        Ok(mut event) => {
            event.origin = origin;
            Ok(event)
        }
        Err(error) => Err((error, origin)),
    }
}

/// Decides a canonical event, whatever listener it came through.
///
/// Returns an error if its hooks cannot be asked, and if it is invalid and no guard would have had to see it.
pub(in crate::daemon) async fn decide(
    context: &RequestContext,
    read: Result<Event, UnreadableEvent>,
) -> Result<Outcome, ApiError> {
    let RequestContext { daemon: state, share } = context;
    let mut event = match read {
        Ok(event) => event,
        // The event can be read, and is not for this address.
        Err(UnreadableEvent { error, .. }) if error.is_of_request() => return Err(error.into()),
        Err(unreadable) => return Box::pin(block_unreadable(state, share.sender, unreadable)).await,
    };
    event.workspace_id = state.locator.locate(&state.orchestrator, share.sender, &event).await?;
    dispatch(context, event).outcome().await
}

/// An event whose hooks are asked.
pub(in crate::daemon) struct DispatchedEvent<'c, F> {
    state: &'c DaemonState,
    audited: Option<AuditedEvent<'c>>,
    outcome: F,
}

/// Asks the hooks of an event whose workspace is known. Whatever needs no waiting is done here.
pub(in crate::daemon) fn dispatch(
    context: &RequestContext,
    event: Event,
) -> DispatchedEvent<'_, impl Future<Output = Result<Outcome, DispatchError>> + Send + Unpin> {
    let RequestContext { daemon: state, share } = context;
    let audited = AuditedEvent::of(state, &event);
    DispatchedEvent { state, audited, outcome: state.orchestrator.dispatch_from(share.sender, event) }
}

impl<F: Future<Output = Result<Outcome, DispatchError>> + Send + Unpin> DispatchedEvent<'_, F> {
    /// The outcome, if it needs no waiting: no hook wants the event.
    pub(in crate::daemon) fn outcome_at_once(&mut self) -> Option<Result<Outcome, ApiError>> {
        let may_answer = self.audited.is_none();
        let outcome = may_answer.then(|| (&mut self.outcome).now_or_never()).flatten()?;
        Some(outcome.map_err(ApiError::from))
    }

    /// Waits for the outcome.
    ///
    /// Returns an error if the hooks could not be asked, or if the outcome needs a line in the audit and has none.
    pub(in crate::daemon) async fn outcome(self) -> Result<Outcome, ApiError> {
        let outcome = self.outcome.await?;
        if let Some(audited) = self.audited {
            audited.confirm(self.state, &outcome).await?;
        }
        Ok(outcome)
    }
}

/// The block for a canonical event that cannot be read, where a guard would have had to see it.
async fn block_unreadable(
    state: &DaemonState,
    sender: EventSender,
    UnreadableEvent { bytes, error, origin }: UnreadableEvent,
) -> Result<Outcome, ApiError> {
    let dialect = DialectName::Canonical;
    if let Some(cwd) = dialect::named(dialect).cwd_of(&bytes) {
        // Hosts with canonical events get an error, which they do not take for consent, where no guard is known.
        drop(state.locator.register_for_unreadable(&state.orchestrator, sender, &cwd).await);
    }
    let Some(outcome) = state.orchestrator.block_unreadable(None, dialect, &bytes, &error) else {
        return Err(error.into());
    };
    let is_audited = confirm_unasked(state, &outcome, &error.into(), (origin.as_ref(), dialect)).await;
    if is_audited { Ok(outcome) } else { Err(ApiError::not_audited()) }
}

/// Refuses a request that comes from a hook of hookyard, or from what such a hook has started.
pub(in crate::daemon) fn refuse_own_hook(headers: &HeaderMap) -> Result<(), ApiError> {
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
    if state.settings.cluster.lifecycle == crate::config::LifecyclePlace::Work {
        return Err(EventError::OfWorker);
    }
    let mut event = state.orchestrator.read(dialect, bytes)?;
    addressed::agree(headers, &mut event)?;
    if state.settings.cluster.enabled {
        addressed::suffice(headers, &event)?;
    }
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
        former_changes: None,
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
