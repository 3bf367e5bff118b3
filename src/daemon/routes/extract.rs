//! Extractors whose rejections are API errors, and the parsing of ids.

use axum::{
    extract::{FromRequestParts, Path, Query},
    http::request::Parts,
};
use serde::de::DeserializeOwned;

use crate::{
    DispatchError,
    daemon::{error::ApiError, state::DaemonState},
    model::WorkspaceId,
};

/// The parameter in the path.
pub(super) struct PathParameter(pub(super) String);

impl<S: Send + Sync> FromRequestParts<S> for PathParameter {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(name) = Path::from_request_parts(parts, state).await.map_err(|_| {
            let hint = "send UTF-8, with reserved characters as `%XX`";
            ApiError::bad_request("bad_path", "the path is not valid UTF-8", hint)
        })?;
        Ok(Self(name))
    }
}

/// The query. Unknown parameters are errors.
pub(super) struct ApiQuery<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Query(query) = Query::from_request_parts(parts, state).await.map_err(|error| {
            let hint = "GET /v1/openapi.json describes the parameters of the route";
            ApiError::bad_request("bad_query", error.body_text(), hint)
        })?;
        Ok(Self(query))
    }
}

/// Parses the id of a workspace in a path or a query.
pub(super) fn workspace_id(text: &str) -> Result<WorkspaceId, ApiError> {
    WorkspaceId::new(text).map_err(|error| ApiError::id("id of the workspace", &error))
}

pub(super) fn unknown_workspace(id: &WorkspaceId) -> ApiError {
    DispatchError::UnknownWorkspace(id.clone()).into()
}

/// The error about a workspace that is not loaded, or not known at all.
pub(super) fn absent_workspace(state: &DaemonState, id: &WorkspaceId) -> ApiError {
    state
        .unloaded
        .find(id)
        .map_or_else(|| unknown_workspace(id), |known| ApiError::not_loaded(&known.id, &known.why))
}
