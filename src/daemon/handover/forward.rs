//! Forwards requests that come on open connections of a daemon that was replaced to the one that has taken over.

use axum::{
    body::{Body, Bytes},
    extract::Request,
    http::{
        HeaderValue, Uri, Version,
        header::{AUTHORIZATION, CONNECTION, CONTENT_LENGTH, COOKIE, HOST, TRANSFER_ENCODING, UPGRADE},
        request::Parts,
    },
    response::{IntoResponse, Response},
};
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;
use tokio::net::UnixStream;

use crate::daemon::{
    auth::AccessRight,
    error::ApiError,
    request_body::{self, BodyFailure},
    routes::{self, RefusedGuards},
    state::{DaemonState, RequestContext},
};

/// Forwards a request that is authorized to the event socket, on a connection of its own, and returns the response. What
/// needs control is refused: it can be sent again. If the other daemon does not answer, an agent's event gets a verdict.
pub(in crate::daemon) async fn forward(
    context: &RequestContext,
    right: AccessRight,
    request: Request,
) -> Response {
    if right == AccessRight::Control {
        return ApiError::shutting_down().into_response();
    }
    let (parts, body) = request.into_parts();
    if right != AccessRight::Events {
        let request = Request::from_parts(parts, body);
        return send(&context.daemon, request).await.unwrap_or_else(ApiError::into_response);
    }
    let bounds = context.share.event_bounds(&context.daemon.settings);
    let (bytes, error) = match request_body::read_or_beginning(&parts.headers, body, bounds).await {
        Ok(body) => {
            match send(&context.daemon, with_body(parts.clone(), Bytes::copy_from_slice(&body))).await {
                Ok(response) => return response,
                Err(error) => (body.into_bytes(), error),
            }
        }
        Err(BodyFailure { error, beginning }) => (beginning, error),
    };
    routes::answer_refused(context, with_body(parts, bytes), error, RefusedGuards::Loaded).await
}

fn with_body(mut parts: Parts, bytes: Bytes) -> Request {
    // The new body says its length itself.
    parts.headers.remove(CONTENT_LENGTH);
    Request::from_parts(parts, Body::from(bytes))
}

async fn send(state: &DaemonState, mut request: Request) -> Result<Response, ApiError> {
    // No hook has run until the request is sent.
    let stream = UnixStream::connect(&state.addresses.socket).await.map_err(|_| ApiError::shutting_down())?;
    let connected = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = connected.map_err(|_| ApiError::shutting_down())?;
    // Ends with the response, or with the request if its client goes away.
    tokio::spawn(connection);
    let path = request.uri().path_and_query().map_or("/", |path| path.as_str());
    *request.uri_mut() = Uri::try_from(path).unwrap_or_default();
    *request.version_mut() = Version::HTTP_11;
    let headers = request.headers_mut();
    // Those of the connection that the request came on. Its token was checked.
    for header in [AUTHORIZATION, COOKIE, CONNECTION, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(header);
    }
    headers.insert(HOST, HeaderValue::from_static("hookyard"));
    let mut response = sender.send_request(request).await.map_err(|_| ApiError::interrupted())?;
    // Those of the connection to the other daemon.
    response.headers_mut().remove(CONNECTION);
    response.headers_mut().remove(TRANSFER_ENCODING);
    Ok(response.map(Body::new).into_response())
}
