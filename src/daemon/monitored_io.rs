//! A stream that reports reads and writes to the timers of its connection, and lingers when it closes.

use std::{
    io,
    os::fd::AsFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::connection_timeouts::{ConnectionActivity, LINGER};
use crate::platform::has_hung_up;

/// The stream of a connection.
#[derive(Debug)]
pub(super) struct MonitoredIo<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
    /// Whether nothing was read yet.
    is_new: bool,
    /// Set while the stream closes: how long what the peer still sends is read.
    lingering: Option<Pin<Box<Sleep>>>,
}

impl<S> MonitoredIo<S> {
    pub(super) fn new(stream: S, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity, is_new: true, lingering: None }
    }
}

impl<S: AsyncRead + Unpin> MonitoredIo<S> {
    /// Discards what the peer still sends until it closes or [`LINGER`] is over, because closing with unread bytes resets
    /// the connection. A peer whose request was read to its end is not waited for.
    fn poll_linger(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut space = [std::mem::MaybeUninit::uninit(); 4096];
        let is_first = self.lingering.is_none();
        let lingering = self.lingering.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if lingering.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut sends = !is_first || self.activity.has_unread_body();
        loop {
            let mut discarded = ReadBuf::uninit(&mut space);
            match Pin::new(&mut self.stream).poll_read(context, &mut discarded) {
                Poll::Ready(Ok(())) if !discarded.filled().is_empty() => sends = true,
                Poll::Pending if sends => return Poll::Pending,
                _ => return Poll::Ready(()),
            }
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for MonitoredIo<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        let received = &buffer.filled()[before..];
        if !received.is_empty() {
            if std::mem::take(&mut self.is_new) {
                self.activity.detect_protocol(received);
            }
            self.activity.bytes_received();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + AsFd + Unpin> AsyncWrite for MonitoredIo<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.activity.write_polled(polled.is_ready());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.activity.write_polled(polled.is_ready());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// hyper flushes whenever it polls the connection, so this also finds out whether the peer of a long request is gone.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.activity.is_long_running() && !self.activity.is_http2() && has_hung_up(&self.stream) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.lingering.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        self.poll_linger(context).map(Ok)
    }
}
