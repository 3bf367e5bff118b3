//! The router, and which route a path belongs to.

use std::sync::Arc;

use axum::{
    Router,
    http::{Method, StatusCode, Uri},
};

use super::{
    operation::{RequestLimit, Route},
    table::ROUTES,
};
use crate::daemon::{error::ApiError, state::DaemonState};

/// Stands for the paths that are no route. They need a permit to nothing and reveal nothing.
static NO_ROUTE: Route = Route { path: "none", limit: RequestLimit::Exempt, operations: &[] };

/// The routes with their handlers.
pub(in crate::daemon) fn router(state: Arc<DaemonState>) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        for operation in route.operations {
            // The methods of one path are added to each other.
            router = router.route(route.path, (operation.handler)(operation.method.filter()));
        }
    }
    router.fallback(unknown_path).method_not_allowed_fallback(unknown_method).with_state(state)
}

/// The route that a request path belongs to; one without operations if there is none.
pub(in crate::daemon) fn find(path: &str) -> &'static Route {
    ROUTES.iter().find(|route| matches(path, route.path)).unwrap_or(&NO_ROUTE)
}

/// The declared paths of all routes and of [`NO_ROUTE`], which label the metrics of requests.
pub(in crate::daemon) fn paths() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().chain([&NO_ROUTE]).map(|route| route.path)
}

/// Whether the router takes a path to the route declared so. A parameter is the last segment, and not empty.
fn matches(path: &str, declared: &str) -> bool {
    let Some((prefix, _)) = declared.split_once('{') else { return path == declared };
    path.strip_prefix(prefix).is_some_and(|value| !value.is_empty() && !value.contains('/'))
}

async fn unknown_path(uri: Uri) -> ApiError {
    let message = format!("no route for the path {:?}", uri.path());
    ApiError::not_found("no_route", message, "GET /v1/openapi.json lists the routes")
}

async fn unknown_method(method: Method, uri: Uri) -> ApiError {
    let message = format!("{:?} does not support {method}", uri.path());
    let hint = "use a method from the `Allow` header; GET /v1/openapi.json lists the routes";
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "no_method", message, hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_belongs_to_the_route_that_the_router_takes_it_to() {
        let cases = [
            ("/v1/events", "/v1/events"),
            ("/v1/events/claude", "/v1/events/{dialect}"),
            ("/v1/runs/a%2Fb", "/v1/runs/{id}"),
            ("/healthz", "/healthz"),
            ("/v1/runs/", "none"),
            ("/v1/runs/a/b", "none"),
            ("/v1/events/", "none"),
            ("/healthz/", "none"),
            ("//healthz", "none"),
            ("", "none"),
        ];
        for (path, route) in cases {
            assert_eq!(find(path).path, route, "{path}");
        }
    }

    #[test]
    fn a_path_is_declared_once() {
        let mut declared: Vec<_> = paths().collect();
        declared.sort_unstable();
        declared.dedup();
        assert_eq!(declared.len(), paths().count());
    }
}
