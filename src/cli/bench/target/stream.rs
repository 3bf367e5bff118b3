//! A connected socket of either kind.

use std::io;

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpStream, UnixStream},
};

/// A connected socket.
#[derive(Debug)]
pub(super) enum DaemonStream {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl DaemonStream {
    /// Whether the other side has closed it, as a daemon does to idle connections.
    pub(super) fn has_ended(&self) -> bool {
        let mut byte = [0];
        let read = match self {
            Self::Unix(stream) => stream.try_read(&mut byte),
            Self::Tcp(stream) => stream.try_read(&mut byte),
        };
        !matches!(read, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }

    pub(super) async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Unix(stream) => stream.write_all(bytes).await,
            Self::Tcp(stream) => stream.write_all(bytes).await,
        }
    }

    pub(super) async fn read(&mut self, bytes: &mut Vec<u8>) -> io::Result<usize> {
        match self {
            Self::Unix(stream) => stream.read_buf(bytes).await,
            Self::Tcp(stream) => stream.read_buf(bytes).await,
        }
    }
}
