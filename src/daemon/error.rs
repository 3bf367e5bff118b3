//! API errors: a status, a stable code, a message and a hint, as JSON.

use std::{fmt, path::Path};

use axum::{
    Json,
    http::{
        HeaderName, HeaderValue, StatusCode,
        header::{RETRY_AFTER, WWW_AUTHENTICATE},
    },
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::schema::{Component, object, string};
use crate::{
    DispatchError,
    model::{EventError, IdError, WorkspaceId},
};

/// The `Retry-After` of every 503, in seconds.
const RETRY_AFTER_SECONDS: u32 = 1;

/// The `Retry-After` of every 429, in seconds.
const RETRY_AFTER_ATTEMPTS: u32 = 60;

/// The `WWW-Authenticate` of every 401.
const BEARER: HeaderValue = HeaderValue::from_static("Bearer");

/// The header of every request that hookyard's http hooks send.
pub(super) const HOOK_EVENT_HEADER: HeaderName = HeaderName::from_static("x-hookyard-event");

/// Whether a client may send a failed request again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Retry {
    /// No hook has run.
    Safe,
    /// Hooks may have run. With an `event_id` or a `tool_call_id`, the same daemon recognises the event.
    MayRepeat,
    /// The request fails again as it is.
    Never,
}

impl Retry {
    /// What holds for every error of a status, unless the error says otherwise.
    fn of(status: StatusCode) -> Self {
        match status {
            StatusCode::SERVICE_UNAVAILABLE => Self::Safe,
            StatusCode::LOOP_DETECTED => Self::Never,
            _ if status.is_server_error() => Self::MayRepeat,
            _ => Self::Never,
        }
    }

    /// The word in errors and headers.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Safe => "safe",
            Self::MayRepeat => "may_repeat",
            Self::Never => "never",
        }
    }
}

/// Why a request fails.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    /// A stable word that clients may rely on.
    code: &'static str,
    retry: Retry,
    message: String,
    hint: String,
}

/// The body of every error response.
#[derive(Debug, Serialize)]
struct ErrorBody {
    error: ErrorText,
}

/// What is wrong and what to do.
#[derive(Debug, Serialize)]
struct ErrorText {
    code: &'static str,
    retry: Retry,
    message: String,
    hint: String,
}

pub(super) static ERROR_BODY: Component = Component::built("ErrorBody", || {
    object("The body of every error response.", [("error", ERROR_TEXT.reference())], &[])
});

pub(super) static ERROR_TEXT: Component = Component::built("ErrorText", || {
    let code = string("A stable word for the error.");
    let message = string("What is wrong.");
    let hint = string("What to do.");
    let retry = json!({
        "type": "string",
        "enum": [Retry::Safe, Retry::MayRepeat, Retry::Never],
        "description": "Whether to send the request again: `safe`: no hook has run; `may_repeat`: hooks may have run; `never`: it fails again as it is.",
    });
    let parts = [("code", code), ("retry", retry), ("message", message), ("hint", hint)];
    object("What is wrong and what to do.", parts, &[])
});

impl ApiError {
    pub(super) fn new(
        status: StatusCode,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) -> Self {
        Self { status, code, retry: Retry::of(status), message: message.into(), hint: hint.into() }
    }

    /// The same for a request whose hooks may have run.
    pub(super) fn after_hooks(self) -> Self {
        Self { retry: Retry::MayRepeat, ..self }
    }

    /// The peer has sent too many requests without a valid token.
    pub(super) fn too_many_attempts() -> Self {
        let message = "too many requests of this peer had no valid token";
        let hint = "send a valid token, which is always accepted";
        Self::new(StatusCode::TOO_MANY_REQUESTS, "too_many_attempts", message, hint)
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

    /// The working directory of an event is in no workspace.
    pub(super) fn outside_workspaces(cwd: &str) -> Self {
        let message = format!("the event's cwd {cwd:?} is in no workspace");
        let hint = if Path::new(cwd).is_absolute() {
            "register a workspace that contains it, or add a directory above it to `workspace_roots`"
        } else {
            "send it as an absolute path"
        };
        Self::not_found("no_workspace", message, hint)
    }

    /// The seconds after which to send the request again.
    pub(super) fn retry_after(&self) -> Option<u32> {
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => Some(RETRY_AFTER_SECONDS),
            StatusCode::TOO_MANY_REQUESTS => Some(RETRY_AFTER_ATTEMPTS),
            _ => None,
        }
    }

