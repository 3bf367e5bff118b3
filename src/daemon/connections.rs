//! Accepts connections up to the limit of each listener, serves HTTP/1.1 or HTTP/2 on them, and closes those that exceed a timeout.

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    os::{fd::AsFd, unix::net::UnixStream as StdUnixStream},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use axum::body::Body;
use futures_util::{FutureExt, StreamExt, future::Either, stream::FuturesUnordered};
use hyper::body::Incoming;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto::Builder,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream, UnixListener, UnixStream, unix::UCred},
    sync::OwnedSemaphorePermit,
    time::{Instant, sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    admission::Admission,
    auth::{self, ListenerAuth},
    connection_timeouts::{ConnectionActivity, ConnectionTimeouts},
    denials::Peer,
    handed_over::{ListenerOwner, ListenerRole},
    handover_slot::{AcceptGate, AcceptPhase, AcceptStep, HandoverListener, accept_step},
    lines::{self, LinesDoor, LinesEnd},
    listener_share::ListenerShare,
    monitored_io::MonitoredIo,
    socket::Socket,
    state::DaemonState,
};
use crate::handler::command::Lineage;

/// The largest request head, in bytes.
const MAX_HEAD_BYTES: usize = 64 << 10;

/// The maximum number of concurrent requests of one HTTP/2 connection.
const MAX_HTTP2_STREAMS: u32 = 256;

/// How long accepting pauses after an error, which is mostly a lack of descriptors or memory.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(50);

/// How long further errors of a listener are counted instead of logged.
const ERROR_LOG_INTERVAL: Duration = Duration::from_mins(1);

/// How long a connection beyond the limit may take to send its request and to read the answer.
const REFUSAL_TIME: Duration = Duration::from_secs(5);

/// How long connections may take to close after the last response.
pub(super) const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// What all connections share.
#[derive(Debug, Clone)]
pub(super) struct Connections {
    pub(super) timeouts: ConnectionTimeouts,
    /// Cancelled when connections are to end after their next response.
    pub(super) draining: CancellationToken,
    /// Cancelled when connections are to end after the requests in flight.
    pub(super) closing: CancellationToken,
    pub(super) gate: AcceptGate,
    pub(super) tasks: TaskTracker,
}

/// A listener and its owner.
#[derive(Debug)]
pub(super) struct OpenListener {
    pub(super) role: ListenerRole,
    pub(super) listener: Listener,
    pub(super) owner: ListenerOwner,
}

impl OpenListener {
    /// What a daemon gets that replaces this one.
    pub(super) fn for_handover(&self) -> io::Result<HandoverListener> {
        use Listener::{ControlSocket, EventSocket, LinesSocket, Tcp};
        let descriptor = match &self.listener {
            EventSocket(it) | ControlSocket(it, _) | LinesSocket(it) => it.as_fd(),
            Tcp(it, _) => it.as_fd(),
        };
        let descriptor = descriptor.try_clone_to_owned()?;
        Ok(HandoverListener { role: self.role, owner: self.owner, descriptor })
    }
}

/// A listening socket, and how its requests are authorized.
#[derive(Debug)]
pub(super) enum Listener {
    EventSocket(UnixListener),
    /// The control socket. Connections of hooks count as those of the event socket.
    ControlSocket(UnixListener, Admission),
    LinesSocket(UnixListener),
    Tcp(TcpListener, ListenerAuth),
}

impl Listener {
    /// Whether its clients send events, and wait for them.
    fn takes_events(&self) -> bool {
        matches!(self, Self::EventSocket(_) | Self::LinesSocket(_) | Self::Tcp(_, ListenerAuth::Tcp(_)))
    }
}

