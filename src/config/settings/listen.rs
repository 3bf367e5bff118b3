//! Where a daemon listens. Refuses to open anything.

use std::{net::SocketAddr, path::PathBuf};

use super::super::section::{Section, absolute};
use crate::dialect::Value;

/// The longest path of a Unix socket, in bytes: the system has 108 with the byte that ends it.
const LONGEST_SOCKET: usize = 107;

/// Where a daemon listens.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListenSettings {
    /// The Unix socket; without one, `$XDG_RUNTIME_DIR/hookyard.sock`.
    pub socket: Option<PathBuf>,
    /// A TCP address to listen on as well. One that other machines reach needs `token_file`.
    pub tcp: Option<SocketAddr>,
    /// A file with the bearer token that TCP clients must send.
    pub token_file: Option<PathBuf>,
    /// A TCP address where only the metrics are, and the daemon's health, for everybody who reaches it.
    pub metrics: Option<SocketAddr>,
}

impl ListenSettings {
    pub(super) fn take(&mut self, listen: &mut Section<'_>) {
        listen.optional("socket", &mut self.socket, socket);
        listen.optional("tcp", &mut self.tcp, address);
        listen.path("token_file", &mut self.token_file);
        listen.optional("metrics", &mut self.metrics, address);
    }

    /// Whether `tcp` is open to other machines, and no token is asked for.
    pub fn is_open(&self) -> bool {
        self.token_file.is_none()
            && self.tcp.is_some_and(|address| !address.ip().to_canonical().is_loopback())
    }
}

fn socket(value: &Value<'_>) -> Option<PathBuf> {
    let path = absolute(value)?;
    if path.as_os_str().len() <= LONGEST_SOCKET {
        return Some(path);
    }
    let message =
        format!("`{}` is longer than the {LONGEST_SOCKET} bytes that a socket may have", value.name());
    value.error("path", message, "put it into a directory with a shorter path");
    None
}

fn address(value: &Value<'_>) -> Option<SocketAddr> {
    let address = value.text()?.parse().ok();
    if address.is_none() {
        let message = format!("`{}` must be an address with its port", value.name());
        value.error("address", message, "write it such as `127.0.0.1:8787` or `\"[::1]:8787\"`, not by name");
    }
    address
}
