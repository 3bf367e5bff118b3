//! The trust in hooks, as the status and the page of a workspace show it; what a person is shown before agreeing, and the
//! agreement, with their part of the route table.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, StatusCode},
    routing::on,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    extract::{ApiQuery, PathParameter, absent_workspace, workspace_id},
    operation::{
        BodySchema::One, Operation, Parameter, RequestLimit, ResponseContent, Route, RouteMethod,
        SuccessResponse, ok,
    },
    shared::{
        BODY_ERRORS, INVALID_ID, INVALID_REVIEW, NO_TRUST, UNKNOWN_TRUST, UNKNOWN_WORKSPACE, WORKSPACE_ID,
        off_the_way,
    },
};
use crate::{
    Orchestrator,
    config::{Settings, ShownFile, ShownHook, TrustError, TrustPolicy, TrustReview, revoke_trust},
    daemon::{
        auth::AccessRight,
        error::ApiError,
        request_body::{self, SMALL_BODY_BYTES},
        schema::{Component, boolean, object, optional_string, string, strings},
        state::{DaemonState, RequestContext},
    },
    model::{Hook, TrustState, WorkspaceId},
};

/// A hook that does not run because nobody has agreed to it as it is.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NotTrusted {
    /// The ID of the workspace.
    pub workspace: String,
    /// The name of the hook.
    pub hook: String,
    /// `modified`, `missing` or `untrusted`.
    pub state: String,
}

pub(super) fn not_trusted_schema() -> Value {
    let hook = object(
        "A hook that does not run because nobody has agreed to it as it is.",
        [
            ("workspace", string("The ID of the workspace.")),
            ("hook", string("The name of the hook.")),
            ("state", string("`modified`, `missing` or `untrusted`.")),
        ],
        &[],
    );
    json!({
        "type": "array",
        "items": hook,
        "description": "The hooks that do not run because nobody has agreed to them as they are; at most 100.",
    })
}

/// The hooks that do not run because nobody has agreed to them as they are.
pub(super) fn not_trusted(orchestrator: &Orchestrator) -> impl Iterator<Item = NotTrusted> {
    orchestrator.snapshots().into_iter().flat_map(|snapshot| {
        let hooks = snapshot.hooks().iter().map(|registered| &registered.hook);
        let refused = hooks.filter(|hook| hook.trust.approval().is_none()).filter_map(|hook| {
            Some(NotTrusted {
                workspace: snapshot.workspace().id.to_string(),
                hook: hook.name.to_string(),
                state: hook.trust.state()?.to_string(),
            })
        });
        refused.collect::<Vec<_>>()
    })
}

pub(super) fn counts_schema() -> Value {
    json!({
        "type": "object",
        "additionalProperties": { "type": "integer", "minimum": 0 },
        "description": "How many hooks there are of each state of trust, such as `trusted`; none if trust is off.",
    })
}

/// How many hooks there are of each state of trust.
pub(super) fn counts(orchestrator: &Orchestrator) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for snapshot in orchestrator.snapshots() {
        for state in snapshot.hooks().iter().filter_map(|registered| registered.hook.trust.state()) {
            *counts.entry(state.to_string()).or_default() += 1;
        }
    }
    counts
}

/// What is known about the trust in one hook.
#[derive(Debug, Serialize)]
pub(super) struct HookTrustView {
    hook: String,
    state: Option<TrustState>,
    not_covered: Vec<String>,
    reason: Option<String>,
}

/// The schema of the trust in each hook of a workspace.
pub(super) fn hook_trust_schema() -> Value {
    let states: Vec<_> = TrustState::ALL.iter().map(|state| Some(state.as_str())).chain([None]).collect();
    let state = json!({
        "enum": states,
        "description": "What is known about the trust in it; null if trust is off.",
    });
    let hook = object(
        "What is known about the trust in one hook.",
        [
            ("hook", string("The name of the hook.")),
            ("state", state),
            ("not_covered", strings("What it runs or reads that the trust does not cover.")),
            ("reason", optional_string("Why it does not run; null if it does.")),
        ],
        &[],
    );
    json!({ "type": "array", "items": hook, "description": "The trust in each hook." })
}

impl HookTrustView {
    fn of(hook: &Hook) -> Self {
        Self {
            hook: hook.name.to_string(),
            state: hook.trust.state(),
            not_covered: hook.trust.not_covered().to_vec(),
            reason: hook.trust.refusal().map(str::to_owned),
        }
    }

