//! The life of a daemon: what is opened in which order, and how everything is closed again. Refuses to listen to
//! signals, which belong to the program.

use std::{io, net::SocketAddr, path::Path, sync::Arc, time::Duration};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tokio::{
    sync::Semaphore,
    task::{JoinSet, spawn_blocking},
    time::timeout,
};
use tokio_util::task::TaskTracker;

use super::{
    admission::Admission,
    audit::{Audit, AuditError},
    auth::{self, Token, TokenError},
    connection_timeouts::ConnectionTimeouts,
    connections::{Connections, Listener, MAX_REJECTIONS},
    socket::{Socket, SocketError, default_socket},
    state::{DaemonAddresses, DaemonPhase, DaemonState, Observers},
    traces::{Tracer, TracesError},
    watch,
};
use crate::{
    DispatchError, LoadReport, Orchestrator,
    config::{self, Settings},
    handler::command::{GroupLedger, LedgerError},
    model::WorkspaceId,
    telemetry::{AuditDropped, Exporter, SpansDropped},
};

/// How long connections may take to end when everything is answered.
const CONNECTIONS_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// Why a daemon does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// There is no socket to listen on.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// The record of process groups cannot be kept.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// There is no token.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The audit cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// Traces cannot be sent anywhere.
    #[error(transparent)]
    Traces(#[from] TracesError),
    /// The TCP address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The orchestrator does not start.
    #[error(transparent)]
    Orchestrator(#[from] crate::StartError),
}

/// A daemon at work. Dropping it ends it at once; [`Daemon::stop`] lets it finish what it has begun.
#[derive(Debug)]
pub struct Daemon {
    state: Arc<DaemonState>,
    connections: Connections,
    /// The accepting of connections, the watching of files, the upkeep of metrics.
    tasks: JoinSet<()>,
    /// Given up last: a successor may come when it is gone.
    _socket: Socket,
    _ledger: GroupLedger,
}

impl Daemon {
    /// Opens the socket, loads the workspaces and takes events. `environment` looks up variables.
    ///
    /// Returns an error if it cannot listen, or another daemon does. A workspace that cannot be used is told in the log
    /// and left out: it must not keep the others from their hooks.
    pub async fn start(
        settings: Settings,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Self, ServeError> {
        raise_descriptor_limit();
        let path = settings.listen.socket.clone().unwrap_or_else(|| default_socket(environment));
        let token = settings.listen.token_file.as_deref().map(Token::read).transpose()?;
        Socket::prepare(&path)?;
        let claimed = GroupLedger::claim(&path.with_added_extension("groups"));
        let claimed = claimed.map_err(|error| ledger_error(error, &path))?;
        // Hosts wait from here on, and take no closed door for consent while what was left is ended.
        let (socket, listener) = Socket::listen(&path)?;
        let (ledger, reaped) = claimed.open()?;
        if reaped.groups > 0 {
            tracing::warn!(groups = reaped.groups, "hooks that a killed hookyard left behind were ended");
        }
        let audit = Audit::start(&settings.audit)?;
        let mut listeners = vec![Listener::Unix(listener)];
        let mut tcp = None;
        if let Some(address) = settings.listen.tcp {
            let (auth, listener) = auth::listen(address, token).await?;
            tcp = listener.local_addr().ok();
            listeners.push(Listener::Tcp(listener, auth));
        }
        let mut metrics = None;
        if let Some(address) = settings.listen.metrics {
            let (auth, listener) = auth::listen_metrics(address).await?;
            metrics = listener.local_addr().ok();
            listeners.push(Listener::Tcp(listener, auth));
        }
        let exporter = Exporter::install();
        AuditDropped::expect();
        SpansDropped::expect();
        let tracer = Tracer::start(&settings.traces, environment)?;
        let observers = Observers { audit, tracer };
        let orchestrator = orchestrator(&settings, &observers).await?;
        let addresses = DaemonAddresses {
            socket: path,
            tcp,
            metrics,
            home: config::home_directory(&settings, environment),
        };
        let state =
            Arc::new(DaemonState::new(orchestrator, settings, addresses, exporter.clone(), observers));
        let connections = connections(&state);
        let mut tasks = JoinSet::new();
        for listener in listeners {
            tasks.spawn(connections.clone().accept(listener));
        }
        tasks.spawn(exporter.upkeep());
        register(&state).await;
        tasks.spawn(watch::watch(Arc::clone(&state)));
        state.set_phase(DaemonPhase::Ready);
        Ok(Self { state, connections, tasks, _socket: socket, _ledger: ledger })
    }

    /// The path of its Unix socket.
    pub fn socket(&self) -> &Path {
        &self.state.addresses.socket
    }

    /// The TCP address it listens on as well.
    pub fn tcp(&self) -> Option<SocketAddr> {
        self.state.addresses.tcp
    }

    /// What runs the hooks.
    pub fn orchestrator(&self) -> &Orchestrator {
        &self.state.orchestrator
    }

    /// Reads the hook files of every workspace again, and looks whether the audit's file was moved away.
    ///
    /// Returns an error if it is shutting down.
    pub async fn reload(&self) -> Result<Vec<(WorkspaceId, LoadReport)>, DispatchError> {
        if let Some(audit) = &self.state.observers.audit {
            audit.look();
        }
        self.state.reload().await
    }

    /// Takes no more events, lets those under way finish until the deadline, cancels the rest, kills their processes,
    /// closes every connection and ends the audit and the traces. Returns whether everything finished in time.
    pub async fn stop(mut self, deadline: Duration) -> bool {
        self.state.set_phase(DaemonPhase::Draining);
        let finished = self.state.orchestrator.shutdown(deadline).await;
        self.state.closing.cancel();
        self.connections.tasks.close();
        // A client that does not read its answer does not keep the daemon.
        drop(timeout(CONNECTIONS_CLOSE_TIMEOUT, self.connections.tasks.wait()).await);
        self.tasks.shutdown().await;
        let Observers { audit, tracer } = self.state.observers.clone();
        if let Some(tracer) = tracer {
            tracer.close().await;
        }
        if let Some(audit) = audit {
            // Fails only if the runtime goes down, and then nobody waits.
            drop(spawn_blocking(move || audit.close()).await);
        }
        finished
    }
}

/// A record that another daemon has open tells that it listens there: who starts a second one knows of sockets only.
fn ledger_error(error: LedgerError, socket: &Path) -> ServeError {
    match error {
        LedgerError::InUse { .. } => SocketError::Taken(socket.to_owned()).into(),
        other => other.into(),
    }
}

async fn orchestrator(settings: &Settings, observers: &Observers) -> Result<Orchestrator, crate::StartError> {
    let mut builder = Orchestrator::builder().settings(settings.clone()).workspaces_later();
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
        admission: Admission::new(state),
        slots: Arc::new(Semaphore::new(limits.connections.get())),
        rejection_slots: Arc::new(Semaphore::new(MAX_REJECTIONS)),
        timeouts: ConnectionTimeouts {
            head: limits.header_timeout,
            stalled_write: limits.body_timeout,
            idle: limits.idle_timeout,
        },
        closing: state.closing.clone(),
        tasks: TaskTracker::new(),
    }
}

/// Registers the workspaces of the settings.
async fn register(state: &DaemonState) {
    for (id, settings) in &state.settings.workspaces {
        match state.orchestrator.register(id, settings.clone()).await {
            Ok(report) => {
                tracing::info!(workspace = %id, hooks = report.hooks, "workspace loaded");
            }
            Err(error) => tracing::error!(workspace = %id, %error, "the workspace is left out"),
        }
    }
}

/// Allows as many open files as the system lets this process have: every connection is one.
fn raise_descriptor_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::warn!(%error, "the limit of open files could not be raised");
    }
}
