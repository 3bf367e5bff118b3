//! Gives each request an id, authorizes it, takes its permit, and forwards it to the router.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Method, StatusCode, Version, header::CONNECTION},
    response::{IntoResponse, Response},
};
use tokio::sync::OwnedSemaphorePermit;
use tower_service::Service;

use super::{
    auth::{AccessRight, ListenerAuth},
    denials::{DeniedRequest, Peer, method_name},
    error::{ApiError, HOOK_EVENT_HEADER},
    routes::{self, AnsweredError, RefusedGuards, RequestLimit, Route},
    state::{DaemonPhase, DaemonState},
};

/// The header with the id of a request. A client's own is kept.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header with the name of the daemon.
const NODE: HeaderName = HeaderName::from_static("x-hookyard-node");

/// The `Connection` of responses over HTTP/1 while the daemon is about to stop.
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The path of canonical events, and the prefix of the paths of native ones.
const EVENTS: &str = "/v1/events";

/// The path of native events in the route table.
const NATIVE_EVENTS: &str = "/v1/events/{dialect}";

/// The longest id of a client that is kept, in bytes.
const MAX_ID_BYTES: usize = 128;

/// The number in the next generated id.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Admits requests to the router. It wraps the router instead of being a layer of it, because a layer is boxed anew for
/// every request.
#[derive(Debug, Clone)]
pub(super) struct Admission {
    state: Arc<DaemonState>,
    router: Router,
}

impl Admission {
    pub(super) fn new(state: &Arc<DaemonState>) -> Self {
        Self { state: Arc::clone(state), router: routes::router(Arc::clone(state)) }
    }

    /// Answers a request, and counts the response.
    pub(super) async fn answer(mut self, auth: &ListenerAuth, peer: Peer, request: Request) -> Response {
        let id = request_id(&self.state, &request);
        let is_http1 = request.version() < Version::HTTP_2;
        let route = routes::find(request.uri().path());
        let mut response = match self.authorize(auth, route, &request) {
            Ok(()) => self.admit(route, request).await,
            Err(error) => self.record_denial(auth, peer, route, request.method(), error).into_response(),
        };
        response.headers_mut().insert(REQUEST_ID, id);
        response.headers_mut().insert(NODE, self.state.node_header.clone());
        if is_http1 && self.state.is_draining() {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        let error = response.extensions().get().map(|error: &AnsweredError| error.status);
        self.state.meters.answered(route.path, error.unwrap_or(response.status()).as_u16() / 100);
        response
    }

    /// Answers an authorized request. An agent's event gets a verdict even if it is not admitted.
    async fn admit(&mut self, route: &Route, request: Request) -> Response {
        let (error, guards) = match self.permit(route) {
            Ok(permit) => match self.loaded(permit.as_ref()).await {
                Ok(()) => return self.forward(request, permit).await.unwrap_or_else(ApiError::into_response),
                Err(error) => (error, RefusedGuards::NotLoaded),
            },
            Err(error) if self.state.phase() == DaemonPhase::Starting => (error, RefusedGuards::NotLoaded),
            Err(error) => (error, RefusedGuards::Loaded),
        };
        if route.path == NATIVE_EVENTS && request.method() == Method::POST {
            return Box::pin(routes::answer_refused(&self.state, request, error, guards)).await;
        }
        error.into_response()
    }

    /// Authorizes a request.
    ///
    /// Returns an error if the client may not use the route.
    fn authorize(&self, auth: &ListenerAuth, route: &Route, request: &Request) -> Result<(), ApiError> {
        let right = route.right(request.method());
        if let Err(denial) = auth.authorize(request.uri(), request.headers(), right) {
            let control_socket = auth.is_event_socket().then_some(&*self.state.addresses.control_socket);
            return Err(denial.into_error(control_socket));
        }
        if right == AccessRight::Control && request.headers().contains_key(HOOK_EVENT_HEADER) {
            return Err(ApiError::own_hook());
        }
        Ok(())
    }

    /// Takes the permit of a request, if its route needs one.
    ///
    /// Returns an error if all permits are taken.
    fn permit(&self, route: &Route) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        if route.limit == RequestLimit::Exempt {
            return Ok(None);
        }
        let permit = Arc::clone(&self.state.requests).try_acquire_owned();
        permit.map(Some).map_err(|_| too_many(&self.state, route))
    }

    /// Records a request that was not authorized. Returns the error for the client.
    fn record_denial(
        &self,
        auth: &ListenerAuth,
        peer: Peer,
        route: &Route,
        method: &Method,
        error: ApiError,
    ) -> ApiError {
        let status = error.status();
        if status != StatusCode::UNAUTHORIZED && status != StatusCode::FORBIDDEN {
            return error;
        }
        let denied = DeniedRequest {
            listener: auth.listener(),
            status: status.as_u16(),
            code: error.code(),
            method: method_name(method),
            route: route.path,
        };
        if self.state.denials.record(peer, denied) { ApiError::too_many_attempts() } else { error }
    }

    /// Waits until the workspaces are loaded, for a request that takes a permit.
    ///
    /// Returns an error if the daemon has been starting for too long.
    async fn loaded(&self, permit: Option<&OwnedSemaphorePermit>) -> Result<(), ApiError> {
        if permit.is_some() { self.state.loaded().await } else { Ok(()) }
    }

    /// Forwards a request to its route. It keeps its permit until it is answered.
    async fn forward(
        &mut self,
        request: Request,
        _permit: Option<OwnedSemaphorePermit>,
    ) -> Result<Response, ApiError> {
        // The hot path: nearly every request is one of these, and skips the router's lookup.
        if request.uri().path() == EVENTS && request.method() == Method::POST {
            return Box::pin(routes::send_event(State(Arc::clone(&self.state)), request)).await;
        }
        let Ok(response) = self.router.call(request).await;
        Ok(response)
    }
}

/// All permits for requests are taken.
fn too_many(state: &DaemonState, route: &Route) -> ApiError {
    if route.path.starts_with(EVENTS) {
        state.orchestrator.turned_away();
    }
    ApiError::overloaded("the limit of requests in flight, `limits.requests`, is reached")
}

/// The client's id if it is short printable ASCII, a generated one otherwise.
fn request_id(state: &DaemonState, request: &Request) -> HeaderValue {
    if let Some(id) = request.headers().get(&REQUEST_ID).filter(|id| is_acceptable(id)) {
        return id.clone();
    }
    let id = format!("{:08x}-{}", state.instance, NEXT.fetch_add(1, Ordering::Relaxed));
    HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("unknown"))
}

fn is_acceptable(id: &HeaderValue) -> bool {
    (1..=MAX_ID_BYTES).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}
