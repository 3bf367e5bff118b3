//! Authorizes requests: the users that may connect, the right that an operation needs, and the rights that a listener or a
//! token grants.

use std::{net::IpAddr, os::fd::AsFd, path::Path, sync::Arc};

use axum::http::{
    HeaderMap, HeaderName, StatusCode, Uri,
    header::{AUTHORIZATION, HOST, ORIGIN},
};
use rustix::process::{Pid, geteuid};
use tokio::net::unix::UCred;
use tokio_util::sync::CancellationToken;

use super::{
    error::ApiError,
    tokens::{TcpTokens, Token, TokenPair},
};
use crate::{
    handler::command::{self, Lineage},
    platform::has_peer_ended,
};

/// The header that browsers add to every request, also to those without an `Origin`.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a client may do. Each right includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AccessRight {
    /// Ask whether the daemon is alive and ready.
    Health,
    /// Scrape metrics, which show the names of hooks.
    Metrics,
    /// Send events.
    Events,
    /// Read status, hooks, runs and outcomes.
    Read,
    /// Change what the daemon does: its workspaces, its hooks and its runs.
    Control,
}

impl AccessRight {
    /// The name in the API description.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Health => "health",
            Self::Metrics => "metrics",
            Self::Events => "events",
            Self::Read => "read",
            Self::Control => "control",
        }
    }
}

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

    /// Cancelled when a token that is valid now is no longer.
    pub(super) fn tokens_replaced(&self) -> Option<CancellationToken> {
        match self {
            Self::Tcp(tokens) => Some(tokens.current().replaced()),
            Self::EventSocket | Self::ControlSocket(_) | Self::MetricsOnly { .. } => None,
        }
    }

    /// Authorizes a request of an operation that needs this right.
    ///
    /// Returns an error if the client does not have it.
    pub(super) fn authorize(&self, uri: &Uri, headers: &HeaderMap, right: AccessRight) -> Result<(), Denial> {
        match self {
            Self::MetricsOnly { .. } if right > AccessRight::Metrics => Err(Denial::NotServed),
            Self::EventSocket if right == AccessRight::Control => Err(Denial::NoControl),
            Self::ControlSocket(lineage) if right == AccessRight::Control => check_lineage(*lineage),
            Self::MetricsOnly { is_local: true } => check_local_request(uri, headers),
            Self::MetricsOnly { is_local: false } => check_no_web_page(headers),
            Self::EventSocket | Self::ControlSocket(_) => Ok(()),
            Self::Tcp(tokens) => authorize_tcp(&tokens.current(), uri, headers, right),
        }
    }
}

/// Why a client may not use an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Denial {
    /// The address serves metrics and health only.
    NotServed,
    /// The operation needs a token.
    MissingToken,
    /// The token is not one of the daemon's.
    WrongToken,
    /// A browser sent the request for a web page.
    WebPage,
    /// The `Host` is not this machine.
    ForeignHost,
    /// An address without a token takes events only.
    NoReadWithoutToken,
    /// The operation changes the daemon, and neither the listener nor the token permits that.
    NoControl,
    /// The process is a hook, or was started by one.
    Hook,
    /// The process cannot be told from a hook.
    UnknownProcess,
}

impl Denial {
    /// The error for the client. A process of this user, which can see the control socket anyway, is given its path.
    pub(super) fn into_error(self, control_socket: Option<&Path>) -> ApiError {
        match self {
            Self::NotServed => {
                let hint = "use the socket, or the address of `listen.tcp`";
                ApiError::not_found("no_route", "this address serves metrics and health only", hint)
            }
            Self::MissingToken => unauthorized("the bearer token is missing"),
            Self::WrongToken => unauthorized("the bearer token is wrong"),
            Self::WebPage => forbidden("the request comes from a web page"),
            Self::ForeignHost => forbidden("the `Host` of the request is not this machine"),
            Self::NoReadWithoutToken => {
                let hint = "use the event socket, or set `listen.token_file` and send its token";
                let message = "without a token, this address takes events and serves metrics and health only";
                ApiError::new(StatusCode::FORBIDDEN, "needs_token", message, hint)
            }
            Self::NoControl => {
                let socket = control_socket.map(|path| format!(" {}", path.display())).unwrap_or_default();
                let hint = format!(
                    "send it to the control socket{socket}, or over TCP with the token of `listen.control_token_file`"
                );
                let message = "this operation changes the daemon, which needs the right to control it";
                ApiError::new(StatusCode::FORBIDDEN, "needs_control", message, hint)
            }
            Self::Hook => {
                let message = "the request comes from a hook, or from a process that a hook started";
                let hint = "control the daemon from outside its hooks";
                ApiError::new(StatusCode::FORBIDDEN, "hook_without_control", message, hint)
            }
            Self::UnknownProcess => {
                let message = "the process cannot be told from a hook: it has ended, hides its environment, or is in \
                               another process namespace";
                let hint = "use a process of the daemon's namespace, or TCP with the token of `listen.control_token_file`";
                ApiError::new(StatusCode::FORBIDDEN, "unknown_process", message, hint)
            }
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
            AccessRight::Health | AccessRight::Metrics | AccessRight::Events => Ok(()),
            AccessRight::Read => Err(Denial::NoReadWithoutToken),
            AccessRight::Control if tokens.control.is_some() && sent.is_some() => Err(Denial::WrongToken),
            AccessRight::Control => Err(Denial::NoControl),
        };
    };
    match right {
        AccessRight::Health => Ok(()),
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

fn unauthorized(message: &str) -> ApiError {
    let hint = "send the header `Authorization: Bearer TOKEN` with the token of `listen.token_file`";
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message, hint)
}

fn forbidden(message: &str) -> ApiError {
    let hint = "an address without a token is for programs, and a local one for those of this machine; set `listen.token_file` to admit others to `listen.tcp`";
    ApiError::new(StatusCode::FORBIDDEN, "forbidden", message, hint)
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
