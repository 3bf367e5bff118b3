//! The operations that end a daemon, with their part of the route table: it drains, or hands its listeners over.

use std::{path::PathBuf, sync::Arc};

use axum::{
    extract::{Request, State},
    http::{StatusCode, request::Parts},
    routing::on,
};
use serde::Deserialize;

use super::{
    operation::{
        BodySchema::One, Operation, RequestLimit, ResponseContent::Empty, Route, RouteMethod, SuccessResponse,
    },
    shared::{BODY_ERRORS, HANDOVER_ERRORS},
};
use crate::daemon::{
    auth::AccessRight,
    error::ApiError,
    handover, request_body,
    schema::{Component, object, string},
    state::{DaemonState, RequestContext},
};

/// The largest body, in bytes.
const MAX_BODY_BYTES: usize = 8192;

/// Where the other daemon waits.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct HandoverRequest {
    socket: PathBuf,
}

pub(super) static HANDOVER_REQUEST: Component = Component::built("HandoverRequest", || {
    let mut socket =
        string("The absolute path of the Unix socket on which the other daemon waits for the listeners.");
    socket["pattern"] = "^/".into();
    let mut schema = object("Where the other daemon waits.", [("socket", socket)], &[]);
    schema["additionalProperties"] = false.into();
    schema
});

pub(super) const DRAIN: Route = Route {
    path: "/v1/drain",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Post,
        id: "drain",
        tag: "operation",
        right: AccessRight::Control,
        summary: "Stop the daemon as SIGTERM does.",
        description: "`/readyz` answers 503 at once. Events are taken until `listen.lameduck` is over; then those in flight finish, and the daemon ends.",
        parameters: &[],
        request: None,
        success: &[SuccessResponse { status: 202, description: "The daemon begins to stop", body: Empty }],
        errors: &[],
        handler: |method| on(method, drain),
    }],
};

pub(super) const HANDOVER: Route = Route {
    path: "/v1/handover",
    limit: RequestLimit::Exempt,
    operations: &[Operation {
        method: RouteMethod::Post,
        id: "handOver",
        tag: "operation",
        right: AccessRight::Control,
        summary: "Hand the listeners over to another daemon of this machine.",
        description: "For `hookyard serve --replace`. The daemon connects to the socket of the other one, leaves its listeners to it, finishes what it has, and ends. If the other one does not start, it goes on.",
        parameters: &[],
        request: Some(One(&HANDOVER_REQUEST)),
        success: &[SuccessResponse { status: 202, description: "The listeners are offered", body: Empty }],
        errors: &[BODY_ERRORS, HANDOVER_ERRORS],
        handler: |method| on(method, hand_over),
    }],
};

/// Asks the program that runs the daemon to stop it, and returns at once. From then on the daemon is not ready.
async fn drain(State(state): State<Arc<DaemonState>>) -> StatusCode {
    state.begin_draining();
    state.stop_requested.cancel();
    StatusCode::ACCEPTED
}

/// Offers the listeners to another daemon, and returns.
async fn hand_over(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    request: Request,
) -> Result<StatusCode, ApiError> {
    let (Parts { headers, .. }, body) = request.into_parts();
    let bytes = request_body::read(&headers, body, share.body_bounds(MAX_BODY_BYTES)).await?;
    let wanted: HandoverRequest = serde_json::from_slice(&bytes).map_err(|error| {
        ApiError::bad_request("bad_body", error.to_string(), "use `hookyard serve --replace`")
    })?;
    if !wanted.socket.is_absolute() {
        let hint = "use `hookyard serve --replace`";
        return Err(ApiError::bad_request("bad_body", "`socket` must be an absolute path", hint));
    }
    handover::offer(&state, &wanted.socket).await?;
    Ok(StatusCode::ACCEPTED)
}
