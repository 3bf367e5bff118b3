//! Shows the outbox, and has its events tried again or dropped.

use std::sync::Arc;

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::on,
};
use serde::{Deserialize, Deserializer, Serialize, de::Error as _};
use serde_json::json;

use super::{
    extract::ApiQuery,
    operation::{BodySchema::One, Operation, Parameter, ResponseContent, RouteMethod, SuccessResponse},
    shared::{BODY_ERRORS, INVALID_BODY, INVALID_QUERY, NO_OUTBOX, list_limit},
};
use crate::{
    daemon::{
        auth::AccessRight,
        error::ApiError,
        request_body,
        schema::{Component, object, unsigned},
        state::{DaemonState, RequestContext},
    },
    orchestrator::{Orchestrator, OutboxEvent, OutboxSelection},
};

/// The largest `limit` of a list.
const MAX_LIMIT: usize = 10_000;

/// The states of events in the outbox.
const STATES: [&str; 3] = ["under_way", "waiting", "dead"];

/// The largest body, which has many ids.
const MAX_BODY_BYTES: usize = 256 << 10;

/// The largest ID: up to here, all that reads JSON agrees about whole numbers.
const MAX_ID: f64 = 9_007_199_254_740_992.0;

const OUTBOX_LIMIT: Parameter = Parameter::query(
    "limit",
    "The maximum number of events, 100 by default",
    || json!({ "type": "integer", "minimum": 1, "maximum": MAX_LIMIT }),
);
const OUTBOX_STATE: Parameter =
    Parameter::query("state", "Only events in this state", || json!({ "type": "string", "enum": STATES }));

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutboxQuery {
    state: Option<String>,
    limit: Option<usize>,
}

/// Events of the outbox.
#[derive(Debug, Serialize)]
struct OutboxView {
    events: Vec<OutboxEvent>,
    left_out: usize,
}

pub(super) static OUTBOX_VIEW: Component = Component::built("OutboxView", || {
    let events = json!({
        "type": "array",
        "items": { "type": "object" },
        "description": "The events without their payloads, oldest first.",
    });
    let left_out = unsigned("The number of events beyond the limit.");
    object("Lifecycle events in the outbox.", [("events", events), ("left_out", left_out)], &[])
});

/// Which events are meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OutboxChoice {
    #[serde(default, deserialize_with = "not_null")]
    ids: Option<Vec<EventNumber>>,
    #[serde(default, deserialize_with = "not_null")]
    dead: Option<bool>,
}

/// Reads a value that may be left out, and may not be null.
fn not_null<'de, D: Deserializer<'de>, T: Deserialize<'de>>(reader: D) -> Result<Option<T>, D::Error> {
    T::deserialize(reader).map(Some)
}

/// The ID of an event. In JSON, `2` and `2.0` are the same number.
#[derive(Debug, Clone, Copy)]
struct EventNumber(u64);

impl<'de> Deserialize<'de> for EventNumber {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
    fn deserialize<D: Deserializer<'de>>(reader: D) -> Result<Self, D::Error> {
        let number = serde_json::Number::deserialize(reader)?;
        let is_id = |number: &f64| number.fract() == 0.0 && (0.0..=MAX_ID).contains(number);
        let id = number.as_f64().filter(is_id).map(|number| Self(number as u64));
        id.ok_or_else(|| D::Error::custom(format!("{number} is not the ID of an event")))
    }
}

pub(super) static OUTBOX_CHOICE: Component = Component::built("OutboxChoice", || {
    let ids = json!({
        "type": "array",
        "items": { "type": "integer", "minimum": 0, "maximum": MAX_ID },
        "description": "The IDs of events that are waiting or dead.",
    });
    let dead = json!({ "const": true, "description": "All dead letters, in place of `ids`." });
    let mut schema =
        object("Which events of the outbox are meant.", [("ids", ids), ("dead", dead)], &["ids", "dead"]);
    schema["additionalProperties"] = false.into();
    schema["minProperties"] = 1.into();
    schema["maxProperties"] = 1.into();
    schema
});

/// The events that were found.
#[derive(Debug, Serialize)]
struct OutboxChangeView {
    ids: Vec<u64>,
}

pub(super) static OUTBOX_CHANGE_VIEW: Component = Component::built("OutboxChangeView", || {
    let ids = json!({
        "type": "array",
        "items": { "type": "integer", "minimum": 0 },
        "description": "The IDs of the events that were found. Others are unknown or under way.",
    });
    object("The events that were changed.", [("ids", ids)], &[])
});

