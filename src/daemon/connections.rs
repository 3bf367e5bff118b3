//! Connections: accepted up to a limit, served in HTTP/1.1 or HTTP/2, ended when their peer keeps them waiting. Refuses
//! to know any route.

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

/// The longest head of a request, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// How many requests of one HTTP/2 connection are worked on at the same time.
const MAX_HTTP2_STREAMS: u32 = 256;

/// How long no connection is accepted after the system had no more descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// How many connections too many are told so at the same time; more are closed without a word.
pub(super) const MAX_REJECTIONS: usize = 64;

/// What all connections share.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pub(super) admission: Admission,
    pub(super) slots: Arc<Semaphore>,
    /// Permits for connections over the limit, held while their 503 is sent.
    pub(super) rejection_slots: Arc<Semaphore>,
    pub(super) timeouts: ConnectionTimeouts,
    /// Cancelled when no request is taken any more.
    pub(super) closing: CancellationToken,
    pub(super) tasks: TaskTracker,
}

/// What is listened on.
#[derive(Debug)]
pub(super) enum Listener {
    Unix(UnixListener),
    Tcp(TcpListener, ListenerAuth),
}

impl Connections {
    /// Accepts connections until it is closing time.
    pub(super) async fn accept(self, listener: Listener) {
        loop {
            let accepted = tokio::select! {
                () = self.closing.cancelled() => return,
                accepted = self.next(&listener) => accepted,
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }

    async fn next(&self, listener: &Listener) -> io::Result<()> {
        match listener {
            Listener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                match stream.peer_cred() {
                    Ok(peer) if socket::admits(peer) => self.take(stream, ListenerAuth::PeerUser),
                    Ok(peer) => tracing::warn!(uid = peer.uid(), "a connection of another user was refused"),
                    Err(error) => tracing::warn!(%error, "a connection without a known user was refused"),
                }
            }
            Listener::Tcp(listener, auth) => {
                let (stream, _) = listener.accept().await?;
                // An answer is written at once or not at all, so there is nothing to gather.
                drop(stream.set_nodelay(true));
                self.take(stream, auth.clone());
            }
        }
        Ok(())
    }

    fn take<S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static>(&self, stream: S, auth: ListenerAuth) {
        if let Ok(place) = Arc::clone(&self.slots).try_acquire_owned() {
            self.tasks.spawn(self.clone().serve(stream, auth, place));
        } else if let Ok(place) = Arc::clone(&self.rejection_slots).try_acquire_owned() {
            tokio::spawn(async move {
                // With nobody who reads it there is nobody to tell.
                drop(timeout(LINGER, reject(stream)).await);
                drop(place);
            });
        }
    }

    /// Serves one connection to its end.
    async fn serve<S>(self, stream: S, auth: ListenerAuth, _place: OwnedSemaphorePermit)
    where
        S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static,
    {
        let activity = ConnectionActivity::new();
        let admission = self.admission;
        let per_request = Arc::clone(&activity);
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let active_request = per_request.request();
            let request = request.map(|body| Body::new(active_request.request_body(body)));
            let (admission, auth) = (admission.clone(), auth.clone());
            async move {
                let answer = admission.answer(&auth, request).await;
                Ok::<_, Infallible>(answer.map(|body| active_request.response_body(body)))
            }
        });
        let mut builder = Builder::new(TokioExecutor::new());
        builder.http1().max_headers(100).max_buf_size(MAX_HEAD_BYTES);
        builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_HTTP2_STREAMS);
        builder.http2().max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX));
        let io = TokioIo::new(MonitoredIo::new(stream, Arc::clone(&activity)));
        let mut connection = pin!(builder.serve_connection(io, service));
        // Polled when they are woken themselves, and not with every byte of the connection.
        let mut events: FuturesUnordered<_> = [
            Either::Left(activity.timed_out(self.timeouts).map(|()| ConnectionEvent::TimedOut)),
            Either::Right(self.closing.cancelled().map(|()| ConnectionEvent::ShuttingDown)),
        ]
        .into_iter()
        .collect();
        // An error of a connection is its peer's affair: it has gone, or speaks no HTTP.
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

/// What a connection is called to.
enum ConnectionEvent {
    /// Its peer has kept the daemon waiting for too long.
    TimedOut,
    /// No request is taken any more.
    ShuttingDown,
}

/// Tells a connection too many, and passes over what it asks: with unread bytes its end would overtake the words.
async fn reject<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S) -> io::Result<()> {
    stream.write_all(too_many().as_bytes()).await?;
    stream.shutdown().await?;
    let mut space = [0; 1024];
    while stream.read(&mut space).await? > 0 {}
    Ok(())
}

/// What a connection too many is told, without a look at what it asks.
fn too_many() -> String {
    let body = "{\"error\":{\"code\":\"overloaded\",\"message\":\"too many connections\",\
        \"hint\":\"use fewer, or raise `limits.connections` in the settings\"}}\n";
    format!(
        "HTTP/1.1 503 Service Unavailable\r\nretry-after: 1\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}
