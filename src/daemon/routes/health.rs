//! Liveness, readiness and metrics.

use std::sync::Arc;

use axum::{
    extract::State,
    http::{
        HeaderMap, StatusCode,
        header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, VARY},
    },
    response::{IntoResponse, Response},
};

use super::shared::off_the_way;
use crate::{
    daemon::{
        error::ApiError,
        gzip::gzip,
        ship::SpoolCounts,
        state::{DaemonPhase, DaemonState},
    },
    model::Diagnostic,
    telemetry::LinesWaiting,
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
        DaemonPhase::LameDuck => Err(state.loading.failure().unwrap_or_else(draining)),
        DaemonPhase::Draining => Err(state.loading.failure().unwrap_or_else(ApiError::shutting_down)),
    }
}

/// The error of a daemon that is about to stop, and takes events until it does.
fn draining() -> ApiError {
    let hint = "send further events to another daemon; this one still answers those that come";
    ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "draining", "hookyard is about to stop", hint)
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

pub(super) async fn metrics(
    State(state): State<Arc<DaemonState>>,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    let (orchestrator, shipping) = (state.orchestrator.clone(), state.observers.shipping.clone());
    let update = move || {
        orchestrator.update_gauges();
        let SpoolCounts { lines, bytes, .. } =
            shipping.map(|shipping| shipping.spool.counts()).unwrap_or_default();
        LinesWaiting { lines, bytes }.set();
    };
    let text = state.exporter.render(update).await.ok_or_else(|| {
        let hint = "scrape the program that embeds hookyard";
        ApiError::not_found("no_metrics", "another recorder collects the metrics of this process", hint)
    })?;
    let plain = [(CONTENT_TYPE, METRICS_TEXT), (VARY, "accept-encoding")];
    if !accepts_gzip(&headers) {
        return Ok((plain, text).into_response());
    }
    // It takes milliseconds.
    let packed = off_the_way(move || gzip(&text)).await?;
    Ok((plain, [(CONTENT_ENCODING, "gzip")], packed).into_response())
}

/// Whether a client takes an answer that is packed.
fn accepts_gzip(headers: &HeaderMap) -> bool {
    let all = headers.get_all(ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok());
    all.flat_map(|value| value.split(',')).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((coding, ""));
        let weight = weight.trim().strip_prefix("q=").and_then(|weight| weight.parse().ok());
        name.trim().eq_ignore_ascii_case("gzip") && weight.is_none_or(|weight: f32| weight > 0.0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_who_asks_for_gzip_gets_it() {
        for (asked, accepts) in [
            (&["gzip"][..], true),
            (&["deflate, GZIP;q=0.5"], true),
            (&["br", "gzip"], true),
            (&["gzip;q=0"], false),
            (&["gzip; q=0.000"], false),
            (&["deflate"], false),
            (&["x-gzipped"], false),
            (&[""], false),
            (&[], false),
        ] {
            let mut headers = HeaderMap::new();
            for value in asked {
                headers.append(ACCEPT_ENCODING, value.parse().unwrap());
            }
            assert_eq!(accepts_gzip(&headers), accepts, "{asked:?}");
        }
    }
}
