//! Owns the three pipes of one process: writes its stdin while it reads stdout and stderr.
//! Refuses to know of time, of exits and of signals. Talks to: `capture`, and `process`, which polls it.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use rustix::io::{Errno, ioctl_fionbio};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::capture::{Capture, Captured};

/// Read at once. Lives on the stack for the length of one poll, so an idle or silent process holds no buffer.
const CHUNK: usize = 16 * 1024;

/// Chunks read from one pipe before the other sources get a turn: an endless writer must starve neither the
/// other pipe nor the deadline that ends it, also where tokio's own budget is switched off.
const CHUNKS_PER_TURN: usize = 16;

/// The parent's ends of the pipes.
#[derive(Debug)]
pub(super) struct Streams {
    stdin: Option<Feed>,
    stdout: Outlet,
    stderr: Outlet,
}

impl Streams {
    /// Takes over the pipes and writes what stdin holds at once.
    ///
    /// # Errors
    /// Returns the system's error if a pipe cannot be watched.
    pub(super) fn open(
        (stdin, input): (OwnedFd, Bytes),
        (stdout, out): (OwnedFd, Capture),
        (stderr, err): (OwnedFd, Capture),
    ) -> io::Result<Self> {
        Ok(Self {
            stdin: Feed::open(stdin, input)?,
            stdout: Outlet::open(stdout, out)?,
            stderr: Outlet::open(stderr, err)?,
        })
    }

    /// Moves bytes for as long as it is polled; cancel-safe.
    pub(super) async fn exchange(&mut self) -> Infallible {
        poll_fn(|cx| {
            self.poll_feed(cx);
            let _ = self.poll_outputs(cx);
            Poll::Pending
        })
        .await
    }

    /// Reads both outputs to their end; cancel-safe.
    pub(super) async fn ended(&mut self) {
        poll_fn(|cx| self.poll_outputs(cx)).await;
    }

    /// Closes stdin, whatever is left unwritten: the process that it was meant for is gone or going.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes everything and returns what was kept of stdout and stderr.
    pub(super) fn finish(self) -> (Captured, Captured) {
        (self.stdout.capture.finish(), self.stderr.capture.finish())
    }

    fn poll_feed(&mut self, cx: &mut Context<'_>) {
        if let Some(feed) = &mut self.stdin
            && feed.poll(cx).is_ready()
        {
            self.stdin = None;
        }
    }

    fn poll_outputs(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let stdout = self.stdout.poll(cx);
        let stderr = self.stderr.poll(cx);
        if stdout.is_ready() { stderr } else { Poll::Pending }
    }
}

/// Stdin and what is still to be written to it.
#[derive(Debug)]
struct Feed {
    pipe: Sender,
    left: Bytes,
}

impl Feed {
    /// Returns `None` if nothing is left to write: an envelope mostly fits the empty pipe, and then
    /// the reactor never hears of it.
    fn open(pipe: OwnedFd, mut left: Bytes) -> io::Result<Option<Self>> {
        ioctl_fionbio(&pipe, true)?;
        while !left.is_empty() {
            match rustix::io::write(&pipe, &left) {
                Ok(written) => left.advance(written),
                Err(Errno::AGAIN) => {
                    return Ok(Some(Self { pipe: Sender::from_owned_fd_unchecked(pipe)?, left }));
                }
                Err(Errno::INTR) => {}
                Err(error) => {
                    refused(error.into());
                    break;
                }
            }
        }
        Ok(None)
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while !self.left.is_empty() {
            match ready!(Pin::new(&mut self.pipe).poll_write(cx, &self.left)) {
                Ok(written) => self.left.advance(written),
                Err(error) => {
                    refused(error);
                    break;
                }
            }
        }
        Poll::Ready(())
    }
}

/// A process may ignore its stdin: a broken pipe is its choice and no failure.
#[allow(clippy::needless_pass_by_value, reason = "callers hold errors of two types and convert here")]
fn refused(error: io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
        tracing::debug!(%error, "stdin of a hook could not be written");
    }
}

/// An output pipe, until its end, and what is kept of it.
#[derive(Debug)]
struct Outlet {
    pipe: Option<Receiver>,
    capture: Capture,
}

impl Outlet {
    fn open(pipe: OwnedFd, capture: Capture) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe: Some(Receiver::from_owned_fd_unchecked(pipe)?), capture })
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Some(pipe) = &mut self.pipe else {
            return Poll::Ready(());
        };
        for _ in 0..CHUNKS_PER_TURN {
            let mut space = [const { MaybeUninit::uninit() }; CHUNK];
            let mut chunk = ReadBuf::uninit(&mut space);
            let read = ready!(Pin::new(&mut *pipe).poll_read(cx, &mut chunk));
            if let Err(error) = &read {
                tracing::debug!(%error, "output of a hook could not be read");
            }
            if read.is_err() || chunk.filled().is_empty() {
                self.pipe = None;
                return Poll::Ready(());
            }
            self.capture.take(chunk.filled());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
