//! Why there is no response, for operators, and the beginnings of those that are not wanted. Messages repeat neither
//! addresses, whose queries may hold keys, nor header values.

use std::{error::Error, io};

use bytes::{Bytes, BytesMut};
use reqwest::Response;

use super::RefusedTarget;
use crate::{
    model::{Ended, Failure},
    telemetry::HttpClass,
};

/// A request without a whole response.
#[derive(Debug)]
#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only http hooks count and repeat requests"))]
pub(in crate::handler) struct RequestError {
    pub(in crate::handler) failure: Failure,
    pub(in crate::handler) class: HttpClass,
    /// The server never saw the request, so that it may be repeated.
    pub(in crate::handler) never_sent: bool,
}

impl RequestError {
    /// Classifies an error of a request to `server`, which is a name without path and query.
    pub(in crate::handler) fn of(error: &reqwest::Error, server: &str) -> Self {
        let class = classify(error);
        let cause = causes(error).last().map(ToString::to_string).unwrap_or_default();
        let message = match class {
            HttpClass::NotAllowed => format!("connections to {server} are not allowed: {cause}"),
            HttpClass::Dns => format!("the name of {server} cannot be resolved: {cause}"),
            HttpClass::Tls => format!("no trusted connection to {server}: {cause}"),
            HttpClass::Timeout => format!("no connection to {server} in time: {cause}"),
            HttpClass::Connect | HttpClass::Refused => format!("no connection to {server}: {cause}"),
            _ => format!("the answer of {server} broke off: {cause}"),
        };
        let ended = if class == HttpClass::Timeout { Ended::TimedOut } else { Ended::Failed };
        Self {
            failure: Failure::new(ended, message),
            class,
            never_sent: error.is_connect() && class != HttpClass::NotAllowed,
        }
    }
}

fn classify(error: &reqwest::Error) -> HttpClass {
    if error.is_timeout() {
        return HttpClass::Timeout;
    }
    if causes(error).any(is_tls) {
        return HttpClass::Tls;
    }
    if causes(error).any(is_refused_target) {
        return HttpClass::NotAllowed;
    }
    if !error.is_connect() {
        return HttpClass::Broken;
    }
    // The connector's own error type is private; its text is all there is.
    if causes(error).any(|cause| cause.to_string() == "dns error") {
        return HttpClass::Dns;
    }
    if causes(error).any(is_refusal) { HttpClass::Refused } else { HttpClass::Connect }
}

fn is_refused_target(cause: &(dyn Error + 'static)) -> bool {
    cause.is::<RefusedTarget>()
}

fn is_refusal(cause: &(dyn Error + 'static)) -> bool {
    cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
}

/// An `io::Error` does not name what it wraps as its source, but that one's source; and one may wrap another.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => is_tls(wrapped),
        None => cause.is::<rustls::Error>(),
    }
}

/// An error and its sources, outermost first.
fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
}

/// Reads at most the first `cap` bytes of a body, and fewer if it breaks off.
pub(in crate::handler) async fn read_beginning(response: &mut Response, cap: usize) -> Bytes {
    let mut body = BytesMut::new();
    while let Ok(Some(mut chunk)) = response.chunk().await {
        chunk.truncate(cap - body.len());
        body.extend_from_slice(&chunk);
        if body.len() == cap {
            break;
        }
    }
    body.freeze()
}
