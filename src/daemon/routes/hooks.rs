//! Lists the hooks of the workspaces in the form of `hookyard list --json`.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};

use super::extract::{ApiQuery, unknown_workspace, workspace_id};
use crate::{
    daemon::{error::ApiError, state::DaemonState},
    model::WorkspaceId,
    registry::HookListing,
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ListHooksQuery {
    workspace_id: Option<String>,
}

#[derive(Serialize)]
struct WorkspaceHook<'a> {
    workspace_id: &'a WorkspaceId,
    #[serde(flatten)]
    hook: HookListing<'a>,
}

pub(super) async fn list(
    State(state): State<Arc<DaemonState>>,
    ApiQuery(query): ApiQuery<ListHooksQuery>,
) -> Result<Response, ApiError> {
    let snapshots = match &query.workspace_id {
        Some(text) => {
            let id = workspace_id(text)?;
            vec![state.orchestrator.snapshot(Some(&id)).ok_or_else(|| unknown_workspace(&id))?]
        }
        None => state.orchestrator.snapshots(),
    };
    let mut hooks = Vec::new();
    for snapshot in &snapshots {
        let workspace_id = &snapshot.workspace().id;
        for known in snapshot.hooks() {
            hooks.push(WorkspaceHook { workspace_id, hook: HookListing::of(&known.hook) });
        }
    }
    Ok(Json(hooks).into_response())
}
