//! Lists, registers, shows and removes workspaces, and lists their hooks.

use std::{path::PathBuf, sync::Arc};

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::{IntoResponse, Response},
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    data_status::{LastGoodFile, last_good_schema},
    extract::{ApiQuery, PathParameter, absent_workspace, unknown_workspace, workspace_id},
    trust::{HookTrustView, hook_trust_schema},
};
use crate::{
    LoadReport, Orchestrator,
    config::{DialectSelection, WorkspaceKind, WorkspaceSettings},
    daemon::{
        error::ApiError,
        request_body::{self, SMALL_BODY_BYTES},
        schema::{Component, object, string, strings, unsigned, unsigned_as},
        state::{DaemonState, Registration, RequestContext},
    },
    model::{Diagnostic, DialectName, HookName, WorkspaceId},
    registry::HookListing,
};

/// The body of a registration.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkspaceRegistration {
    root: String,
    kind: Option<WorkspaceKindView>,
    dialects: Option<Vec<String>>,
}

pub(super) static REGISTRATION: Component = Component::built("Registration", || {
    let mut root = string("The absolute path of its directory on the daemon's machine.");
    root["pattern"] = "^/[^\\x00]*$".into();
    let kind = KIND.described("Its kind. The workspace's own settings apply by default.");
    let names: Vec<_> = agent_dialects().map(DialectName::as_str).collect();
    let dialects = json!({
        "type": ["array", "null"],
        "items": { "type": "string", "enum": names },
        "description": "The dialects whose hooks it runs. The workspace's own settings apply by default.",
    });
    let mut schema = object(
        "A workspace to register.",
        [("root", root), ("kind", json!({ "oneOf": [kind, { "type": "null" }] })), ("dialects", dialects)],
        &["kind", "dialects"],
    );
    schema["additionalProperties"] = false.into();
    schema
});

/// The kind of a workspace, as the API names it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum WorkspaceKindView {
    /// For work on files; its hooks run.
    Project,
    /// For conversation; it never runs hooks.
    Chat,
}

pub(super) static KIND: Component = Component::built("Kind", || {
    json!({
        "type": "string",
        "enum": ["project", "chat"],
        "description": "`project` for work on files, `chat` for conversation without hooks.",
    })
});

/// A workspace as of its last load.
#[derive(Debug, Serialize)]
pub(super) struct WorkspaceView {
    id: String,
    root: String,
    kind: WorkspaceKindView,
    version: u64,
    content: String,
    hooks: usize,
    errors: usize,
    kept: Vec<String>,
    last_good: Vec<LastGoodFile>,
    changes: ChangesView,
}

pub(super) static WORKSPACE_VIEW: Component = Component::built("WorkspaceView", || {
    object(
        "A workspace as of its last load.",
        [
            ("id", string("Its ID.")),
            ("root", string("Its directory, with symbolic links resolved.")),
            ("kind", KIND.reference()),
            ("version", unsigned_as("int64", "The version of its registry, which grows with every load.")),
            ("content", string("A hash over the definitions and scripts of its hooks.")),
            ("hooks", unsigned("The number of its hooks.")),
            ("errors", unsigned("The number of errors in its files.")),
            ("kept", strings("The broken files whose last good rules are known.")),
            ("last_good", last_good_schema()),
            ("changes", CHANGES_VIEW.described("What the last load changed.")),
        ],
        &[],
    )
});

/// The names of the hooks that a load changed.
#[derive(Debug, Serialize)]
struct ChangesView {
    added: Vec<String>,
    removed: Vec<String>,
    changed: Vec<String>,
}

pub(super) static CHANGES_VIEW: Component = Component::built("ChangesView", || {
    object(
        "The names of the hooks that a load changed.",
        [
            ("added", strings("New hooks.")),
            ("removed", strings("Hooks that are gone.")),
            ("changed", strings("Hooks that changed.")),
        ],
        &[],
    )
});

/// A workspace with the diagnostics of its files.
#[derive(Debug, Serialize)]
pub(super) struct WorkspaceDetails {
    #[serde(flatten)]
    workspace: WorkspaceView,
    files: Vec<String>,
    diagnostics: Vec<Diagnostic>,
    trust: Vec<HookTrustView>,
}

pub(super) static WORKSPACE_DETAILS: Component = Component::built("WorkspaceDetails", || {
    let diagnostics = json!({ "type": "array", "items": { "type": "object" }, "description": "The diagnostics of the files." });
    let own = object(
        "The files of the workspace, and the trust in its hooks.",
        [
            ("files", strings("The files that were read.")),
            ("diagnostics", diagnostics),
            ("trust", hook_trust_schema()),
        ],
        &[],
    );
    json!({
        "description": "A workspace with the diagnostics of its files.",
        "allOf": [WORKSPACE_VIEW.reference(), own],
    })
});

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
            content: report.content.to_string(),
            hooks: report.hooks,
            errors: report.errors().count(),
            kept: report.kept.iter().map(|kept| kept.file.display().to_string()).collect(),
            last_good: report.kept.iter().map(LastGoodFile::from).collect(),
            changes: ChangesView {
                added: names(&changes.added),
                removed: names(&changes.removed),
                changed: names(&changes.changed),
            },
        }
    }
}

