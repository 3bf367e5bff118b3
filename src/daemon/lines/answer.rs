//! Answers as lines.

use axum::body::Bytes;
use serde::Serialize;
use serde_json::value::RawValue;

use super::{error::ErrorLine, request::LineId};
use crate::{
    daemon::{
        error::ApiError,
        routes::{AnsweredError, NativeAnswer, ProcessAnswer, ResponseForm},
    },
    dialect,
    model::{HostResponse, Outcome},
};

/// The line that says that the daemon is about to stop.
pub(super) const DRAINING: &[u8] = b"{\"draining\":true}\n";

/// The answer to one event.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "nearly every answer is an outcome, and none is kept")]
pub(super) enum LineAnswer {
    Outcome(Outcome),
    Native(Box<NativeAnswer>, ResponseForm),
    Error(Box<ApiError>),
    /// What another daemon has answered over HTTP.
    Forwarded(Box<ForwardedAnswer>),
}

/// What another daemon has answered.
#[derive(Debug)]
pub(super) struct ForwardedAnswer {
    pub(super) status: u16,
    pub(super) body: Bytes,
    pub(super) is_native: bool,
    pub(super) exit_code: Option<u8>,
    /// The error that an agent's answer stands for.
    pub(super) error: Option<UnaskedText>,
}

/// The error that an agent's answer stands for: its code, and whether to send the event again.
#[derive(Debug, Clone, Serialize)]
pub(super) struct UnaskedText {
    pub(super) code: String,
    pub(super) retry: String,
}

impl From<AnsweredError> for UnaskedText {
    fn from(error: AnsweredError) -> Self {
        Self { code: error.code.to_owned(), retry: error.retry.as_str().to_owned() }
    }
}

#[derive(Serialize)]
struct NativeLine<'a, A: Serialize> {
    answer: A,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    unasked: Option<&'a UnaskedText>,
}

#[derive(Serialize)]
struct OutcomeLine<'a> {
    outcome: &'a RawValue,
}

impl LineAnswer {
    pub(super) fn error(error: ApiError) -> Self {
        Self::Error(Box::new(error))
    }

    /// The hundreds of its HTTP status.
    pub(super) fn class(&self) -> u16 {
        let status = match self {
            Self::Outcome(_) => 200,
            Self::Native(answer, _) => answer.error.map_or(200, |error| error.status.as_u16()),
            Self::Error(error) => error.status().as_u16(),
            Self::Forwarded(answer) => answer.status,
        };
        status / 100
    }

    /// Appends the line of this answer.
    pub(super) fn write(&self, id: &LineId, lines: &mut Vec<u8>) {
        let begun = lines.len();
        if let Err(error) = self.write_fields(id, lines) {
            lines.truncate(begun);
            // An error is written without failing: it has texts only.
            _ = write_error(Some(id), &ApiError::unwritten(&error), lines);
        }
    }

    fn write_fields(&self, id: &LineId, lines: &mut Vec<u8>) -> serde_json::Result<()> {
        match self {
            Self::Outcome(outcome) => {
                begin(Some(id), lines);
                lines.extend_from_slice(b",\"outcome\":");
                serde_json::to_writer(&mut *lines, outcome)?;
                lines.extend_from_slice(b"}\n");
                Ok(())
            }
            Self::Error(error) => write_error(Some(id), error, lines),
            Self::Native(answer, form) => {
                let unasked = answer.error.map(UnaskedText::from);
                write_native(id, &answer.answer, *form, unasked.as_ref(), lines)
            }
            Self::Forwarded(answer) => write_forwarded(id, answer, lines),
        }
    }
}

/// Appends an error. One without an id is about the connection.
pub(super) fn write_error(
    id: Option<&LineId>,
    error: &ApiError,
    lines: &mut Vec<u8>,
) -> serde_json::Result<()> {
    begin(id, lines);
    append(&ErrorLine::from(error), lines)
}

fn write_native(
    id: &LineId,
    answer: &HostResponse,
    form: ResponseForm,
    unasked: Option<&UnaskedText>,
    lines: &mut Vec<u8>,
) -> serde_json::Result<()> {
    begin(Some(id), lines);
    match form {
        ResponseForm::Body => {
            let body = dialect::http_body(answer);
            let exit_code = Some(answer.exit_code);
            match json_in_one_line(&body) {
                Some(body) => append(&NativeLine { answer: body, exit_code, unasked }, lines),
                None => append(&NativeLine { answer: body, exit_code, unasked }, lines),
            }
        }
        ResponseForm::Process => {
            let HostResponse { stdout, stderr, exit_code, .. } = answer.clone();
            let answer = ProcessAnswer { stdout, stderr, exit_code };
            append(&NativeLine { answer, exit_code: None, unasked }, lines)
        }
    }
}

/// A text, if it is JSON: a hook's own words may be anything.
fn json_in_one_line(text: &str) -> Option<Box<RawValue>> {
    if !text.contains(['\n', '\r']) {
        return serde_json::from_str(text).ok();
    }
    let value: serde_json::Value = serde_json::from_str(text).ok()?;
    serde_json::value::to_raw_value(&value).ok()
}

fn write_forwarded(id: &LineId, answer: &ForwardedAnswer, lines: &mut Vec<u8>) -> serde_json::Result<()> {
    begin(Some(id), lines);
    let text = String::from_utf8_lossy(&answer.body);
    let body = json_in_one_line(&text);
    match (answer.status, answer.is_native, body) {
        (200, false, Some(outcome)) => append(&OutcomeLine { outcome: &outcome }, lines),
        (200, true, Some(body)) => {
            let (exit_code, unasked) = (answer.exit_code, answer.error.as_ref());
            append(&NativeLine { answer: body, exit_code, unasked }, lines)
        }
        (200, true, None) => {
            let (exit_code, unasked) = (answer.exit_code, answer.error.as_ref());
            append(&NativeLine { answer: text, exit_code, unasked }, lines)
        }
        // The body of an error is `{"error": …}`, as a line has it.
        (_, _, Some(error)) if error.get().starts_with("{\"error\"") => append(&error, lines),
        _ => append(&ErrorLine::from(&ApiError::interrupted()), lines),
    }
}

fn begin(id: Option<&LineId>, lines: &mut Vec<u8>) {
    lines.extend_from_slice(b"{\"id\":");
    lines.extend_from_slice(id.map_or("null", LineId::as_str).as_bytes());
}

/// Appends the fields of an object behind the id, and ends the line.
fn append<T: Serialize>(fields: &T, lines: &mut Vec<u8>) -> serde_json::Result<()> {
    let brace = lines.len();
    serde_json::to_writer(&mut *lines, fields)?;
    if let Some(first) = lines.get_mut(brace) {
        *first = b',';
    }
    lines.push(b'\n');
    Ok(())
}
