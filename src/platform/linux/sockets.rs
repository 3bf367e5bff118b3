//! Unix sockets, and who is at their other end.

use std::io;
#[cfg(feature = "daemon")]
use std::os::{
    fd::{AsFd, OwnedFd},
    unix::net::UnixStream,
};
#[cfg(feature = "cli")]
use std::{
    ffi::OsStr,
    os::{linux::net::SocketAddrExt, unix::net::SocketAddr},
};

#[cfg(feature = "daemon")]
use nix::sys::socket::{
    UnixCredentials, getsockopt,
    sockopt::{PeerCredentials, PeerPidfd},
};
#[cfg(feature = "daemon")]
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    net::{
        AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, socket_with, sockopt::socket_acceptconn,
    },
};

#[cfg(feature = "daemon")]
use super::ProcessHandle;

/// The longest path of a Unix socket, in bytes: `sun_path` has 108 with the terminating byte.
#[cfg(feature = "daemon")]
pub(crate) const LONGEST_SOCKET_PATH: usize = 107;

/// How descriptors are sent: a peer that is gone is an error and no signal.
#[cfg(feature = "daemon")]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::NOSIGNAL;

/// How descriptors are received: no program that is started inherits them.
#[cfg(feature = "daemon")]
pub(crate) const RECEIVE_FLAGS: RecvFlags = RecvFlags::CMSG_CLOEXEC;

/// The address of a socket: a path, or after an `@` an abstract name.
#[cfg(feature = "cli")]
pub(crate) fn address_of(name: &OsStr) -> io::Result<SocketAddr> {
    match name.as_encoded_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(name),
    }
}

#[cfg(feature = "daemon")]
fn peer(stream: &UnixStream) -> io::Result<UnixCredentials> {
    getsockopt(stream, PeerCredentials).map_err(io::Error::from)
}

/// The user of the process at the other end of a connection.
#[cfg(feature = "daemon")]
pub(crate) fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    peer(stream).map(|peer| peer.uid())
}

/// The process at the other end of a connection: the one that listened last, or that connected.
#[cfg(feature = "daemon")]
pub(crate) fn peer_process(stream: &UnixStream) -> io::Result<i32> {
    peer(stream).map(|peer| peer.pid())
}

/// Whether the process that connected has ended. Before Linux 6.5 nobody can tell, and it has not.
#[cfg(feature = "daemon")]
pub(crate) fn has_peer_ended(stream: &impl AsFd) -> bool {
    match getsockopt(stream, PeerPidfd) {
        Ok(process) => ProcessHandle::ending_with(process).has_ended(),
        Err(error) => error != nix::errno::Errno::ENOPROTOOPT,
    }
}

/// Whether a socket listens.
#[cfg(feature = "daemon")]
pub(crate) fn is_listening(socket: &impl AsFd) -> Result<bool, Errno> {
    socket_acceptconn(socket)
}

/// Whether the peer has closed its side, even if bytes of it are still unread.
#[cfg(feature = "daemon")]
pub(crate) fn has_hung_up(stream: &impl AsFd) -> bool {
    let mut look = [PollFd::new(stream, PollFlags::RDHUP)];
    poll(&mut look, Some(&Timespec::default())) == Ok(1)
}

/// A Unix socket that does not wait, and that no program inherits.
#[cfg(feature = "daemon")]
pub(crate) fn unix_socket() -> Result<OwnedFd, Errno> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}

/// Keeps programs that are started from inheriting a received descriptor: it was received so.
#[cfg(feature = "daemon")]
#[allow(clippy::unnecessary_wraps, reason = "other systems may fail")]
pub(crate) fn close_on_exec(_: &OwnedFd) -> Result<(), Errno> {
    Ok(())
}
