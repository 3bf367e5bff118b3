//! Lists, shows and cancels runs.

use std::sync::Arc;

use axum::{Json, extract::State, http::StatusCode};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    extract::{ApiQuery, PathParameter, workspace_id},
    shared::{MAX_RUNS, list_limit},
};
use crate::{
    CancelSummary, RunFilter, RunStatus,
    daemon::{
        error::ApiError,
        schema::{Component, object, unsigned},
        state::DaemonState,
    },
    model::{RunId, WorkspaceId},
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListRunsQuery {
    workspace_id: Option<String>,
    limit: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RunQuery {
    workspace_id: Option<String>,
}

/// Active runs.
#[derive(Debug, Serialize)]
pub(super) struct RunsView {
    runs: Vec<RunStatus>,
    left_out: usize,
}

pub(super) static RUNS_VIEW: Component = Component::built("RunsView", || {
    let runs =
        json!({ "type": "array", "items": { "type": "object" }, "description": "The runs, oldest first." });
    let left_out = unsigned("The number of active runs beyond the limit.");
    object(
        "The runs that have work in flight or had it recently.",
        [("runs", runs), ("left_out", left_out)],
        &[],
    )
});

/// The error about a run that several workspaces have.
const SEVERAL_RUNS: &str = "several_runs";

/// The result of a cancellation.
#[derive(Debug, Serialize)]
pub(super) struct CancelledView {
    events: usize,
}

pub(super) static CANCELLED_VIEW: Component = Component::built("CancelledView", || {
    let events =
        unsigned("The number of the run's events that were in flight or queued, or waited in the outbox.");
    object("What was cancelled.", [("events", events)], &[])
});

pub(super) async fn list(
    State(state): State<Arc<DaemonState>>,
    ApiQuery(query): ApiQuery<ListRunsQuery>,
) -> Result<Json<RunsView>, ApiError> {
    let limit = list_limit(query.limit, MAX_RUNS)?;
    let workspace = query.workspace_id.as_deref().map(workspace_id).transpose()?;
    let list = state.orchestrator.runs(RunFilter { workspace, limit }).await;
    Ok(Json(RunsView { runs: list.runs, left_out: list.left_out }))
}

pub(super) async fn show(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
    query: Result<ApiQuery<RunQuery>, ApiError>,
) -> Result<Json<RunStatus>, ApiError> {
    let (id, workspace) = run_key(&id, query)?;
    find_run(&state, &id, workspace.as_ref()).await.map(Json)
}

pub(super) async fn cancel(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
    query: Result<ApiQuery<RunQuery>, ApiError>,
) -> Result<Json<CancelledView>, ApiError> {
    let (id, workspace) = run_key(&id, query)?;
    let found = find_run(&state, &id, workspace.as_ref()).await;
    let workspace = found.as_ref().map_or(workspace, |run| Some(run.workspace_id.clone()));
    let cancelled = match &found {
        Err(error) if error.code() == SEVERAL_RUNS => CancelSummary::default(),
        // A run that is not known any more may have events in the outbox.
        Ok(_) | Err(_) => state.orchestrator.cancel_run(workspace.as_ref(), &id).await,
    };
    if cancelled == CancelSummary::default() {
        found?;
    }
    Ok(Json(CancelledView { events: cancelled.events }))
}

fn run_key(
    id: &str,
    query: Result<ApiQuery<RunQuery>, ApiError>,
) -> Result<(RunId, Option<WorkspaceId>), ApiError> {
    let id = RunId::new(id).map_err(|error| ApiError::id("id of the run", &error))?;
    let ApiQuery(query) = query?;
    Ok((id, query.workspace_id.as_deref().map(workspace_id).transpose()?))
}

/// The run with this id.
///
/// Returns an error if there is none, or if several workspaces have one and none is named.
async fn find_run(
    state: &DaemonState,
    id: &RunId,
    workspace: Option<&WorkspaceId>,
) -> Result<RunStatus, ApiError> {
    let mut found = state.orchestrator.run_status(workspace, id).await;
    match (found.pop(), found.len()) {
        (Some(run), 0) => Ok(run),
        (Some(_), others) => {
            let message = format!("{} workspaces have a run {id}", others + 1);
            let hint =
                "name the workspace with `?workspace_id=`, or with `--workspace-id` on the command line";
            Err(ApiError::new(StatusCode::CONFLICT, SEVERAL_RUNS, message, hint))
        }
        (None, _) => Err(ApiError::not_found(
            "unknown_run",
            format!("unknown run {id}"),
            "a run is known from its first event with a matching hook until it ends or is forgotten",
        )),
    }
}