/// A place that a connection holds while it is served.
#[derive(Debug)]
enum ConnectionPlace {
    /// One within the limit.
    Open(#[expect(dead_code, reason = "it is dropped, never used")] OwnedSemaphorePermit),
    /// One of the few in which connections beyond the limit are answered.
    BeyondLimit(#[expect(dead_code, reason = "it is dropped, never used")] OwnedSemaphorePermit),
}

/// The errors of a listener, logged at most once a minute: without descriptors, every attempt fails.
#[derive(Debug, Default)]
struct AcceptErrors {
    logged: Option<Instant>,
    /// Since the last log line.
    unlogged: u64,
}

impl AcceptErrors {
    fn record(&mut self, error: &io::Error) {
        if self.logged.is_some_and(|logged| logged.elapsed() < ERROR_LOG_INTERVAL) {
            self.unlogged += 1;
            return;
        }
        tracing::warn!(%error, unlogged = self.unlogged, "cannot accept a connection");
        *self = Self { logged: Some(Instant::now()), unlogged: 0 };
    }
}

impl Connections {
    /// Accepts connections until the daemon shuts down, and those that wait then.
    pub(super) async fn accept(self, open: OpenListener, admission: Admission) {
        let OpenListener { listener, owner, .. } = open;
        let mut errors = AcceptErrors::default();
        let mut phases = self.gate.follow();
        loop {
            let phase = *phases.borrow_and_update();
            match accept_step(phase, owner, listener.takes_events()) {
                AcceptStep::Accept => {}
                AcceptStep::AcceptWaiting => break,
                AcceptStep::Leave => return,
                AcceptStep::Wait => {
                    // `self` has the gate, so it stays.
                    drop(phases.changed().await);
                    continue;
                }
            }
            let accepted = tokio::select! {
                _ = phases.changed() => continue,
                accepted = self.accept_one(&listener, &admission) => accepted,
            };
            if let Err(error) = accepted {
                errors.record(&error);
                sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
        // Closing the listener resets the connections that wait in it, and their clients cannot tell whether hooks ran.
        // An error ends the list, also the one that says that none waits.
        _ = self.accept_waiting(listener, &admission);
    }

    /// Answers those who wait in the sockets of a daemon that does not start, with the reason. What the service manager
    /// owns is left to the next daemon.
    pub(super) async fn refuse_waiting(
        self,
        state: &DaemonState,
        sockets: &[Socket],
        listeners: Vec<(OpenListener, Admission)>,
        why: &str,
    ) {
        state.fail_loading(why);
        sockets.iter().for_each(Socket::remove);
        self.gate.set(AcceptPhase::Closing);
        for (listener, admission) in listeners {
            self.clone().accept(listener, admission).await;
        }
        self.closing.cancel();
        self.tasks.close();
        drop(timeout(CLOSE_TIMEOUT, self.tasks.wait()).await);
        state.orchestrator.shutdown(Duration::ZERO).await;
    }

    async fn accept_one(&self, listener: &Listener, admission: &Admission) -> io::Result<()> {
        match listener {
            Listener::EventSocket(listener) => self.admit_event_peer(listener.accept().await?.0, admission),
            Listener::ControlSocket(listener, of_hooks) => {
                self.admit_control_peer(listener.accept().await?.0, admission, of_hooks);
            }
            Listener::LinesSocket(listener) => self.admit_lines_peer(listener.accept().await?.0, admission),
            Listener::Tcp(listener, auth) => {
                let (stream, address) = listener.accept().await?;
                self.admit_tcp_peer(stream, address, auth, admission);
            }
        }
        Ok(())
    }

    /// Accepts the connections that wait in a listener, and closes it.
    fn accept_waiting(&self, listener: Listener, admission: &Admission) -> io::Result<()> {
        match listener {
            Listener::EventSocket(listener) => {
                let listener = listener.into_std()?;
                loop {
                    self.admit_event_peer(unix_stream(listener.accept()?.0)?, admission);
                }
            }
            Listener::ControlSocket(listener, of_hooks) => {
                let listener = listener.into_std()?;
                loop {
                    self.admit_control_peer(unix_stream(listener.accept()?.0)?, admission, &of_hooks);
                }
            }
            Listener::LinesSocket(listener) => {
                let listener = listener.into_std()?;
                loop {
                    self.admit_lines_peer(unix_stream(listener.accept()?.0)?, admission);
                }
            }
            Listener::Tcp(listener, auth) => {
                let listener = listener.into_std()?;
                loop {
                    let (stream, address) = listener.accept()?;
                    stream.set_nonblocking(true)?;
                    self.admit_tcp_peer(TcpStream::from_std(stream)?, address, &auth, admission);
                }
            }
        }
    }

    fn admit_event_peer(&self, stream: UnixStream, admission: &Admission) {
        if let Some(peer) = admitted(stream.peer_cred()) {
            self.spawn(stream, ListenerAuth::EventSocket, Peer::User(peer.uid()), admission);
        }
    }

    fn admit_control_peer(&self, stream: UnixStream, admission: &Admission, of_hooks: &Admission) {
        if let Some(peer) = admitted(stream.peer_cred()) {
            let lineage = auth::lineage(&stream, peer);
            let admission = if lineage == Lineage::Hook { of_hooks } else { admission };
            self.spawn(stream, ListenerAuth::ControlSocket(lineage), Peer::User(peer.uid()), admission);
        }
    }

    fn admit_lines_peer(&self, stream: UnixStream, admission: &Admission) {
        let Some(peer) = admitted(stream.peer_cred()) else { return };
        self.place(admission.share(), |place| {
            let is_beyond_limit = matches!(place, ConnectionPlace::BeyondLimit(_));
            let door = LinesDoor::new(admission.context(), peer.uid(), is_beyond_limit);
            let (draining, closing) = (self.draining.clone(), self.closing.clone());
            let end = LinesEnd { timeouts: self.timeouts, draining, closing };
            lines::serve(stream, door, end).map(|()| drop(place))
        });
    }

    fn admit_tcp_peer(
        &self,
        stream: TcpStream,
        address: SocketAddr,
        auth: &ListenerAuth,
        admission: &Admission,
    ) {
        // A response is written in one piece, so there is nothing for Nagle's algorithm to gather.
        drop(stream.set_nodelay(true));
        let peer = Peer::Address(address.ip().to_canonical());
        self.spawn(stream, auth.clone(), peer, admission);
    }

    /// Serves a connection in a task of its own. Beyond the limit its request is refused, and far beyond it the
    /// connection is closed.
    fn spawn<S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static>(
        &self,
        stream: S,
        auth: ListenerAuth,
        peer: Peer,
        admission: &Admission,
    ) {
        self.place(admission.share(), |place| {
            self.clone().serve(stream, auth, peer, admission.clone(), place)
        });
    }

    /// Serves a connection in a place of its listener, if one is left.
    fn place<F: Future<Output = ()> + Send + 'static>(
        &self,
        share: &ListenerShare,
        serve: impl FnOnce(ConnectionPlace) -> F,
    ) {
        if let Some(permit) = share.connect() {
            self.tasks.spawn(serve(ConnectionPlace::Open(permit)));
        } else if let Some(permit) = share.refuse() {
            let refusing = serve(ConnectionPlace::BeyondLimit(permit));
            // It takes longer if the peer sends nothing or does not read the response.
            self.tasks.spawn(async { drop(timeout(REFUSAL_TIME, refusing).await) });
        }
    }

    /// Serves one connection to its end.
    async fn serve<S>(
        self,
        stream: S,
        auth: ListenerAuth,
        peer: Peer,
        admission: Admission,
        place: ConnectionPlace,
    ) where
        S: AsyncRead + AsyncWrite + AsFd + Unpin + Send + 'static,
    {
        let activity = ConnectionActivity::new();
        let per_request = Arc::clone(&activity);
        let is_beyond_limit = matches!(place, ConnectionPlace::BeyondLimit(_));
        let service = hyper::service::service_fn(move |request: hyper::Request<Incoming>| {
            let active_request = per_request.start_request();
            let request = request.map(|body| Body::new(active_request.request_body(body)));
            let admission = admission.clone();
            let auth = auth.clone();
            async move {
                let response = if is_beyond_limit {
                    Box::pin(admission.refuse(&auth, peer, request)).await
                } else {
                    admission.answer(&auth, peer, request).await
                };
                Ok::<_, Infallible>(response.map(|body| active_request.response_body(body)))
            }
        });
        let builder = http_server(!is_beyond_limit);
        let io = TokioIo::new(MonitoredIo::new(stream, Arc::clone(&activity)));
        let mut connection = pin!(builder.serve_connection(io, service));
        // These futures are polled when they are woken themselves, and not with every byte of the connection.
        let drained = async {
            self.draining.cancelled().await;
            activity.first_request().await;
        };
        let mut events: FuturesUnordered<_> = [
            Either::Left(activity.timed_out(self.timeouts).map(|()| ConnectionEvent::TimedOut)),
            Either::Right(Either::Left(drained.map(|()| ConnectionEvent::Draining))),
            Either::Right(Either::Right(self.closing.cancelled().map(|()| ConnectionEvent::ShuttingDown))),
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
                    // HTTP/2 announces the end; over HTTP/1 the next response does.
                    ConnectionEvent::Draining if activity.is_http2() => connection.as_mut().graceful_shutdown(),
                    // A first request is on its way, and is answered; its response announces the end.
                    ConnectionEvent::ShuttingDown if activity.is_unused() => {}
                    ConnectionEvent::ShuttingDown => connection.as_mut().graceful_shutdown(),
                    ConnectionEvent::Draining => {}
                },
            }
        }
    }
}

/// The peer of a Unix socket, if it may connect.
fn admitted(peer: io::Result<UCred>) -> Option<UCred> {
    match peer {
        Ok(peer) if auth::admits(peer) => return Some(peer),
        Ok(peer) => tracing::warn!(uid = peer.uid(), "a connection of another user was refused"),
        Err(error) => tracing::warn!(%error, "a connection without a known user was refused"),
    }
    None
}

/// The server of a connection, which takes one request over HTTP/1 or as many as come.
fn http_server(keep_alive: bool) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().max_headers(100).max_buf_size(MAX_HEAD_BYTES).keep_alive(keep_alive);
    builder.http2().timer(TokioTimer::new()).max_concurrent_streams(MAX_HTTP2_STREAMS);
    builder.http2().max_header_list_size(u32::try_from(MAX_HEAD_BYTES).unwrap_or(u32::MAX));
    builder
}

fn unix_stream(stream: StdUnixStream) -> io::Result<UnixStream> {
    stream.set_nonblocking(true)?;
    UnixStream::from_std(stream)
}

/// What ends a connection from this side.
enum ConnectionEvent {
    /// A timeout has passed.
    TimedOut,
    /// The daemon is about to stop, and the connection has had a request.
    Draining,
    /// The daemon shuts down: requests in flight are answered, and no more are taken.
    ShuttingDown,
}
