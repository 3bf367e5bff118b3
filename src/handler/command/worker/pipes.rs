//! The three pipes of a worker: requests in, lines out, and its log. Owns their buffers and bounds; refuses to
//! understand a line. Every future here may be dropped and made again without losing a byte.

use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use rustix::io::ioctl_fionbio;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::net::unix::pipe::{Receiver, Sender};

use super::terms::{Errors, Terms};
use crate::telemetry::EVENTS_TARGET;

/// Room made before each read.
const CHUNK: usize = 8 * 1024;

/// The most of its log that is kept for one line of ours.
const LOGGED: usize = 1024;

/// What is still to be written to a worker.
#[derive(Debug)]
pub(super) struct Requests {
    pipe: Option<Sender>,
    left: Vec<u8>,
    written: usize,
}

impl Requests {
    pub(super) fn open(pipe: OwnedFd) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        Ok(Self { pipe: Some(Sender::from_owned_fd_unchecked(pipe)?), left: Vec::new(), written: 0 })
    }

    /// Where lines are added.
    pub(super) fn buffer(&mut self) -> &mut Vec<u8> {
        &mut self.left
    }

    /// Tells the worker that nothing more will come.
    pub(super) fn close(&mut self) {
        self.pipe = None;
    }

    /// Writes for as long as it is polled.
    pub(super) async fn flush(&mut self) -> Infallible {
        while let Some(pipe) = &mut self.pipe
            && self.written < self.left.len()
        {
            match poll_fn(|cx| Pin::new(&mut *pipe).poll_write(cx, &self.left[self.written..])).await {
                Ok(count) => self.written += count,
                // It closed its stdin: it says nothing more, or dies, or its deadline comes.
                Err(_) => self.pipe = None,
            }
        }
        // A large request leaves no large buffer behind.
        self.left = Vec::new();
        self.written = 0;
        pending().await
    }
}

/// What a worker wrote next.
#[derive(Debug)]
pub(super) enum Next {
    /// A line, without its end.
    Line(Bytes),
    /// A line, or the beginning of one, that is longer than allowed.
    TooLong,
    /// Nothing more.
    Ended(Rest),
}

/// What stood after the last line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nothing,
    HalfLine,
}

/// The lines that a worker writes.
#[derive(Debug)]
pub(super) struct Lines {
    pipe: Receiver,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no end of a line.
    searched: usize,
    longest: usize,
}

impl Lines {
    pub(super) fn open(pipe: OwnedFd, longest: usize) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        let pipe = Receiver::from_owned_fd_unchecked(pipe)?;
        Ok(Self { pipe, buffer: BytesMut::new(), searched: 0, longest })
    }

    pub(super) async fn next(&mut self) -> Next {
        loop {
            if let Some(end) = self.buffer[self.searched..].iter().position(|byte| *byte == b'\n') {
                let mut line = self.buffer.split_to(self.searched + end + 1).freeze();
                self.searched = 0;
                line.truncate(line.len() - 1);
                return if line.len() > self.longest { Next::TooLong } else { Next::Line(line) };
            }
            self.searched = self.buffer.len();
            if self.buffer.len() > self.longest {
                return Next::TooLong;
            }
            self.buffer.reserve(CHUNK);
            match self.pipe.read_buf(&mut self.buffer).await {
                Ok(1..) => {}
                Ok(0) | Err(_) => return Next::Ended(self.rest()),
            }
        }
    }

    /// What has been read beyond the last line.
    pub(super) fn rest(&self) -> Rest {
        if self.buffer.is_empty() { Rest::Nothing } else { Rest::HalfLine }
    }
}

/// What a worker writes to its standard error.
#[derive(Debug)]
pub(super) struct Log {
    pipe: Option<Receiver>,
    buffer: BytesMut,
    /// Bytes still shown; the rest until the next event is read and dropped.
    left: usize,
    most: usize,
}

impl Log {
    pub(super) fn open(pipe: OwnedFd, most: usize) -> io::Result<Self> {
        ioctl_fionbio(&pipe, true)?;
        let pipe = Some(Receiver::from_owned_fd_unchecked(pipe)?);
        Ok(Self { pipe, buffer: BytesMut::new(), left: most, most })
    }

    /// Another event has come, which may be logged about too.
    pub(super) fn renew(&mut self) {
        self.left = self.most;
    }

    /// Passes the log on for as long as it is polled.
    pub(super) async fn pass_on(&mut self, terms: &Terms) -> Infallible {
        while let Some(pipe) = &mut self.pipe {
            self.buffer.clear();
            self.buffer.reserve(LOGGED);
            match pipe.read_buf(&mut self.buffer).await {
                Ok(1..) => {
                    let shown = &self.buffer[..self.buffer.len().min(self.left)];
                    self.left -= shown.len();
                    if !shown.is_empty() && tracing::enabled!(target: EVENTS_TARGET, tracing::Level::DEBUG) {
                        let text = match terms.errors {
                            Errors::Shown => String::from_utf8_lossy(shown),
                            Errors::Withheld => "left out, because the hook has secrets".into(),
                        };
                        let hook = &*terms.hook;
                        tracing::debug!(target: EVENTS_TARGET, hook, stderr = text.trim_end(), "standard error of a worker");
                    }
                }
                Ok(0) | Err(_) => self.pipe = None,
            }
        }
        pending().await
    }
}
