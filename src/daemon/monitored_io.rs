//! The stream of a connection, whose bytes are noticed as they come and go. Owns the looks at a peer that may have gone,
//! and its last words; refuses to judge how long is too long.

use std::{
    io,
    os::fd::AsFd,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Sleep, sleep},
};

use super::connection_timeouts::{ConnectionActivity, LINGER};

/// A stream whose bytes are noticed.
#[derive(Debug)]
pub(super) struct MonitoredIo<S> {
    stream: S,
    activity: Arc<ConnectionActivity>,
    /// Whether nothing has come yet.
    is_new: bool,
    /// Until when a peer that still sends is listened to.
    leaving: Option<Pin<Box<Sleep>>>,
}

impl<S> MonitoredIo<S> {
    pub(super) fn new(stream: S, activity: Arc<ConnectionActivity>) -> Self {
        Self { stream, activity, is_new: true, leaving: None }
    }
}

impl<S: AsyncRead + Unpin> MonitoredIo<S> {
    /// Passes over what the peer still sends: until it closes, or it is too long. A peer that has sent all it
    /// announced is not waited for.
    fn poll_leave(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut space = [std::mem::MaybeUninit::uninit(); 4096];
        let is_first = self.leaving.is_none();
        let leaving = self.leaving.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if leaving.as_mut().poll(context).is_ready() {
            return Poll::Ready(());
        }
        let mut sends = !is_first || self.activity.has_unread_body();
        loop {
            let mut passed = ReadBuf::uninit(&mut space);
            match Pin::new(&mut self.stream).poll_read(context, &mut passed) {
                Poll::Ready(Ok(())) if !passed.filled().is_empty() => sends = true,
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
        let came = &buffer.filled()[before..];
        if !came.is_empty() {
            if std::mem::take(&mut self.is_new) {
                self.activity.detect_protocol(came);
            }
            self.activity.bytes_received();
        }
        Poll::Ready(Ok(()))
    }
}

/// Whether the peer sends nothing more, whatever it sent that was not read.
fn has_hung_up(stream: &impl AsFd) -> bool {
    let mut look = [PollFd::new(stream, PollFlags::RDHUP)];
    poll(&mut look, Some(&Timespec::default())) == Ok(1)
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

    /// Called whenever the connection is looked at, which it is once in a while.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.activity.is_long_running() && !self.activity.is_http2() && has_hung_up(&self.stream) {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.leaving.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
        }
        self.poll_leave(context).map(Ok)
    }
}
