//! What the program that started the daemon is told, as systemd's `Type=notify` has it. Refuses to mind whether anyone
//! listens.

use std::os::{
    linux::net::SocketAddrExt,
    unix::net::{SocketAddr, UnixDatagram},
};

/// The variable with the address to write to.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Tells the service manager, if there is one.
pub(super) fn notify(state: &str) {
    let Some(address) = std::env::var_os(VARIABLE) else { return };
    let bytes = address.as_encoded_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&address),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, state, "the service manager could not be told");
    }
}
