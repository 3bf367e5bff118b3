//! Starts a daemon: what is opened in which order.
//!
//! Signals belong to the program, so this listens to none.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::Arc,
};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::task::JoinSet;
use tokio_util::task::TaskTracker;

#[cfg(feature = "cluster")]
use super::cluster;
use super::{
    audit::Audit,
    connection_timeouts::ConnectionTimeouts,
    connections::Connections,
    ledger_claim::LedgerClaim,
    listeners::{AdmittedListeners, ListenerSource, OpenListeners},
    loading::StoppableStart,
    page::{self, DecisionHistory, HistoryScope},
    routes,
    ship::{Shipping, Spool},
    socket::{Socket, default_socket},
    start_error::ServeError,
    state::{DaemonAddresses, DaemonState, Observers},
    tokens::TcpTokens,
    traces::Tracer,
};
use crate::{
    DispatchError, LoadReport, Orchestrator, StartError, StoreError,
    config::{self, AuditDestination, DataDirectory, LoadOptions, Settings},
    handler::{OwnListeners, command::GroupLedger},
    model::WorkspaceId,
    run::name_decisions,
    telemetry::{ApiMeters, Exporter, RecordsLost},
};

/// A running daemon. Dropping it ends it at once; [`Daemon::stop`] lets events in flight finish.
#[derive(Debug)]
pub struct Daemon {
    pub(super) state: Arc<DaemonState>,
    pub(super) connections: Connections,
    pub(super) accept_loops: JoinSet<()>,
    /// The reload loop and the upkeep of metrics.
    pub(super) tasks: JoinSet<()>,
    /// What the daemon does for the one that it has replaced, until that one has ended.
    pub(super) predecessor: JoinSet<()>,
    pub(super) sockets: Vec<Socket>,
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
        let start = StoppableStart::default();
        // Boxed: it is large, and starts once.
        Box::pin(Self::start_with(settings, environment, ListenerSource::default(), &start)).await
    }

    /// The same with listeners that are handed over by the service manager, or by the daemon that this one replaces.
    pub(crate) async fn start_with(
        settings: Settings,
        environment: &dyn Fn(&str) -> Option<String>,
        source: ListenerSource,
        start: &StoppableStart,
    ) -> Result<Self, ServeError> {
        raise_descriptor_limit();
        name_decisions(&settings.node_name());
        let tokens = Arc::new(TcpTokens::read(&settings.listen)?);
        let given = source.resolve(&settings.listen, default_socket(environment)).await?;
        given.prepare(&settings.listen)?;
        given.wait_for_release().await;
        let is_replacing = given.replacement.is_some();
        let deadline = settings.shutdown_deadline;
        let claimed = LedgerClaim::wait_and_claim(&given.event_path, is_replacing, deadline).await?;
        // From here on hosts can connect and wait. A refused connection could pass for consent while the groups that a
        // killed daemon left behind are ended.
        let (mut open, mut replacement) = match given.open_sockets() {
            Ok(opened) => opened,
            Err(error) => {
                claimed.discard();
                return Err(error.into());
            }
        };
        if let (Some(replacement), Some(ledger)) = (&mut replacement, claimed.predecessor()) {
            replacement.adopt_hooks(ledger);
        }
        if let Some(replacement) = &replacement {
            start.replaces(replacement.process());
        }
        start.listens();
        let home = config::home_directory(&settings, environment);
        let is_replacing = replacement.is_some();
        // Boxed: each is large, and starts once.
        let opened =
            Box::pin(OpenParts::open(&settings, environment, &mut open, (claimed, &*tokens), is_replacing));
        let OpenParts { ledger, observers, data, orchestrator, exporter } = match opened.await {
            Ok(parts) => parts,
            Err(error) => {
                // Those who wait for a daemon that this one replaces are answered by that one.
                if replacement.is_none() {
                    Box::pin(refuse_waiting(open, settings, home, &tokens, &error)).await;
                }
                return Err(error);
            }
        };
        let state = daemon_state(orchestrator, settings, &open, home, (exporter, observers), &tokens);
        start.tell_settings(&state.set_keys);
        let AdmittedListeners { sockets, listeners } = open.admitted(&state, &tokens);
        let connections = connections(&state);
        let tasks = [state.exporter.clone().upkeep()].into_iter().collect();
        let (accept_loops, predecessor) = (JoinSet::new(), JoinSet::new());
        let mut daemon =
            Self { state, connections, accept_loops, tasks, predecessor, sockets, _ledger: ledger };
        match replacement {
            None => daemon.begin(listeners, start).await?,
            Some(replacement) => daemon.take_over(listeners, (replacement, data), start).await?,
        }
        Ok(daemon)
    }

    /// Whether it has a workspace, is to have one, or gets them from events.
    #[cfg(feature = "cli")]
    pub(crate) fn knows_workspaces(&self) -> bool {
        let state = &self.state;
        !state.settings.workspaces.is_empty()
            || !state.orchestrator.load_reports().is_empty()
            || !state.locator.roots.load().real.is_empty()
    }

    /// The path of its event socket.
    pub fn socket(&self) -> &Path {
        &self.state.addresses.socket
    }

    /// The path of its control socket.
    pub fn control_socket(&self) -> &Path {
        &self.state.addresses.control_socket
    }

    /// The path of its socket of lines, if it has one.
    pub fn lines(&self) -> Option<&Path> {
        self.state.addresses.lines.as_deref()
    }

    /// Its TCP address, if it listens on one.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.state.addresses.tcp
    }

    /// Whether its workspaces are loaded. Those of a daemon that was told to stop during its start are not.
    #[cfg(feature = "cli")]
    pub(crate) fn is_loaded(&self) -> bool {
        self.state.loading.is_done()
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

/// What a daemon needs beyond its sockets.
struct OpenParts {
    ledger: GroupLedger,
    observers: Observers,
    data: Option<PathBuf>,
    orchestrator: Orchestrator,
    exporter: Exporter,
}

impl OpenParts {
    /// Opens what a daemon needs while hosts wait in its sockets, its TCP addresses among it.
    async fn open(
        settings: &Settings,
        environment: &dyn Fn(&str) -> Option<String>,
        open: &mut OpenListeners,
        (claimed, tokens): (LedgerClaim, &TcpTokens),
        is_replacing: bool,
    ) -> Result<Self, ServeError> {
        #[cfg(not(feature = "cluster"))]
        if settings.cluster.is_shared() {
            return Err(ServeError::NoCluster);
        }
        let ledger = claimed.open()?;
        open.listen_on_tcp(&settings.listen, tokens).await?;
        let data = data_directory(settings, environment)?;
        let shipping = shipping(settings, data.as_deref())?;
        let audit =
            Audit::start(&settings.audit, shipping.as_ref().map(|shipping| Arc::clone(&shipping.spool)))?;
        let exporter = Exporter::install();
        RecordsLost::expect_all();
        let tracer = Tracer::start(&settings.traces, environment);
        let scope = if open.addresses.tcp.is_some() { HistoryScope::All } else { HistoryScope::Notable };
        let history = Arc::new(DecisionHistory::new(scope));
        if let (HistoryScope::All, Some(AuditDestination::File(audit))) = (scope, &settings.audit.to) {
            history.restore(page::former_decisions(audit.clone()).await);
        }
        let observers = Observers { audit, tracer, shipping, history, live: Arc::default() };
        // The daemon that is replaced has the store open.
        let opened_now = if is_replacing { None } else { data.clone() };
        let orchestrator = orchestrator(settings, opened_now, &observers, &open.addresses).await?;
        #[cfg(feature = "cluster")]
        if !is_replacing {
            cluster::join(&orchestrator, settings).await?;
        }
        Ok(Self { ledger, observers, data, orchestrator, exporter })
    }
}

/// Answers those who wait in the sockets of a daemon that does not start, with the reason: nothing has run for them.
async fn refuse_waiting(
    open: OpenListeners,
    settings: Settings,
    home: Option<PathBuf>,
    tokens: &Arc<TcpTokens>,
    error: &ServeError,
) {
    let history = Arc::new(DecisionHistory::new(HistoryScope::Notable));
    let observers = Observers { audit: None, tracer: None, shipping: None, history, live: Arc::default() };
    // Without data, it starts.
    let Ok(orchestrator) = orchestrator(&settings, None, &observers, &open.addresses).await else { return };
    let parts = (Exporter::install(), observers);
    let state = daemon_state(orchestrator, settings, &open, home, parts, tokens);
    let AdmittedListeners { sockets, listeners } = open.admitted(&state, tokens);
    connections(&state).refuse_waiting(&state, &sockets, listeners, &error.to_string()).await;
}

fn daemon_state(
    orchestrator: Orchestrator,
    settings: Settings,
    open: &OpenListeners,
    home: Option<PathBuf>,
    (exporter, observers): (Exporter, Observers),
    tokens: &Arc<TcpTokens>,
) -> Arc<DaemonState> {
    let metrics = (exporter, ApiMeters::resolve(routes::paths()));
    let addresses = open.addresses.clone();
    Arc::new(DaemonState::new(orchestrator, settings, addresses, home, metrics, observers, tokens))
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

/// What is shipped, if the settings name a server. It waits in the directory of the data.
fn shipping(settings: &Settings, data: Option<&Path>) -> Result<Option<Arc<Shipping>>, ServeError> {
    let Some(data) = data.filter(|_| settings.ship.url.is_some()) else { return Ok(None) };
    let spool = Spool::make(data, settings.ship.max_size as u64);
    let spool = spool.map_err(|source| ServeError::Ship { directory: data.to_owned(), source })?;
    Ok(Shipping::new(&settings.ship, &settings.node_name(), Arc::new(spool)).map(Arc::new))
}

async fn orchestrator(
    settings: &Settings,
    data: Option<PathBuf>,
    observers: &Observers,
    addresses: &DaemonAddresses,
) -> Result<Orchestrator, StartError> {
    let listeners = OwnListeners {
        tcp: [addresses.tcp, addresses.metrics].into_iter().flatten().collect(),
        sockets: [Some(&addresses.socket), Some(&addresses.control_socket), addresses.lines.as_ref()]
            .into_iter()
            .flatten()
            .cloned()
            .collect(),
    };
    let builder = Orchestrator::builder().settings(settings.clone()).workspaces_later();
    let builder = builder.own_listeners(listeners).load_options(LoadOptions::OF_DAEMON);
    let mut builder = builder.observer(observers.history.clone()).observer(observers.live.clone());
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
        gate: state.accept_gate.clone(),
        tasks: TaskTracker::new(),
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
