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
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// How often it is looked whether the peer of a request that takes its time is still there. A peer that sent more than
/// its request is not read from meanwhile, so its end would go unnoticed.
const PEER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// What an HTTP/2 connection begins with, and no HTTP/1 one does.
const HTTP2_PREFACE: &[u8] = b"PRI";

/// What stands for "not at the moment" among the times.
const UNSET: u64 = u64::MAX;

/// How long is too long.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionTimeouts {
    /// From the first byte of a request's head to its last; also from the connection to its first request.
    pub(super) head: Duration,
    /// While the peer takes nothing of an answer.
    pub(super) stalled_write: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
}

/// What happens on one connection, in milliseconds since it began.
#[derive(Debug)]
pub(super) struct ConnectionActivity {
    opened: u64,
    /// Since when a head has been coming in.
    head_since: AtomicU64,
    /// Since when the peer has taken nothing of what is written to it.
    write_blocked_since: AtomicU64,
    /// When the last answer was given.
    last_response: AtomicU64,
    /// When the peer last took something of an answer.
    last_read_by_peer: AtomicU64,
    /// How many answers wait for the peer to take them.
    pending_responses: AtomicUsize,
    active_requests: AtomicUsize,
    /// When the last request came.
    last_request: AtomicU64,
    completed: AtomicUsize,
    /// Whether a request was answered before all of it was read, so that the peer may be sending still.
    unread_body: AtomicBool,
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

impl ConnectionActivity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            opened: milliseconds(),
            head_since: AtomicU64::new(UNSET),
            write_blocked_since: AtomicU64::new(UNSET),
            last_response: AtomicU64::new(0),
            last_read_by_peer: AtomicU64::new(0),
            pending_responses: AtomicUsize::new(0),
            active_requests: AtomicUsize::new(0),
            last_request: AtomicU64::new(0),
            completed: AtomicUsize::new(0),
            unread_body: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
        })
    }

    fn now(&self) -> u64 {
        milliseconds().saturating_sub(self.opened)
    }

    /// A request is in hand until the returned value, or the answer it is put into, is dropped.
    pub(super) fn request(self: &Arc<Self>) -> ActiveRequest {
        self.active_requests.fetch_add(1, Ordering::AcqRel);
        self.last_request.store(self.now(), Ordering::Release);
        self.head_since.store(UNSET, Ordering::Release);
        ActiveRequest(Arc::clone(self))
    }

    /// The first bytes have come.
    pub(super) fn detect_protocol(&self, bytes: &[u8]) {
        self.is_http2.store(bytes.starts_with(HTTP2_PREFACE), Ordering::Release);
    }

    /// Whether a request was answered before all of it was read.
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread_body.load(Ordering::Acquire)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Acquire)
    }

    /// Bytes have come.
    pub(super) fn bytes_received(&self) {
        if !self.is_http2()
            && self.active_requests.load(Ordering::Acquire) == 0
            && self.head_since.load(Ordering::Acquire) == UNSET
        {
            self.head_since.store(self.now(), Ordering::Release);
        }
    }

    /// Bytes were to be written, and some were or none.
    pub(super) fn write_polled(&self, progress: bool) {
        if progress {
            self.write_blocked_since.store(UNSET, Ordering::Release);
            if !self.is_http2() {
                let now = self.now();
                self.last_read_by_peer.store(now, Ordering::Release);
                self.last_response.store(now, Ordering::Release);
            }
        } else if self.write_blocked_since.load(Ordering::Acquire) == UNSET {
            self.write_blocked_since.store(self.now(), Ordering::Release);
        }
    }

    /// Whether a request takes its time.
    pub(super) fn is_long_running(&self) -> bool {
        let since = self
            .last_request
            .load(Ordering::Acquire)
            .saturating_add(u64::try_from(PEER_CHECK_INTERVAL.as_millis()).unwrap_or(UNSET));
        self.active_requests.load(Ordering::Acquire) > 0 && self.now() >= since
    }

    /// How much longer the peer may keep as it is; none if it has been too long.
    fn remaining(&self, timeouts: &ConnectionTimeouts) -> Option<Duration> {
        let since = |at: u64| Duration::from_millis(self.now().saturating_sub(at));
        let blocked = self.write_blocked_since.load(Ordering::Acquire);
        if blocked != UNSET {
            return timeouts
                .stalled_write
                .checked_sub(since(blocked))
                .filter(|remaining| !remaining.is_zero());
        }
        if self.pending_responses.load(Ordering::Acquire) > 0 {
            let taken = self.last_read_by_peer.load(Ordering::Acquire);
            return timeouts.stalled_write.checked_sub(since(taken)).filter(|remaining| !remaining.is_zero());
        }
        if self.active_requests.load(Ordering::Acquire) > 0 {
            return Some(timeouts.stalled_write.min(timeouts.head).min(PEER_CHECK_INTERVAL));
        }
        let head = self.head_since.load(Ordering::Acquire);
        let (limit, at) = if head != UNSET {
            (timeouts.head, head)
        } else if self.completed.load(Ordering::Acquire) == 0 {
            (timeouts.head, 0)
        } else {
            (timeouts.idle, self.last_response.load(Ordering::Acquire))
        };
        limit.checked_sub(since(at)).filter(|remaining| !remaining.is_zero())
    }

    /// Ends when the peer has kept the daemon waiting for too long.
    pub(super) async fn timed_out(&self, timeouts: ConnectionTimeouts) {
        // A look in between costs little, and what has changed since may have a nearer end.
        let longest = timeouts.head.min(timeouts.stalled_write);
        while let Some(remaining) = self.remaining(&timeouts) {
            sleep(remaining.min(longest)).await;
        }
    }
}

