//! Errors that only lines have, and how any error stands on a line.

use std::time::Duration;

use axum::http::StatusCode;
use serde::Serialize;

use crate::daemon::{error::ApiError, error::Retry};

/// An error on a line, which has no status and no headers.
#[derive(Debug, Serialize)]
pub(super) struct ErrorLine {
    error: ErrorLineText,
}

#[derive(Debug, Serialize)]
struct ErrorLineText {
    code: &'static str,
    status: u16,
    retry: Retry,
    /// The seconds of `Retry-After`.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
    message: String,
    hint: String,
}

impl From<&ApiError> for ErrorLine {
    fn from(error: &ApiError) -> Self {
        let error = ErrorLineText {
            code: error.code(),
            status: error.status().as_u16(),
            retry: error.retry(),
            retry_after: error.retry_after(),
            message: error.to_string(),
            hint: error.hint().to_owned(),
        };
        Self { error }
    }
}

/// The host has cancelled the event.
pub(super) fn cancelled() -> ApiError {
    let message = "the host has cancelled the event";
    ApiError::bad_request("cancelled", message, "send it again if it is wanted").after_hooks()
}

/// Two events on one connection have one id.
pub(super) fn repeated_id(id: &str) -> ApiError {
    let message =
        format!("the id {id} is that of an event in flight, which is cancelled; the connection ends");
    let hint = "give each event an id of its own until it is answered";
    ApiError::bad_request("repeated_id", message, hint).after_hooks()
}

/// The connection ended in the middle of a line.
pub(super) fn incomplete() -> ApiError {
    let message = "the connection ended in the middle of a line";
    ApiError::bad_request("incomplete", message, "end each line with a line feed")
}

/// A line has not come to its end.
pub(super) fn too_slow(time: Duration) -> ApiError {
    let message = format!("the line took longer than {time:?}");
    let hint = "send it faster, or raise `limits.body_timeout` in the settings";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message, hint)
}
