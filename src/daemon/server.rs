//! Starts a daemon: what is opened in which order.
//!
//! Signals belong to the program, so this listens to none.

use std::{
    io,
    net::SocketAddr,
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    net::{TcpListener, UnixListener},
    task::JoinSet,
};
use tokio_util::task::TaskTracker;

use super::{
    admission::Admission,
    audit::{Audit, AuditError},
    auth::ListenerAuth,
    connection_timeouts::ConnectionTimeouts,
    connections::{Connections, Listener},
    listener_share::ListenerShare,
    routes,
    socket::{Socket, SocketError, default_control_socket, default_socket},
    state::{DaemonAddresses, DaemonPhase, DaemonState, Observers},
    tokens::{TcpTokens, TokenError},
    traces::Tracer,
    watch::{self, WatchContext},
};
use crate::{
    DispatchError, LoadReport, Orchestrator, StartError, StoreError,
    config::{self, DataDirectory, Settings},
    handler::{
        OwnListeners,
        command::{GroupLedger, LedgerError},
    },
    model::WorkspaceId,
    run::name_decisions,
    telemetry::{ApiMeters, Exporter, RecordsLost},
};

/// Why a daemon cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A Unix socket cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The record of process groups cannot be kept.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The audit cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// The TCP address cannot be bound.
    #[error("cannot listen on {address}: {}", crate::model::io_reason(source))]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The orchestrator cannot start.
    #[error(transparent)]
    Orchestrator(#[from] StartError),
}

/// A running daemon. Dropping it ends it at once; [`Daemon::stop`] lets events in flight finish.
#[derive(Debug)]
pub struct Daemon {
    pub(super) state: Arc<DaemonState>,
    pub(super) connections: Connections,
    pub(super) accept_loops: JoinSet<()>,
    /// The reload loop and the upkeep of metrics.
    pub(super) tasks: JoinSet<()>,
    pub(super) sockets: [Socket; 2],
    /// Dropped last: another daemon may start once it is gone.
    _ledger: GroupLedger,
}

impl Daemon {
    /// Opens the sockets, loads the workspaces and takes events. `environment` looks up environment variables.
    ///
    /// Returns an error if it cannot listen, or another daemon does. A workspace that cannot be loaded is logged and left
    /// out: it must not keep the others from their hooks.
    pub async fn start(
        settings: Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ServeError> {
        raise_descriptor_limit();
        name_decisions(&settings.node_name());
        let path = settings.listen.socket.clone().unwrap_or_else(|| default_socket(environment));
        let control_path = settings.listen.control_socket.clone();
        let control_path = control_path.unwrap_or_else(|| default_control_socket(&path));
        let tokens = Arc::new(TcpTokens::read(&settings.listen)?);
        Socket::prepare(&path)?;
        Socket::prepare(&control_path)?;
        let claimed = GroupLedger::claim(&path.with_added_extension("groups"));
        let claimed = claimed.map_err(|error| ledger_error(error, &path))?;
        // From here on hosts can connect and wait. A refused connection could pass for consent while the groups that a
        // killed daemon left behind are ended.
        let listening = Socket::listen(&path).and_then(|events| Ok((events, Socket::listen(&control_path)?)));
        let ((socket, listener), (control_socket, control_listener)) = match listening {
            Ok(listening) => listening,
            Err(error) => {
                claimed.discard();
                return Err(error.into());
            }
        };
        let (ledger, reaped) = claimed.open()?;
        let ledger = ledger.remove_when_done();
        if reaped.groups > 0 {
            tracing::warn!(groups = reaped.groups, "ended hooks that a killed hookyard left behind");
        }
        let audit = Audit::start(&settings.audit)?;
        let mut addresses =
            DaemonAddresses { socket: path, control_socket: control_path, tcp: None, metrics: None };
        let tcp = TcpListeners::bind(&settings, &tokens, &mut addresses).await?;
        let exporter = Exporter::install();
        RecordsLost::expect_all();
        let tracer = Tracer::start(&settings.traces, environment);
        let observers = Observers { audit, tracer };
        let data = data_directory(&settings, environment)?;
        let orchestrator = orchestrator(&settings, data, &observers, &addresses).await?;
        let home = config::home_directory(&settings, environment);
        let metrics = (exporter.clone(), ApiMeters::resolve(routes::paths()));
        let state = DaemonState::new(orchestrator, settings, addresses, home, metrics, observers, &tokens);
        let state = Arc::new(state);
        let connections = connections(&state);
        let mut accept_loops = JoinSet::new();
        let unix = unix_listeners(&state, listener, control_listener);
        for (listener, admission) in unix.into_iter().chain(tcp.admitted(&state, &tokens)) {
            accept_loops.spawn(connections.clone().accept(listener, admission));
        }
        let mut tasks = JoinSet::new();
        tasks.spawn(exporter.upkeep());
        state.register_workspaces().await;
        tasks.spawn(Arc::clone(&state).retry_until_loaded());
        if state.settings.watch {
            tasks.spawn(watch::watch(watch_context(&state)));
        }
        state.set_phase(DaemonPhase::Ready);
        let sockets = [socket, control_socket];
        Ok(Self { state, connections, accept_loops, tasks, sockets, _ledger: ledger })
    }

    /// The path of its event socket.
    pub fn socket(&self) -> &Path {
        &self.state.addresses.socket
    }

    /// The path of its control socket.
    pub fn control_socket(&self) -> &Path {
        &self.state.addresses.control_socket
    }

    /// Its TCP address, if it listens on one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.state.addresses.tcp
    }

