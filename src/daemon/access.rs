//! What clients may do, and why they may not.

use std::path::Path;

use axum::http::{HeaderName, StatusCode};

use super::error::ApiError;

/// The header that browsers add to every request, also to those without an `Origin`.
pub(super) const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What a client may do. Each right includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum AccessRight {
    /// Load the page, which shows nothing before its reader has signed in, and sign in.
    Page,
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
            Self::Page => "page",
            Self::Health => "health",
            Self::Metrics => "metrics",
            Self::Events => "events",
            Self::Read => "read",
            Self::Control => "control",
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
    /// The session of the page has ended, or the request is not of the page.
    SignedOut,
    /// The session of the page may only read.
    ReadOnlySession,
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
            Self::SignedOut => {
                let hint = "sign in with the link that `hookyard ui` prints";
                let message = "the session of the page has ended";
                ApiError::new(StatusCode::UNAUTHORIZED, "signed_out", message, hint)
            }
            Self::ReadOnlySession => {
                let hint = "sign in with the link that `hookyard ui --control` prints";
                let message = "this operation changes the daemon, and this session may only read";
                ApiError::new(StatusCode::FORBIDDEN, "needs_control", message, hint)
            }
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

fn unauthorized(message: &str) -> ApiError {
    let hint = "send the header `Authorization: Bearer TOKEN` with the token of `listen.token_file`";
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message, hint)
}

fn forbidden(message: &str) -> ApiError {
    let hint = "an address without a token is for programs, and a local one for those of this machine; set `listen.token_file` to admit others to `listen.tcp`";
    ApiError::new(StatusCode::FORBIDDEN, "forbidden", message, hint)
}
