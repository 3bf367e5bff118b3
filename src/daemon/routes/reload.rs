//! Reading hook files again, at a client's wish. Refuses to say more than what came of it.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{bad_query, unknown_workspace, workspace_id, workspaces::WorkspaceView};
use crate::daemon::{
    error::{ApiError, ErrorBody},
    state::DaemonState,
};

/// What is read again.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::daemon) struct ReloadQuery {
    /// This workspace only.
    workspace_id: Option<String>,
}

/// Reads the hook files of all workspaces again, or of one.
///
/// Events under way keep the hooks they began with. A file that is broken now keeps its old rules.
#[utoipa::path(
    post, path = "/v1/reload", tag = "workspaces", operation_id = "reload", params(ReloadQuery),
    responses(
        (status = 200, description = "What was found", body = Vec<WorkspaceView>),
        (status = 400, description = "The query cannot be used", body = ErrorBody),
        (status = 404, description = "The workspace is not known", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn reload(
    State(state): State<Arc<DaemonState>>,
    query: Result<Query<ReloadQuery>, QueryRejection>,
) -> Result<Json<Vec<WorkspaceView>>, ApiError> {
    let Query(query) = query.map_err(|error| bad_query(&error))?;
    let reports = if let Some(text) = &query.workspace_id {
        let id = workspace_id(text)?;
        let report = state.orchestrator.reload_workspace(&id).await?;
        state.watch.rescan(&id);
        vec![(id.clone(), report.ok_or_else(|| unknown_workspace(&id))?)]
    } else {
        state.reload().await?
    };
    Ok(Json(reports.iter().map(|(id, report)| WorkspaceView::of(id, report)).collect()))
}
