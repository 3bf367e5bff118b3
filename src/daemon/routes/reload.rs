//! Reads hook files again on request.

use std::sync::Arc;

use axum::{Json, extract::State};
use serde::Deserialize;

use super::{
    extract::{ApiQuery, workspace_id},
    workspaces::{WorkspaceView, absent_workspace},
};
use crate::daemon::{error::ApiError, state::DaemonState};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ReloadQuery {
    workspace_id: Option<String>,
}

pub(super) async fn reload(
    State(state): State<Arc<DaemonState>>,
    ApiQuery(query): ApiQuery<ReloadQuery>,
) -> Result<Json<Vec<WorkspaceView>>, ApiError> {
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
    Ok(Json(reports.iter().map(|(id, report)| WorkspaceView::of(id, report)).collect()))
}