    /// The trust in each hook of a workspace.
    pub(super) fn of_workspace(id: &WorkspaceId, orchestrator: &Orchestrator) -> Vec<Self> {
        let snapshot = orchestrator.snapshot(Some(id));
        let hooks = snapshot.iter().flat_map(|snapshot| snapshot.hooks());
        hooks.map(|registered| Self::of(&registered.hook)).collect()
    }
}

/// The hooks of a workspace that need trust.
#[derive(Debug, Serialize)]
struct TrustReviewView {
    digest: String,
    enforced: bool,
    agreed: bool,
    hooks: Vec<ShownHook>,
    files: Vec<ShownFile>,
}

pub(super) static TRUST_REVIEW_VIEW: Component = Component::built("TrustReviewView", || {
    let hooks = json!({
        "type": "array",
        "items": { "type": "object" },
        "description": "The hooks: `state`, why nobody can agree to one (`problem`), its `terms` and `definition` as they were agreed to (`before`) and as they are `now`, and the places of its changed files in `files`.",
    });
    let files = json!({
        "type": "array",
        "items": { "type": "object" },
        "description": "The files that are not as they were agreed to: `path`, and content `before` and `now`.",
    });
    object(
        "What a person is shown before agreeing to the hooks of a workspace.",
        [
            ("digest", string("The digest of everything that would be agreed to.")),
            ("enforced", boolean("Whether hooks run only if they are trusted.")),
            ("agreed", boolean("Whether everything is agreed to as it is.")),
            ("hooks", hooks),
            ("files", files),
        ],
        &[],
    )
});

/// The agreement to what was shown.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TrustAgreement {
    digest: String,
}

pub(super) static TRUST_AGREEMENT: Component = Component::built("TrustAgreement", || {
    let mut digest = string("The digest of what was shown.");
    digest["pattern"] = "^[0-9a-f]{64}$".into();
    let mut schema = object("The agreement to what was shown.", [("digest", digest)], &[]);
    schema["additionalProperties"] = false.into();
    schema
});

const THE_REVIEW: &[SuccessResponse] =
    &[ok("What it is now", ResponseContent::Json(One(&TRUST_REVIEW_VIEW)))];

const ONE_HOOK: Parameter =
    Parameter::query("hook", "Only the trust in this hook", || json!({ "type": "string" }));