    /// The orchestrator, which runs the hooks.
    pub fn orchestrator(&self) -> &Orchestrator {
        &self.state.orchestrator
    }

    /// Reads the hook files of every workspace and the tokens again, and reopens the audit's file if it was moved away.
    ///
    /// Returns an error if the daemon is shutting down.
    pub async fn reload(&self) -> Result<Vec<(WorkspaceId, LoadReport)>, DispatchError> {
        if let Some(audit) = &self.state.observers.audit {
            audit.reopen_if_moved();
        }
        self.state.reload().await
    }
}

/// A ledger in use means that another daemon listens on the socket, which is what the user knows of.
fn ledger_error(error: LedgerError, socket: &Path) -> ServeError {
    match error {
        LedgerError::InUse { .. } => SocketError::Taken(socket.to_owned()).into(),
        other => other.into(),
    }
}

/// Where the state of runs is kept, unless it is kept in memory only.
fn data_directory(
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Option<PathBuf>, StartError> {
    let directory = config::data_directory(settings, environment);
    match (&settings.data, directory) {
        (DataDirectory::Memory, _) => Ok(None),
        (_, None) => Err(StoreError::NoDirectory.into()),
        (_, directory) => Ok(directory),
    }
}

async fn orchestrator(
    settings: &Settings,
    data: Option<PathBuf>,
    observers: &Observers,
    addresses: &DaemonAddresses,
) -> Result<Orchestrator, StartError> {
    let listeners = OwnListeners {
        tcp: [addresses.tcp, addresses.metrics].into_iter().flatten().collect(),
        sockets: vec![addresses.socket.clone(), addresses.control_socket.clone()],
    };
    let builder = Orchestrator::builder().settings(settings.clone()).workspaces_later();
    let mut builder = builder.own_listeners(listeners);
    if let Some(data) = data {
        builder = builder.data(data);
    }
    if let Some(audit) = &observers.audit {
        builder = builder.observer(audit.clone());
    }
    if let Some(tracer) = &observers.tracer {
        builder = builder.observer(tracer.clone());
    }
    builder.start().await
}

/// The two sockets, each with its share.
fn unix_listeners(
    state: &Arc<DaemonState>,
    events: UnixListener,
    control: UnixListener,
) -> [(Listener, Admission); 2] {
    let limits = &state.settings.limits;
    let of_events = Admission::new(state, ListenerShare::of_event_socket(limits));
    let of_control = Admission::new(state, ListenerShare::of_control_socket(limits));
    [
        (Listener::EventSocket(events), of_events.clone()),
        (Listener::ControlSocket(control, of_events), of_control),
    ]
}

/// The TCP addresses of the settings.
struct TcpListeners {
    events: Option<TcpListener>,
    metrics: Option<TcpListener>,
}

impl TcpListeners {
    /// Binds the addresses, and notes which they are.
    async fn bind(
        settings: &Settings,
        tokens: &TcpTokens,
        addresses: &mut DaemonAddresses,
    ) -> Result<Self, ServeError> {
        let mut listeners = Self { events: None, metrics: None };
        if let Some(address) = settings.listen.tcp {
            tokens.permit(address)?;
            let listener = bind(address).await?;
            addresses.tcp = listener.local_addr().ok();
            listeners.events = Some(listener);
        }
        if let Some(address) = settings.listen.metrics {
            let listener = bind(address).await?;
            addresses.metrics = listener.local_addr().ok();
            listeners.metrics = Some(listener);
        }
        Ok(listeners)
    }

    /// The listeners, each with its share.
    fn admitted(
        self,
        state: &Arc<DaemonState>,
        tokens: &Arc<TcpTokens>,
    ) -> impl Iterator<Item = (Listener, Admission)> {
        let limits = &state.settings.limits;
        let events = self.events.map(|listener| {
            let connections = tcp_places(limits.tcp_connections, "limits.tcp_connections");
            let share = ListenerShare::of_tcp(limits, connections, tokens.sender());
            (Listener::Tcp(listener, ListenerAuth::Tcp(Arc::clone(tokens))), Admission::new(state, share))
        });
        let metrics = self.metrics.map(|listener| {
            let connections = tcp_places(limits.metrics_connections, "limits.metrics_connections");
            let share = ListenerShare::of_metrics(limits, connections);
            (Listener::Tcp(listener, ListenerAuth::MetricsOnly), Admission::new(state, share))
        });
        events.into_iter().chain(metrics)
    }
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

async fn bind(address: SocketAddr) -> Result<TcpListener, ServeError> {
    TcpListener::bind(address).await.map_err(|source| ServeError::Tcp { address, source })
}

fn connections(state: &Arc<DaemonState>) -> Connections {
    let limits = &state.settings.limits;
    Connections {
        timeouts: ConnectionTimeouts {
            head: limits.header_timeout,
            stalled_write: limits.body_timeout,
            idle: limits.idle_timeout,
        },
        draining: state.draining.clone(),
        closing: state.closing.clone(),
        tasks: TaskTracker::new(),
    }
}

fn watch_context(state: &DaemonState) -> WatchContext {
    WatchContext {
        orchestrator: state.orchestrator.clone(),
        system: config::system_directory(&state.settings),
        home: state.home.clone(),
        state: Arc::clone(&state.watch),
    }
}

/// Raises the limit of open files to the maximum that the system allows: every connection is a file.
fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "cannot raise the limit of open files");
    }
}
