//! One attempt of an http hook: the request that is sent and the response that is read. The caller repeats it and
//! enforces the deadline.

use bytes::Bytes;
use reqwest::{
    Client, Method, Request, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use crate::{
    handler::http_client::{BodyError, RequestError, read_beginning, read_whole},
    model::{Address, Ended, Event, Failure, HttpHandler, HttpMethod, RawReply},
    telemetry::HttpClass,
};

/// The header that names the event's kind.
const EVENT_HEADER: HeaderName = HeaderName::from_static("x-hookyard-event");

/// The header of the W3C trace context.
const TRACE_HEADER: HeaderName = HeaderName::from_static("traceparent");

/// A request of an http hook for one event, ready to be sent and cheap to clone for another attempt.
#[derive(Debug, Clone)]
pub(super) struct PreparedRequest<'h> {
    method: Method,
    pub(super) address: &'h Address,
    headers: HeaderMap,
    /// `None` for `GET`, which has no body.
    body: Option<Bytes>,
    /// The most bytes of a response body.
    max_body: usize,
}

impl<'h> PreparedRequest<'h> {
    /// Builds the request of a handler for an event.
    ///
    /// Returns a failure if a header cannot be sent.
    pub(super) fn new(
        handler: &'h HttpHandler,
        event: &Event,
        envelope: Bytes,
        max_body: usize,
    ) -> Result<Self, Failure> {
        let (method, body) = match handler.method {
            HttpMethod::Get => (Method::GET, None),
            HttpMethod::Post => (Method::POST, Some(envelope)),
            HttpMethod::Put => (Method::PUT, Some(envelope)),
            HttpMethod::Patch => (Method::PATCH, Some(envelope)),
            HttpMethod::Delete => (Method::DELETE, Some(envelope)),
        };
        let mut headers = HeaderMap::new();
        headers.insert(EVENT_HEADER, HeaderValue::from_static(event.kind.as_str()));
        if let Some(trace) = event.trace
            && let Ok(value) = HeaderValue::try_from(trace.to_string())
        {
            headers.insert(TRACE_HEADER, value);
        }
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &handler.headers {
            let (name, value) = header(name, value.expose())?;
            headers.insert(name, value);
        }
        Ok(Self { method, address: &handler.address, headers, body, max_body })
    }

    /// Sends the request and reads the response. The body of an error status is cut off at the limit; a longer body
    /// of a success is an error.
    pub(super) async fn send(self, client: &Client) -> Result<RawReply, RequestError> {
        let Self { method, address, headers, body, max_body } = self;
        let mut request = Request::new(method, address.url().clone());
        *request.headers_mut() = headers;
        *request.body_mut() = body.map(Into::into);
        let broken = |error: reqwest::Error| RequestError::of(&error, &address.server());
        let mut response = client.execute(request).await.map_err(broken)?;
        let status = response.status();
        let body = if status.is_success() {
            read_whole(&mut response, max_body).await.map_err(|e| match e {
                BodyError::TooLarge => too_large(status, max_body),
                BodyError::Broken(e) => broken(e),
            })?
        } else {
            // The status decides, so the body may be too long or broken.
            read_beginning(&mut response, max_body).await
        };
        Ok(RawReply::Http { status: status.as_u16(), body })
    }
}

fn too_large(status: StatusCode, max_body: usize) -> RequestError {
    let message = format!("the server answered with more than the {max_body} bytes it may");
    RequestError {
        failure: Failure::new(Ended::OutputTooLarge, message),
        class: HttpClass::of_status(status.as_u16()),
        never_sent: false,
    }
}

/// Converts a header. Errors do not repeat the value, which may be a key.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let known = HeaderName::from_bytes(name.as_bytes())
        .map_err(|_| header_not_sent(name, "this is not a valid header name"))?;
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| header_not_sent(name, "its value has a line break or another control character"))?;
    value.set_sensitive(true);
    Ok((known, value))
}

fn header_not_sent(name: &str, why: &str) -> Failure {
    Failure::new(Ended::Failed, format!("header `{name}` was not sent: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_cannot_be_sent_is_not_repeated() {
        for value in ["k3y\r\nX-Evil: 1", "k3y\0", "k3y\n", "k3y\u{7f}"] {
            let failure = header("X-Key", value).unwrap_err();
            assert!(failure.message.contains("`X-Key` was not sent"), "{failure:?}");
            assert!(!failure.message.contains("k3y"), "{failure:?}");
        }
        assert!(header("X-Key", "k3y\tünï").is_ok());
    }
}
