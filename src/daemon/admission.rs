//! What every request passes first: its id, its door, and whether there is room for it. Refuses to look at a body.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use axum::{
    Extension,
    extract::{MatchedPath, Request, State},
    http::{HeaderName, HeaderValue},
    middleware::Next,
    response::{IntoResponse, Response},
};

use tokio::sync::OwnedSemaphorePermit;

use super::{
    door::Door,
    error::ApiError,
    routes::{self, Room, Route},
    shared::Shared,
};
use crate::telemetry::ApiRequest;

/// The header with the id of a request, which is the client's own if it sends one.
const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The longest id of a request that is taken over, in bytes.
const LONGEST_ID: usize = 128;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Lets a request through to its route, and counts it.
pub(super) async fn admit(
    State(shared): State<Arc<Shared>>,
    Extension(door): Extension<Door>,
    path: Option<MatchedPath>,
    request: Request,
    next: Next,
) -> Response {
    let id = request_id(&shared, &request);
    let route = routes::named(path.as_ref().map(MatchedPath::as_str));
    let mut response = match let_in(&shared, &door, route, &request) {
        Ok(place) => {
            let loaded = if place.is_some() { shared.loaded().await } else { Ok(()) };
            match loaded {
                Ok(()) => next.run(request).await,
                Err(error) => error.into_response(),
            }
        }
        Err(error) => error.into_response(),
    };
    response.headers_mut().insert(REQUEST_ID, id);
    ApiRequest { route: route.path, class: response.status().as_u16() / 100 }.emit();
    response
}

/// A place among the requests that are worked on, if the request may come in.
fn let_in(
    shared: &Shared,
    door: &Door,
    route: Route,
    request: &Request,
) -> Result<Option<OwnedSemaphorePermit>, ApiError> {
    door.admit(request.uri(), request.headers(), route.openness)?;
    match route.room {
        Room::Always => Ok(None),
        Room::Limited => match Arc::clone(&shared.requests).try_acquire_owned() {
            Ok(place) => Ok(Some(place)),
            Err(_) => Err(ApiError::overloaded("as many requests are worked on as `limits.requests` allows")),
        },
    }
}

fn request_id(shared: &Shared, request: &Request) -> HeaderValue {
    let is_plain =
        |id: &&HeaderValue| id.len() <= LONGEST_ID && id.as_bytes().iter().all(u8::is_ascii_graphic);
    let given = request.headers().get(&REQUEST_ID).filter(|id| !id.is_empty()).filter(is_plain);
    given.cloned().unwrap_or_else(|| {
        let id = format!("{:08x}-{}", shared.life, NEXT.fetch_add(1, Ordering::Relaxed));
        HeaderValue::from_str(&id).unwrap_or(HeaderValue::from_static("unknown"))
    })
}
