//! Gives each request an id, authorizes it, takes its permit, and forwards it to the router.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Router,
    body::Body,
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
    handover,
    listener_share::{CountedBody, ListenerShare},
    routes::{self, AnsweredError, RefusedGuards, RequestLimit, Route},
    state::{DaemonState, RequestContext},
};
use crate::model::EventOrigin;

/// The header with the id of a request. A client's own is kept.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The header with the name of the daemon.
const NODE: HeaderName = HeaderName::from_static("x-hookyard-node");

/// The `Connection` of responses over HTTP/1 while the daemon is about to stop.
const CLOSE: HeaderValue = HeaderValue::from_static("close");

/// The path of canonical events, and the prefix of the paths of native ones.
const EVENTS: &str = "/v1/events";

/// The paths of the streams, whose responses have no end.
const STREAMS: [&str; 3] = ["/v1/now", "/v1/stream", "/v1/recording"];

/// The longest id of a client that is kept, in bytes.
const MAX_ID_BYTES: usize = 128;

/// How much of a path is logged, in characters.
const MAX_LOGGED_PATH: usize = 200;

/// The number in the next generated id.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// Admits the requests of one listener to the router. It wraps the router instead of being a layer of it, because a layer
/// is boxed for every request.
#[derive(Debug, Clone)]
pub(super) struct Admission {
    context: RequestContext,
    router: Router,
}

/// How a response is sent.
#[derive(Debug, Clone, Copy)]
struct ResponseFraming {
    is_http1: bool,
    /// Whether the connection ends with it.
    must_close: bool,
}

/// The permit of a request, and how long it is kept.
enum HeldPermit {
    /// The route is exempt.
    None,
    /// Until there is an answer.
    UntilAnswered(#[expect(dead_code, reason = "it is dropped, never used")] OwnedSemaphorePermit),
    /// Until the client has read the answer.
    UntilRead(OwnedSemaphorePermit),
}

/// A request that changes the daemon, as the log has it.
struct ClientChange {
    operation: &'static str,
    /// Which workspace or run, say. It may be cut.
    path: String,
}

impl ClientChange {
    fn of(route: &Route, request: &Request) -> Option<Self> {
        let operation = route.change(request.method())?;
        let plain = |c: char| if c.is_ascii_graphic() { c } else { '?' };
        let path = request.uri().path().chars().take(MAX_LOGGED_PATH).map(plain).collect();
        Some(Self { operation, path })
    }

    fn log(self, auth: &ListenerAuth, peer: Peer) {
        let Self { operation, path } = self;
        let listener = auth.listener().as_str();
        tracing::info!(%peer, listener, operation, path, "a client has changed the daemon");
    }
}

impl Admission {
    pub(super) fn new(state: &Arc<DaemonState>, share: Arc<ListenerShare>) -> Self {
        let context = RequestContext { daemon: Arc::clone(state), share };
        Self { router: routes::router(context.clone()), context }
    }

    /// What its requests have.
    pub(super) fn context(&self) -> &RequestContext {
        &self.context
    }

    /// The share of its listener.
    pub(super) fn share(&self) -> &ListenerShare {
        &self.context.share
    }

    /// Answers a request, and counts the response.
    pub(super) async fn answer(mut self, auth: &ListenerAuth, peer: Peer, mut request: Request) -> Response {
        let id = request_id(&self.context.daemon, &request);
        let is_http1 = request.version() < Version::HTTP_2;
        let route = routes::find(request.uri().path());
        if route.takes_events()
            && let Some(peer) = peer.of_event()
        {
            request.extensions_mut().insert(EventOrigin::new(auth.listener().as_str(), peer));
        }
        // Looked at before the token is checked: one that is replaced meanwhile ends the stream.
        if STREAMS.contains(&route.path)
            && let Some(access) = auth.stream_access(request.uri(), request.headers())
        {
            request.extensions_mut().insert(access);
        }
        let change = ClientChange::of(route, &request);
        let response = match self.authorize(auth, route, &request) {
            Ok(()) if self.context.daemon.handover.is_engaged() => {
                Box::pin(self.answer_once_settled(route, &id, request)).await
            }
            Ok(()) => self.admit(route, request).await,
            Err(error) => self.record_denial(auth, peer, route, request.method(), error).into_response(),
        };
        if let Some(change) = change.filter(|_| response.status().is_success()) {
            change.log(auth, peer);
        }
        self.finish(response, route, id, ResponseFraming { is_http1, must_close: false })
    }

    /// Answers an authorized request once it is known whether a daemon that takes over accepts connections, or has that
    /// daemon answer it: this one may not know any more what the other has decided.
    async fn answer_once_settled(
        &mut self,
        route: &Route,
        id: &HeaderValue,
        mut request: Request,
    ) -> Response {
        if !self.context.daemon.handover.settled().await {
            return self.admit(route, request).await;
        }
        request.headers_mut().insert(REQUEST_ID, id.clone());
        let right = route.right(request.method());
        handover::forward(&self.context, right, request).await
    }

