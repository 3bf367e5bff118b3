//! Takes events, canonical or in an agent's own format, and answers with what their hooks decided.

use std::sync::Arc;

use axum::{
    Json,
    body::{Body, Bytes},
    extract::{Request, State},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};

use super::extract::{ApiQuery, PathParameter};
use crate::{
    DispatchError,
    daemon::{
        client,
        error::{ApiError, HOOK_EVENT_HEADER},
        request_body::{self, BodyBounds},
        schema::{Component, object, string, unsigned_as},
        state::DaemonState,
    },
    dialect,
    handler::command::is_own_mark,
    model::{DialectName, Event, HostResponse, Outcome},
};

/// The W3C trace context of the host.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The response header with the exit code of a command hook that would answer the same.
const EXIT_CODE: HeaderName = HeaderName::from_static("hookyard-exit-code");

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NativeEventQuery {
    #[serde(default)]
    r#as: ResponseForm,
}

/// The form of a native response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum ResponseForm {
    /// The body of an http hook.
    #[default]
    Body,
    /// The output and the exit code of a command hook.
    Process,
}

/// A native response in the form of a command hook.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ProcessAnswer {
    /// For standard output.
    pub(crate) stdout: String,
    /// For standard error.
    pub(crate) stderr: String,
    /// The exit code.
    pub(crate) exit_code: u8,
}

pub(super) static PROCESS_ANSWER: Component = Component::built("ProcessAnswer", || {
    object(
        "A native response in the form of a command hook.",
        [
            ("stdout", string("The standard output.")),
            ("stderr", string("The standard error.")),
            ("exit_code", unsigned_as("int32", "The exit code.")),
        ],
        &[],
    )
});

pub(super) static EVENT: Component =
    Component::file("Event", include_str!("../../../config/schema/canonical-event.schema.json"));

pub(super) static OUTCOME: Component =
    Component::file("Outcome", include_str!("../../../config/schema/canonical-outcome.schema.json"));

/// Answers a canonical event with its outcome.
pub(in crate::daemon) async fn send_event(
    State(state): State<Arc<DaemonState>>,
    request: Request,
) -> Result<Response, ApiError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let bytes = event_body(&state, &headers, body).await?;
    let outcome = match read(&state, DialectName::Canonical, &headers, &bytes).await {
        Ok(mut event) => {
            event.workspace_id = state.locator.locate(&state.orchestrator, &event).await?;
            state.orchestrator.dispatch(event).await?
        }
        Err(ReadFailure::Blocked(outcome)) => *outcome,
        Err(ReadFailure::Error(error)) => return Err(error),
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
    Ok(json(bytes))
}

/// Answers an event in an agent's format with what a hook of that agent would answer.
pub(super) async fn send_native_event(
    State(state): State<Arc<DaemonState>>,
    PathParameter(name): PathParameter,
    query: Result<ApiQuery<NativeEventQuery>, ApiError>,
    request: Request,
) -> Result<Response, ApiError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let dialect = parse_dialect(&name)?;
    let ApiQuery(query) = query?;
    let bytes = event_body(&state, &headers, body).await?;
    let answer = match read(&state, dialect, &headers, &bytes).await {
        Ok(event) => dispatch_native(&state, dialect, event).await?,
        Err(ReadFailure::Blocked(outcome)) => {
            let unknown = || ApiError::bad_request("bad_event", "the event cannot be read", "send another");
            dialect::unreadable_event_response(dialect, &outcome).ok_or_else(unknown)?
        }
        Err(ReadFailure::Error(error)) => return Err(error),
    };
    Ok(write(answer, query.r#as))
}

/// Why there is no event.
enum ReadFailure {
    /// It is invalid, and a guard would have had to see it: it is blocked.
    Blocked(Box<Outcome>),
    Error(ApiError),
}

fn parse_dialect(name: &str) -> Result<DialectName, ApiError> {
    DialectName::ALL.iter().find(|known| known.as_str() == name).copied().ok_or_else(|| {
        let known: Vec<_> = DialectName::ALL.iter().map(|name| name.as_str()).collect();
        let hint = format!("use one of {}", known.join(", "));
        ApiError::not_found("unknown_dialect", format!("unknown dialect {name:?}"), hint)
    })
}

async fn event_body(state: &DaemonState, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    let has_mark = headers.get(client::HOOK_MARK).is_some_and(|mark| is_own_mark(mark.as_bytes()));
    if has_mark || headers.contains_key(HOOK_EVENT_HEADER) {
        return Err(ApiError::own_hook());
    }
    let limits = &state.settings.limits;
    request_body::read(headers, body, BodyBounds { bytes: limits.payload, time: limits.body_timeout }).await
}

async fn read(
    state: &DaemonState,
    dialect: DialectName,
    headers: &HeaderMap,
    bytes: &[u8],
) -> Result<Event, ReadFailure> {
    let error = match state.orchestrator.read(dialect, bytes) {
        Ok(mut event) => {
            let trace = headers.get(TRACEPARENT).and_then(|header| header.to_str().ok());
            // An invalid traceparent is ignored, as W3C Trace Context requires.
            event.trace = trace.and_then(|text| text.parse().ok());
            if let Some(tracer) = &state.observers.tracer {
                tracer.begin(&mut event);
            }
            return Ok(event);
        }
        Err(error) => error,
    };
    if let Some(cwd) = dialect::named(dialect).cwd_of(bytes) {
        state.locator.register_for_unreadable(&state.orchestrator, &cwd).await;
    }
    Err(match state.orchestrator.block_unreadable(None, dialect, bytes, &error) {
        Some(block) => ReadFailure::Blocked(Box::new(block)),
        None => ReadFailure::Error(error.into()),
    })
}

/// Dispatches an agent's event. An agent ignores failed hooks, so where dispatch fails and a hook with `on_error: deny`
/// was to run, the event is blocked.
async fn dispatch_native(
    state: &DaemonState,
    dialect: DialectName,
    mut event: Event,
) -> Result<HostResponse, ApiError> {
    event.workspace_id = state.locator.locate(&state.orchestrator, &event).await?;
    let outcome = match state.orchestrator.dispatch(event.clone()).await {
        Ok(outcome) => outcome,
        Err(error) => block_or_error(state, &event, error)?,
    };
    Ok(dialect::named(dialect).write_response(&event, &outcome))
}

fn block_or_error(state: &DaemonState, event: &Event, error: DispatchError) -> Result<Outcome, ApiError> {
    state.orchestrator.block_undispatched(event, &error).ok_or_else(|| error.into())
}

fn write(answer: HostResponse, form: ResponseForm) -> Response {
    match form {
        ResponseForm::Body => {
            let mut response = json(dialect::http_body(&answer).into_owned());
            response.headers_mut().insert(EXIT_CODE, u16::from(answer.exit_code).into());
            response
        }
        ResponseForm::Process => {
            let HostResponse { stdout, stderr, exit_code } = answer;
            Json(ProcessAnswer { stdout, stderr, exit_code }).into_response()
        }
    }
}

fn json(bytes: impl Into<Bytes>) -> Response {
    let mut response = Response::new(Body::from(bytes.into()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
