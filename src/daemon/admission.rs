//! What every request passes first: its id, its door, and whether there is room for it. Refuses to look at a body.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Router,
    extract::{Request, State},
    http::{HeaderName, HeaderValue, Method},
    response::{IntoResponse, Response},
};
use tokio::sync::OwnedSemaphorePermit;
use tower_service::Service;

use super::{
    auth::ListenerAuth,
    error::ApiError,
    routes::{self, RequestLimit, Route},
    state::DaemonState,
};

/// The header with the id of a request, which is the client's own if it sends one.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Where events come in; what the routes of native ones begin with.
const EVENTS: &str = "/v1/events";

/// The longest id of a request that is taken over, in bytes.
const LONGEST_ID: usize = 128;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// The routes, behind their doors. It stands before the router and not in it: there every request would have it
/// boxed anew for its route.
#[derive(Debug, Clone)]
pub(super) struct Admission {
    state: Arc<DaemonState>,
    router: Router,
}

impl Admission {
    pub(super) fn new(state: &Arc<DaemonState>) -> Self {
        Self { state: Arc::clone(state), router: routes::router(Arc::clone(state)) }
    }

    /// Lets a request through to its route, and counts it.
    pub(super) async fn answer(mut self, auth: &ListenerAuth, request: Request) -> Response {
        let id = request_id(&self.state, &request);
        let route = routes::of(request.uri().path());
        let answered = match self.authorize(auth, route, &request) {
            Ok(place) => self.forward(request, place).await,
            Err(error) => Err(error),
        };
        let mut response = answered.unwrap_or_else(ApiError::into_response);
        response.headers_mut().insert(REQUEST_ID, id);
        self.state.meters.answered(route.path, response.status().as_u16() / 100);
        response
    }

    /// A place among the requests that are worked on, where one is needed.
    ///
    /// Returns an error if the request may not come in.
    fn authorize(
        &self,
        auth: &ListenerAuth,
        route: Route,
        request: &Request,
    ) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
        auth.authorize(request.uri(), request.headers(), route.access)?;
        if route.limit == RequestLimit::Exempt {
            return Ok(None);
        }
        let place = Arc::clone(&self.state.requests).try_acquire_owned();
        place.map(Some).map_err(|_| too_many(&self.state, route))
    }

    /// Brings a request to its route, where it keeps its place until it is answered.
    ///
    /// Returns an error if the daemon has been starting for too long.
    async fn forward(
        &mut self,
        request: Request,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<Response, ApiError> {
        if place.is_some() {
            self.state.loaded().await?;
        }
        // Nearly every request is one of these, and the router would only find out what is known here.
        if request.uri().path() == EVENTS && request.method() == Method::POST {
            return Box::pin(routes::answer_event(State(Arc::clone(&self.state)), request)).await;
        }
        let Ok(response) = self.router.call(request).await;
        Ok(response)
    }
}

/// There is no room for a request.
fn too_many(state: &DaemonState, route: Route) -> ApiError {
    if route.path.starts_with(EVENTS) {
        state.orchestrator.turned_away();
    }
    ApiError::overloaded("as many requests are worked on as `limits.requests` allows")
}

fn request_id(state: &DaemonState, request: &Request) -> HeaderValue {
    let is_plain =
        |id: &&HeaderValue| id.len() <= LONGEST_ID && id.as_bytes().iter().all(u8::is_ascii_graphic);
    let given = request.headers().get(&REQUEST_ID).filter(|id| !id.is_empty()).filter(is_plain);
    given.cloned().unwrap_or_else(|| {
        let id = format!("{:08x}-{}", state.instance, NEXT.fetch_add(1, Ordering::Relaxed));
        HeaderValue::try_from(id).unwrap_or(HeaderValue::from_static("unknown"))
    })
}