pub(super) const TRUST: Route = Route {
    path: "/v1/workspaces/{id}/trust",
    limit: RequestLimit::Counted,
    operations: &[
        Operation {
            method: RouteMethod::Get,
            id: "reviewTrust",
            tag: "workspaces",
            right: AccessRight::Control,
            summary: "Show what the hooks of a workspace run, and what has changed since a person has agreed to them.",
            description: "Runs nothing. The answer has the texts of files, so it needs the right to control.",
            parameters: &[WORKSPACE_ID],
            request: None,
            success: THE_REVIEW,
            errors: &[INVALID_ID, UNKNOWN_WORKSPACE, NO_TRUST],
            handler: |method| on(method, review),
        },
        Operation {
            method: RouteMethod::Post,
            id: "agreeToHooks",
            tag: "workspaces",
            right: AccessRight::Control,
            summary: "Agree to all hooks of a workspace as they were shown.",
            description: "If anything of it has changed since, nothing is agreed to.",
            parameters: &[WORKSPACE_ID],
            request: Some(One(&TRUST_AGREEMENT)),
            success: THE_REVIEW,
            errors: &[INVALID_REVIEW, BODY_ERRORS, UNKNOWN_WORKSPACE, NO_TRUST],
            handler: |method| on(method, agree),
        },
        Operation {
            method: RouteMethod::Delete,
            id: "revokeTrust",
            tag: "workspaces",
            right: AccessRight::Control,
            summary: "Take back the trust in the hooks of a workspace, or in one of them.",
            description: "",
            parameters: &[WORKSPACE_ID, ONE_HOOK],
            request: None,
            success: THE_REVIEW,
            errors: &[INVALID_REVIEW, UNKNOWN_TRUST, NO_TRUST],
            handler: |method| on(method, revoke),
        },
    ],
};

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RevokeQuery {
    hook: Option<String>,
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Reads what a person would agree to. Reads the disk.
fn read_review(root: &Path, settings: &Settings) -> Result<TrustReview, ApiError> {
    TrustReview::of(root, settings, &environment, false).map_err(unusable)
}

fn unusable(error: TrustError) -> ApiError {
    ApiError::new(StatusCode::CONFLICT, "trust_unusable", error.to_string(), error.help)
}

/// What it is now, with the texts.
fn view(root: &Path, settings: &Settings) -> Result<TrustReviewView, ApiError> {
    let review = read_review(root, settings)?;
    let (hooks, files) = review.shown();
    Ok(TrustReviewView {
        digest: review.digest(),
        enforced: settings.trust == TrustPolicy::Enforce,
        agreed: review.is_agreed(),
        hooks,
        files,
    })
}

/// The directory of a workspace.
fn root(state: &DaemonState, id: &WorkspaceId) -> Result<PathBuf, ApiError> {
    Ok(state.orchestrator.load_report(id).ok_or_else(|| absent_workspace(state, id))?.root)
}

async fn review(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
) -> Result<Json<TrustReviewView>, ApiError> {
    let root = root(&state, &workspace_id(&id)?)?;
    off_the_way(move || view(&root, &state.settings)).await?.map(Json)
}

async fn agree(
    State(RequestContext { daemon: state, share }): State<RequestContext>,
    PathParameter(id): PathParameter,
    headers: HeaderMap,
    body: Body,
) -> Result<Json<TrustReviewView>, ApiError> {
    let id = workspace_id(&id)?;
    let bounds = share.body_bounds(SMALL_BODY_BYTES);
    let TrustAgreement { digest } = request_body::read_as(&headers, body, bounds).await?;
    if digest.len() != 64 || !digest.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        let hint = "send the `digest` of the review, 64 hexadecimal digits";
        return Err(ApiError::bad_request("bad_body", "the digest is none", hint));
    }
    change(state, id, move |root, settings, id| {
        let review = read_review(root, settings)?;
        if review.digest() != digest {
            let message = "the hooks, or what was agreed to about them, are not what was shown any more";
            let hint = "look at them again before you agree";
            return Err(ApiError::new(StatusCode::CONFLICT, "stale_review", message, hint));
        }
        review.agree(root).map_err(unusable)?;
        tracing::info!(workspace = %id, digest, "a client of the API has agreed to the hooks of a workspace");
        Ok(())
    })
    .await
}

async fn revoke(
    State(state): State<Arc<DaemonState>>,
    PathParameter(id): PathParameter,
    ApiQuery(query): ApiQuery<RevokeQuery>,
) -> Result<Json<TrustReviewView>, ApiError> {
    change(state, workspace_id(&id)?, move |root, settings, id| {
        let hook = query.hook.as_deref();
        let revoked = revoke_trust(root, hook, settings, &environment).map_err(unusable)?;
        if let (Some(name), true) = (hook, revoked.is_empty()) {
            let message = format!("no trusted hook has the name {name:?}");
            return Err(ApiError::not_found("unknown_hook", message, "look at the hooks again"));
        }
        tracing::info!(workspace = %id, hooks = revoked.join(", "), "a client of the API has taken back the trust in hooks");
        Ok(())
    })
    .await
}

/// Changes what is trusted in a workspace, and has it count at once. Returns what it is then.
async fn change(
    state: Arc<DaemonState>,
    id: WorkspaceId,
    apply: impl FnOnce(&Path, &Settings, &WorkspaceId) -> Result<(), ApiError> + Send + 'static,
) -> Result<Json<TrustReviewView>, ApiError> {
    let root = root(&state, &id)?;
    if state.settings.cluster.enabled {
        let message = "this daemon is a node of a cluster, and the other nodes would not know of it";
        let hint = "run `hookyard trust` on the machine of each node";
        return Err(ApiError::new(StatusCode::CONFLICT, "managed", message, hint));
    }
    // A task of its own: what is on disk has to count, also if the client does not wait for the answer.
    let changed = tokio::spawn(async move {
        let (daemon, place) = (Arc::clone(&state), root.clone());
        off_the_way(move || apply(&place, &daemon.settings, &id)).await??;
        state.reload().await?;
        off_the_way(move || view(&root, &state.settings)).await?
    });
    changed.await.map_err(|_| ApiError::shutting_down())?.map(Json)
}
