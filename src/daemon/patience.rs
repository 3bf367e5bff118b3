//! How long a connection may keep the daemon waiting: for a head, for the reader of an answer, for anything at all.
//! Owns the clock of one connection; refuses to know what is said on it.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    time::{Instant, sleep},
};

/// What stands for "not at the moment" among the times.
const NOT: u64 = u64::MAX;

/// How long is too long.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// From the first byte of a request's head to its last; also from the connection to its first request.
    pub(super) head: Duration,
    /// While the peer takes nothing of an answer.
    pub(super) reading: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
}

/// What happens on one connection, in milliseconds since it began.
#[derive(Debug)]
pub(super) struct Pulse {
    began: Instant,
    /// Since when a head has been coming in.
    head_since: AtomicU64,
    /// Since when the peer has taken nothing of what is written to it.
    stuck_since: AtomicU64,
    /// When the last answer was ready.
    last_answer: AtomicU64,
    in_hand: AtomicUsize,
    answered: AtomicUsize,
}

impl Pulse {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: Instant::now(),
            head_since: AtomicU64::new(NOT),
            stuck_since: AtomicU64::new(NOT),
            last_answer: AtomicU64::new(0),
            in_hand: AtomicUsize::new(0),
            answered: AtomicUsize::new(0),
        })
    }

    fn now(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(NOT - 1)
    }

    /// A request is in hand until the returned value is dropped.
    pub(super) fn request(self: &Arc<Self>) -> InHand {
        self.in_hand.fetch_add(1, Ordering::AcqRel);
        self.head_since.store(NOT, Ordering::Release);
        InHand(Arc::clone(self))
    }

    fn came(&self) {
        if self.in_hand.load(Ordering::Acquire) == 0 && self.head_since.load(Ordering::Acquire) == NOT {
            self.head_since.store(self.now(), Ordering::Release);
        }
    }

    fn wrote(&self, progress: bool) {
        if progress {
            self.stuck_since.store(NOT, Ordering::Release);
        } else if self.stuck_since.load(Ordering::Acquire) == NOT {
            self.stuck_since.store(self.now(), Ordering::Release);
        }
    }

    /// How much longer the peer may keep as it is; none if it has been too long.
    fn left(&self, patience: &Patience) -> Option<Duration> {
        let since = |at: u64| Duration::from_millis(self.now().saturating_sub(at));
        let stuck = self.stuck_since.load(Ordering::Acquire);
        if stuck != NOT {
            return patience.reading.checked_sub(since(stuck)).filter(|left| !left.is_zero());
        }
        if self.in_hand.load(Ordering::Acquire) > 0 {
            return Some(patience.reading.min(patience.head));
        }
        let head = self.head_since.load(Ordering::Acquire);
        let (limit, at) = if head != NOT {
            (patience.head, head)
        } else if self.answered.load(Ordering::Acquire) == 0 {
            (patience.head, 0)
        } else {
            (patience.idle, self.last_answer.load(Ordering::Acquire))
        };
        limit.checked_sub(since(at)).filter(|left| !left.is_zero())
    }

    /// Ends when the peer has kept the daemon waiting for too long.
    pub(super) async fn run_out(&self, patience: Patience) {
        // A look in between costs little, and what has changed since may have a nearer end.
        let longest = patience.head.min(patience.reading);
        while let Some(left) = self.left(&patience) {
            sleep(left.min(longest)).await;
        }
    }
}

/// A request that is worked on.
#[derive(Debug)]
pub(super) struct InHand(Arc<Pulse>);

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.last_answer.store(self.0.now(), Ordering::Release);
        self.0.answered.fetch_add(1, Ordering::AcqRel);
        self.0.in_hand.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A stream whose bytes are noticed.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    pulse: Arc<Pulse>,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, pulse: Arc<Pulse>) -> Self {
        Self { stream, pulse }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        if buffer.filled().len() > before {
            self.pulse.came();
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.pulse.wrote(polled.is_ready());
        polled
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(context, slices);
        self.pulse.wrote(polled.is_ready());
        polled
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
