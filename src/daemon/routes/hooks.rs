//! The hooks of the workspaces, as `hookyard list --json` has them. Refuses to run any.

use std::sync::Arc;

use axum::{
    Json,
    extract::{Query, State, rejection::QueryRejection},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use utoipa::IntoParams;

use super::{bad_query, unknown_workspace, workspace_id};
use crate::{
    daemon::{
        error::{ApiError, ErrorBody},
        state::DaemonState,
    },
    model::WorkspaceId,
    registry::HookListing,
};

/// Which hooks.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(in crate::daemon) struct ListHooksQuery {
    /// Those of this workspace only.
    workspace_id: Option<String>,
}

#[derive(Serialize)]
struct WorkspaceHookRow<'a> {
    workspace_id: &'a WorkspaceId,
    #[serde(flatten)]
    hook: HookListing<'a>,
}

/// The hooks of all workspaces, or of one, in the order in which they run.
#[utoipa::path(
    get, path = "/v1/hooks", tag = "hooks", operation_id = "listHooks", params(ListHooksQuery),
    responses(
        (status = 200, description = "The hooks", body = Vec<Object>),
        (status = 400, description = "The query cannot be used", body = ErrorBody),
        (status = 404, description = "The workspace is not known", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn list(
    State(state): State<Arc<DaemonState>>,
    query: Result<Query<ListHooksQuery>, QueryRejection>,
) -> Result<Response, ApiError> {
    let Query(query) = query.map_err(|error| bad_query(&error))?;
    let snapshots = match &query.workspace_id {
        Some(text) => {
            let id = workspace_id(text)?;
            vec![state.orchestrator.snapshot(Some(&id)).ok_or_else(|| unknown_workspace(&id))?]
        }
        None => state.orchestrator.snapshots(),
    };
    let rows: Vec<WorkspaceHookRow<'_>> = snapshots
        .iter()
        .flat_map(|snapshot| {
            let workspace_id = &snapshot.workspace().id;
            snapshot
                .hooks()
                .iter()
                .map(move |known| WorkspaceHookRow { workspace_id, hook: HookListing::of(&known.hook) })
        })
        .collect();
    Ok(Json(rows).into_response())
}
