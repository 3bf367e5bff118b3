//! The timers of one connection: for a request head, for a client that does not read its response, and for idleness.
//!
//! They are ours because hyper's HTTP/1 server has a single timer, `header_read_timeout`. It starts when the previous
//! response is done and so covers the idle time too, which would force one limit on both; and nothing in hyper limits how
//! long a client may leave its response unread. `MonitoredIo` and the bodies below record what happens, and
//! [`ConnectionActivity::timed_out`] compares it with the limits.

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
use tokio::time::sleep;

use crate::platform::coarse_milliseconds;

/// How long bytes of a peer are read after the last response. Closing a connection with unread bytes resets it, and the
/// peer may lose a response that it has not read yet.
pub(super) const LINGER: Duration = Duration::from_secs(1);

/// How often the peer of a long request is checked for having gone. hyper does not read from a peer that has sent more
/// than its request, and so would not notice.
const PEER_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// The start of the HTTP/2 connection preface, which no HTTP/1 request starts with.
const HTTP2_PREFACE: &[u8] = b"PRI";

/// How often a connection of a daemon that is about to stop is checked for its first request.
const FIRST_REQUEST_CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// Stands for "not at the moment" among the times.
const UNSET: u64 = u64::MAX;

/// The limits.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionTimeouts {
    /// From the first to the last byte of a request's head, and from the connection to the first request.
    pub(super) head: Duration,
    /// While the peer reads nothing of a response.
    pub(super) stalled_write: Duration,
    /// Between a response and the next request.
    pub(super) idle: Duration,
}

/// What happens on one connection. Times are milliseconds since it was opened.
#[derive(Debug)]
pub(super) struct ConnectionActivity {
    /// On the clock of [`milliseconds`].
    opened: u64,
    /// When the head that is being received started.
    head_since: AtomicU64,
    /// Since when writes to the peer have been blocked.
    write_blocked_since: AtomicU64,
    /// When the last response ended.
    last_response: AtomicU64,
    /// When the peer last read something of a response.
    last_read_by_peer: AtomicU64,
    /// The responses with data that the peer has not read.
    pending_responses: AtomicUsize,
    /// The requests whose responses have not ended.
    active_requests: AtomicUsize,
    /// When the last request came.
    last_request: AtomicU64,
    /// The requests whose responses have ended.
    completed: AtomicUsize,
    /// Whether a request was answered before its body was read to the end: the peer may still be sending.
    unread_body: AtomicBool,
    /// Whether this is HTTP/2, where bytes need not belong to a request or a response.
    is_http2: AtomicBool,
}

impl ConnectionActivity {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            opened: coarse_milliseconds(),
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
        coarse_milliseconds().saturating_sub(self.opened)
    }

    /// Starts a request, which is active until the returned guard, or the response body it moves into, is dropped.
    pub(super) fn start_request(self: &Arc<Self>) -> ActiveRequest {
        self.active_requests.fetch_add(1, Ordering::AcqRel);
        self.last_request.store(self.now(), Ordering::Release);
        self.head_since.store(UNSET, Ordering::Release);
        ActiveRequest(Arc::clone(self))
    }

    /// Records the first bytes of the connection.
    pub(super) fn detect_protocol(&self, bytes: &[u8]) {
        self.is_http2.store(bytes.starts_with(HTTP2_PREFACE), Ordering::Release);
    }

    /// Whether a request was answered before its body was read to the end.
    pub(super) fn has_unread_body(&self) -> bool {
        self.unread_body.load(Ordering::Acquire)
    }

    pub(super) fn is_http2(&self) -> bool {
        self.is_http2.load(Ordering::Acquire)
    }

    /// Whether no request has come yet.
    pub(super) fn is_unused(&self) -> bool {
        self.active_requests.load(Ordering::Acquire) == 0 && self.completed.load(Ordering::Acquire) == 0
    }

    /// Waits for the first request. Only for connections of a daemon that is about to stop: it looks again and again.
    pub(super) async fn first_request(&self) {
        while self.is_unused() {
            sleep(FIRST_REQUEST_CHECK_INTERVAL).await;
        }
    }

    /// Records that bytes were read. Outside a request they belong to the next head.
    pub(super) fn bytes_received(&self) {
        if !self.is_http2()
            && self.active_requests.load(Ordering::Acquire) == 0
            && self.head_since.load(Ordering::Acquire) == UNSET
        {
            self.head_since.store(self.now(), Ordering::Release);
        }
    }

    /// Records the result of polling a write: whether some bytes were written.
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

    /// Whether a request has been active for longer than [`PEER_CHECK_INTERVAL`].
    pub(super) fn is_long_running(&self) -> bool {
        let since = self
            .last_request
            .load(Ordering::Acquire)
            .saturating_add(u64::try_from(PEER_CHECK_INTERVAL.as_millis()).unwrap_or(UNSET));
        self.active_requests.load(Ordering::Acquire) > 0 && self.now() >= since
    }

    /// How long the peer may stay as it is; none if a limit has passed.
    fn remaining(&self, timeouts: &ConnectionTimeouts) -> Option<Duration> {
        let blocked = self.write_blocked_since.load(Ordering::Acquire);
        if blocked != UNSET {
            // The peer takes no bytes.
            return self.until(timeouts.stalled_write, blocked);
        }
        if self.pending_responses.load(Ordering::Acquire) > 0 {
            // A response has data to send.
            return self.until(timeouts.stalled_write, self.last_read_by_peer.load(Ordering::Acquire));
        }
        if self.active_requests.load(Ordering::Acquire) > 0 {
            // A handler works: the peer waits for the daemon, for as long as that takes.
            return Some(timeouts.stalled_write.min(timeouts.head).min(PEER_CHECK_INTERVAL));
        }
        let head = self.head_since.load(Ordering::Acquire);
        if head != UNSET {
            // A head is being received.
            self.until(timeouts.head, head)
        } else if self.completed.load(Ordering::Acquire) == 0 {
            // The first request has not come.
            self.until(timeouts.head, 0)
        } else {
            // Idle between two requests.
            self.until(timeouts.idle, self.last_response.load(Ordering::Acquire))
        }
    }

    /// What is left of a limit that started at a time; none if it has passed.
    fn until(&self, limit: Duration, start: u64) -> Option<Duration> {
        let elapsed = Duration::from_millis(self.now().saturating_sub(start));
        limit.checked_sub(elapsed).filter(|remaining| !remaining.is_zero())
    }

    /// Completes when a limit has passed.
    pub(super) async fn timed_out(&self, timeouts: ConnectionTimeouts) {
        // Something with an earlier deadline may start during a sleep, so none is longer than the shortest of those limits.
        let longest = timeouts.head.min(timeouts.stalled_write);
        while let Some(remaining) = self.remaining(&timeouts) {
            sleep(remaining.min(longest)).await;
        }
    }
}

/// RAII guard: an active request.
#[derive(Debug)]
pub(super) struct ActiveRequest(Arc<ConnectionActivity>);

impl ActiveRequest {
    /// Wraps the body of the request, to notice whether it is read to its end.
    pub(super) fn request_body(&self, body: Incoming) -> RequestBody {
        let unread = (!body.is_end_stream()).then(|| Arc::clone(&self.0));
        RequestBody { body, unread }
    }

    /// Wraps the body of the response, which keeps the request active until the peer has read it.
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
    /// Where unread bytes are reported; none once the body was read to its end.
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

/// The body of a response. It waits for its peer from the moment it has data until it is polled for more.
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
