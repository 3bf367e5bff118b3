//! Through which door a request came, and whether it may come in. Owns tokens and what browsers are told; refuses to
//! say more than that something is missing.

use std::{
    fmt, io,
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

/// The shortest token, in bytes: shorter ones can be guessed.
const MIN_TOKEN_BYTES: usize = 16;

/// What browsers say of every request, also of one without an origin.
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// Its file cannot be used.
    #[error("the token file {} {why}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// Everybody could ask.
    #[error("`listen.tcp` is {0}, which other machines reach; it needs a `listen.token_file`")]
    Needed(SocketAddr),
}

/// What clients have to send.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl Token {
    /// Reads a token: one line of a file that is closed to others.
    pub(super) fn read(path: &Path) -> Result<Self, TokenError> {
        let wrong = |why: String| TokenError::File { path: path.to_owned(), why };
        let bytes = config::read_private(path, 4096).map_err(wrong)?;
        let text = String::from_utf8(bytes).map_err(|_| wrong("is not UTF-8".to_owned()))?;
        let token = text.trim();
        if token.len() < MIN_TOKEN_BYTES || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            let why = format!(
                "has no token: write one line of at least {MIN_TOKEN_BYTES} letters, digits and signs into it"
            );
            return Err(wrong(why));
        }
        Ok(Self(token.into()))
    }

    /// Takes as long for a wrong token as for a right one.
    fn matches(&self, sent: &str) -> bool {
        let (own, sent) = (self.0.as_bytes(), sent.as_bytes());
        let different = own.iter().zip(sent).fold(0, |different, (a, b)| different | (a ^ b));
        own.len() == sent.len() && different == 0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// Where a request came in.
#[derive(Debug, Clone)]
pub(super) enum ListenerAuth {
    /// The Unix socket, where the peer's user has been looked at.
    Unix,
    /// A TCP address that only this machine reaches.
    Loopback,
    /// A TCP address where a token is asked for.
    BearerToken(Token),
    /// A TCP address where only metrics are.
    Metrics,
}

impl ListenerAuth {
    /// Lets a request in. `open` ones tell nobody anything, and need no token.
    ///
    /// Returns an error if it may not come in.
    pub(super) fn authorize(
        &self,
        uri: &Uri,
        headers: &HeaderMap,
        access: RouteAccess,
    ) -> Result<(), ApiError> {
        match self {
            Self::Metrics if access == RouteAccess::Restricted => {
                let hint = "ask at the socket, or at the address of `listen.tcp`";
                Err(ApiError::not_found("no_route", "only metrics and health are at this address", hint))
            }
            Self::Unix | Self::Metrics => Ok(()),
            Self::BearerToken(_) if access == RouteAccess::Public => Ok(()),
            Self::BearerToken(token) => match bearer(headers) {
                Some(sent) if token.matches(sent) => Ok(()),
                sent => Err(unauthorized(sent.is_some())),
            },
            Self::Loopback => check_local_request(uri, headers),
        }
    }
}

/// Whether a route is for everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RouteAccess {
    /// It is for those who watch, too: it tells the names of hooks and how they fare.
    Metrics,
    /// It is.
    Public,
    /// It is for those who may send events.
    Restricted,
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn unauthorized(sent: bool) -> ApiError {
    let message = if sent { "the token is not the right one" } else { "there is no bearer token" };
    let hint = "send the header `Authorization: Bearer TOKEN` with the token of `listen.token_file`";
    ApiError::new(StatusCode::UNAUTHORIZED, "unauthorized", message, hint)
}

/// Without a token, what a web page has its reader's browser send must not get in: such a request says where it
/// comes from, or names a host of the page's own that leads here.
fn check_local_request(uri: &Uri, headers: &HeaderMap) -> Result<(), ApiError> {
    let forbidden = |message: &str| {
        let hint = "this address is for programs of this machine; set a `listen.token_file` for others";
        Err(ApiError::new(StatusCode::FORBIDDEN, "forbidden", message, hint))
    };
    // What a user opens comes from nowhere, and no page reads it.
    let by_a_page = headers.get(SEC_FETCH_SITE).is_some_and(|site| site != "none");
    if by_a_page || headers.contains_key(ORIGIN) {
        return forbidden("the request comes from a web page");
    }
    let mut hosts = headers.get_all(HOST).iter().map(|host| host.to_str().unwrap_or_default());
    // HTTP/2 has it in the address.
    let is_here = uri.authority().is_none_or(|host| is_loopback(host.as_str())) && hosts.all(is_loopback);
    if is_here { Ok(()) } else { forbidden("the `Host` of the request is not this machine") }
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

/// Listens on a TCP address.
///
/// Returns an error if other machines reach it and there is no token.
pub(super) async fn listen(
    address: SocketAddr,
    token: Option<Token>,
) -> Result<(ListenerAuth, tokio::net::TcpListener), super::ServeError> {
    let auth = match token {
        Some(token) => ListenerAuth::BearerToken(token),
        None if address.ip().to_canonical().is_loopback() => ListenerAuth::Loopback,
        None => return Err(TokenError::Needed(address).into()),
    };
    Ok((auth, bind(address).await?))
}

/// The same for an address where only metrics are.
pub(super) async fn listen_metrics(
    address: SocketAddr,
) -> Result<(ListenerAuth, tokio::net::TcpListener), super::ServeError> {
    Ok((ListenerAuth::Metrics, bind(address).await?))
}

async fn bind(address: SocketAddr) -> Result<tokio::net::TcpListener, super::ServeError> {
    let refused = |source: io::Error| super::ServeError::Tcp { address, source };
    tokio::net::TcpListener::bind(address).await.map_err(refused)
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
