//! How long a connection may keep the daemon waiting: for a head, for the reader of an answer, for anything at all.
//! Owns the clock of one connection; refuses to know what is said on it.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::sleep;

/// How long a peer that still sends is listened to after the last answer: a connection that is closed with unread bytes
/// takes its answer away from a peer that has not read it.
pub(super) const LAST_WORDS: Duration = Duration::from_secs(1);

/// How often it is looked whether the peer of a request that takes its time is still there. A peer that sent more than
/// its request is not read from meanwhile, so its end would go unnoticed.
const LOOK: Duration = Duration::from_secs(1);

/// What an HTTP/2 connection begins with, and no HTTP/1 one does.
const HTTP2: &[u8] = b"PRI";

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
    began: u64,
    /// Since when a head has been coming in.
    head_since: AtomicU64,
    /// Since when the peer has taken nothing of what is written to it.
    stuck_since: AtomicU64,
    /// When the last answer was given.
    last_answer: AtomicU64,
    /// When the peer last took something of an answer.
    last_taken: AtomicU64,
    /// How many answers wait for the peer to take them.
    offered: AtomicUsize,
    in_hand: AtomicUsize,
    /// When the last request came.
    asked: AtomicU64,
    answered: AtomicUsize,
    /// Whether a request was answered before all of it was read, so that the peer may be sending still.
    unheard: AtomicBool,
    /// Whether it is HTTP/2, where bytes that come and go need not be those of a request or an answer.
    is_http2: AtomicBool,
}

/// A clock that is good to a few milliseconds and costs a fraction of a fine one: it is looked at several times for each
/// request.
fn milliseconds() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let (seconds, nanoseconds) = (u64::try_from(now.tv_sec), u64::try_from(now.tv_nsec));
    seconds.unwrap_or_default() * 1_000 + nanoseconds.unwrap_or_default() / 1_000_000
}

impl Pulse {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            began: milliseconds(),
            head_since: AtomicU64::new(NOT),
            stuck_since: AtomicU64::new(NOT),
            last_answer: AtomicU64::new(0),
            last_taken: AtomicU64::new(0),
            offered: AtomicUsize::new(0),
            in_hand: AtomicUsize::new(0),
            asked: AtomicU64::new(0),
            answered: AtomicUsize::new(0),
            unheard: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
        })
    }

    fn now(&self) -> u64 {
        milliseconds().saturating_sub(self.began)
    }

    /// A request is in hand until the returned value, or the answer it is put into, is dropped.
    pub(super) fn request(self: &Arc<Self>) -> InHand {
        self.in_hand.fetch_add(1, Ordering::AcqRel);
        self.asked.store(self.now(), Ordering::Release);
        self.head_since.store(NOT, Ordering::Release);
        InHand(Arc::clone(self))
    }

    /// The first bytes have come.
    pub(super) fn begins(&self, bytes: &[u8]) {
        self.is_http2.store(bytes.starts_with(HTTP2), Ordering::Release);
    }

    /// Whether a request was answered before all of it was read.
    pub(super) fn is_unheard(&self) -> bool {
        self.unheard.load(Ordering::Acquire)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Acquire)
    }

    /// Bytes have come.
    pub(super) fn came(&self) {
        if !self.is_http2()
            && self.in_hand.load(Ordering::Acquire) == 0
            && self.head_since.load(Ordering::Acquire) == NOT
        {
            self.head_since.store(self.now(), Ordering::Release);
        }
    }

    /// Bytes were to be written, and some were or none.
    pub(super) fn wrote(&self, progress: bool) {
        if progress {
            self.stuck_since.store(NOT, Ordering::Release);
            if !self.is_http2() {
                let now = self.now();
                self.last_taken.store(now, Ordering::Release);
                self.last_answer.store(now, Ordering::Release);
            }
        } else if self.stuck_since.load(Ordering::Acquire) == NOT {
            self.stuck_since.store(self.now(), Ordering::Release);
        }
    }

    /// Whether a request takes its time.
    pub(super) fn is_long(&self) -> bool {
        let since =
            self.asked.load(Ordering::Acquire).saturating_add(u64::try_from(LOOK.as_millis()).unwrap_or(NOT));
        self.in_hand.load(Ordering::Acquire) > 0 && self.now() >= since
    }

    /// How much longer the peer may keep as it is; none if it has been too long.
    fn left(&self, patience: &Patience) -> Option<Duration> {
        let since = |at: u64| Duration::from_millis(self.now().saturating_sub(at));
        let stuck = self.stuck_since.load(Ordering::Acquire);
        if stuck != NOT {
            return patience.reading.checked_sub(since(stuck)).filter(|left| !left.is_zero());
        }
        if self.offered.load(Ordering::Acquire) > 0 {
            let taken = self.last_taken.load(Ordering::Acquire);
            return patience.reading.checked_sub(since(taken)).filter(|left| !left.is_zero());
        }
        if self.in_hand.load(Ordering::Acquire) > 0 {
            return Some(patience.reading.min(patience.head).min(LOOK));
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

/// A request that is worked on, or whose answer is.
#[derive(Debug)]
pub(super) struct InHand(Arc<Pulse>);

impl InHand {
    /// The body of the request, of which it is noticed whether it was read to its end.
    pub(super) fn hear(&self, body: Incoming) -> Heard {
        let rest = (!body.is_end_stream()).then(|| Arc::clone(&self.0));
        Heard { body, rest }
    }

    /// The answer, which keeps the request in hand until the peer has taken it.
    pub(super) fn answer(self, body: Body) -> Offered {
        self.0.offered.fetch_add(1, Ordering::AcqRel);
        self.0.last_taken.store(self.0.now(), Ordering::Release);
        Offered { body, is_waiting: true, in_hand: self }
    }
}

impl Drop for InHand {
    fn drop(&mut self) {
        self.0.last_answer.store(self.0.now(), Ordering::Release);
        self.0.answered.fetch_add(1, Ordering::AcqRel);
        self.0.in_hand.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The body of a request.
#[derive(Debug)]
pub(super) struct Heard {
    body: Incoming,
    /// Where it is told that there is a rest; none if there is none.
    rest: Option<Arc<Pulse>>,
}

impl HttpBody for Heard {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.rest = None;
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if let Some(pulse) = self.rest.take() {
            pulse.unheard.store(!pulse.is_http2(), Ordering::Release);
        }
    }
}

/// The body of an answer. It waits for its peer from the moment it has something to say until it is asked for more.
#[derive(Debug)]
pub(super) struct Offered {
    body: Body,
    is_waiting: bool,
    in_hand: InHand,
}

impl Offered {
    fn wait(&mut self) {
        let pulse = &self.in_hand.0;
        pulse.last_taken.store(pulse.now(), Ordering::Release);
        if !std::mem::replace(&mut self.is_waiting, true) {
            pulse.offered.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn wait_no_more(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.in_hand.0.offered.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl HttpBody for Offered {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match polled {
            Poll::Ready(Some(_)) => self.wait(),
            Poll::Ready(None) | Poll::Pending => self.wait_no_more(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Offered {
    fn drop(&mut self) {
        self.wait_no_more();
    }
}
