//! Workspaces: listed, registered, looked at and removed. Refuses to say how their hooks fare.

use std::{path::PathBuf, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{PathName, unknown_workspace, workspace_id};
use crate::{
    LoadReport,
    config::{DialectSelection, WorkspaceKind, WorkspaceSettings},
    daemon::{
        error::{ApiError, ErrorBody},
        request_body::{self, BodyBounds, SMALL_BODY_BYTES},
        state::DaemonState,
    },
    model::{Diagnostic, DialectName, HookName, WorkspaceId},
};

/// A workspace to be registered.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Registration)]
pub(in crate::daemon) struct WorkspaceRegistration {
    /// Its directory, by an absolute path of the daemon's machine.
    #[schema(pattern = "^/[^\\x00]*$")]
    root: String,
    /// What it is for; left out, its own file says so.
    kind: Option<WorkspaceKindView>,
    /// Whose hooks it runs: a list of dialects; left out, its own file says so.
    dialects: Option<Vec<String>>,
}

/// What a workspace is for.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Kind)]
enum WorkspaceKindView {
    /// Work on files; its hooks run.
    Project,
    /// Conversation; it never runs hooks.
    Chat,
}

/// A workspace as it was loaded last.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::daemon) struct WorkspaceView {
    id: String,
    /// Its directory, without symbolic links.
    root: String,
    kind: WorkspaceKindView,
    /// The version of its registry; it grows with every load.
    version: u64,
    /// How many hooks it has.
    hooks: usize,
    /// How many mistakes its files have.
    errors: usize,
    /// The broken files whose former rules stay.
    kept: Vec<String>,
    /// What the last load changed.
    changes: ChangesView,
}

/// What a load changed, by the names of hooks.
#[derive(Debug, Serialize, ToSchema)]
struct ChangesView {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

/// A workspace with everything there is to say about its files.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::daemon) struct WorkspaceDetails {
    #[serde(flatten)]
    workspace: WorkspaceView,
    /// The files that were read.
    files: Vec<String>,
    /// What there is to say about them.
    #[schema(value_type = Vec<Object>)]
    diagnostics: Vec<Diagnostic>,
}

impl WorkspaceView {
    pub(super) fn of(id: &WorkspaceId, report: &LoadReport) -> Self {
        let names = |names: &[HookName]| names.iter().map(ToString::to_string).collect();
        let changes = &report.changes;
        Self {
            id: id.to_string(),
            root: report.root.display().to_string(),
            kind: match report.kind {
                WorkspaceKind::Project => WorkspaceKindView::Project,
                WorkspaceKind::Chat => WorkspaceKindView::Chat,
            },
            version: report.version,
            hooks: report.hooks,
            errors: report.errors().count(),
            kept: paths(&report.kept),
            changes: ChangesView {
                added: names(&changes.added),
                removed: names(&changes.removed),
                changed: names(&changes.changed),
            },
        }
    }
}

impl WorkspaceDetails {
    fn of(id: &WorkspaceId, report: &LoadReport) -> Self {
        Self {
            workspace: WorkspaceView::of(id, report),
            files: paths(&report.files),
            diagnostics: report.diagnostics.clone(),
        }
    }
}

fn paths(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

/// The workspaces, in the order of their ids.
#[utoipa::path(
    get, path = "/v1/workspaces", tag = "workspaces", operation_id = "listWorkspaces",
    responses((status = 200, description = "The workspaces", body = Vec<WorkspaceView>))
)]
pub(in crate::daemon) async fn list(State(state): State<Arc<DaemonState>>) -> Json<Vec<WorkspaceView>> {
    let reports = state.orchestrator.load_reports();
    Json(reports.iter().map(|(id, report)| WorkspaceView::of(id, report)).collect())
}

