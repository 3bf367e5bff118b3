//! The router, and which route a path belongs to.

use axum::{
    Router,
    extract::Request,
    http::{Method, StatusCode, Uri},
};

use super::{
    native_response::NATIVE_EVENTS_PREFIX,
    operation::{RequestLimit, Route},
    table::ROUTES,
};
use crate::{
    daemon::{error::ApiError, lines, state::RequestContext},
    model::DialectName,
};

/// The path of agents' events in the route table.
const NATIVE_EVENTS: &str = "/v1/events/{dialect}";

/// Stands for the paths that are no route. They need a permit to nothing and reveal nothing.
static NO_ROUTE: Route = Route { path: "none", limit: RequestLimit::Exempt, operations: &[] };

/// The routes with their handlers.
pub(in crate::daemon) fn router(context: RequestContext) -> Router {
    let mut router = Router::new();
    for route in &ROUTES {
        for operation in route.operations {
            // The methods of one path are added to each other.
            router = router.route(route.path, (operation.handler)(operation.method.filter()));
        }
    }
    router.fallback(unknown_path).method_not_allowed_fallback(unknown_method).with_state(context)
}

/// The route that a request path belongs to; one without operations if there is none. Every path below `/v1/events/` is
/// one of agents' events: an agent takes an error for consent, so a wrong one gets a verdict as well.
pub(in crate::daemon) fn find(path: &str) -> &'static Route {
    let is_route = |route: &&Route| matches(path, route.path) || is_below_native_events(path, route.path);
    ROUTES.iter().find(is_route).unwrap_or(&NO_ROUTE)
}

fn is_below_native_events(path: &str, declared: &str) -> bool {
    declared == NATIVE_EVENTS && path.starts_with(NATIVE_EVENTS_PREFIX)
}

/// What is wrong with the address of an agent's event that its route does not take.
pub(in crate::daemon) fn misaddressed(request: &Request) -> Option<ApiError> {
    let path = request.uri().path();
    let name = path.strip_prefix(NATIVE_EVENTS_PREFIX)?;
    if name.is_empty() || name.contains('/') {
        return Some(no_route(path));
    }
    // Hosts with canonical events get the router's error, which names the methods.
    let is_agents = name != DialectName::Canonical.as_str();
    (is_agents && request.method() != Method::POST).then(|| no_method(request.method(), path))
}

/// The declared paths of all routes and of [`NO_ROUTE`], and what stands for one at the socket of lines. They label the
/// metrics of requests.
pub(in crate::daemon) fn paths() -> impl Iterator<Item = &'static str> {
    ROUTES.iter().chain([&NO_ROUTE]).map(|route| route.path).chain([lines::ROUTE])
}

/// Whether the router takes a path to the route declared so. A parameter is a segment, and not empty.
fn matches(path: &str, declared: &str) -> bool {
    let Some((prefix, rest)) = declared.split_once('{') else { return path == declared };
    let suffix = rest.split_once('}').map_or("", |(_, suffix)| suffix);
    let value = path.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
    value.is_some_and(|value| !value.is_empty() && !value.contains('/'))
}

async fn unknown_path(uri: Uri) -> ApiError {
    no_route(uri.path())
}

fn no_route(path: &str) -> ApiError {
    let message = format!("no route for the path {path:?}");
    ApiError::not_found("no_route", message, "GET /v1/openapi.json lists the routes")
}

async fn unknown_method(method: Method, uri: Uri) -> ApiError {
    no_method(&method, uri.path())
}

fn no_method(method: &Method, path: &str) -> ApiError {
    let message = format!("{path:?} does not support {method}");
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
            ("/v1/runs/a%2Fb/events", "/v1/runs/{id}/events"),
            ("/v1/runs/events", "/v1/runs/{id}"),
            ("/v1/runs//events", "none"),
            ("/v1/runs/a/b", "none"),
            ("/v1/events/", "/v1/events/{dialect}"),
            ("/v1/events/claude/x", "/v1/events/{dialect}"),
            ("/v1/eventsclaude", "none"),
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
