//! Authorizes requests: the users that may connect, the right that an operation needs, and the rights that a listener or a
//! token grants.

use std::{net::IpAddr, os::fd::AsFd, sync::Arc};

use axum::http::{
    HeaderMap, Uri,
    header::{AUTHORIZATION, HOST, ORIGIN},
};
use rustix::process::{Pid, geteuid};
use tokio::net::unix::UCred;

pub(super) use super::access::{AccessRight, Denial};
use super::{
    access::SEC_FETCH_SITE,
    page::PageSessions,
    tokens::{StreamAccess, TcpTokens, Token, TokenPair},
};
use crate::{
    handler::command::{self, Lineage},
    platform::has_peer_ended,
};

/// What a listener is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerKind {
    EventSocket,
    ControlSocket,
    LinesSocket,
    Tcp,
    Metrics,
}

impl ListenerKind {
    /// The name in the log, the audit and metrics.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::EventSocket => "event_socket",
            Self::ControlSocket => "control_socket",
            Self::LinesSocket => "lines_socket",
            Self::Tcp => "tcp",
            Self::Metrics => "metrics",
        }
    }
}

/// How a listener authorizes its requests.
#[derive(Debug, Clone)]
pub(super) enum ListenerAuth {
    /// The event socket, whose peer's user was checked when it connected: everything but control.
    EventSocket,
    /// The control socket, whose peer's user was checked when it connected: everything, unless the peer is a hook.
    ControlSocket(Lineage),
    /// A TCP address.
    Tcp(Arc<TcpTokens>),
    /// A TCP address that serves metrics and health only.
    MetricsOnly {
        /// Whether only this machine reaches it.
        is_local: bool,
    },
}

impl ListenerAuth {
    /// What its listener is for.
    pub(super) fn listener(&self) -> ListenerKind {
        match self {
            Self::EventSocket => ListenerKind::EventSocket,
            Self::ControlSocket(_) => ListenerKind::ControlSocket,
            Self::Tcp(_) => ListenerKind::Tcp,
            Self::MetricsOnly { .. } => ListenerKind::Metrics,
        }
    }

    /// Whether it is the event socket.
    pub(super) fn is_event_socket(&self) -> bool {
        matches!(self, Self::EventSocket)
    }

    /// What a request for a stream is authorized by, if that can end.
    pub(super) fn stream_access(&self, uri: &Uri, headers: &HeaderMap) -> Option<StreamAccess> {
        match self {
            Self::Tcp(tokens) if PageSessions::are_meant(headers) => {
                tokens.sessions.stream(uri, headers).map(|stream| StreamAccess::Session(Arc::new(stream)))
            }
            Self::Tcp(tokens) => Some(StreamAccess::Tokens(tokens.current().replaced())),
            Self::EventSocket | Self::ControlSocket(_) | Self::MetricsOnly { .. } => None,
        }
    }

    /// Authorizes a request of an operation that needs this right.
    ///
    /// Returns an error if the client does not have it.
    pub(super) fn authorize(&self, uri: &Uri, headers: &HeaderMap, right: AccessRight) -> Result<(), Denial> {
        match self {
            Self::MetricsOnly { .. } if right > AccessRight::Metrics || right == AccessRight::Page => {
                Err(Denial::NotServed)
            }
            Self::EventSocket if right == AccessRight::Control => Err(Denial::NoControl),
            Self::ControlSocket(lineage) if right == AccessRight::Control => check_lineage(*lineage),
            Self::MetricsOnly { is_local: true } => check_local_request(uri, headers),
            Self::MetricsOnly { is_local: false } => check_no_web_page(headers),
            Self::EventSocket | Self::ControlSocket(_) => Ok(()),
            Self::Tcp(tokens) if right == AccessRight::Page => check_page(&tokens.current(), uri, headers),
            Self::Tcp(tokens) if PageSessions::are_meant(headers) => {
                tokens.sessions.authorize(uri, headers, right)
            }
            Self::Tcp(tokens) => authorize_tcp(&tokens.current(), uri, headers, right),
        }
    }
}

