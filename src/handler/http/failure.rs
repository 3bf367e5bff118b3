//! What went wrong with a request, for operators. Owns the words and the class that is counted; refuses to repeat
//! addresses, whose queries may hold keys, and header values.

use std::{error::Error, io};

use crate::{
    model::{Ended, Failure},
    telemetry::HttpClass,
};

/// A request that brought no whole answer.
#[derive(Debug)]
pub(in crate::handler) struct Setback {
    pub(in crate::handler) failure: Failure,
    pub(in crate::handler) class: HttpClass,
    /// Whether the server never saw the request.
    pub(in crate::handler) unseen: bool,
}

impl Setback {
    /// What an error of a request means.
    pub(in crate::handler) fn of(error: &reqwest::Error, server: &str) -> Self {
        let class = class(error);
        let cause = causes(error).last().map(ToString::to_string).unwrap_or_default();
        let message = match class {
            HttpClass::Dns => format!("the name of {server} cannot be resolved: {cause}"),
            HttpClass::Tls => format!("no trusted connection to {server}: {cause}"),
            HttpClass::Timeout => format!("no connection to {server} in time: {cause}"),
            HttpClass::Connect | HttpClass::Refused => format!("no connection to {server}: {cause}"),
            _ => format!("the answer of {server} broke off: {cause}"),
        };
        let ended = if class == HttpClass::Timeout { Ended::TimedOut } else { Ended::Failed };
        Self { failure: Failure::new(ended, message), class, unseen: error.is_connect() }
    }
}

fn class(error: &reqwest::Error) -> HttpClass {
    if error.is_timeout() {
        return HttpClass::Timeout;
    }
    if causes(error).any(is_tls) {
        return HttpClass::Tls;
    }
    if !error.is_connect() {
        return HttpClass::Broken;
    }
    // The connector's own error type is private; its text is all there is.
    if causes(error).any(|cause| cause.to_string() == "dns error") {
        return HttpClass::Dns;
    }
    let refused = |cause: &(dyn Error + 'static)| {
        cause.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::ConnectionRefused)
    };
    if causes(error).any(refused) { HttpClass::Refused } else { HttpClass::Connect }
}

/// An `io::Error` does not name what it wraps as its source, but that one's source; and one may wrap another.
fn is_tls(cause: &(dyn Error + 'static)) -> bool {
    match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        Some(wrapped) => is_tls(wrapped),
        None => cause.is::<rustls::Error>(),
    }
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
}
