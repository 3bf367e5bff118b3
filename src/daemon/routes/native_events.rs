//! Takes events in an agent's own format and answers what a hook of that agent would answer.

use std::{collections::BTreeMap, sync::Arc};

use axum::{
    body::Bytes,
    extract::{Request, State},
    http::{HeaderMap, request::Parts},
    response::Response,
};
use serde::Deserialize;

use super::{
    addressed::{self, partial_event},
    events::{AuditedEvent, read, refuse_own_hook},
    extract::{ApiQuery, PathParameter},
    native_response::{AnsweredError, NativeAnswer, ResponseForm, parse_dialect, respond},
    unasked::{self, UnaskedEvent},
};
use crate::{
    DispatchError,
    daemon::{
        client,
        error::ApiError,
        guard_scope::GuardScope,
        request_body::{self, BodyFailure},
        state::{DaemonState, RequestContext},
        workspace_locator::LocateError,
    },
    dialect,
    model::{DialectName, Event, EventError, EventOrigin, EventPeer, Outcome, PartialEvent, WorkspaceId},
};

/// How often an event is dispatched again that another node has overtaken.
const MOST_MOVES: u32 = 2;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NativeEventQuery {
    #[serde(default)]
    r#as: ResponseForm,
}

/// Answers an event in an agent's format with what a hook of that agent would answer. An agent takes an error for
/// consent, so there is a verdict even if the hooks cannot be asked.
///
/// Returns an error if the request comes from a hook of hookyard.
pub(super) async fn send_native_event(
    State(context): State<RequestContext>,
    name: Result<PathParameter, ApiError>,
    query: Result<ApiQuery<NativeEventQuery>, ApiError>,
    request: Request,
) -> Result<Response, ApiError> {
    refuse_own_hook(request.headers())?;
    let dialect = name.and_then(|PathParameter(name)| parse_dialect(&name));
    let form = query.as_ref().map_or(ResponseForm::Body, |ApiQuery(query)| query.r#as);
    let wrong_address = match (dialect, query) {
        (Ok(dialect), Ok(_)) => return Ok(send_to(&context, dialect, form, request).await),
        // Claude's words are those that most agents understand.
        (Err(error), _) => (DialectName::Claude, error),
        (Ok(dialect), Err(error)) => (dialect, error),
    };
    let (dialect, error) = wrong_address;
    let origin = request.extensions().get().cloned();
    let workspace = addressed::workspace(request.headers());
    let event = partial_event(dialect, workspace, &unasked::beginning(&context.share, request).await);
    let RequestContext { daemon: state, share } = &context;
    let guards = state.locator.guards_of_unreadable(&state.orchestrator, share.sender, &event).await;
    let unasked = UnaskedEvent { dialect, event, origin, guards, error };
    Ok(respond(unasked.answer(state).await, form))
}

async fn send_to(
    context: &RequestContext,
    dialect: DialectName,
    form: ResponseForm,
    request: Request,
) -> Response {
    let (Parts { headers, extensions, .. }, body) = request.into_parts();
    let bounds = context.share.event_bounds(&context.daemon.settings);
    let origin = extensions.get().cloned();
    // The body keeps its share of the budget until the event is answered.
    let (read, _body) = match request_body::read_or_beginning(&headers, body, bounds).await {
        Ok(body) => match read_native(&context.daemon, dialect, &headers, origin, &body) {
            Ok(event) => (Ok(event), Some(body)),
            Err((error, origin)) => (Err(UnreadNative::invalid(body.to_bytes(), error, origin)), Some(body)),
        },
        Err(BodyFailure { error, beginning }) => {
            (Err(UnreadNative::cut_off(beginning, error, origin).of_request(&headers)), None)
        }
    };
    respond(decide_native(context, dialect, read).await, form)
}

/// An event of an agent that was not read, with the error that says why.
#[derive(Debug)]
pub(in crate::daemon) struct UnreadNative {
    bytes: Bytes,
    error: ApiError,
    origin: Option<EventOrigin>,
    /// The workspace that its request names.
    workspace_id: Option<WorkspaceId>,
    /// Whether more of it would have come, so that what is there may be relied on.
    is_cut_off: bool,
}

impl UnreadNative {
    /// An event of which only the beginning is there.
    pub(in crate::daemon) fn cut_off(
        beginning: Bytes,
        error: ApiError,
        origin: Option<EventOrigin>,
    ) -> Box<Self> {
        Box::new(Self { bytes: beginning, error, origin, workspace_id: None, is_cut_off: true })
    }

    /// The same of a request with these headers.
    pub(in crate::daemon) fn of_request(mut self: Box<Self>, headers: &HeaderMap) -> Box<Self> {
        self.workspace_id = addressed::workspace(headers);
        self
    }

    /// An event that is there to its end, and invalid.
    pub(in crate::daemon) fn invalid(
        bytes: Bytes,
        error: impl Into<ApiError>,
        origin: Option<EventOrigin>,
    ) -> Box<Self> {
        Box::new(Self { bytes, error: error.into(), origin, workspace_id: None, is_cut_off: false })
    }
}

/// Reads an event in an agent's format that came so.
///
/// Returns the error and how it came if it is invalid.
pub(in crate::daemon) fn read_native(
    state: &DaemonState,
    dialect: DialectName,
    headers: &HeaderMap,
    origin: Option<EventOrigin>,
    bytes: &[u8],
) -> Result<Event, (EventError, Option<EventOrigin>)> {
    match read(state, dialect, headers, bytes) {
        Ok(event) => {
            let origin = with_session(headers, origin);
            Ok(Event { environment: environment(headers, dialect, origin.as_ref()), origin, ..event })
        }
        Err(error) => Err((error, origin)),
    }
}

/// Decides an event in an agent's format, whatever listener it came through. There is a verdict even if the hooks cannot be
/// asked.
///
/// Returns an error in that case for hosts with canonical events, which do not take it for consent.
pub(in crate::daemon) async fn decide_native(
    context: &RequestContext,
    dialect: DialectName,
    read: Result<Event, Box<UnreadNative>>,
) -> Result<NativeAnswer, ApiError> {
    let (origin, unanswered) = match read {
        Ok(event) => {
            let origin = event.origin.clone();
            match dispatch(context, dialect, event).await {
                Ok(answer) => return Ok(answer),
                Err(unanswered) => (origin, unanswered),
            }
        }
        Err(unread) => {
            let origin = unread.origin.clone();
            (origin, unreadable(context, dialect, *unread).await)
        }
    };
    let Unanswered { event, guards, error } = *unanswered;
    let unasked = UnaskedEvent { dialect, event, origin, guards, error };
    Box::pin(unasked.answer(&context.daemon)).await
}

/// Why an event has no outcome, and what is known of it. Boxed, because it is rare and large.
struct Unanswered {
    event: PartialEvent,
    guards: GuardScope,
    error: ApiError,
}

/// The variables that an agent gives its hooks, as `relay` sends them. Hooks write to a file that one of them names, so they
/// count only from processes of the user as whom hooks run.
fn environment(
    headers: &HeaderMap,
    dialect: DialectName,
    origin: Option<&EventOrigin>,
) -> Vec<(&'static str, Arc<str>)> {
    let Some(header) = headers.get(client::ENVIRONMENT) else { return Vec::new() };
    let own = EventPeer::User(rustix::process::geteuid().as_raw());
    if origin.is_none_or(|origin| origin.peer != own) {
        return Vec::new();
    }
    let sent: BTreeMap<String, Arc<str>> = serde_json::from_slice(header.as_bytes()).unwrap_or_default();
    let known = dialect::host_variables(dialect).iter();
    let found = known.filter_map(|name| Some((*name, Arc::clone(sent.get(*name)?))));
    found.filter(|(_, value)| client::is_variable(value)).collect()
}

/// How the event came, with what `relay` says of the session.
fn with_session(headers: &HeaderMap, origin: Option<EventOrigin>) -> Option<EventOrigin> {
    let mut origin = origin?;
    let project = headers.get(client::PROJECT).and_then(|project| str::from_utf8(project.as_bytes()).ok());
    origin.project = project.map(Arc::from);
    origin.keeps_hooks = headers.get(client::HOOKS).is_some_and(|hooks| hooks == client::KEPT);
    Some(origin)
}

/// An event that was not read. The directory of one that was read to its end and is invalid is not relied on: the guards
/// of every workspace count.
async fn unreadable(context: &RequestContext, dialect: DialectName, unread: UnreadNative) -> Box<Unanswered> {
    let RequestContext { daemon: state, share } = context;
    let UnreadNative { bytes, error, workspace_id, is_cut_off, .. } = unread;
    let event = partial_event(dialect, workspace_id, &bytes);
    let guards = if is_cut_off {
        state.locator.guards(&state.orchestrator, share.sender, &state.settings, &event).await
    } else {
        state.locator.guards_of_unreadable(&state.orchestrator, share.sender, &event).await
    };
    Box::new(Unanswered { event, guards, error })
}

async fn dispatch(
    context: &RequestContext,
    dialect: DialectName,
    mut event: Event,
) -> Result<NativeAnswer, Box<Unanswered>> {
    let RequestContext { daemon: state, share } = context;
    match state.locator.locate(&state.orchestrator, share.sender, &event).await {
        Ok(workspace) => event.workspace_id = workspace,
        Err(error) => {
            let event = PartialEvent::of(&event);
            let guards = match error {
                LocateError::NotLoaded(_) => GuardScope::NotLoaded,
                _ => state.locator.guards(&state.orchestrator, share.sender, &state.settings, &event).await,
            };
            return Err(Box::new(Unanswered { event, guards, error: error.into() }));
        }
    }
    let audited = AuditedEvent::of(state, &event);
    let mut dispatched = state.orchestrator.dispatch_from(share.sender, event.clone()).await;
    // What its hooks have left does not count. An agent sends no event again, and would take the end of its turn for permitted.
    for _ in 0..MOST_MOVES {
        if !matches!(dispatched, Err(DispatchError::RunMoved)) {
            break;
        }
        dispatched = state.orchestrator.dispatch_from(share.sender, event.clone()).await;
    }
    let (outcome, error) = match dispatched {
        Ok(outcome) => (outcome, None),
        Err(error) => {
            let answered = AnsweredError::of(&error.clone().into());
            (undispatched(state, &event, error)?, Some(answered))
        }
    };
    if let Some(audited) = audited
        && let Err(error) = audited.confirm(state, &outcome).await
    {
        let (event, guards) = (PartialEvent::of(&event), GuardScope::NotLoaded);
        return Err(Box::new(Unanswered { event, guards, error }));
    }
    Ok(NativeAnswer { answer: dialect::named(dialect).write_response(&event, &outcome), error })
}

/// The block for an event that was turned away.
///
/// Returns what is known of it if no guard of its workspace would have been asked.
fn undispatched(
    state: &DaemonState,
    event: &Event,
    error: DispatchError,
) -> Result<Outcome, Box<Unanswered>> {
    state.orchestrator.block_undispatched(event, &error).ok_or_else(|| {
        // The guards of a known workspace have just been looked for.
        let is_known = state.orchestrator.snapshot(event.workspace_id.as_ref()).is_some();
        let guards = match &event.workspace_id {
            _ if is_known => GuardScope::Nowhere,
            // Nobody knows the guards of a workspace that is not here.
            Some(_) => GuardScope::NotLoaded,
            None => GuardScope::AnyWorkspace,
        };
        Box::new(Unanswered { event: PartialEvent::of(event), guards, error: error.into() })
    })
}
