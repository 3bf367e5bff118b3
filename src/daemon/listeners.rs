//! Opens the listeners of a daemon, or takes those that were handed over.

use std::{
    net::{SocketAddr, TcpListener as StdTcpListener},
    num::NonZeroUsize,
    os::unix::net::UnixListener as StdUnixListener,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::process::{Resource, getrlimit};
use tokio::net::{TcpListener, UnixListener};

use super::{
    admission::Admission,
    auth::ListenerAuth,
    connections::{Listener, OpenListener},
    handed_over::{Assigned, AssignedListeners, HandedOver, ListenerOwner, ListenerRole},
    handover::Replacement,
    listener_share::ListenerShare,
    socket::{self, Socket, SocketError, default_control_socket},
    start_error::ServeError,
    state::{DaemonAddresses, DaemonState},
    tokens::TcpTokens,
};
use crate::config::ListenSettings;

/// Where the listeners of a daemon come from. Those that are not handed over are opened.
#[derive(Debug)]
pub(crate) enum ListenerSource {
    /// The service manager hands them over, or nobody does.
    HandedOver(HandedOver),
    /// The running daemon hands them over, if there is one.
    #[cfg_attr(not(feature = "cli"), expect(dead_code, reason = "only the program replaces a daemon"))]
    Replace,
}

impl Default for ListenerSource {
    fn default() -> Self {
        Self::HandedOver(HandedOver::default())
    }
}

impl ListenerSource {
    /// Finds out where the daemon listens, and asks the running daemon for its listeners.
    pub(super) async fn resolve(
        self,
        listen: &ListenSettings,
        default_event_socket: PathBuf,
    ) -> Result<GivenListeners, ServeError> {
        let event_path = listen.socket.clone().unwrap_or(default_event_socket);
        let beside =
            |event: &PathBuf| listen.control_socket.clone().unwrap_or_else(|| default_control_socket(event));
        match self {
            Self::HandedOver(handed) => {
                let assigned = handed.assign(listen, &event_path)?;
                let event_path = assigned.events.as_ref().map_or(event_path, |(_, path, _)| path.clone());
                let control_path = assigned
                    .control
                    .as_ref()
                    .map_or_else(|| beside(&event_path), |(_, path, _)| path.clone());
                let lines_path = assigned.lines.as_ref().map(|(_, path, _)| path.clone());
                let lines_path = lines_path.or_else(|| listen.lines.clone());
                Ok(GivenListeners { event_path, control_path, lines_path, assigned, replacement: None })
            }
            Self::Replace => {
                let control_path = beside(&event_path);
                let mut replacement = Replacement::request(&control_path).await?;
                let assigned = match &mut replacement {
                    Some(replacement) => replacement.assign(listen, [&event_path, &control_path])?,
                    None => AssignedListeners::default(),
                };
                let lines_path = listen.lines.clone();
                Ok(GivenListeners { event_path, control_path, lines_path, assigned, replacement })
            }
        }
    }
}

/// Where a daemon is to listen, and what was handed over.
#[derive(Debug)]
pub(super) struct GivenListeners {
    pub(super) event_path: PathBuf,
    control_path: PathBuf,
    lines_path: Option<PathBuf>,
    assigned: AssignedListeners,
    /// The daemon that is about to be replaced.
    pub(super) replacement: Option<Replacement>,
}

impl GivenListeners {
    /// Checks that no two listeners have one place, and the directories of the sockets.
    pub(super) fn prepare(&self, listen: &ListenSettings) -> Result<(), ServeError> {
        check_sockets_apart(&self.event_path, &self.control_path, self.lines_path.as_deref())?;
        check_addresses_apart(listen)?;
        Socket::prepare(&self.event_path)?;
        Socket::prepare(&self.control_path)?;
        self.lines_path.as_deref().map_or(Ok(()), Socket::prepare)?;
        Ok(())
    }

    /// Waits a moment for what a killed daemon has left, unless the sockets are handed over.
    pub(super) async fn wait_for_release(&self) {
        if self.replacement.is_none() && self.assigned.events.is_none() {
            socket::wait_for_release(&self.event_path).await;
        }
    }

    /// Opens the sockets that were not handed over.
    pub(super) fn open_sockets(self) -> Result<(OpenListeners, Option<Replacement>), SocketError> {
        let Self { event_path, control_path, lines_path, assigned, replacement } = self;
        let AssignedListeners { events, control, lines, tcp, metrics } = assigned;
        let (event_socket, events) = open_unix(events, &event_path)?;
        let (control_socket, control) = open_unix(control, &control_path)?;
        let mut sockets = vec![event_socket, control_socket];
        let lines = match &lines_path {
            None => None,
            Some(path) => {
                let (socket, listener) = open_unix(lines, path)?;
                sockets.push(socket);
                Some(listener)
            }
        };
        let addresses = DaemonAddresses {
            socket: event_path,
            control_socket: control_path,
            lines: lines_path,
            tcp: None,
            metrics: None,
        };
        let given = (tcp, metrics);
        Ok((
            OpenListeners { events, control, lines, tcp: None, metrics: None, given, sockets, addresses },
            replacement,
        ))
    }
}

/// Returns an error if one path is that of two sockets: whoever may send events could control the daemon.
pub(super) fn check_sockets_apart(
    events: &Path,
    control: &Path,
    lines: Option<&Path>,
) -> Result<(), SocketError> {
    let of_control = (control, "listen.control_socket");
    let mut pairs = vec![((events, "listen.socket"), of_control)];
    if let Some(lines) = lines {
        let of_lines = (lines, "listen.lines");
        pairs.extend([((events, "listen.socket"), of_lines), (of_control, of_lines)]);
    }
    for ((one, setting), (other, other_setting)) in pairs {
        if is_same_path(one, other) {
            return Err(SocketError::Shared { path: other.to_owned(), settings: [setting, other_setting] });
        }
    }
    Ok(())
}

fn is_same_path(one: &Path, other: &Path) -> bool {
    let directory = |path: &Path| path.parent().and_then(|directory| directory.canonicalize().ok());
    let is_same_name = one.file_name() == other.file_name();
    one == other || (is_same_name && directory(one) == directory(other))
}

/// Returns an error if one address is for events and for metrics: clients of the one come without a token.
pub(super) fn check_addresses_apart(listen: &ListenSettings) -> Result<(), ServeError> {
    match (listen.tcp, listen.metrics) {
        (Some(tcp), Some(metrics)) if tcp == metrics && tcp.port() != 0 => {
            Err(ServeError::SharedAddress(tcp))
        }
        _ => Ok(()),
    }
}

/// An open listener and its owner.
type Owned<L> = (L, ListenerOwner);

/// The open listeners of a daemon.
#[derive(Debug)]
pub(super) struct OpenListeners {
    events: Owned<UnixListener>,
    control: Owned<UnixListener>,
    lines: Option<Owned<UnixListener>>,
    tcp: Option<Owned<TcpListener>>,
    metrics: Option<Owned<TcpListener>>,
    /// The TCP sockets that were handed over and are not among them yet.
    given: (Assigned<StdTcpListener, SocketAddr>, Assigned<StdTcpListener, SocketAddr>),
    sockets: Vec<Socket>,
    pub(super) addresses: DaemonAddresses,
}

impl OpenListeners {
    /// Opens the TCP addresses of the settings, or takes those that were handed over.
    pub(super) async fn listen_on_tcp(
        &mut self,
        listen: &ListenSettings,
        tokens: &TcpTokens,
    ) -> Result<(), ServeError> {
        let given = self.given.0.take();
        if let Some(address) = given.as_ref().map(|(_, address, _)| *address).or(listen.tcp) {
            tokens.permit(address)?;
            let opened = open_tcp(given, address).await?;
            self.addresses.tcp = opened.0.local_addr().ok();
            self.tcp = Some(opened);
        }
        let given = self.given.1.take();
        if let Some(address) = given.as_ref().map(|(_, address, _)| *address).or(listen.metrics) {
            let opened = open_tcp(given, address).await?;
            self.addresses.metrics = opened.0.local_addr().ok();
            self.metrics = Some(opened);
        }
        Ok(())
    }

    /// The sockets, whose files are removed in the end, and the listeners, each with its share.
    pub(super) fn admitted(self, state: &Arc<DaemonState>, tokens: &Arc<TcpTokens>) -> AdmittedListeners {
        let limits = &state.settings.limits;
        let of_events = Admission::new(state, ListenerShare::of_event_socket(limits));
        let of_control = Admission::new(state, ListenerShare::of_control_socket(limits));
        let (listener, owner) = self.events;
        let listener = Listener::EventSocket(listener);
        let events = OpenListener { role: ListenerRole::Events, listener, owner };
        let (listener, owner) = self.control;
        let listener = Listener::ControlSocket(listener, of_events.clone());
        let control = OpenListener { role: ListenerRole::Control, listener, owner };
        let mut listeners = vec![(events, of_events), (control, of_control)];
        if let Some((listener, owner)) = self.lines {
            let listener = Listener::LinesSocket(listener);
            let open = OpenListener { role: ListenerRole::Lines, listener, owner };
            listeners.push((open, Admission::new(state, ListenerShare::of_lines_socket(limits))));
        }
        if let Some((listener, owner)) = self.tcp {
            let connections = tcp_places(limits.tcp_connections, "limits.tcp_connections");
            let share = ListenerShare::of_tcp(limits, connections, tokens.sender());
            let listener = Listener::Tcp(listener, ListenerAuth::Tcp(Arc::clone(tokens)));
            let open = OpenListener { role: ListenerRole::Tcp, listener, owner };
            listeners.push((open, Admission::new(state, share)));
        }
        if let Some((listener, owner)) = self.metrics {
            let connections = tcp_places(limits.metrics_connections, "limits.metrics_connections");
            let share = ListenerShare::of_metrics(limits, connections);
            let is_local = self.addresses.metrics.is_some_and(|address| address.ip().is_loopback());
            let listener = Listener::Tcp(listener, ListenerAuth::MetricsOnly { is_local });
            let open = OpenListener { role: ListenerRole::Metrics, listener, owner };
            listeners.push((open, Admission::new(state, share)));
        }
        AdmittedListeners { sockets: self.sockets, listeners }
    }
}

/// The listeners of a daemon, ready to accept connections.
#[derive(Debug)]
pub(super) struct AdmittedListeners {
    /// The event socket, the control socket and that of lines.
    pub(super) sockets: Vec<Socket>,
    /// The listeners, the first ones of these sockets.
    pub(super) listeners: Vec<(OpenListener, Admission)>,
}

fn open_unix(
    given: Assigned<StdUnixListener, PathBuf>,
    path: &Path,
) -> Result<(Socket, Owned<UnixListener>), SocketError> {
    let Some((listener, path, owner)) = given else {
        let (socket, listener) = Socket::listen(path)?;
        return Ok((socket, (listener, ListenerOwner::Daemon)));
    };
    let (socket, listener) = Socket::adopt(&path, listener)?;
    Ok((socket, (listener, owner)))
}

async fn open_tcp(
    given: Assigned<StdTcpListener, SocketAddr>,
    address: SocketAddr,
) -> Result<Owned<TcpListener>, ServeError> {
    let failed = |source| ServeError::Tcp { address, source };
    let Some((listener, _, owner)) = given else {
        return Ok((TcpListener::bind(address).await.map_err(failed)?, ListenerOwner::Daemon));
    };
    listener.set_nonblocking(true).map_err(failed)?;
    Ok((TcpListener::from_std(listener).map_err(failed)?, owner))
}

/// The connections of a TCP address. Its peers are not checked when they connect, so they take at most a quarter of the
/// descriptors: sockets and hooks need theirs.
fn tcp_places(limit: NonZeroUsize, setting: &'static str) -> NonZeroUsize {
    let descriptors = getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok());
    let quarter = descriptors.and_then(|descriptors| NonZeroUsize::new(descriptors / 4));
    let permitted = quarter.map_or(limit, |quarter| quarter.min(limit));
    if permitted < limit {
        tracing::warn!(%setting, permitted, "fewer connections than the setting: too few files may be open");
    }
    permitted
}
