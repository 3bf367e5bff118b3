//! Reads hook files and tokens again on request.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{
    extract::{ApiQuery, absent_workspace, workspace_id},
    workspaces::{WORKSPACE_VIEW, WorkspaceView},
};
use crate::daemon::{
    error::ApiError,
    schema::{Component, object, strings},
    state::DaemonState,
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadQuery {
    workspace_id: Option<String>,
}

/// What a reload came to.
#[derive(Debug, Serialize)]
pub(super) struct ReloadView {
    workspaces: Vec<WorkspaceView>,
    token_errors: Vec<String>,
}

pub(super) static RELOAD_VIEW: Component = Component::built("ReloadView", || {
    let workspaces = json!({
        "type": "array",
        "items": WORKSPACE_VIEW.reference(),
        "description": "The workspaces as they are now.",
    });
    let token_errors =
        strings("Why a token of a TCP address could not be read again. The former one stays valid.");
    object("What a reload came to.", [("workspaces", workspaces), ("token_errors", token_errors)], &[])
});

pub(super) async fn reload(
    State(state): State<Arc<DaemonState>>,
    ApiQuery(query): ApiQuery<ReloadQuery>,
) -> Result<Json<ReloadView>, ApiError> {
    let reports = if let Some(text) = &query.workspace_id {
        let id = workspace_id(text)?;
        if state.unloaded.find(&id).is_some() {
            state.retry_unloaded().await;
        }
        let report = state.orchestrator.reload_workspace(&id).await?;
        state.watch.rescan(&id);
        vec![(id.clone(), report.ok_or_else(|| absent_workspace(&state, &id))?)]
    } else {
        state.reload().await?
    };
    let workspaces = reports.iter().map(|(id, report)| WorkspaceView::of(id, report)).collect();
    Ok(Json(ReloadView { workspaces, token_errors: state.tokens.errors() }))
}
