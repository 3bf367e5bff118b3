//! Events in, outcomes out: canonical ones, and those of agents in their own words. Owns what an agent is told where
//! there is no outcome; refuses to be its own hook.

use std::sync::Arc;

use axum::{
    Json,
    body::{Body, Bytes},
    extract::{Query, Request, State, rejection::QueryRejection},
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header::CONTENT_TYPE, request::Parts},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{PathName, bad_query};
use crate::{
    DispatchError,
    daemon::{
        error::{ApiError, ErrorBody},
        request_body::{self, BodyBounds},
        state::DaemonState,
    },
    dialect,
    model::{DialectName, Event, HostResponse, Outcome},
};

/// The header of every request that hookyard's http hooks send.
const HOOK_EVENT_HEADER: HeaderName = HeaderName::from_static("x-hookyard-event");

/// The W3C trace context of the host.
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// The exit code of a program that answers for hookyard.
const EXIT_CODE: HeaderName = HeaderName::from_static("hookyard-exit-code");

/// How a native answer is wanted.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct NativeEventQuery {
    /// As the body that an http hook of the dialect answers with, or as a process: what a command hook prints, and
    /// its exit code.
    #[serde(default)]
    #[param(inline)]
    r#as: AnswerForm,
}

/// The form of a native answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum AnswerForm {
    #[default]
    Body,
    Process,
}

/// A native answer as a process gives it.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(crate) struct ProcessAnswer {
    /// For standard output.
    pub(crate) stdout: String,
    /// For standard error.
    pub(crate) stderr: String,
    /// The exit code.
    pub(crate) exit_code: u8,
}

/// Runs the hooks for an event.
///
/// The event is a canonical one; `/v1/events/{dialect}` takes those of agents. The answer is the outcome.
#[utoipa::path(
    post, path = "/v1/events", tag = "events", operation_id = "sendEvent",
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, description = "The outcome", body = Object, content_type = "application/json"),
        (status = 400, description = "The event cannot be read", body = ErrorBody),
        (status = 404, description = "The workspace is not known", body = ErrorBody),
        (status = 408, description = "The body took too long", body = ErrorBody),
        (status = 413, description = "The event is too large", body = ErrorBody),
        (status = 415, description = "The body is not JSON", body = ErrorBody),
        (status = 500, description = "The event was lost", body = ErrorBody),
        (status = 508, description = "The request comes from one of hookyard's own hooks", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn canonical(
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
        let message = format!("the outcome could not be written: {error}");
        ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "unwritten", message, "report it with the event")
    })?;
    Ok(json(bytes))
}

/// Runs the hooks for an event of an agent.
///
/// The event is what the agent sends to its own hooks. The answer is what such a hook would answer.
#[utoipa::path(
    post, path = "/v1/events/{dialect}", tag = "events", operation_id = "sendNativeEvent",
    params(
        ("dialect" = String, Path, description = "Whose words the event is in: canonical, openharness, claude, codebuddy, gemini or clawd"),
        NativeEventQuery,
    ),
    request_body(content = Object, content_type = "application/json"),
    responses(
        (status = 200, description = "The answer in the words of the dialect, or a `ProcessAnswer` where it is asked for", body = Object),
        (status = 400, description = "The event cannot be read", body = ErrorBody),
        (status = 404, description = "The dialect or the workspace is not known", body = ErrorBody),
        (status = 408, description = "The body took too long", body = ErrorBody),
        (status = 413, description = "The event is too large", body = ErrorBody),
        (status = 415, description = "The body is not JSON", body = ErrorBody),
        (status = 500, description = "The event was lost", body = ErrorBody),
        (status = 508, description = "The request comes from one of hookyard's own hooks", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn native(
    State(state): State<Arc<DaemonState>>,
    PathName(name): PathName,
    query: Result<Query<NativeEventQuery>, QueryRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let dialect = parse_dialect(&name)?;
    let Query(query) = query.map_err(|error| bad_query(&error))?;
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
    /// It cannot be read, and a guard would have had to.
    Blocked(Box<Outcome>),
    Error(ApiError),
}

fn parse_dialect(name: &str) -> Result<DialectName, ApiError> {
    DialectName::ALL.iter().find(|known| known.as_str() == name).copied().ok_or_else(|| {
        let known: Vec<_> = DialectName::ALL.iter().map(|name| name.as_str()).collect();
        let hint = format!("use one of {}", known.join(", "));
        ApiError::not_found("unknown_dialect", format!("there is no dialect {name:?}"), hint)
    })
}

async fn event_body(state: &DaemonState, headers: &HeaderMap, body: Body) -> Result<Bytes, ApiError> {
    if headers.contains_key(HOOK_EVENT_HEADER) {
        let message = "the request comes from a hook of hookyard, which would be asked for ever";
        let hint = "take hookyard's address out of the hook, or run the hook elsewhere";
        return Err(ApiError::new(StatusCode::LOOP_DETECTED, "own_hook", message, hint));
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
            // One that is none is ignored, as the standard has it.
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

/// An agent takes an error for "no opinion", so where a hook with `on_error: deny` was to be asked it is told no.
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

fn write(answer: HostResponse, form: AnswerForm) -> Response {
    match form {
        AnswerForm::Body => {
            let mut response = json(dialect::http_body(&answer).into_owned());
            response.headers_mut().insert(EXIT_CODE, u16::from(answer.exit_code).into());
            response
        }
        AnswerForm::Process => {
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
