//! Reads JSON request bodies within bounds of size and time.

use std::{pin::pin, time::Duration};

use axum::{
    body::{Body, Bytes, to_bytes},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE},
    },
};
use futures_util::FutureExt;
use http_body_util::{BodyExt, LengthLimitError};
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::error::ApiError;
use crate::model::EventError;

/// How large a body may be and how long it may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyBounds {
    pub(super) bytes: usize,
    pub(super) time: Duration,
}

/// The largest body of a request other than an event, in bytes.
pub(super) const SMALL_BODY_BYTES: usize = 64 << 10;

/// Reads a body.
///
/// Returns an error if its headers say that it is not JSON, or if it is too large or too slow.
pub(super) async fn read(headers: &HeaderMap, body: Body, bounds: BodyBounds) -> Result<Bytes, ApiError> {
    let limit = bounds.bytes;
    let too_large = |size: usize| ApiError::from(EventError::TooLarge { size, limit });
    is_json(headers)?;
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if let Some(size) = announced.filter(|size| *size > limit) {
        return Err(too_large(size));
    }
    let mut reading = pin!(to_bytes(body, limit));
    // Most bodies come with the head, and need no timer.
    let read = match reading.as_mut().now_or_never() {
        Some(read) => Ok(read),
        None => timeout(bounds.time, reading).await,
    };
    match read {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(error)) if is_length_error(&error) => Err(too_large(limit + 1)),
        Ok(Err(_)) => Err(incomplete()),
        Err(_) => Err(too_slow(bounds.time)),
    }
}

/// How much of a body is kept of which more is not wanted, in bytes.
pub(super) const BEGINNING_BYTES: usize = 64 << 10;

/// Why a body could not be read, and its beginning.
#[derive(Debug)]
pub(super) struct BodyFailure {
    pub(super) error: ApiError,
    pub(super) beginning: Bytes,
}

/// Reads a body to its end, even one that is too large: a client that still sends might not read an early response. Of
/// such a body only the beginning is kept.
pub(super) async fn read_or_beginning(
    headers: &HeaderMap,
    body: Body,
    bounds: BodyBounds,
) -> Result<Bytes, BodyFailure> {
    let mut kept = KeptBody::new(bounds.bytes);
    let read = {
        let mut reading = pin!(kept.read(body));
        // Most bodies come with the head, and need no timer.
        match reading.as_mut().now_or_never() {
            Some(read) => Ok(read),
            None => timeout(bounds.time, reading).await,
        }
    };
    let error = match read {
        _ if kept.size > bounds.bytes => {
            Some(EventError::TooLarge { size: kept.size, limit: bounds.bytes }.into())
        }
        Ok(Ok(())) => is_json(headers).err(),
        Ok(Err(_)) => Some(incomplete()),
        Err(_) => Some(too_slow(bounds.time)),
    };
    match error {
        None => Ok(kept.bytes()),
        Some(error) => {
            let bytes = kept.bytes();
            Err(BodyFailure { error, beginning: bytes.slice(..bytes.len().min(BEGINNING_BYTES)) })
        }
    }
}

/// The chunks of a body as far as they are kept.
struct KeptBody {
    chunks: Vec<Bytes>,
    /// How much has come, kept or not.
    size: usize,
    limit: usize,
}

impl KeptBody {
    fn new(limit: usize) -> Self {
        Self { chunks: Vec::new(), size: 0, limit }
    }

    async fn read(&mut self, mut body: Body) -> Result<(), axum::Error> {
        while let Some(frame) = body.frame().await {
            if let Ok(data) = frame?.into_data() {
                self.add(data);
            }
        }
        Ok(())
    }

    fn add(&mut self, data: Bytes) {
        let had_room = self.size <= self.limit;
        self.size = self.size.saturating_add(data.len());
        if self.size <= self.limit {
            self.chunks.push(data);
        } else if had_room {
            self.chunks.push(data);
            let mut all = std::mem::take(&mut self.chunks).concat();
            all.truncate(BEGINNING_BYTES);
            self.chunks.push(all.into());
        }
    }

    fn bytes(mut self) -> Bytes {
        match &mut self.chunks[..] {
            [] => Bytes::new(),
            [only] => std::mem::take(only),
            chunks => chunks.concat().into(),
        }
    }
}

fn incomplete() -> ApiError {
    let message = "the body ended early";
    ApiError::bad_request("incomplete", message, "send as many bytes as `Content-Length` says")
}

fn too_slow(time: Duration) -> ApiError {
    let message = format!("the body took longer than {time:?}");
    let hint = "send it faster, or raise `limits.body_timeout` in the settings";
    ApiError::new(StatusCode::REQUEST_TIMEOUT, "too_slow", message, hint)
}

/// Reads a body and deserializes it.
pub(super) async fn read_as<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    bounds: BodyBounds,
) -> Result<T, ApiError> {
    let bytes = read(headers, body, bounds).await?;
    serde_json::from_slice(&bytes).map_err(|error| {
        ApiError::bad_request(
            "bad_body",
            format!("the body is invalid: {error}"),
            "GET /v1/openapi.json describes the body",
        )
    })
}

fn is_json(headers: &HeaderMap) -> Result<(), ApiError> {
    let mut encodings = headers.get_all(CONTENT_ENCODING).iter();
    if let Some(encoding) = encodings.find(|encoding| !is_identity(encoding)) {
        return Err(unsupported(
            format!("the body has the encoding {encoding:?}"),
            "send it without an encoding",
        ));
    }
    let Some(given) = headers.get(CONTENT_TYPE) else { return Ok(()) };
    let essence = given.to_str().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let essence = essence.to_ascii_lowercase();
    if essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json")) {
        return Ok(());
    }
    let hint = "send JSON with the header `content-type: application/json`";
    Err(unsupported(format!("the body has the content type {given:?}"), hint))
}

fn is_identity(encoding: &HeaderValue) -> bool {
    encoding.as_bytes().eq_ignore_ascii_case(b"identity")
}

fn unsupported(message: String, hint: &str) -> ApiError {
    ApiError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "not_json", message, hint)
}

fn is_length_error(error: &axum::Error) -> bool {
    let mut source: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = source {
        if error.is::<LengthLimitError>() {
            return true;
        }
        source = error.source();
    }
    false
}