fn authorize_tcp(
    tokens: &TokenPair,
    uri: &Uri,
    headers: &HeaderMap,
    right: AccessRight,
) -> Result<(), Denial> {
    let sent = bearer(headers);
    let is_sent = |token: &Token| sent.is_some_and(|sent| token.matches(sent));
    if tokens.control.as_ref().is_some_and(is_sent) {
        return Ok(());
    }
    let Some(events) = &tokens.events else {
        check_local_request(uri, headers)?;
        return match right {
            AccessRight::Page | AccessRight::Health | AccessRight::Metrics | AccessRight::Events => Ok(()),
            AccessRight::Read => Err(Denial::NoReadWithoutToken),
            AccessRight::Control if tokens.control.is_some() && sent.is_some() => Err(Denial::WrongToken),
            AccessRight::Control => Err(Denial::NoControl),
        };
    };
    match right {
        AccessRight::Page | AccessRight::Health => Ok(()),
        _ if sent.is_none() => Err(Denial::MissingToken),
        _ if !is_sent(events) => Err(Denial::WrongToken),
        AccessRight::Control => Err(Denial::NoControl),
        _ => Ok(()),
    }
}

fn check_lineage(lineage: Lineage) -> Result<(), Denial> {
    match lineage {
        Lineage::Other => Ok(()),
        Lineage::Hook => Err(Denial::Hook),
        Lineage::Unknown => Err(Denial::UnknownProcess),
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

/// Rejects what a web page makes its reader's browser send: such a request has an `Origin` or `Sec-Fetch-Site`.
fn check_no_web_page(headers: &HeaderMap) -> Result<(), Denial> {
    // `none` is an address that the user opened: no page reads the answer.
    let from_web_page = headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "none");
    if from_web_page || headers.contains_key(ORIGIN) { Err(Denial::WebPage) } else { Ok(()) }
}

/// Also rejects what a page sends by DNS rebinding, with a `Host` of its own that resolves to this machine.
fn check_local_request(uri: &Uri, headers: &HeaderMap) -> Result<(), Denial> {
    check_no_web_page(headers)?;
    check_local_host(uri, headers)
}

/// The page may be linked to from anywhere. Without a token for events, the address is for this machine.
fn check_page(tokens: &TokenPair, uri: &Uri, headers: &HeaderMap) -> Result<(), Denial> {
    if tokens.events.is_some() { Ok(()) } else { check_local_host(uri, headers) }
}

fn check_local_host(uri: &Uri, headers: &HeaderMap) -> Result<(), Denial> {
    let mut hosts = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    // HTTP/2 sends the host in `:authority`.
    let is_here = uri.authority().is_none_or(|host| is_loopback(host.as_str())) && hosts.all(is_loopback);
    if is_here { Ok(()) } else { Err(Denial::ForeignHost) }
}

fn is_loopback(host: &str) -> bool {
    let has_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let name = match host.rsplit_once(':') {
        Some((name, port)) if has_port(port) && (name.starts_with('[') || !name.contains(':')) => name,
        _ => host,
    };
    let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    name.eq_ignore_ascii_case("localhost")
        || address.is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether a peer may connect: the daemon's own user, and root, who could replace the daemon anyway.
pub(super) fn admits(peer: UCred) -> bool {
    peer.uid() == geteuid().as_raw() || peer.uid() == 0
}

/// Whether the peer of the control socket is a hook. Where this user cannot see the process of root, it is none: a hook
/// runs as this user.
pub(super) fn lineage(stream: &impl AsFd, peer: UCred) -> Lineage {
    let pid = peer.pid().filter(|pid| *pid > 0).and_then(Pid::from_raw);
    let known = match pid.map_or(Lineage::Unknown, command::lineage) {
        // What was looked at may be another process, which has got the id of the peer.
        _ if has_peer_ended(stream) => Lineage::Unknown,
        known => known,
    };
    match known {
        Lineage::Unknown if peer.uid() == 0 && !geteuid().is_root() => Lineage::Other,
        known => known,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_is_this_machine() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:8787", "127.9.9.9", "[::1]:1", "[::1]", "::1"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["", "example.com", "localhost.example.com:80", "127.0.0.1.example.com", "10.0.0.1", "[::2]"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
