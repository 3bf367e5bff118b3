//! Whether the daemon lives, whether it takes events, and its metrics. Refuses to say anything about its work.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};

use crate::daemon::{
    error::{ApiError, ErrorBody},
    state::{DaemonPhase, DaemonState},
};

/// Prometheus' text format.
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Whether the daemon lives.
#[utoipa::path(
    get, path = "/healthz", tag = "operation", operation_id = "isAlive",
    responses((status = 200, description = "It does", body = String, content_type = "text/plain"))
)]
pub(in crate::daemon) async fn alive() -> &'static str {
    "alive\n"
}

/// Whether the daemon takes events.
#[utoipa::path(
    get, path = "/readyz", tag = "operation", operation_id = "isReady",
    responses(
        (status = 200, description = "It does", body = String, content_type = "text/plain"),
        (status = 503, description = "It starts or is shutting down", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn ready(
    State(state): State<Arc<DaemonState>>,
) -> Result<&'static str, ApiError> {
    match state.phase() {
        DaemonPhase::Ready => Ok("ready\n"),
        DaemonPhase::Starting => Err(ApiError::starting()),
        DaemonPhase::Draining => Err(ApiError::shutting_down()),
    }
}

/// The metrics, for Prometheus.
#[utoipa::path(
    get, path = "/metrics", tag = "operation", operation_id = "getMetrics",
    responses(
        (status = 200, description = "The metrics in Prometheus' text format", body = String, content_type = "text/plain"),
        (status = 404, description = "The embedding program collects the metrics itself", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn metrics(State(state): State<Arc<DaemonState>>) -> Result<Response, ApiError> {
    let orchestrator = state.orchestrator.clone();
    let text = state.exporter.render(move || orchestrator.update_gauges()).await.ok_or_else(|| {
        let hint = "ask the program that hookyard is a part of";
        ApiError::not_found("no_metrics", "the metrics of this process are collected elsewhere", hint)
    })?;
    Ok(([(CONTENT_TYPE, TEXT)], text).into_response())
}