pub(super) const LIST: Operation = Operation {
    method: RouteMethod::Get,
    id: "listOutbox",
    tag: "outbox",
    right: AccessRight::Read,
    summary: "List the lifecycle events that are not delivered yet.",
    description: "Dead letters, which are not tried any more, are among them.",
    parameters: &[OUTBOX_STATE, OUTBOX_LIMIT],
    request: None,
    success: &[SuccessResponse {
        status: 200,
        description: "The events",
        body: ResponseContent::Json(One(&OUTBOX_VIEW)),
    }],
    errors: &[INVALID_QUERY, NO_OUTBOX],
    handler: |method| on(method, list),
};

pub(super) const RETRY: Operation = Operation {
    method: RouteMethod::Post,
    id: "retryOutbox",
    tag: "outbox",
    right: AccessRight::Control,
    summary: "Try events of the outbox again now.",
    description: "Each has all its tries before it, dead letters too.",
    parameters: &[],
    request: Some(One(&OUTBOX_CHOICE)),
    success: &[SuccessResponse {
        status: 200,
        description: "The events that were found",
        body: ResponseContent::Json(One(&OUTBOX_CHANGE_VIEW)),
    }],
    errors: &[INVALID_BODY, BODY_ERRORS, NO_OUTBOX],
    handler: |method| on(method, retry),
};

pub(super) const DROP: Operation = Operation {
    method: RouteMethod::Post,
    id: "dropOutbox",
    tag: "outbox",
    right: AccessRight::Control,
    summary: "Remove events from the outbox.",
    description: "Their hooks never run for them. Events that are under way stay.",
    parameters: &[],
    request: Some(One(&OUTBOX_CHOICE)),
    success: &[SuccessResponse {
        status: 200,
        description: "The events that were found",
        body: ResponseContent::Json(One(&OUTBOX_CHANGE_VIEW)),
    }],
    errors: &[INVALID_BODY, BODY_ERRORS, NO_OUTBOX],
    handler: |method| on(method, discard),
};

async fn list(
    State(state): State<Arc<DaemonState>>,
    ApiQuery(query): ApiQuery<OutboxQuery>,
) -> Result<Json<OutboxView>, ApiError> {
    let limit = list_limit(query.limit, MAX_LIMIT)?;
    if let Some(unknown) = query.state.as_deref().filter(|state| !STATES.contains(state)) {
        let hint = format!("use one of {}", STATES.join(", "));
        return Err(ApiError::bad_request("bad_query", format!("unknown state {unknown:?}"), hint));
    }
    let found = state.orchestrator.outbox_events(query.state.as_deref(), limit);
    let (events, left_out) = found.ok_or_else(no_outbox)?;
    Ok(Json(OutboxView { events, left_out }))
}

async fn retry(
    State(context): State<RequestContext>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<OutboxChangeView>, ApiError> {
    let ids = change(&context, &headers, body, Orchestrator::retry_outbox).await?;
    tracing::info!(events = ids.len(), "a client of the API has events of the outbox tried again");
    Ok(Json(OutboxChangeView { ids }))
}

async fn discard(
    State(context): State<RequestContext>,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<OutboxChangeView>, ApiError> {
    let ids = change(&context, &headers, body, Orchestrator::drop_from_outbox).await?;
    tracing::info!(events = ids.len(), "a client of the API has dropped events of the outbox");
    Ok(Json(OutboxChangeView { ids }))
}

/// Does something with the events that a body names. Returns the ids of those that were found.
async fn change(
    context: &RequestContext,
    headers: &HeaderMap,
    body: Body,
    apply: impl Fn(&Orchestrator, &OutboxSelection) -> Option<Vec<u64>>,
) -> Result<Vec<u64>, ApiError> {
    let chosen = selection(context, headers, body).await?;
    let ids = apply(&context.daemon.orchestrator, &chosen).ok_or_else(no_outbox)?;
    context.daemon.orchestrator.changes_stored().await;
    Ok(ids)
}

async fn selection(
    context: &RequestContext,
    headers: &HeaderMap,
    body: Body,
) -> Result<OutboxSelection, ApiError> {
    let bounds = context.share.body_bounds(MAX_BODY_BYTES);
    let choice: OutboxChoice = request_body::read_as(headers, body, bounds).await?;
    match choice {
        OutboxChoice { ids: Some(ids), dead: None } => {
            Ok(OutboxSelection::Ids(ids.into_iter().map(|EventNumber(id)| id).collect()))
        }
        OutboxChoice { ids: None, dead: Some(true) } => Ok(OutboxSelection::DeadLetters),
        _ => {
            let message = "the body names no events";
            Err(ApiError::bad_request("bad_body", message, "send `ids`, or `dead` with the value true"))
        }
    }
}

fn no_outbox() -> ApiError {
    let hint = "set `data` to a directory; without one, nothing is kept and nothing is delivered again";
    ApiError::new(StatusCode::CONFLICT, "no_outbox", "this daemon keeps its state in memory only", hint)
}
