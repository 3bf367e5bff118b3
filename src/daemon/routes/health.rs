//! Liveness, readiness and metrics.

use std::sync::Arc;

use axum::{
    extract::State,
    http::header::CONTENT_TYPE,
    response::{IntoResponse, Response},
};

use crate::daemon::{
    error::ApiError,
    state::{DaemonPhase, DaemonState},
};

/// The media type of Prometheus' text format.
const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn alive() -> &'static str {
    "alive\n"
}

pub(super) async fn ready(State(state): State<Arc<DaemonState>>) -> Result<&'static str, ApiError> {
    match state.phase() {
        DaemonPhase::Ready => Ok("ready\n"),
        DaemonPhase::Starting => Err(ApiError::starting()),
        DaemonPhase::Draining => Err(ApiError::shutting_down()),
    }
}

pub(super) async fn metrics(State(state): State<Arc<DaemonState>>) -> Result<Response, ApiError> {
    let orchestrator = state.orchestrator.clone();
    let text = state.exporter.render(move || orchestrator.update_gauges()).await.ok_or_else(|| {
        let hint = "scrape the program that embeds hookyard";
        ApiError::not_found("no_metrics", "another recorder collects the metrics of this process", hint)
    })?;
    Ok(([(CONTENT_TYPE, METRICS_TEXT)], text).into_response())
}
