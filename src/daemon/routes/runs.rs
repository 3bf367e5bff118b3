//! Runs: listed, looked at and cancelled. Refuses to start one: events do.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    http::StatusCode,
};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Named, bad_query, workspace_id};
use crate::{
    RunFilter, RunStatus,
    daemon::{
        error::{ApiError, ErrorBody},
        shared::Shared,
    },
    model::{RunId, WorkspaceId},
};

/// How many runs are listed where nobody says otherwise.
const USUAL: usize = 100;

/// How many runs are listed at most.
const MOST: usize = 10_000;

/// Which runs.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::daemon) struct Wanted {
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
pub(in crate::daemon) struct Where {
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
    get, path = "/v1/runs", tag = "runs", operation_id = "listRuns", params(Wanted),
    responses(
        (status = 200, description = "The runs", body = RunsView),
        (status = 400, description = "The query cannot be used", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn list(
    State(shared): State<Arc<Shared>>,
    wanted: Result<Query<Wanted>, QueryRejection>,
) -> Result<Json<RunsView>, ApiError> {
    let Query(wanted) = wanted.map_err(|error| bad_query(&error))?;
    let limit = wanted.limit.unwrap_or(USUAL);
    if !(1..=MOST).contains(&limit) {
        let message = format!("the limit {limit} is out of range");
        return Err(ApiError::bad_request("bad_query", message, format!("use 1 to {MOST}")));
    }
    let workspace = wanted.workspace_id.as_deref().map(workspace_id).transpose()?;
    let list = shared.orchestrator.runs(RunFilter { workspace, limit }).await;
    Ok(Json(RunsView { runs: list.runs, left_out: list.left_out }))
}

/// One run.
#[utoipa::path(
    get, path = "/v1/runs/{id}", tag = "runs", operation_id = "getRun",
    params(("id" = String, Path, description = "Its id", min_length = 1, max_length = 256), Where),
    responses(
        (status = 200, description = "The run", body = Object),
        (status = 400, description = "An id cannot be one", body = ErrorBody),
        (status = 404, description = "The run is not known", body = ErrorBody),
        (status = 409, description = "Several workspaces have a run of the id", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn show(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    place: Result<Query<Where>, QueryRejection>,
) -> Result<Json<RunStatus>, ApiError> {
    let (id, workspace) = named(&id, place)?;
    the_only(&shared, &id, workspace.as_ref()).await.map(Json)
}

/// Cancels a run: the processes of its hooks are killed, interceptor events are answered `halt`, and it is forgotten.
#[utoipa::path(
    delete, path = "/v1/runs/{id}", tag = "runs", operation_id = "cancelRun",
    params(("id" = String, Path, description = "Its id", min_length = 1, max_length = 256), Where),
    responses(
        (status = 200, description = "It is cancelled", body = CancelledView),
        (status = 400, description = "An id cannot be one", body = ErrorBody),
        (status = 404, description = "The run is not known", body = ErrorBody),
        (status = 409, description = "Several workspaces have a run of the id", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn cancel(
    State(shared): State<Arc<Shared>>,
    Named(id): Named,
    place: Result<Query<Where>, QueryRejection>,
) -> Result<Json<CancelledView>, ApiError> {
    let (id, workspace) = named(&id, place)?;
    let run = the_only(&shared, &id, workspace.as_ref()).await?;
    let cancelled = shared.orchestrator.cancel_run(Some(&run.workspace_id), &id).await;
    Ok(Json(CancelledView { events: cancelled.events }))
}

fn named(
    id: &str,
    place: Result<Query<Where>, QueryRejection>,
) -> Result<(RunId, Option<WorkspaceId>), ApiError> {
    let id = RunId::new(id).map_err(|error| ApiError::id("id of the run", &error))?;
    let Query(place) = place.map_err(|error| bad_query(&error))?;
    Ok((id, place.workspace_id.as_deref().map(workspace_id).transpose()?))
}

/// The run of an id, of which there must be one.
async fn the_only(
    shared: &Shared,
    id: &RunId,
    workspace: Option<&WorkspaceId>,
) -> Result<RunStatus, ApiError> {
    let mut found = shared.orchestrator.run_status(workspace, id).await;
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
