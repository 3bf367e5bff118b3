//! Liveness, readiness and metrics.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};

use crate::{
    daemon::{
        error::ApiError,
        state::{DaemonPhase, DaemonState},
    },
    model::Diagnostic,
};

/// The media type of Prometheus' text format.
const METRICS_TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(super) async fn alive() -> &'static str {
    "alive\n"
}

pub(super) async fn ready(State(state): State<Arc<DaemonState>>) -> Result<&'static str, ApiError> {
    match state.phase() {
        DaemonPhase::Ready => {
            let unloaded = state.unloaded.all();
            let not_loaded = unloaded.first().map(|known| ApiError::not_loaded(&known.id, &known.why));
            let unready =
                not_loaded.or_else(|| missing_required(&state)).or_else(|| without_trusted_guards(&state));
            unready.map_or(Ok("ready\n"), Err)
        }
        DaemonPhase::Starting => Err(ApiError::starting()),
        DaemonPhase::LameDuck | DaemonPhase::Draining => {
            Err(state.loading.failure().unwrap_or_else(ApiError::shutting_down))
        }
    }
}

/// The error that names a required hook which is not in force.
fn missing_required(state: &DaemonState) -> Option<ApiError> {
    let snapshots = state.orchestrator.snapshots();
    let missing = snapshots.iter().find_map(|snapshot| Some((snapshot, snapshot.missing_hooks().first()?)));
    let (snapshot, missing) = missing?;
    let message = format!(
        "the required hook `{}` is not in force in the workspace `{}`: {}",
        missing.hook,
        snapshot.workspace().id,
        missing.why
    );
    let hint = "correct it and reload, or remove it from `required` in the settings";
    Some(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "required_missing", message, hint))
}

/// The error that names a workspace whose trusted guards cannot be in force.
fn without_trusted_guards(state: &DaemonState) -> Option<ApiError> {
    let (id, found) = state.orchestrator.without_trusted_guards()?;
    let code = if found.code == Diagnostic::REPLACED { "workspace_replaced" } else { "trust_unusable" };
    let message = format!("the workspace `{id}`: {}: {}", found.file.display(), found.message);
    let hint = found.help.unwrap_or_default();
    Some(ApiError::new(StatusCode::SERVICE_UNAVAILABLE, code, message, hint))
}

pub(super) async fn metrics(State(state): State<Arc<DaemonState>>) -> Result<Response, ApiError> {
    let orchestrator = state.orchestrator.clone();
    let text = state.exporter.render(move || orchestrator.update_gauges()).await.ok_or_else(|| {
        let hint = "scrape the program that embeds hookyard";
        ApiError::not_found("no_metrics", "another recorder collects the metrics of this process", hint)
    })?;
    Ok(([(CONTENT_TYPE, METRICS_TEXT)], text).into_response())
}
