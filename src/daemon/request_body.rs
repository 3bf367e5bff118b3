//! Reads JSON request bodies within bounds of size and time, and within a budget for all bodies together.

use std::{
    ops::Deref,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    body::{Body, Bytes},
    http::{
        HeaderMap, HeaderValue, StatusCode,
        header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE},
    },
};
use futures_util::FutureExt;
use http_body_util::BodyExt;
use serde::de::DeserializeOwned;
use tokio::time::timeout;

use super::error::ApiError;
use crate::{model::EventError, telemetry::RefusalCounter};

/// How large a body may be and how long it may take, and the budget that it is part of.
#[derive(Debug, Clone, Copy)]
pub(super) struct BodyBounds<'a> {
    pub(super) bytes: usize,
    /// Whether it is an event, which has a limit of its own in the settings.
    pub(super) is_event: bool,
    pub(super) time: Duration,
    pub(super) budget: &'a Arc<BodyBudget>,
}

impl BodyBounds<'_> {
    /// The error about a body of this size.
    fn exceeded(&self, size: usize) -> ApiError {
        let limit = self.bytes;
        if self.is_event {
            return EventError::TooLarge { size, limit }.into();
        }
        let message = format!("the body is longer than the {limit} bytes allowed");
        let hint = "send a smaller body: this limit is fixed";
        ApiError::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message, hint)
    }
}

/// The bytes of request bodies that may be held of the clients of one listener. A body takes its share as it comes, not
/// as it is announced: an announcement costs the peer nothing.
#[derive(Debug)]
pub(super) struct BodyBudget {
    free: AtomicUsize,
    /// The setting with the limit.
    setting: &'static str,
    refused: RefusalCounter,
}

impl BodyBudget {
    pub(super) fn new(bytes: usize, setting: &'static str, refused: RefusalCounter) -> Arc<Self> {
        Arc::new(Self { free: AtomicUsize::new(bytes), setting, refused })
    }

    /// Counts a body that had no room. Returns the error for it.
    pub(super) fn exceeded(&self) -> ApiError {
        self.refused.count();
        let setting = self.setting;
        ApiError::overloaded(format!("the limit of all request bodies, `{setting}`, is reached"))
    }
}

/// RAII guard: a body's share of the budget.
#[derive(Debug)]
pub(super) struct BudgetShare {
    budget: Arc<BodyBudget>,
    bytes: usize,
}

impl BudgetShare {
    pub(super) fn none(budget: &Arc<BodyBudget>) -> Self {
        Self { budget: Arc::clone(budget), bytes: 0 }
    }

    /// Gives back all but this much.
    pub(super) fn shrink(&mut self, bytes: usize) {
        let excess = self.bytes.saturating_sub(bytes);
        self.bytes -= excess;
        self.budget.free.fetch_add(excess, Ordering::Relaxed);
    }