/// Registers a workspace, or replaces the one with the id.
///
/// Mistakes in its hook files are no error: they stand in the answer.
#[utoipa::path(
    put, path = "/v1/workspaces/{id}", tag = "workspaces", operation_id = "registerWorkspace",
    params(("id" = String, Path, description = "What events call it", min_length = 1, max_length = 256)),
    request_body = WorkspaceRegistration,
    responses(
        (status = 200, description = "It was there, and is as told now", body = WorkspaceDetails),
        (status = 201, description = "It is there now", body = WorkspaceDetails),
        (status = 400, description = "The id, the body or the directory cannot be used", body = ErrorBody),
        (status = 408, description = "The body took too long", body = ErrorBody),
        (status = 409, description = "The directory is another workspace", body = ErrorBody),
        (status = 413, description = "The body is too large", body = ErrorBody),
        (status = 415, description = "The body is not JSON", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn register(
    State(state): State<Arc<DaemonState>>,
    PathName(id): PathName,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<WorkspaceDetails>), ApiError> {
    let id = workspace_id(&id)?;
    let bounds = BodyBounds { bytes: SMALL_BODY_BYTES, time: state.settings.limits.body_timeout };
    let registration: WorkspaceRegistration = request_body::read_as(&headers, body, bounds).await?;
    let settings = registration.settings()?;
    let known = state.orchestrator.load_report(&id).is_some();
    // A task of its own, so that a client that goes does not leave half a workspace.
    let registered = tokio::spawn(async move {
        let report = state.orchestrator.register(&id, settings).await?;
        state.watch.rescan(&id);
        Ok::<_, crate::WorkspaceError>(WorkspaceDetails::of(&id, &report))
    });
    let details = registered.await.map_err(|_| ApiError::shutting_down())??;
    Ok((if known { StatusCode::OK } else { StatusCode::CREATED }, Json(details)))
}

impl WorkspaceRegistration {
    fn settings(self) -> Result<WorkspaceSettings, ApiError> {
        let Self { root, kind, dialects } = self;
        if !root.starts_with('/') || root.contains('\0') {
            let message = format!("the root {root:?} is no absolute path");
            return Err(ApiError::bad_request("bad_root", message, "begin it with `/`"));
        }
        let dialect = |name: String| {
            let known = DialectName::ALL.iter().filter(|known| **known != DialectName::Canonical);
            known.copied().find(|known| known.as_str() == name).ok_or_else(|| {
                let hint = "use openharness, claude, codebuddy, gemini or clawd";
                ApiError::bad_request("unknown_dialect", format!("there are no hooks of {name:?}"), hint)
            })
        };
        let dialects = dialects.map(|names| names.into_iter().map(dialect).collect::<Result<_, _>>());
        Ok(WorkspaceSettings {
            root: root.into(),
            kind: kind.map(|kind| match kind {
                WorkspaceKindView::Project => WorkspaceKind::Project,
                WorkspaceKindView::Chat => WorkspaceKind::Chat,
            }),
            dialects: dialects.transpose()?.map(DialectSelection::Only),
        })
    }
}

/// One workspace, with what is wrong with its files.
#[utoipa::path(
    get, path = "/v1/workspaces/{id}", tag = "workspaces", operation_id = "getWorkspace",
    params(("id" = String, Path, description = "Its id", min_length = 1, max_length = 256)),
    responses(
        (status = 200, description = "The workspace", body = WorkspaceDetails),
        (status = 400, description = "The id cannot be one", body = ErrorBody),
        (status = 404, description = "The workspace is not known", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn show(
    State(state): State<Arc<DaemonState>>,
    PathName(id): PathName,
) -> Result<Json<WorkspaceDetails>, ApiError> {
    let id = workspace_id(&id)?;
    let report = state.orchestrator.load_report(&id).ok_or_else(|| unknown_workspace(&id))?;
    Ok(Json(WorkspaceDetails::of(&id, &report)))
}

/// Removes a workspace: its runs are cancelled and its workers stopped.
#[utoipa::path(
    delete, path = "/v1/workspaces/{id}", tag = "workspaces", operation_id = "removeWorkspace",
    params(("id" = String, Path, description = "Its id", min_length = 1, max_length = 256)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 400, description = "The id cannot be one", body = ErrorBody),
        (status = 404, description = "The workspace is not known", body = ErrorBody),
    )
)]
pub(in crate::daemon) async fn remove(
    State(state): State<Arc<DaemonState>>,
    PathName(id): PathName,
) -> Result<StatusCode, ApiError> {
    let id = workspace_id(&id)?;
    let removed = id.clone();
    let gone = tokio::spawn(async move {
        let was_there = state.orchestrator.unregister(&removed).await;
        state.watch.rescan(&removed);
        was_there
    });
    if !gone.await.map_err(|_| ApiError::shutting_down())? {
        return Err(unknown_workspace(&id));
    }
    Ok(StatusCode::NO_CONTENT)
}
