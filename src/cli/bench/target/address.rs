//! Where a daemon is: its Unix socket, or a TCP address, which is one of this machine unless a flag allows others.

use std::{fmt, net::SocketAddr, path::Path};

use tokio::net::{TcpStream, UnixStream, lookup_host};
use url::{Position, Url};

use super::{gone::TargetGone, null_server, stream::DaemonStream};
use crate::{cli::exit::CliError, config, daemon::Client};

/// The port of a URL that names none.
const USUAL_PORT: u16 = 80;

/// Where a daemon is.
#[derive(Debug)]
pub(in super::super) enum DaemonAddress {
    /// At a socket.
    Socket(Client),
    /// At a TCP address.
    Tcp {
        /// As the URL has it, with its port.
        authority: String,
        addresses: Vec<SocketAddr>,
    },
    /// Nowhere: each connection leads to a task that answers at once.
    Null,
}

/// Whether events may be sent to another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum RemotePolicy {
    Refused,
    Allowed,
}

/// The token of a TCP client.
#[derive(Clone)]
pub(in super::super) struct DaemonToken(String);

impl fmt::Debug for DaemonToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DaemonToken(…)")
    }
}

impl DaemonToken {
    /// Reads a token: one line of a file that only its owner can read.
    pub(in super::super) fn read(file: &Path) -> Result<Self, CliError> {
        let unusable = |why: String| CliError::new(format!("the token file {} {why}", file.display()));
        config::read_sent_token(file).map(Self).map_err(unusable)
    }

    /// The header that carries it, with its line end.
    pub(super) fn header(&self) -> String {
        format!("authorization: Bearer {}\r\n", self.0)
    }
}

impl DaemonAddress {
    /// The address that a URL names, of this machine unless others are allowed.
    ///
    /// Returns an error if it is none, cannot be looked up, or is of another machine.
    pub(in super::super) async fn of_url(text: &str, remote: RemotePolicy) -> Result<Self, CliError> {
        let usage = "write it as `http://127.0.0.1:8787`";
        let invalid = |why: &dyn fmt::Display| CliError::with_help(format!("the URL {why}"), usage);
        let url = Url::parse(text).map_err(|error| invalid(&format_args!("is not valid: {error}")))?;
        if url.scheme() != "http" {
            return Err(invalid(&format_args!("has the scheme `{}`; a daemon speaks `http`", url.scheme())));
        }
        let rest = &url[Position::AfterPort..];
        if !url.username().is_empty() || url.password().is_some() || !matches!(rest, "" | "/") {
            return Err(invalid(&"has more than a host and a port; a token is in `--token-file`"));
        }
        let host = url.host_str().ok_or_else(|| invalid(&"has no host"))?.to_owned();
        let port = url.port().unwrap_or(USUAL_PORT);
        let authority = format!("{host}:{port}");
        let found = lookup_host(authority.clone()).await;
        let addresses: Vec<_> =
            found.map_err(|error| invalid(&format_args!("names no host: {error}")))?.collect();
        let is_remote = addresses.iter().any(|address| !address.ip().to_canonical().is_loopback());
        if is_remote && remote == RemotePolicy::Refused {
            let what = format!("{authority} is another machine, and nothing was sent to it");
            return Err(CliError::with_help(what, "`--allow-remote` puts the load on it all the same"));
        }
        Ok(Self::Tcp { authority, addresses })
    }

    pub(super) fn name(&self) -> String {
        match self {
            Self::Socket(client) => format!("socket {}", client.socket().display()),
            Self::Tcp { authority, .. } => format!("http://{authority}"),
            Self::Null => "nothing".to_owned(),
        }
    }

    /// The `Host` of requests.
    pub(super) fn host(&self) -> &str {
        match self {
            Self::Tcp { authority, .. } => authority,
            Self::Socket(_) | Self::Null => "hookyard",
        }
    }

    /// Connects.
    pub(super) async fn connect(&self) -> Result<DaemonStream, TargetGone> {
        match self {
            Self::Socket(client) => connect_socket(client).await.map(DaemonStream::Unix),
            Self::Tcp { authority, addresses } => {
                let connected = TcpStream::connect(addresses.as_slice()).await;
                let gone = |error| TargetGone(format!("no hookyard listens on {authority}: {error}"));
                let stream = connected.map_err(gone)?;
                stream.set_nodelay(true).map_err(gone)?;
                Ok(DaemonStream::Tcp(stream))
            }
            Self::Null => null_server::connect().map(DaemonStream::Unix),
        }
    }
}

/// Connects to a socket of a daemon.
pub(super) async fn connect_socket(client: &Client) -> Result<UnixStream, TargetGone> {
    let client = client.clone();
    // It checks whose daemon it is, and may have to wait for its turn.
    let connected = tokio::task::spawn_blocking(move || client.connect()).await;
    let stream = connected
        .map_err(|error| TargetGone(error.to_string()))?
        .map_err(|error| TargetGone(error.to_string()))?;
    let stream = stream.set_nonblocking(true).and_then(|()| UnixStream::from_std(stream));
    stream.map_err(|error| TargetGone(error.to_string()))
}