impl WorkspaceDetails {
    fn of(id: &WorkspaceId, report: &LoadReport, orchestrator: &Orchestrator) -> Self {
        Self {
            workspace: WorkspaceView::of(id, report),
            trust: HookTrustView::of_workspace(id, orchestrator),
            files: paths(&report.files),
            diagnostics: report.diagnostics.clone(),
        }
    }
}

fn paths(paths: &[PathBuf]) -> Vec<String> {
    paths.iter().map(|path| path.display().to_string()).collect()
}

pub(super) async fn list(State(state): State<Arc<DaemonState>>) -> Json<Vec<WorkspaceView>> {
    let reports = state.orchestrator.load_reports();
    Json(reports.iter().map(|(id, report)| WorkspaceView::of(id, report)).collect())
}

pub(super) async fn register(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    PathParameter(id): PathParameter,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<WorkspaceDetails>), ApiError> {
    let id = workspace_id(&id)?;
    refuse_on_node(&state)?;
    let bounds = share.body_bounds(SMALL_BODY_BYTES);
    let registration: WorkspaceRegistration = request_body::read_as(&headers, body, bounds).await?;
    let body = json!(registration);
    let settings = registration.settings()?;
    let permit = state.handover.registration().ok_or_else(ApiError::shutting_down)?;
    let known = state.orchestrator.load_report(&id).is_some();
    // A task of its own: a client that disconnects must not leave a workspace half registered.
    let registered = tokio::spawn(async move {
        let _permit = permit;
        let report = state.orchestrator.register(&id, settings.clone()).await?;
        state.watch.rescan(&id);
        state.forget_unloaded(&id);
        state.registrations.lock().insert(id.clone(), Registration { body, settings });
        Ok::<_, crate::WorkspaceError>(WorkspaceDetails::of(&id, &report, &state.orchestrator))
    });
    let details = registered.await.map_err(|_| ApiError::shutting_down())??;
    Ok((if known { StatusCode::OK } else { StatusCode::CREATED }, Json(details)))
}

impl WorkspaceRegistration {
    fn settings(self) -> Result<WorkspaceSettings, ApiError> {
        let Self { root, kind, dialects } = self;
        if !root.starts_with('/') || root.contains('\0') {
            let message = format!("the root {root:?} is not an absolute path");
            return Err(ApiError::bad_request("bad_root", message, "start it with `/`"));
        }
        let parsed =
            |names: Vec<String>| names.iter().map(|name| agent_dialect(name)).collect::<Result<_, _>>();
        let dialects = dialects.map(parsed);
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

/// Has a workspace registered as a client has registered it with the daemon that this one replaces.
///
/// Returns an error if the body is not one of this version, or if this daemon is a node.
pub(in crate::daemon) fn register_again(
    state: &DaemonState,
    id: &WorkspaceId,
    body: Value,
) -> Result<(), String> {
    refuse_on_node(state).map_err(|error| error.to_string())?;
    let registration: WorkspaceRegistration =
        serde_json::from_value(body.clone()).map_err(|error| error.to_string())?;
    let settings = registration.settings().map_err(|error| error.to_string())?;
    state.registrations.lock().insert(id.clone(), Registration { body, settings });
    Ok(())
}

pub(super) async fn show(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
) -> Result<Json<WorkspaceDetails>, ApiError> {
    let id = workspace_id(&id)?;
    let report = state.orchestrator.load_report(&id).ok_or_else(|| absent_workspace(&state, &id))?;
    Ok(Json(WorkspaceDetails::of(&id, &report, &state.orchestrator)))
}

pub(super) async fn remove(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
) -> Result<StatusCode, ApiError> {
    let id = workspace_id(&id)?;
    refuse_on_node(&state)?;
    let removed = id.clone();
    let permit = state.handover.registration().ok_or_else(ApiError::shutting_down)?;
    let gone = tokio::spawn(async move {
        let _permit = permit;
        state.registrations.lock().remove(&removed);
        let was_loaded = state.orchestrator.unregister(&removed).await;
        state.watch.rescan(&removed);
        let was_unloaded = state.forget_unloaded(&removed);
        was_loaded || was_unloaded
    });
    if !gone.await.map_err(|_| ApiError::shutting_down())? {
        return Err(unknown_workspace(&id));
    }
    Ok(StatusCode::NO_CONTENT)
}

/// Returns an error if this daemon is a node of a cluster: a client of the balancer would change the workspaces of one node,
/// and the others would not know.
fn refuse_on_node(state: &DaemonState) -> Result<(), ApiError> {
    if state.settings.cluster.enabled { Err(ApiError::managed()) } else { Ok(()) }
}

/// The dialects that hook files are written in.
fn agent_dialects() -> impl Iterator<Item = DialectName> {
    DialectName::ALL.iter().copied().filter(|name| *name != DialectName::Canonical)
}

fn agent_dialect(name: &str) -> Result<DialectName, ApiError> {
    agent_dialects().find(|known| known.as_str() == name).ok_or_else(|| {
        let known: Vec<_> = agent_dialects().map(DialectName::as_str).collect();
        let hint = format!("use one of {}", known.join(", "));
        ApiError::bad_request("unknown_dialect", format!("unknown dialect {name:?}"), hint)
    })
}

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

/// Lists the hooks in the form of `hookyard list --json`.
pub(super) async fn list_hooks(
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
