//! The addresses on which hookyard itself listens. No http hook may connect to them: whatever is behind a hook would
//! get the rights of a client.

use std::{
    net::{IpAddr, SocketAddr, UdpSocket},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// Where hookyard listens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct OwnListeners {
    /// TCP addresses.
    pub(crate) tcp: Vec<SocketAddr>,
    /// Paths of Unix sockets.
    pub(crate) sockets: Vec<PathBuf>,
}

#[cfg_attr(not(feature = "http"), expect(dead_code, reason = "no http hook connects"))]
impl OwnListeners {
    /// Whether a TCP listener has this port.
    pub(crate) fn has_port(&self, port: u16) -> bool {
        self.tcp.iter().any(|listener| listener.port() == port)
    }

    /// Whether a connection to this address may reach a TCP listener, if it goes to that one's port.
    pub(crate) fn may_be_at(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        // The unspecified address leads to this machine as well.
        let is_here = address.is_loopback() || address.is_unspecified();
        self.tcp.iter().map(|listener| listener.ip().to_canonical()).any(|listener| {
            listener == address
                || (is_here && (listener.is_loopback() || listener.is_unspecified()))
                || (listener.is_unspecified() && is_of_this_machine(address))
        })
    }

    /// Whether a path leads to one of the Unix sockets, also through links.
    pub(crate) fn has_socket(&self, path: &Path) -> bool {
        let file_of = |path: &Path| path.metadata().ok().map(|metadata| (metadata.dev(), metadata.ino()));
        self.sockets
            .iter()
            .any(|own| own == path || file_of(path).is_some_and(|file| file_of(own) == Some(file)))
    }
}

/// Whether an address belongs to this machine: only such a one can be bound.
fn is_of_this_machine(address: IpAddr) -> bool {
    UdpSocket::bind((address, 0)).is_ok()
}

#[cfg(test)]
#[cfg(feature = "http")]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_found_by_every_address_that_leads_to_them() {
        let at = |listener: &str| OwnListeners { tcp: vec![listener.parse().unwrap()], sockets: Vec::new() };
        let may_be_at = |listener, address: &str| at(listener).may_be_at(address.parse().unwrap());
        for address in ["127.0.0.1", "127.9.9.9", "0.0.0.0", "::1", "::", "::ffff:127.0.0.1"] {
            assert!(may_be_at("127.0.0.1:1", address) && may_be_at("0.0.0.0:1", address), "{address}");
        }
        assert!(may_be_at("192.0.2.7:1", "192.0.2.7") && !may_be_at("192.0.2.7:1", "192.0.2.8"));
        assert!(!may_be_at("127.0.0.1:1", "192.0.2.7") && !may_be_at("0.0.0.0:1", "192.0.2.7"));
        assert!(at("127.0.0.1:8787").has_port(8787) && !at("127.0.0.1:8787").has_port(8788));
    }

    #[test]
    fn sockets_are_found_through_links() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("own.sock");
        let link = directory.path().join("link");
        std::fs::write(&socket, "").unwrap();
        std::os::unix::fs::symlink(&socket, &link).unwrap();
        let own = OwnListeners { tcp: Vec::new(), sockets: vec![socket.clone()] };
        assert!(own.has_socket(&socket) && own.has_socket(&link));
        assert!(!own.has_socket(&directory.path().join("other")));
    }
}
