//! Runs: listed, looked at and cancelled. Refuses to start one: events do.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{PathName, bad_query, workspace_id};
use crate::{
    RunFilter, RunStatus,
    daemon::{
        error::{ApiError, ErrorBody},
        state::DaemonState,
    },
    model::{RunId, WorkspaceId},
};

/// How many runs are listed where nobody says otherwise.
const DEFAULT_LIMIT: usize = 100;

/// How many runs are listed at most.
const MAX_LIMIT: usize = 10_000;

/// Which runs.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::daemon) struct ListRunsQuery {
    /// Those of this workspace only.
    workspace_id: Option<String>,
    /// At most so many; 100 unless told otherwise.
    #[param(minimum = 1, maximum = 10000)]
    limit: Option<usize>,
}

/// Which run, where several workspaces have one of the id.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::daemon) struct RunQuery {
    /// That of this workspace.
    workspace_id: Option<String>,
}

/// Runs that have work in flight, or had it not long ago.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::daemon) struct RunsView {
    /// Those that have been there longest first.
    #[schema(value_type = Vec<Object>)]
    runs: Vec<RunStatus>,
    /// How many more there are.
    left_out: usize,
}

/// What was cancelled.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::daemon) struct CancelledView {
    /// How many of the run's events were under way or waited for their turn.
    events: usize,
}

/// The runs with work in flight, or not long ago.
#[utoipa::path(
    get, path = "/v1/runs", tag = "runs", operation_id = "listRuns", params(ListRunsQuery),
    responses(
        (status = 200, description = "The runs", body = RunsView),
        (status = 400, description = "The query cannot be used", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn list(
    State(state): State<Arc<DaemonState>>,
    query: Result<Query<ListRunsQuery>, QueryRejection>,
) -> Result<Json<RunsView>, ApiError> {
    let Query(query) = query.map_err(|error| bad_query(&error))?;
    let limit = query.limit.unwrap_or(DEFAULT_LIMIT);
    if !(1..=MAX_LIMIT).contains(&limit) {
        let message = format!("the limit {limit} is out of range");
        return Err(ApiError::bad_request("bad_query", message, format!("use 1 to {MAX_LIMIT}")));
    }
    let workspace = query.workspace_id.as_deref().map(workspace_id).transpose()?;
    let list = state.orchestrator.runs(RunFilter { workspace, limit }).await;
    Ok(Json(RunsView { runs: list.runs, left_out: list.left_out }))
}

/// One run.
#[utoipa::path(
    get, path = "/v1/runs/{id}", tag = "runs", operation_id = "getRun",
    params(("id" = String, Path, description = "Its id", min_length = 1, max_length = 256), RunQuery),
    responses(
        (status = 200, description = "The run", body = Object),
        (status = 400, description = "An id cannot be one", body = ErrorBody),
        (status = 404, description = "The run is not known", body = ErrorBody),
        (status = 409, description = "Several workspaces have a run of the id", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn show(
    State(state): State<Arc<DaemonState>>,
    PathName(id): PathName,
    query: Result<Query<RunQuery>, QueryRejection>,
) -> Result<Json<RunStatus>, ApiError> {
    let (id, workspace) = run_key(&id, query)?;
    find_unique(&state, &id, workspace.as_ref()).await.map(Json)
}

/// Cancels a run: the processes of its hooks are killed, interceptor events are answered `halt`, and it is forgotten.
#[utoipa::path(
    delete, path = "/v1/runs/{id}", tag = "runs", operation_id = "cancelRun",
    params(("id" = String, Path, description = "Its id", min_length = 1, max_length = 256), RunQuery),
    responses(
        (status = 200, description = "It is cancelled", body = CancelledView),
        (status = 400, description = "An id cannot be one", body = ErrorBody),
        (status = 404, description = "The run is not known", body = ErrorBody),
        (status = 409, description = "Several workspaces have a run of the id", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn cancel(
    State(state): State<Arc<DaemonState>>,
    PathName(id): PathName,
    query: Result<Query<RunQuery>, QueryRejection>,
) -> Result<Json<CancelledView>, ApiError> {
    let (id, workspace) = run_key(&id, query)?;
    let run = find_unique(&state, &id, workspace.as_ref()).await?;
    let cancelled = state.orchestrator.cancel_run(Some(&run.workspace_id), &id).await;
    Ok(Json(CancelledView { events: cancelled.events }))
}

fn run_key(
    id: &str,
    query: Result<Query<RunQuery>, QueryRejection>,
) -> Result<(RunId, Option<WorkspaceId>), ApiError> {
    let id = RunId::new(id).map_err(|error| ApiError::id("id of the run", &error))?;
    let Query(query) = query.map_err(|error| bad_query(&error))?;
    Ok((id, query.workspace_id.as_deref().map(workspace_id).transpose()?))
}

/// The run of an id, of which there must be one.
async fn find_unique(
    state: &DaemonState,
    id: &RunId,
    workspace: Option<&WorkspaceId>,
) -> Result<RunStatus, ApiError> {
    let mut found = state.orchestrator.run_status(workspace, id).await;
    match (found.pop(), found.len()) {
        (Some(run), 0) => Ok(run),
        (Some(_), others) => {
            let message = format!("{} workspaces have a run {id}", others + 1);
            let hint = "say which: with `?workspace_id=`, or `--id` on the command line";
            Err(ApiError::new(StatusCode::CONFLICT, "several_runs", message, hint))
        }
        (None, _) => Err(ApiError::not_found(
            "unknown_run",
            format!("there is no run {id}"),
            "a run is known from the first event that a hook wants until it ends or is forgotten",
        )),
    }
}