/// A request that is worked on, or whose answer is.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<ConnectionActivity>);

impl ActiveRequest {
    /// The body of the request, of which it is noticed whether it was read to its end.
    pub(super) fn request_body(&self, body: Incoming) -> RequestBody {
        let unread = (!body.is_end_stream()).then(|| Arc::clone(&self.0));
        RequestBody { body, unread }
    }

    /// The answer, which keeps the request in hand until the peer has taken it.
    pub(super) fn response_body(self, body: Body) -> ResponseBody {
        self.0.pending_responses.fetch_add(1, Ordering::AcqRel);
        self.0.last_read_by_peer.store(self.0.now(), Ordering::Release);
        ResponseBody { body, is_waiting: true, active_request: self }
    }
}

impl Drop for ActiveRequest {
    fn drop(&mut self) {
        self.0.last_response.store(self.0.now(), Ordering::Release);
        self.0.completed.fetch_add(1, Ordering::AcqRel);
        self.0.active_requests.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The body of a request.
#[derive(Debug)]
pub(super) struct RequestBody {
    body: Incoming,
    /// Where it is told that there is a rest; none if there is none.
    unread: Option<Arc<ConnectionActivity>>,
}

impl HttpBody for RequestBody {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(context));
        if frame.is_none() || self.body.is_end_stream() {
            self.unread = None;
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

impl Drop for RequestBody {
    fn drop(&mut self) {
        if let Some(activity) = self.unread.take() {
            activity.unread_body.store(!activity.is_http2(), Ordering::Release);
        }
    }
}

/// The body of an answer. It waits for its peer from the moment it has data until it is polled for more.
#[derive(Debug)]
pub(super) struct ResponseBody {
    body: Body,
    is_waiting: bool,
    active_request: ActiveRequest,
}

impl ResponseBody {
    fn begin_wait(&mut self) {
        let activity = &self.active_request.0;
        activity.last_read_by_peer.store(activity.now(), Ordering::Release);
        if !std::mem::replace(&mut self.is_waiting, true) {
            activity.pending_responses.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn end_wait(&mut self) {
        if std::mem::take(&mut self.is_waiting) {
            self.active_request.0.pending_responses.fetch_sub(1, Ordering::AcqRel);
        }
    }
}

impl HttpBody for ResponseBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        match polled {
            Poll::Ready(Some(_)) => self.begin_wait(),
            Poll::Ready(None) | Poll::Pending => self.end_wait(),
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

impl Drop for ResponseBody {
    fn drop(&mut self) {
        self.end_wait();
    }
}