    /// Takes more of the budget. Returns whether there was enough.
    pub(super) fn grow(&mut self, bytes: usize) -> bool {
        let less = |free: usize| free.checked_sub(bytes);
        let taken = self.budget.free.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok();
        if taken {
            self.bytes += bytes;
        }
        taken
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.budget.free.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

/// A whole body. It keeps its share of the budget until it is dropped, which is when its request is answered.
#[derive(Debug)]
pub(super) struct BufferedBody {
    bytes: Bytes,
    _share: BudgetShare,
}

impl BufferedBody {
    /// Its bytes, without its share of the budget.
    pub(super) fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// The same, while it keeps its share.
    pub(super) fn to_bytes(&self) -> Bytes {
        self.bytes.clone()
    }
}

impl Deref for BufferedBody {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

/// The largest body of a request other than an event, in bytes.
pub(super) const SMALL_BODY_BYTES: usize = 64 << 10;

/// Reads a body.
///
/// Returns an error if its headers say that it is not JSON, if it is too large or too slow, or if the budget is used up.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    bounds: BodyBounds<'_>,
) -> Result<BufferedBody, ApiError> {
    let limit = bounds.bytes;
    let too_large = |size: usize| bounds.exceeded(size);
    is_json(headers)?;
    let announced =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    if let Some(size) = announced.filter(|size| *size > limit) {
        return Err(too_large(size));
    }
    let mut reading = pin!(collect(body, bounds));
    // Most bodies come with the head, and need no timer.
    let read = match reading.as_mut().now_or_never() {
        Some(read) => Ok(read),
        None => timeout(bounds.time, reading).await,
    };
    match read {
        Ok(Ok(body)) => Ok(body),
        Ok(Err(CollectError::TooLarge)) => Err(too_large(limit + 1)),
        Ok(Err(CollectError::NoBudget)) => Err(bounds.budget.exceeded()),
        Ok(Err(CollectError::Broken)) => Err(incomplete()),
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
    bounds: BodyBounds<'_>,
) -> Result<BufferedBody, BodyFailure> {
    let mut kept = KeptBody::new(bounds);
    let read = {
        let mut reading = pin!(kept.read(body));
        // Most bodies come with the head, and need no timer.
        match reading.as_mut().now_or_never() {
            Some(read) => Ok(read),
            None => timeout(bounds.time, reading).await,
        }
    };
    let error = match read {
        _ if kept.size > bounds.bytes => Some(bounds.exceeded(kept.size)),
        _ if kept.is_over_budget => Some(bounds.budget.exceeded()),
        Ok(Ok(())) => is_json(headers).err(),
        Ok(Err(_)) => Some(incomplete()),
        Err(_) => Some(too_slow(bounds.time)),
    };
    match error {
        None => Ok(kept.into_body()),
        Some(error) => {
            let bytes = kept.into_body().bytes;
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
    share: BudgetShare,
    /// Whether there was no budget for more.
    is_over_budget: bool,
}

impl KeptBody {
    fn new(bounds: BodyBounds<'_>) -> Self {
        let share = BudgetShare::none(bounds.budget);
        Self { chunks: Vec::new(), size: 0, limit: bounds.bytes, share, is_over_budget: false }
    }

    /// Whether all that has come is kept.
    fn is_whole(&self) -> bool {
        self.size <= self.limit && !self.is_over_budget
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
        let was_whole = self.is_whole();
        self.size = self.size.saturating_add(data.len());
        if was_whole && self.size <= self.limit {
            self.is_over_budget = !self.share.grow(data.len());
        }
        if self.is_whole() {
            self.chunks.push(data);
        } else if was_whole {
            self.chunks.push(data);
            let mut all = std::mem::take(&mut self.chunks).concat();
            all.truncate(BEGINNING_BYTES);
            self.chunks.push(all.into());
            self.share.shrink(BEGINNING_BYTES);
        }
    }

    fn into_body(mut self) -> BufferedBody {
        let bytes = match &mut self.chunks[..] {
            [] => Bytes::new(),
            [only] => std::mem::take(only),
            chunks => chunks.concat().into(),
        };
        BufferedBody { bytes, _share: self.share }
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

/// Why a body was not read to its end.
#[derive(Debug)]
enum CollectError {
    TooLarge,
    NoBudget,
    Broken,
}

/// Reads a body to its end. A body in one piece, which most are, is not copied.
async fn collect(mut body: Body, bounds: BodyBounds<'_>) -> Result<BufferedBody, CollectError> {
    let mut share = BudgetShare::none(bounds.budget);
    let mut first = Bytes::new();
    let mut joined = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| CollectError::Broken)?;
        // Trailers are ignored.
        let Ok(data) = frame.into_data() else { continue };
        if share.bytes + data.len() > bounds.bytes {
            return Err(CollectError::TooLarge);
        }
        if !share.grow(data.len()) {
            return Err(CollectError::NoBudget);
        }
        if share.bytes == data.len() {
            first = data;
            continue;
        }
        if joined.is_empty() {
            joined.extend_from_slice(&first);
        }
        joined.extend_from_slice(&data);
    }
    let bytes = if joined.is_empty() { first } else { joined.into() };
    Ok(BufferedBody { bytes, _share: share })
}

/// Reads a body and deserializes it.
pub(super) async fn read_as<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Body,
    bounds: BodyBounds<'_>,
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