    pub(super) fn status(&self) -> StatusCode {
        self.status
    }

    /// The stable word for the error.
    pub(super) fn code(&self) -> &'static str {
        self.code
    }

    /// Whether to send the request again.
    pub(super) fn retry(&self) -> Retry {
        self.retry
    }

    /// What to do.
    pub(super) fn hint(&self) -> &str {
        &self.hint
    }

    /// A limit is reached.
    pub(super) fn overloaded(message: impl Into<String>) -> Self {
        let hint = "retry after the seconds in `Retry-After`, or raise the limit in the settings";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "overloaded", message, hint)
    }

    /// The workspaces are not loaded yet.
    pub(super) fn starting() -> Self {
        let hint = "retry after the seconds in `Retry-After`";
        let message = "hookyard is still loading its workspaces";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "starting", message, hint)
    }

    /// The daemon does not start.
    pub(super) fn not_started(why: &str) -> Self {
        let hint = "correct that and start hookyard again; retry after the seconds in `Retry-After`";
        let message = format!("hookyard did not start: {why}");
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "not_started", message, hint)
    }

    pub(super) const NOT_AUDITED: &str = "not_audited";

    /// The codes of what the store of a cluster does not know or confirm, or another node does.
    pub(super) const CLUSTER_UNSURE: &str = "cluster_unsure";
    pub(super) const HALT_NOT_STORED: &str = "halt_not_stored";
    pub(super) const MOVED: &str = "moved";

    /// Whether this node may not answer, since the others may know better.
    pub(super) fn is_of_cluster(&self) -> bool {
        [Self::CLUSTER_UNSURE, Self::HALT_NOT_STORED, Self::MOVED].contains(&self.code)
    }

    /// The line of a decision could not be written, and `audit.required` is set.
    pub(super) fn not_audited() -> Self {
        let message = "the decision could not be written to the audit, which is required";
        let hint = "make room for the audit; `hookyard status` and the log say why lines are lost";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, Self::NOT_AUDITED, message, hint).after_hooks()
    }

    /// The event is for a workspace that could not be loaded.
    pub(super) fn not_loaded(id: &WorkspaceId, why: &str) -> Self {
        let message = format!("the workspace `{id}` is not loaded: {why}");
        let hint = "correct it in the settings or on disk; loading is tried again by itself and at a reload";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "workspace_not_loaded", message, hint)
    }

    /// The daemon is shutting down.
    pub(super) fn shutting_down() -> Self {
        let hint = "retry after the seconds in `Retry-After`, when a new daemon may have started";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "shutting_down", "hookyard is shutting down", hint)
    }

    /// The daemon shut down before the event was answered.
    pub(super) fn interrupted() -> Self {
        let hint = "send the event again if its hooks may run twice, when a new daemon may have started";
        let message = DispatchError::Interrupted.to_string();
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "interrupted", message, hint).after_hooks()
    }

    /// The outcome could not be written as JSON.
    pub(super) fn unwritten(error: &serde_json::Error) -> Self {
        let message = format!("cannot serialize the outcome: {error}");
        let hint = "report this as a bug, with the event";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "unwritten", message, hint)
    }

    /// Another daemon takes over already, or this one stops.
    pub(super) fn handover_under_way() -> Self {
        let message = "another daemon is taking over already, or this one is about to stop";
        let hint = "wait for it, and look at `hookyard status`";
        let error = Self::new(StatusCode::CONFLICT, "handover_under_way", message, hint);
        Self { retry: Retry::Safe, ..error }
    }

    /// The daemon that wants to take over cannot be reached.
    pub(super) fn no_handover(error: &std::io::Error) -> Self {
        let message = format!("cannot hand over at that socket: {}", crate::model::io_reason(error));
        let hint = "use `hookyard serve --replace`, as the user of the running daemon";
        Self::new(StatusCode::CONFLICT, "no_handover", message, hint)
    }

    /// The workspaces of a node of a cluster are those of its settings.
    pub(super) fn managed() -> Self {
        let message = "this daemon is a node of a cluster, and its workspaces are those of its settings";
        let hint = "change `workspaces` in the settings of every node, and restart them one after the other";
        Self::new(StatusCode::CONFLICT, "managed", message, hint)
    }

    /// The request comes from an http hook.
    pub(super) fn own_hook() -> Self {
        let message = "the request comes from a hook of hookyard and would loop";
        let hint = "remove hookyard's address from the hook";
        Self::new(StatusCode::LOOP_DETECTED, "own_hook", message, hint)
    }

    /// An invalid id in a path or a query.
    pub(super) fn id(what: &'static str, error: &IdError) -> Self {
        Self::bad_request(
            "bad_id",
            format!("the {what} {error}"),
            "use 1 to 256 bytes without control characters",
        )
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<EventError> for ApiError {
    fn from(error: EventError) -> Self {
        match error {
            EventError::TooLarge { .. } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                error.to_string(),
                "send a smaller body, or raise `limits.payload` in the settings",
            ),
            EventError::OtherRun { .. } => Self::bad_request(
                "other_run",
                error.to_string(),
                "send the `run_id` of the event, percent-encoded, in the path or in `X-Hookyard-Run`",
            ),
            EventError::OtherId { .. } => Self::bad_request(
                "other_event",
                error.to_string(),
                "send the `event_id` of the event, percent-encoded, in `X-Hookyard-Event-Id`",
            ),
            EventError::OtherWorkspace { .. } => Self::bad_request(
                "other_workspace",
                error.to_string(),
                "send the `workspace_id` of the event, percent-encoded, in `X-Hookyard-Workspace`, or leave out one of the two",
            ),
            EventError::NoRun => Self::bad_request(
                "no_run",
                error.to_string(),
                "this daemon is a node of a cluster: send the `run_id`, or an agent's session, percent-encoded, in `X-Hookyard-Run`",
            ),
            EventError::NoWorkspaceId => Self::bad_request(
                "no_workspace_id",
                error.to_string(),
                "this daemon is a node of a cluster: send its `workspace_id` in the event, or percent-encoded in `X-Hookyard-Workspace`",
            ),
            EventError::OfWorker => Self::bad_request(
                "worker",
                error.to_string(),
                "send events to a node: a daemon that `hookyard serve` has started",
            ),
            _ => Self::bad_request(
                "bad_event",
                error.to_string(),
                "`hookyard schema event` prints the schema of an event",
            ),
        }
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let retry_after = self.retry_after();
        let Self { status, code, retry, message, hint } = self;
        let mut response =
            (status, Json(ErrorBody { error: ErrorText { code, retry, message, hint } })).into_response();
        let headers = response.headers_mut();
        headers.extend(retry_after.map(|seconds| (RETRY_AFTER, seconds.into())));
        headers.extend((status == StatusCode::UNAUTHORIZED).then_some((WWW_AUTHENTICATE, BEARER)));
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_errors_that_ran_no_hook_are_safe_to_retry() {
        let run_lost = ApiError::from(DispatchError::RunLost);
        let interrupted = ApiError::from(DispatchError::Interrupted);
        for (error, expected) in [
            (ApiError::starting(), Retry::Safe),
            (ApiError::shutting_down(), Retry::Safe),
            (ApiError::overloaded(""), Retry::Safe),
            (run_lost, Retry::MayRepeat),
            (interrupted, Retry::MayRepeat),
            (ApiError::own_hook(), Retry::Never),
            (ApiError::too_many_attempts(), Retry::Never),
            (ApiError::bad_request("bad_event", "", ""), Retry::Never),
        ] {
            assert_eq!(error.retry(), expected, "{}", error.code());
        }
        for retry in [Retry::Safe, Retry::MayRepeat, Retry::Never] {
            assert_eq!(json!(retry), retry.as_str());
        }
    }
}
