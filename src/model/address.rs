//! Addresses of http hooks: URLs of servers, and Unix sockets of this machine.

use std::{
    fmt,
    net::IpAddr,
    path::{Path, PathBuf},
};

use url::{Host, Position, Url};

use super::DialectName;

/// The longest path of a socket, in bytes: `sun_path` has 108 with the terminating byte.
const LONGEST_SOCKET: usize = 107;

/// The path of hookyard's event endpoint; those of dialects are below it.
const OWN_ROUTE: [&str; 2] = ["v1", "events"];

/// The host name in requests over a Unix socket.
const SOCKET_HOST: &str = "http://localhost";

/// Where the requests of an http hook go.
///
/// ```
/// use hookyard::model::Address;
///
/// assert!(Address::parse("https://guard.example.com/check").unwrap().socket().is_none());
/// let local = Address::parse("unix:/run/guard.sock:/check?all").unwrap();
/// assert_eq!(local.socket(), Some("/run/guard.sock".as_ref()));
/// assert_eq!(local.to_string(), "unix:/run/guard.sock:/check?all");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    url: Url,
    socket: Option<PathBuf>,
}

/// What is wrong with an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AddressError {
    /// The scheme is not supported.
    #[error("the scheme must be `http` or `https`")]
    Scheme,
    /// The host is missing.
    #[error("the server is missing")]
    NoServer,
    /// It contains a user or a password.
    #[error("a user or password in the address would be logged")]
    Password,
    /// It contains a reference such as `${env.X}`.
    #[error("references are not replaced in addresses, which are shown")]
    Reference,
    /// It contains a character that URLs cannot contain.
    #[error("a space, `\\` or control character cannot be in an address")]
    Character,
    /// It is not a valid URL.
    #[error(transparent)]
    Url(#[from] url::ParseError),
    /// The path of the socket is not absolute.
    #[error("the path of the socket must be absolute and end with a name")]
    SocketPath,
    /// The path of the socket is too long for the system.
    #[error("the path of the socket has more than the {LONGEST_SOCKET} bytes that Linux takes")]
    LongSocketPath,
    /// The path on the server is missing.
    #[error("the socket is not followed by `:` and the path on the server")]
    NoRoute,
}

impl AddressError {
    /// What to do about it.
    pub fn help(self) -> &'static str {
        match self {
            Self::Scheme | Self::NoServer | Self::Url(_) => "write it as `https://server:port/path`",
            Self::Password | Self::Reference => "use `headers`",
            Self::Character => "encode it as `%20` and so on",
            Self::SocketPath | Self::NoRoute => "write it as `unix:/path/to.sock:/route`",
            Self::LongSocketPath => "use a shorter path, such as one in `/run`",
        }
    }
}

impl Address {
    /// Parses an address of a hook file.
    ///
    /// Returns an error if no request can be sent to it, or if it could contain a secret.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let after = |scheme: &str| {
            let head = text.get(..scheme.len()).filter(|head| head.eq_ignore_ascii_case(scheme));
            head.map(|head| &text[head.len()..])
        };
        let socket = after("unix:");
        let rest = socket.or_else(|| after("https://")).or_else(|| after("http://"));
        let authority = rest.ok_or(AddressError::Scheme)?.split(['/', '?', '#']).next().unwrap_or_default();
        match authority {
            "" if socket.is_none() => return Err(AddressError::NoServer),
            _ if socket.is_none() && authority.contains('@') => return Err(AddressError::Password),
            _ if text.contains("${") || text.contains("$(") => return Err(AddressError::Reference),
            _ if text.contains(|c: char| c.is_control() || c.is_whitespace() || c == '\\') => {
                return Err(AddressError::Character);
            }
            _ => {}
        }
        match socket {
            Some(rest) => Self::of_socket(rest),
            None => Ok(Self { url: Url::parse(text)?, socket: None }),
        }
    }

    fn of_socket(rest: &str) -> Result<Self, AddressError> {
        let (path, route) = rest.split_once(':').unwrap_or((rest, ""));
        if !path.starts_with('/') || path.ends_with('/') {
            return Err(AddressError::SocketPath);
        }
        if path.len() > LONGEST_SOCKET {
            return Err(AddressError::LongSocketPath);
        }
        if !route.starts_with('/') {
            return Err(AddressError::NoRoute);
        }
        Ok(Self { url: Url::parse(&format!("{SOCKET_HOST}{route}"))?, socket: Some(path.into()) })
    }

    /// The URL of requests. With a socket, its host is `localhost`.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// The socket to connect to instead of the URL's server.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Whether its server is in a network, and nobody on the way can read or change what is sent: it is encrypted, or
    /// stays on this machine.
    pub(crate) fn is_safe_on_the_way(&self) -> bool {
        self.socket.is_none()
            && (self.url.scheme() == "https" || self.is_here(|address| address.is_loopback()))
    }

    /// Whether its server is on this machine, where these addresses are.
    fn is_here(&self, is_own: impl Fn(IpAddr) -> bool) -> bool {
        match self.url.host() {
            _ if self.socket.is_some() => true,
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => is_own(address.into()),
            Some(Host::Ipv6(address)) => is_own(address.into()),
            None => false,
        }
    }

    /// Whether it is hookyard's own event endpoint on this machine. An agent's settings contain it when the agent is
    /// connected to the daemon, and hookyard reads the same settings.
    pub fn is_own(&self) -> bool {
        let is_here = self.is_here(|address| address.is_loopback() || address.is_unspecified());
        let path: Vec<&str> = self.url.path().split('/').filter(|part| !part.is_empty()).collect();
        is_here
            && match path.strip_prefix(&OWN_ROUTE) {
                Some([]) => true,
                Some([dialect]) => DialectName::ALL.iter().any(|name| name.as_str() == *dialect),
                _ => false,
            }
    }

    /// The server as messages name it: without the query, which may hold a key.
    pub fn server(&self) -> String {
        let host = self.url.host_str().unwrap_or_default();
        match (&self.socket, self.url.port()) {
            (Some(socket), _) => format!("the socket {}", socket.display()),
            (None, Some(port)) => format!("{host}:{port}"),
            (None, None) => host.to_owned(),
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.socket {
            Some(socket) => write!(f, "unix:{}:{}", socket.display(), &self.url[Position::BeforePath..]),
            None => self.url.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hookyards_own_routes_are_known() {
        for text in [
            "http://127.0.0.1:8123/v1/events",
            "http://127.0.0.1:8123/v1/events/claude",
            "http://localhost/v1/events/gemini/",
            "http://[::1]:1/v1/events?x=1",
            "http://0.0.0.0:1/v1/events/codebuddy",
            "unix:/run/hookyard.sock:/v1/events/openharness",
        ] {
            assert!(Address::parse(text).unwrap().is_own(), "{text}");
        }
        for text in [
            "http://127.0.0.1:8123/v1/event",
            "http://127.0.0.1:8123/v1/events/mine",
            "http://127.0.0.1:8123/v1/events/claude/x",
            "http://10.0.0.1/v1/events/claude",
            "https://example.com/v1/events",
            "unix:/run/other.sock:/check",
        ] {
            assert!(!Address::parse(text).unwrap().is_own(), "{text}");
        }
    }
}
