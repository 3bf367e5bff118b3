//! The three pipes of a worker: requests on stdin, lines on stdout, its log on stderr. Every future here is
//! cancel-safe: it loses no byte when dropped.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use rustix::io::ioctl_fionbio;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::limits::{StderrLogging, WorkerConfig};
use crate::{dialect::error_message, telemetry::EVENTS_TARGET};

/// Space reserved before each read.
const CHUNK: usize = 8 * 1024;

/// Space for requests that is kept for the next ones.
const REQUESTS_KEPT: usize = 64 * 1024;

/// The most of a worker's log in one record of ours.
const LOG_CHUNK: usize = 1024;

/// How much is kept of what a worker writes to stderr before its hello.
const START_KEPT: usize = 4 * 1024;

/// Lines to be written to a worker's stdin.
#[derive(Debug)]
pub(super) struct RequestWriter {
    pipe: Option<Sender>,
    pending: Vec<u8>,
    written: usize,
}

impl RequestWriter {
    pub(super) fn open(pipe: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe: Some(Sender::from_owned_fd_unchecked(pipe)?), pending: Vec::new(), written: 0 })
    }

    /// The buffer to append lines to.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.pending
    }

    /// Closes stdin, which tells the worker to exit.
    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    /// Writes the buffer for as long as it is polled; never ends.
    pub(super) async fn flush(&mut self) -> Infallible {
        while let Some(pipe) = &mut self.pipe
            && self.written < self.pending.len()
        {
            match poll_fn(|cx| Pin::new(&mut *pipe).poll_write(cx, &self.pending[self.written..])).await {
                Ok(count) => self.written += count,
                // The worker closed its stdin. It will exit or miss a deadline, which ends it.
                Err(_) => self.pipe = None,
            }
        }
        self.pending.clear();
        // A large request does not keep its memory.
        self.pending.shrink_to(REQUESTS_KEPT);
        self.written = 0;
        pending().await
    }
}

/// The next thing read from a worker's stdout.
#[derive(Debug)]
pub(super) enum NextLine {
    /// A line, without its line feed.
    Line(Bytes),
    /// A line, or the beginning of one, above the limit.
    TooLong,
    /// End of file.
    Ended(Remainder),
}

/// What follows the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Remainder {
    Nothing,
    PartialLine,
}

/// Reads lines from a worker's stdout.
#[derive(Debug)]
pub(super) struct LineReader {
    pipe: Receiver,
    buffer: BytesMut,
    /// The length of the buffer's beginning that has no line feed, so that no byte is searched twice.
    searched: usize,
    /// The longest line, in bytes.
    max_line: usize,
}

impl LineReader {
    pub(super) fn open(pipe: OwnedFd, max_line: usize) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        let pipe = Receiver::from_owned_fd_unchecked(pipe)?;
        Ok(Self { pipe, buffer: BytesMut::new(), searched: 0, max_line })
    }

    pub(super) async fn next(&mut self) -> NextLine {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                line.truncate(line.len() - 1);
                return if line.len() > self.max_line { NextLine::TooLong } else { NextLine::Line(line) };
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > self.max_line {
                return NextLine::TooLong;
            }
            self.buffer.reserve(CHUNK);
            match self.pipe.read_buf(&mut self.buffer).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return NextLine::Ended(self.remainder()),
            }
        }
    }

    /// What was read beyond the last line.
    pub(super) fn remainder(&self) -> Remainder {
        if self.buffer.is_empty() { Remainder::Nothing } else { Remainder::PartialLine }
    }
}

/// Passes a worker's stderr on to the log.
#[derive(Debug)]
pub(super) struct StderrLog {
    pipe: Option<Receiver>,
    buffer: BytesMut,
    /// Bytes that are still logged. Above it, what is read until the next event is dropped.
    budget: usize,
    max: usize,
    /// The end of what the worker wrote before its hello; `None` once it has sent one.
    start: Option<Vec<u8>>,
}

impl StderrLog {
    pub(super) fn open(pipe: OwnedFd, max: usize) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        let pipe = Some(Receiver::from_owned_fd_unchecked(pipe)?);
        Ok(Self { pipe, buffer: BytesMut::new(), budget: max, max, start: Some(Vec::new()) })
    }

    /// Forgets what was written so far: the worker has sent its hello.
    pub(super) fn forget_start(&mut self) {
        self.start = None;
    }

    /// The error message among what the worker wrote before its hello, with what is still in the pipe.
    pub(super) fn error_line(&mut self, logging: StderrLogging) -> Option<String> {
        let mut chunk = [0; LOG_CHUNK];
        while let Some(Ok(read @ 1..)) = self.pipe.as_ref().map(|pipe| pipe.try_read(&mut chunk)) {
            keep_end(self.start.as_mut(), &chunk[..read]);
        }
        match logging {
            StderrLogging::Shown => error_message(self.start.as_deref()?),
            StderrLogging::Withheld => None,
        }
    }

    /// Restores the budget, for another event.
    pub(super) fn renew(&mut self) {
        self.budget = self.max;
    }

    /// Reads and logs for as long as it is polled; never ends.
    pub(super) async fn pass_on(&mut self, config: &WorkerConfig) -> Infallible {
        while let Some(pipe) = &mut self.pipe {
            self.buffer.clear();
            self.buffer.reserve(LOG_CHUNK);
            match pipe.read_buf(&mut self.buffer).await {
                Ok(1..) => {
                    keep_end(self.start.as_mut(), &self.buffer);
                    let shown = &self.buffer[..self.buffer.len().min(self.budget)];
                    self.budget -= shown.len();
                    if !shown.is_empty() && tracing::enabled!(target: EVENTS_TARGET, tracing::Level::DEBUG) {
                        let text = match config.stderr_logging {
                            StderrLogging::Shown => String::from_utf8_lossy(shown),
                            StderrLogging::Withheld => "withheld: the hook has secrets".into(),
                        };
                        let hook = &*config.hook;
                        tracing::debug!(target: EVENTS_TARGET, hook, stderr = text.trim_end(), "standard error of a worker");
                    }
                }
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
        pending().await
    }
}

/// Appends bytes and drops the oldest ones beyond `START_KEPT`.
fn keep_end(kept: Option<&mut Vec<u8>>, bytes: &[u8]) {
    let Some(kept) = kept else { return };
    kept.extend_from_slice(bytes);
    kept.drain(..kept.len().saturating_sub(START_KEPT));
}
