//! One request and its answer. Owns what is sent and how much is read; refuses to repeat itself and to watch
//! the clock, which are its caller's part.

use bytes::Bytes;
use reqwest::{
    Client, Method, Request, StatusCode,
    header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue},
};

use super::{
    body::{ReadError, beginning, whole},
    failure::Setback,
};
use crate::{
    model::{Address, Ended, Event, Failure, HttpHandler, HttpMethod, RawReply},
    telemetry::HttpClass,
};

/// The header that names the event's kind.
const EVENT: HeaderName = HeaderName::from_static("x-hookyard-event");

/// The header that names the trace the event is in.
const TRACE: HeaderName = HeaderName::from_static("traceparent");

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Exchange<'h> {
    method: Method,
    pub(super) address: &'h Address,
    headers: HeaderMap,
    /// None for `GET`, which has no body.
    body: Option<Bytes>,
    /// The most bytes of an answer.
    cap: usize,
}

impl<'h> Exchange<'h> {
    /// The request of a handler for an event.
    ///
    /// Returns a failure if a header cannot be sent.
    pub(super) fn new(
        handler: &'h HttpHandler,
        event: &Event,
        envelope: Bytes,
        cap: usize,
    ) -> Result<Self, Failure> {
        let (method, body) = match handler.method {
            HttpMethod::Get => (Method::GET, None),
            HttpMethod::Post => (Method::POST, Some(envelope)),
            HttpMethod::Put => (Method::PUT, Some(envelope)),
            HttpMethod::Patch => (Method::PATCH, Some(envelope)),
            HttpMethod::Delete => (Method::DELETE, Some(envelope)),
        };
        let mut headers = HeaderMap::new();
        headers.insert(EVENT, HeaderValue::from_static(event.kind.as_str()));
        if let Some(trace) = event.trace
            && let Ok(value) = HeaderValue::try_from(trace.to_string())
        {
            headers.insert(TRACE, value);
        }
        if body.is_some() {
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &handler.headers {
            let (name, value) = header(name, value.expose())?;
            headers.insert(name, value);
        }
        Ok(Self { method, address: &handler.address, headers, body, cap })
    }

    /// Sends the request and reads the whole answer.
    pub(super) async fn send(self, client: &Client) -> Result<RawReply, Setback> {
        let Self { method, address, headers, body, cap } = self;
        let mut request = Request::new(method, address.url().clone());
        *request.headers_mut() = headers;
        *request.body_mut() = body.map(Into::into);
        let broken = |error: reqwest::Error| Setback::of(&error, &address.server());
        let mut response = client.execute(request).await.map_err(broken)?;
        let status = response.status();
        let body = if status.is_success() {
            whole(&mut response, cap).await.map_err(|e| match e {
                ReadError::TooLarge => too_large(status, cap),
                ReadError::Broken(e) => broken(e),
            })?
        } else {
            // The status is the answer, so what stands below it may be too long or broken.
            beginning(&mut response, cap).await
        };
        Ok(RawReply::Http { status: status.as_u16(), body })
    }
}

fn too_large(status: StatusCode, cap: usize) -> Setback {
    let message = format!("the server answered with more than the {cap} bytes it may");
    Setback {
        failure: Failure::new(Ended::OutputTooLarge, message),
        class: HttpClass::of_status(status.as_u16()),
        unseen: false,
    }
}

/// A header as it is sent. What is wrong with a value is told without the value, which may be a key.
fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let refused = |what: &str| Failure::new(Ended::Failed, format!("header `{name}` was not sent: {what}"));
    let known =
        HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused("this is no name for a header"))?;
    let mut value = HeaderValue::from_bytes(value.as_bytes())
        .map_err(|_| refused("its value has a line break or another control character"))?;
    value.set_sensitive(true);
    Ok((known, value))
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
