//! Authorizes requests by the listener they came in on: peer user, bearer token, or loopback without web pages.

use std::{
    fmt,
    net::{IpAddr, SocketAddr},
    path::{Path, PathBuf},
    sync::Arc,
};

use axum::http::{
    HeaderMap, HeaderName, StatusCode, Uri,
    header::{AUTHORIZATION, HOST, ORIGIN},
};

use super::error::ApiError;
use crate::config;

/// The shortest token, in bytes. Shorter ones can be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// The header that browsers add to every request, also to those without an `Origin`.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why the token cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token file cannot be used.
    #[error("the token file {} {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Other machines could send requests without a token.
    #[error("`listen.tcp` is {0}, which other machines can reach; set `listen.token_file`")]
    Needed(SocketAddr),
}

/// The bearer token that clients have to send.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl Token {
    /// Reads a token: one line of a file that only its owner can read.
    pub(super) fn read(path: &Path) -> Result<Self, TokenError> {
        let wrong = |why: String| TokenError::File { path: path.to_owned(), why };
        let bytes = config::read_private(path, 4096).map_err(wrong)?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".to_owned()))?;
        let token = text.trim();
        if token.len() < MIN_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let why = format!(
                "has no token: write one line of at least {MIN_TOKEN_BYTES} printable ASCII characters into it"
            );
            return Err(wrong(why));
        }
        Ok(Self(token.into()))
    }

    /// Compares in constant time.
    fn matches(&self, sent: &str) -> bool {
        let own = self.0.as_bytes();
        let sent = sent.as_bytes();
        let different = own.iter().zip(sent).fold(0, |different, (a, b)| different | (a ^ b));
        own.len() == sent.len() && different == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// How a listener authorizes its requests.
#[derive(Debug, Clone)]
pub(super) enum ListenerAuth {
    /// The Unix socket, whose peer's user was checked when it connected.
    PeerUser,
    /// A loopback address without a token: programs of this machine, but no web pages.
    Loopback,
    /// A TCP address with a token.
    BearerToken(Token),
    /// A TCP address that serves metrics and health only.
    MetricsOnly,
}

impl ListenerAuth {
    /// How a TCP listener authorizes requests, with or without a token.
    ///
    /// Returns an error if other machines can reach it and there is no token.
    pub(super) fn for_tcp(address: SocketAddr, token: Option<Token>) -> Result<Self, TokenError> {
        match token {
            Some(token) => Ok(Self::BearerToken(token)),
            None if address.ip().to_canonical().is_loopback() => Ok(Self::Loopback),
            None => Err(TokenError::Needed(address)),
        }
    }

    /// Authorizes a request of a route.
    ///
    /// Returns an error if the client may not use it.
    pub(super) fn authorize(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        access: RouteAccess,
    ) -> Result<(), ApiError> {
        match self {
            Self::MetricsOnly if access == RouteAccess::Restricted => {
                let hint = "use the socket, or the address of `listen.tcp`";
                Err(ApiError::not_found("no_route", "this address serves metrics and health only", hint))
            }
            Self::PeerUser | Self::MetricsOnly => Ok(()),
            Self::BearerToken(_) if access == RouteAccess::Public => Ok(()),
            Self::BearerToken(token) => match bearer(headers) {
                Some(sent) if token.matches(sent) => Ok(()),
                sent => Err(unauthorized(sent.is_some())),
            },
            Self::Loopback => check_local_request(uri, headers),
        }
    }
}

/// Who may use a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteAccess {
    /// Those who may send events, and scrapers at the metrics address: it shows the names of hooks.
    Metrics,
    /// Everybody, without a token.
    Public,
    /// Those who may send events.
    Restricted,
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn unauthorized(sent: bool) -> ApiError {
    let message = if sent { "the bearer token is wrong" } else { "the bearer token is missing" };
    let hint = "send the header `Authorization: Bearer TOKEN` with the token of `listen.token_file`";
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message, hint)
}

/// Rejects what a web page makes its reader's browser send: such a request has an `Origin` or `Sec-Fetch-Site`, or, by
/// DNS rebinding, a `Host` of the page's own that resolves to this machine.
fn check_local_request(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    // `none` is an address that the user opened: no page reads the answer.
    let from_web_page = headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "none");
    if from_web_page || headers.contains_key(ORIGIN) {
        return Err(forbidden("the request comes from a web page"));
    }
    let mut hosts = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    // HTTP/2 sends the host in `:authority`.
    let is_here = uri.authority().is_none_or(|host| is_loopback(host.as_str())) && hosts.all(is_loopback);
    if is_here { Ok(()) } else { Err(forbidden("the `Host` of the request is not this machine")) }
}

fn forbidden(message: &str) -> ApiError {
    let hint = "this address is for programs of this machine; set `listen.token_file` to admit others";
    ApiError::new(StatusCode::FORBIDDEN, "forbidden", message, hint)
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

    #[test]
    fn a_token_is_compared_as_a_whole() {
        let token = Token("0123456789abcdef".into());
        assert!(token.matches("0123456789abcdef"));
        for wrong in ["", "0123456789abcdeg", "0123456789abcde", "0123456789abcdef0"] {
            assert!(!token.matches(wrong), "{wrong}");
        }
        assert_eq!(format!("{token:?}"), "Token(…)");
    }
}
