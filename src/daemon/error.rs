//! Why a request was turned down, as JSON with a code, a message and a hint. Owns the statuses; refuses to repeat
//! what a client sent beyond what the library's own errors quote.

use axum::{
    Json,
    http::{
        HeaderValue, StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    DispatchError, WorkspaceError,
    model::{EventError, IdError},
};

/// After how many seconds a client that was turned away may try again.
const RETRY_AFTER_SECONDS: HeaderValue = HeaderValue::from_static("1");

/// How a client without a token is told to send one.
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");

/// Why a request was turned down.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    code: &'static str,
    message: String,
    hint: String,
}

/// The body of every answer that is an error.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ErrorBody {
    error: ErrorText,
}

/// What is wrong and what to do.
#[derive(Debug, Serialize, ToSchema)]
struct ErrorText {
    /// A stable word for what is wrong.
    code: &'static str,
    /// What is wrong.
    message: String,
    /// What to do.
    hint: String,
}

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { status, code, message: message.into(), hint: hint.into() }
    }

    pub(super) fn bad_request(
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self::new(StatusCode::BAD_REQUEST, code, message, hint)
    }

    pub(super) fn not_found(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, code, message, hint)
    }

    /// There is too much to do.
    pub(super) fn overloaded(message: impl Into<String>) -> Self {
        let hint = "try again after the seconds in `Retry-After`, or raise the limit in the settings";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message, hint)
    }

    /// The workspaces are not loaded yet.
    pub(super) fn starting() -> Self {
        let hint = "try again after the seconds in `Retry-After`";
        let message = "hookyard still loads its workspaces";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "starting", message, hint)
    }

    /// The daemon is about to end.
    pub(super) fn shutting_down() -> Self {
        let hint = "try again after the seconds in `Retry-After`: the next daemon may be there";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", "hookyard is shutting down", hint)
    }

    /// An id in a path or a query that cannot be one.
    pub(super) fn id(what: &'static str, error: &IdError) -> Self {
        Self::bad_request(
            "bad_id",
            format!("the {what} {error}"),
            "send 1 to 256 bytes without control characters",
        )
    }
}

impl From<EventError> for ApiError {
    fn from(error: EventError) -> Self {
        match error {
            EventError::TooLarge { .. } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                error.to_string(),
                "send less, or raise `limits.payload` in the settings",
            ),
            _ => Self::bad_request(
                "bad_event",
                error.to_string(),
                "`hookyard schema event` prints what an event looks like",
            ),
        }
    }
}

impl From<DispatchError> for ApiError {
    fn from(error: DispatchError) -> Self {
        let message = error.to_string();
        match error {
            DispatchError::Event(error) => error.into(),
            DispatchError::UnknownWorkspace(_) => Self::not_found(
                "unknown_workspace",
                message,
                "register it with `PUT /v1/workspaces/{id}`, or name it in the settings",
            ),
            DispatchError::NoWorkspace => Self::not_found(
                "no_workspace",
                message,
                "set `workspace_id`, or a `cwd` inside a workspace or one of the `workspace_roots`",
            ),
            DispatchError::Overloaded(_) => Self::overloaded(message),
            DispatchError::RunLost => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "run_lost",
                message,
                "send the event again if its hooks may run twice; the log tells what happened",
            ),
            DispatchError::ShuttingDown => Self::shutting_down(),
        }
    }
}

impl From<WorkspaceError> for ApiError {
    fn from(error: WorkspaceError) -> Self {
        let message = error.to_string();
        match error {
            WorkspaceError::Directory { .. } => Self::bad_request(
                "bad_root",
                message,
                "give a directory of this machine by its absolute path",
            ),
            WorkspaceError::SameRoot { .. } => Self::new(
                StatusCode::CONFLICT,
                "same_root",
                message,
                "use that workspace, or remove it first",
            ),
            WorkspaceError::TooMany(_) => Self::overloaded(message),
            WorkspaceError::ShuttingDown => Self::shutting_down(),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let Self { status, code, message, hint } = self;
        let mut response =
            (status, Json(ErrorBody { error: ErrorText { code, message, hint } })).into_response();
        let more = match status {
            StatusCode::SERVICE_UNAVAILABLE => Some((RETRY_AFTER, RETRY_AFTER_SECONDS)),
            StatusCode::UNAUTHORIZED => Some((WWW_AUTHENTICATE, BEARER)),
            _ => None,
        };
        response.headers_mut().extend(more);
        response
    }
}
