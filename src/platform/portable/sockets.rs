//! Unix sockets, and who is at their other end.

use std::io;
#[cfg(feature = "daemon")]
use std::os::{
    fd::{AsFd, OwnedFd},
    unix::net::UnixStream,
};
#[cfg(feature = "cli")]
use std::{ffi::OsStr, os::unix::net::SocketAddr};

#[cfg(feature = "daemon")]
use rustix::{
    io::{Errno, FdFlags, fcntl_setfd, ioctl_fionbio},
    net::{AddressFamily, RecvFlags, SendFlags, SocketType, recv, socket},
};

/// The longest path of a Unix socket, in bytes: the shortest that a system takes.
#[cfg(feature = "daemon")]
pub(crate) const LONGEST_SOCKET_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// How descriptors are sent. Programs of Rust ignore the signal about a peer that is gone.
#[cfg(feature = "daemon")]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::empty();

/// How descriptors are received.
#[cfg(feature = "daemon")]
pub(crate) const RECEIVE_FLAGS: RecvFlags = RecvFlags::empty();

/// The address of a socket at a path. An `@` begins an abstract name on Linux alone.
#[cfg(feature = "cli")]
pub(crate) fn address_of(name: &OsStr) -> io::Result<SocketAddr> {
    if name.as_encoded_bytes().starts_with(b"@") {
        return Err(io::ErrorKind::Unsupported.into());
    }
    SocketAddr::from_pathname(name)
}

/// The user of the process at the other end of a connection.
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub(crate) fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
    Ok(getsockopt(stream, PeerCredentials).map_err(io::Error::from)?.uid())
}

/// The user of the process at the other end of a connection.
#[cfg(all(feature = "daemon", not(target_os = "linux")))]
pub(crate) fn peer_user(stream: &UnixStream) -> io::Result<u32> {
    let (user, _) = nix::unistd::getpeereid(stream).map_err(io::Error::from)?;
    Ok(user.as_raw())
}

/// The process at the other end of a connection.
#[cfg(all(feature = "daemon", target_os = "linux"))]
pub(crate) fn peer_process(stream: &UnixStream) -> io::Result<i32> {
    use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
    Ok(getsockopt(stream, PeerCredentials).map_err(io::Error::from)?.pid())
}

/// The process at the other end of a connection.
#[cfg(all(feature = "daemon", target_vendor = "apple"))]
pub(crate) fn peer_process(stream: &UnixStream) -> io::Result<i32> {
    use nix::sys::socket::{getsockopt, sockopt::LocalPeerPid};
    getsockopt(stream, LocalPeerPid).map_err(io::Error::from)
}

/// The process at the other end of a connection, which this system does not tell.
#[cfg(all(feature = "daemon", not(any(target_os = "linux", target_vendor = "apple"))))]
pub(crate) fn peer_process(_: &UnixStream) -> io::Result<i32> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether the process that connected has ended. Nobody can tell, and it has not.
#[cfg(feature = "daemon")]
pub(crate) fn has_peer_ended(_: &impl AsFd) -> bool {
    false
}

/// Whether a socket listens.
#[cfg(all(feature = "daemon", not(target_vendor = "apple")))]
pub(crate) fn is_listening(socket: &impl AsFd) -> Result<bool, Errno> {
    rustix::net::sockopt::socket_acceptconn(socket)
}

/// Whether a socket listens; from now on, if it has been bound. The system does not tell.
#[cfg(all(feature = "daemon", target_vendor = "apple"))]
pub(crate) fn is_listening(socket: &impl AsFd) -> Result<bool, Errno> {
    const BACKLOG: i32 = 128;
    match rustix::net::listen(socket, BACKLOG) {
        Ok(()) => Ok(true),
        Err(Errno::INVAL | Errno::OPNOTSUPP | Errno::DESTADDRREQ) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the peer has closed its side. While bytes of it are unread, nobody can tell.
#[cfg(feature = "daemon")]
pub(crate) fn has_hung_up(stream: &impl AsFd) -> bool {
    let mut next = [0; 1];
    recv(stream, &mut next[..], RecvFlags::PEEK | RecvFlags::DONTWAIT).is_ok_and(|(_, length)| length == 0)
}

/// A Unix socket that does not wait, and that no program inherits.
#[cfg(feature = "daemon")]
pub(crate) fn unix_socket() -> Result<OwnedFd, Errno> {
    let made = socket(AddressFamily::UNIX, SocketType::STREAM, None)?;
    close_on_exec(&made)?;
    ioctl_fionbio(&made, true)?;
    Ok(made)
}

/// Keeps programs that are started from inheriting a received descriptor. Until then one that is started inherits it.
#[cfg(feature = "daemon")]
pub(crate) fn close_on_exec(descriptor: &OwnedFd) -> Result<(), Errno> {
    fcntl_setfd(descriptor, FdFlags::CLOEXEC)
}