    /// Answers a request on a connection beyond the limit: an agent's event with a verdict, any other with the error.
    pub(super) async fn refuse(self, auth: &ListenerAuth, peer: Peer, request: Request) -> Response {
        let id = request_id(&self.context.daemon, &request);
        let route = routes::find(request.uri().path());
        let is_http1 = request.version() < Version::HTTP_2;
        let response = match self.authorize(auth, route, &request) {
            Ok(()) => {
                self.count_event(route);
                let error = self.context.share.too_many_connections();
                routes::answer_refused(&self.context, request, error, self.guards()).await
            }
            Err(error) => self.record_denial(auth, peer, route, request.method(), error).into_response(),
        };
        self.finish(response, route, id, ResponseFraming { is_http1, must_close: true })
    }

    /// Names and counts a response.
    fn finish(
        &self,
        mut response: Response,
        route: &Route,
        id: HeaderValue,
        framing: ResponseFraming,
    ) -> Response {
        let ResponseFraming { is_http1, must_close } = framing;
        response.headers_mut().insert(REQUEST_ID, id);
        let state = &self.context.daemon;
        response.headers_mut().insert(NODE, state.node_header.clone());
        if is_http1 && (must_close || state.is_draining()) {
            response.headers_mut().insert(CONNECTION, CLOSE);
        }
        let error = response.extensions().get().map(|error: &AnsweredError| error.status);
        state.meters.answered(route.path, error.unwrap_or(response.status()).as_u16() / 100);
        response
    }

    /// Answers an authorized request. An agent's event gets a verdict even if it is not admitted.
    async fn admit(&mut self, route: &Route, request: Request) -> Response {
        let permit = match self.permit(route, request.method()) {
            Ok(permit) => permit,
            Err(error) => return self.answer_refused(request, error, self.guards()).await,
        };
        if let Err(error) = self.loaded(route).await {
            return self.answer_refused(request, error, RefusedGuards::NotLoaded).await;
        }
        if let Some(error) = routes::misaddressed(&request) {
            return self.answer_refused(request, error, RefusedGuards::Loaded).await;
        }
        self.forward(request, permit).await.unwrap_or_else(ApiError::into_response)
    }

    /// Boxed, because it is rare and large.
    async fn answer_refused(&self, request: Request, error: ApiError, guards: RefusedGuards) -> Response {
        Box::pin(routes::answer_refused(&self.context, request, error, guards)).await
    }

    /// Whether the guards of a request that is refused now are loaded.
    fn guards(&self) -> RefusedGuards {
        RefusedGuards::of(&self.context.daemon)
    }

    /// Authorizes a request.
    ///
    /// Returns an error if the client may not use the route.
    fn authorize(&self, auth: &ListenerAuth, route: &Route, request: &Request) -> Result<(), ApiError> {
        let right = route.right(request.method());
        if let Err(denial) = auth.authorize(request.uri(), request.headers(), right) {
            let control_socket =
                auth.is_event_socket().then_some(&*self.context.daemon.addresses.control_socket);
            return Err(denial.into_error(control_socket));
        }
        if right == AccessRight::Control && request.headers().contains_key(HOOK_EVENT_HEADER) {
            return Err(ApiError::own_hook());
        }
        Ok(())
    }

    /// Takes the permit of a request, if its route or its listener needs one.
    ///
    /// Returns an error if all permits of the listener are taken.
    fn permit(&self, route: &Route, method: &Method) -> Result<HeldPermit, ApiError> {
        let share = &self.context.share;
        if route.limit == RequestLimit::Counted {
            let permit = share.permit().inspect_err(|_| self.count_event(route))?;
            return Ok(HeldPermit::UntilAnswered(permit));
        }
        if share.counts_always(route.right(method)) {
            return share.permit().map(HeldPermit::UntilRead);
        }
        Ok(HeldPermit::None)
    }

    /// Counts an event that is turned away.
    fn count_event(&self, route: &Route) {
        if route.takes_events() {
            self.context.daemon.orchestrator.turned_away();
        }
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
            listener: auth.listener().as_str(),
            status: status.as_u16(),
            code: error.code(),
            method: method_name(method),
            route: route.path,
        };
        if self.context.daemon.denials.record(peer, denied) { ApiError::too_many_attempts() } else { error }
    }

    /// Waits until the workspaces are loaded, unless the route works without them: an earlier event would find no hooks.
    ///
    /// Returns an error if that takes longer than `limits.pending_deadline`, or if the daemon stops before.
    async fn loaded(&self, route: &Route) -> Result<(), ApiError> {
        if route.limit != RequestLimit::Counted {
            return Ok(());
        }
        self.context.daemon.loaded().await
    }

    /// Forwards a request to its route. It keeps its permit for as long as that says.
    async fn forward(&mut self, request: Request, permit: HeldPermit) -> Result<Response, ApiError> {
        // The hot path: nearly every request is one of these, and skips the router's lookup.
        if request.uri().path() == EVENTS && request.method() == Method::POST {
            return Box::pin(routes::send_event(State(self.context.clone()), request)).await;
        }
        let Ok(response) = self.router.call(request).await;
        Ok(match permit {
            HeldPermit::None | HeldPermit::UntilAnswered(_) => response,
            HeldPermit::UntilRead(permit) => response.map(|body| Body::new(CountedBody::new(body, permit))),
        })
    }
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
