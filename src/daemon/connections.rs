//! Accepts connections up to a limit, serves HTTP/1.1 or HTTP/2 on them, and closes those that exceed a timeout.

use std::{convert::Infallible, io, os::fd::AsFd, pin::pin, sync::Arc, time::Duration};

use axum::body::Body;
use futures_util::{FutureExt, StreamExt, future::Either, stream::FuturesUnordered};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, UnixListener},
    sync::{OwnedSemaphorePermit, Semaphore},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    admission::Admission,
    auth::ListenerAuth,
    connection_timeouts::{ConnectionActivity, ConnectionTimeouts, LINGER},
    monitored_io::MonitoredIo,
    socket,
};

/// The largest request head, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The maximum number of concurrent requests of one HTTP/2 connection.
const MAX_HTTP2_STREAMS: u32 = 256;

/// How long accepting pauses after an error, which is mostly a lack of descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// How many connections over the limit are answered with 503 at the same time. Further ones are closed without a response.
pub(super) const MAX_REJECTIONS: usize = 64;

/// What all connections share.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pub(super) admission: Admission,
    /// Permits for connections (`limits.connections`).
    pub(super) slots: Arc<Semaphore>,
    /// Permits for connections over the limit, held while their 503 is sent.
    pub(super) rejection_slots: Arc<Semaphore>,
    pub(super) timeouts: ConnectionTimeouts,
    /// Cancelled when connections are to end after the requests in flight.
    pub(super) closing: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// A listening socket, and how its requests are authorized.
#[derive(Debug)]
pub(super) enum Listener {
    /// The event socket or the control socket.
    Unix(UnixListener, ListenerAuth),
    Tcp(TcpListener, ListenerAuth),
}

impl Connections {
    /// Accepts connections until the daemon shuts down.
    pub(super) async fn accept(self, listener: Listener) {
        loop {
            let accepted = tokio::select! {
                () = self.closing.cancelled() => return,
                accepted = self.accept_one(&listener) => accepted,
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "cannot accept a connection");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }

    async fn accept_one(&self, listener: &Listener) -> io::Result<()> {
        match listener {
            Listener::Unix(listener, auth) => {
                let (stream, _) = listener.accept().await?;
                match stream.peer_cred() {
                    Ok(peer) if socket::admits(peer) => self.spawn(stream, auth.clone()),
                    Ok(peer) => tracing::warn!(uid = peer.uid(), "a connection of another user was refused"),
                    Err(error) => tracing::warn!(%error, "a connection without a known user was refused"),
                }
            }
            Listener::Tcp(listener, auth) => {
                let (stream, _) = listener.accept().await?;
                // A response is written in one piece, so there is nothing for Nagle's algorithm to gather.
                drop(stream.set_nodelay(true));
                self.spawn(stream, auth.clone());
            }
        }
        Ok(())
    }

    /// Serves a connection in a task of its own, or rejects it over the limit.
    fn spawn<S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static>(
        &self,
        stream: S,
        auth: ListenerAuth,
    ) {
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            self.tasks.spawn(self.clone().serve(stream, auth, permit));
        } else if let Ok(permit) = Arc::clone(&self.rejection_slots).try_acquire_owned() {
            tokio::spawn(async move {
                // Fails if the peer is gone or does not read the response.
                drop(timeout(LINGER, reject(stream)).await);
                drop(permit);
            });
        }
    }

    /// Serves one connection to its end.
    async fn serve<S>(self, stream: S, auth: ListenerAuth, _permit: OwnedSemaphorePermit)
    where
        S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static,
    {
        let activity = ConnectionActivity::new();
        let admission = self.admission;
        let per_request = Arc::clone(&activity);
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let active_request = per_request.start_request();
            let request = request.map(|body| Body::new(active_request.request_body(body)));
            let admission = admission.clone();
            let auth = auth.clone();
            async move {
                let response = admission.answer(&auth, request).await;
                Ok::<_, Infallible>(response.map(|body| active_request.response_body(body)))
            }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().max_headers(100).max_buf_size(MAX_HEAD_BYTES);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_HTTP2_STREAMS);
        builder.http2().max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX));
        let io = TokioIo::new(MonitoredIo::new(stream, Arc::clone(&activity)));
        let mut connection = pin!(builder.serve_connection(io, service));
        // These futures are polled when they are woken themselves, and not with every byte of the connection.
        let mut events: FuturesUnordered<_> = [
            Either::Left(activity.timed_out(self.timeouts).map(|()| ConnectionEvent::TimedOut)),
            Either::Right(self.closing.cancelled().map(|()| ConnectionEvent::ShuttingDown)),
        ]
        .into_iter()
        .collect();
        // A connection's error is ignored: its peer has gone, or does not speak HTTP.
        loop {
            tokio::select! {
                biased;
                ended = connection.as_mut() => return drop(ended),
                Some(event) = events.next() => match event {
                    ConnectionEvent::TimedOut => return,
                    ConnectionEvent::ShuttingDown => connection.as_mut().graceful_shutdown(),
                },
            }
        }
    }
}

/// What ends a connection from this side.
enum ConnectionEvent {
    /// A timeout has passed.
    TimedOut,
    /// The daemon shuts down: requests in flight are answered, and no more are taken.
    ShuttingDown,
}

/// Answers a connection over the limit with 503. Its request is read and discarded: closing with unread bytes would reset
/// the connection before the peer has read the response.
async fn reject<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.write_all(too_many().as_bytes()).await?;
    stream.shutdown().await?;
    let mut discarded = [0; 1024];
    while stream.read(&mut discarded).await? > 0 {}
    Ok(())
}

/// The response to a connection over the limit.
fn too_many() -> String {
    let body = "{\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections\",\
        \"hint\":\"use fewer, or raise `limits.connections` in the settings\"}}\n";
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
