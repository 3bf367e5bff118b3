//! Native responses: their dialects, their two forms, and how they are written.

use axum::{
    Json,
    http::{HeaderName, HeaderValue, StatusCode, header::ALLOW},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};

use super::events::to_json;
use crate::{
    daemon::{
        error::{ApiError, Retry},
        schema::{Component, object, string, unsigned_as},
    },
    dialect,
    model::{DialectName, HostResponse},
};

/// The response header with the exit code of a command hook that would answer the same.
pub(in crate::daemon) const EXIT_CODE: HeaderName = HeaderName::from_static("hookyard-exit-code");

/// The beginning of the paths of agents' events; the name of the dialect follows.
pub(super) const NATIVE_EVENTS_PREFIX: &str = "/v1/events/";

/// The form of a native response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::daemon) enum ResponseForm {
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

#[cfg(feature = "cli")]
impl ProcessAnswer {
    /// The answer as a dialect writes it.
    pub(crate) fn into_response(self) -> HostResponse {
        let Self { stdout, stderr, exit_code } = self;
        HostResponse { stdout, stderr, exit_code, body: None }
    }
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

pub(in crate::daemon) fn parse_dialect(name: &str) -> Result<DialectName, ApiError> {
    DialectName::ALL.iter().find(|known| known.as_str() == name).copied().ok_or_else(|| {
        let known: Vec<_> = DialectName::ALL.iter().map(|name| name.as_str()).collect();
        let hint = format!("use one of {}", known.join(", "));
        ApiError::not_found("unknown_dialect", format!("unknown dialect {name:?}"), hint)
    })
}

fn write(answer: HostResponse, form: ResponseForm) -> Response {
    match form {
        ResponseForm::Body => {
            let mut response = to_json(dialect::http_body(&answer).into_owned());
            response.headers_mut().insert(EXIT_CODE, u16::from(answer.exit_code).into());
            response
        }
        ResponseForm::Process => {
            let HostResponse { stdout, stderr, exit_code, .. } = answer;
            Json(ProcessAnswer { stdout, stderr, exit_code }).into_response()
        }
    }
}

/// An agent's answer, and the error that it stands for, if its hooks did not run.
#[derive(Debug)]
pub(in crate::daemon) struct NativeAnswer {
    pub(in crate::daemon) answer: HostResponse,
    pub(in crate::daemon) error: Option<AnsweredError>,
}

/// The header with the code of the error that an answer stands for.
pub(in crate::daemon) const ERROR: HeaderName = HeaderName::from_static("x-hookyard-error");

/// The header that says whether to send the event again.
pub(in crate::daemon) const RETRY: HeaderName = HeaderName::from_static("x-hookyard-retry");

/// The error that an answer stands for. Metrics count its status instead of the answer's 200.
#[derive(Debug, Clone, Copy)]
pub(in crate::daemon) struct AnsweredError {
    pub(in crate::daemon) status: StatusCode,
    pub(in crate::daemon) code: &'static str,
    pub(in crate::daemon) retry: Retry,
}

impl AnsweredError {
    pub(in crate::daemon) fn of(error: &ApiError) -> Self {
        Self { status: error.status(), code: error.code(), retry: error.retry() }
    }

    /// Marks an answer, for metrics and for clients that can send the event again.
    pub(super) fn mark(self, response: &mut Response) {
        response.headers_mut().insert(ERROR, HeaderValue::from_static(self.code));
        response.headers_mut().insert(RETRY, HeaderValue::from_static(self.retry.as_str()));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            // The only method of agents' events.
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
        }
        response.extensions_mut().insert(self);
    }
}

/// Writes an answer as a response, marked with the error that it stands for.
pub(super) fn respond(answer: Result<NativeAnswer, ApiError>, form: ResponseForm) -> Response {
    match answer {
        Ok(NativeAnswer { answer, error }) => {
            let mut response = write(answer, form);
            if let Some(error) = error {
                error.mark(&mut response);
            }
            response
        }
        Err(error) => error.into_response(),
    }
}
