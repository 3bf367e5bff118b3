//! The three pipes of one process: writes its stdin while reading its stdout and stderr.

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
use super::group::StdioPipes;

/// Bytes per read. The buffer is on the stack of one poll, so an idle process holds none.
const CHUNK: usize = 16 * 1024;

/// Chunks read from one pipe before the other sources get a turn: an endless writer must starve neither the other pipe
/// nor the deadline that ends it, even where tokio's own budget is switched off.
const CHUNKS_PER_TURN: usize = 16;

/// How much of the standard output is looked at before its end, in bytes.
const LONGEST_BEGINNING: usize = 4096;

/// What looks at the beginning of the standard output.
type FirstOutput<'a> = &'a (dyn Fn(&[u8]) + Sync);

/// The parent's ends of the pipes.
#[derive(Debug)]
pub(super) struct ProcessStreams {
    stdin: Option<StdinWriter>,
    stdout: OutputReader,
    stderr: OutputReader,
}

impl ProcessStreams {
    /// Takes over the pipes and writes as much of the input as the pipe takes at once.
    ///
    /// # Errors
    /// Returns the system's error if a pipe cannot be registered with the reactor.
    pub(super) fn open(
        pipes: StdioPipes,
        input: Bytes,
        stdout: Capture,
        stderr: Capture,
    ) -> io::Result<Self> {
        Ok(Self {
            stdin: StdinWriter::open(pipes.stdin, input)?,
            stdout: OutputReader::open(pipes.stdout, stdout)?,
            stderr: OutputReader::open(pipes.stderr, stderr)?,
        })
    }

    /// Reads and writes for as long as it is polled; cancel-safe.
    pub(super) async fn exchange(&mut self) -> Infallible {
        self.exchange_watched(None).await
    }

    /// The same; `first_output` gets the standard output as soon as it has a closing brace.
    pub(super) async fn exchange_watched(&mut self, mut first_output: Option<FirstOutput<'_>>) -> Infallible {
        poll_fn(|cx| {
            self.poll_stdin(cx);
            let _ = self.poll_outputs(cx);
            let output = self.stdout.capture.first_bytes();
            let beginning = &output[..output.len().min(LONGEST_BEGINNING)];
            if beginning.contains(&b'}') || beginning.len() == LONGEST_BEGINNING {
                first_output.take().inspect(|look| look(beginning));
            }
            Poll::Pending
        })
        .await
    }

    /// Reads both outputs to their end; cancel-safe.
    pub(super) async fn ended(&mut self) {
        poll_fn(|cx| self.poll_outputs(cx)).await;
    }

    /// Closes stdin, even with input left: its reader is gone or about to be.
    pub(super) fn close_stdin(&mut self) {
        self.stdin = None;
    }

    /// Closes everything and returns what was kept of stdout and stderr.
    pub(super) fn finish(self) -> (Captured, Captured) {
        (self.stdout.capture.finish(), self.stderr.capture.finish())
    }

    fn poll_stdin(&mut self, cx: &mut Context<'_>) {
        if let Some(writer) = &mut self.stdin
            && writer.poll(cx).is_ready()
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

/// Stdin and the input still to be written to it.
#[derive(Debug)]
struct StdinWriter {
    pipe: Sender,
    left: Bytes,
}

impl StdinWriter {
    /// Returns `None` if nothing is left to write: an envelope mostly fits the empty pipe, which then is never
    /// registered with the reactor.
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
                    log_write_error(error.into());
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
                    log_write_error(error);
                    break;
                }
            }
        }
        Poll::Ready(())
    }
}

/// Logs a failed write, unless the process closed its stdin: a hook may ignore its input.
#[allow(clippy::needless_pass_by_value, reason = "callers hold errors of two types and convert here")]
fn log_write_error(error: io::Error) {
    if error.kind() != io::ErrorKind::BrokenPipe {
        tracing::debug!(%error, "stdin of a hook could not be written");
    }
}

/// An output pipe until its end of file, and what is kept of it.
#[derive(Debug)]
struct OutputReader {
    pipe: Option<Receiver>,
    capture: Capture,
}

impl OutputReader {
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
        // There is more, but the other sources come first.
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
