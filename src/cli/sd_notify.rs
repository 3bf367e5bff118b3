//! Status messages to the service manager, in the protocol of systemd's `Type=notify`.

use std::os::{
    linux::net::SocketAddrExt,
    unix::net::{SocketAddr, UnixDatagram},
};

/// The variable with the address of the service manager's socket.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// Sends a state such as `READY=1`, if there is a service manager.
pub(super) fn notify(state: &str) {
    let Some(address) = std::env::var_os(VARIABLE) else { return };
    let bytes = address.as_encoded_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&address),
    };
    let sent = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
    if let Err(error) = sent {
        tracing::warn!(%error, state, "the service manager could not be notified");
    }
}
