//! The routes, in one table: which path has which handler, who may ask, and whether there must be room. Refuses to
//! hold what a route does, which is its own file's part.

mod events;
mod health;
mod hooks;
mod openapi;
mod reload;
mod runs;
mod status;
mod stream;
mod workspaces;

use std::sync::Arc;

use axum::{
    Router,
    extract::{FromRequestParts, Path, rejection::QueryRejection},
    http::{Method, StatusCode, Uri, request::Parts},
    routing::{get, post, put},
};

#[cfg(feature = "cli")]
pub(crate) use events::ProcessAnswer;
pub(super) use events::canonical as answer_event;
pub use status::{AuditStatus, BrokenWorkspace, DaemonStatus};

use super::{auth::RouteAccess, error::ApiError, state::DaemonState};
use crate::model::WorkspaceId;

/// Whether a request needs a place among those that are worked on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestLimit {
    /// It is answered also when there is none: it asks how the daemon is, or has a limit of its own.
    Exempt,
    /// It needs one.
    Counted,
}

/// What is known of a route before a request is looked at.
#[derive(Debug, Clone, Copy)]
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) access: RouteAccess,
    pub(super) limit: RequestLimit,
}

const ROUTES: &[Route] = &[
    limited("/v1/events"),
    limited("/v1/events/{dialect}"),
    limited("/v1/hooks"),
    // Whoever wants to know what fills the daemon, and to end it, finds room.
    always("/v1/runs"),
    always("/v1/runs/{id}"),
    limited("/v1/workspaces"),
    limited("/v1/workspaces/{id}"),
    always("/v1/reload"),
    always("/v1/status"),
    always("/v1/stream"),
    always("/v1/openapi.json"),
    Route { access: RouteAccess::Metrics, ..always("/metrics") },
    Route { access: RouteAccess::Public, ..always("/healthz") },
    Route { access: RouteAccess::Public, ..always("/readyz") },
];

/// What stands for a path that is no route.
const NO_ROUTE: &str = "none";

const fn limited(path: &'static str) -> Route {
    Route { path, access: RouteAccess::Restricted, limit: RequestLimit::Counted }
}

const fn always(path: &'static str) -> Route {
    Route { path, access: RouteAccess::Restricted, limit: RequestLimit::Exempt }
}

/// The route that a path is of; what is none is closed and needs no room.
pub(super) fn of(path: &str) -> Route {
    let found = ROUTES.iter().find(|route| is_of(path, route.path));
    found.copied().unwrap_or(always(NO_ROUTE))
}

/// Whether the router takes a path for one that is declared so. A name stands at the end of a path only.
fn is_of(path: &str, declared: &str) -> bool {
    let Some((before, _)) = declared.split_once('{') else { return path == declared };
    path.strip_prefix(before).is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// The paths of all routes as they are declared, and of what is none.
pub(super) fn paths() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().map(|route| route.path).chain([NO_ROUTE])
}

/// All routes.
pub(super) fn router(state: Arc<DaemonState>) -> Router {
    Router::new()
        .route("/v1/events", post(events::canonical))
        .route("/v1/events/{dialect}", post(events::native))
        .route("/v1/hooks", get(hooks::list))
        .route("/v1/runs", get(runs::list))
        .route("/v1/runs/{id}", get(runs::show).delete(runs::cancel))
        .route("/v1/workspaces", get(workspaces::list))
        .route(
            "/v1/workspaces/{id}",
            put(workspaces::register).get(workspaces::show).delete(workspaces::remove),
        )
        .route("/v1/reload", post(reload::reload))
        .route("/v1/status", get(status::show))
        .route("/v1/stream", get(stream::follow))
        .route("/v1/openapi.json", get(openapi::show))
        .route("/metrics", get(health::metrics))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .fallback(nothing_here)
        .method_not_allowed_fallback(wrong_method)
        .with_state(state)
}

async fn nothing_here(uri: Uri) -> ApiError {
    let message = format!("there is nothing at {:?}", uri.path());
    ApiError::not_found("no_route", message, "the routes are listed in /v1/openapi.json")
}

async fn wrong_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{:?} does not take {method}", uri.path());
    let hint = "the header `Allow` and /v1/openapi.json say which methods it takes";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "no_method", message, hint)
}

/// The part of a path that is a name.
pub(super) struct PathName(String);

impl<S: Send + Sync> FromRequestParts<S> for PathName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let Path(name) = Path::from_request_parts(parts, state).await.map_err(|_| {
            let hint = "send it as UTF-8, with `%XX` for what may not stand in a path";
            ApiError::bad_request("bad_path", "the path cannot be read", hint)
        })?;
        Ok(Self(name))
    }
}

/// A query that cannot be used.
fn bad_query(error: &QueryRejection) -> ApiError {
    ApiError::bad_request("bad_query", error.body_text(), "see /v1/openapi.json for what the route takes")
}

/// A workspace's id in a path or a query.
fn workspace_id(text: &str) -> Result<WorkspaceId, ApiError> {
    WorkspaceId::new(text).map_err(|error| ApiError::id("id of the workspace", &error))
}

fn unknown_workspace(id: &WorkspaceId) -> ApiError {
    crate::DispatchError::UnknownWorkspace(id.clone()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_of_the_route_that_the_router_takes_it_to() {
        let cases = [
            ("/v1/events", "/v1/events"),
            ("/v1/events/claude", "/v1/events/{dialect}"),
            ("/v1/runs/a%2Fb", "/v1/runs/{id}"),
            ("/healthz", "/healthz"),
            ("/v1/runs/", NO_ROUTE),
            ("/v1/runs/a/b", NO_ROUTE),
            ("/v1/events/", NO_ROUTE),
            ("/healthz/", NO_ROUTE),
            ("//healthz", NO_ROUTE),
            ("", NO_ROUTE),
        ];
        for (path, route) in cases {
            assert_eq!(of(path).path, route, "{path}");
        }
    }
}
