//! The state that all requests share: the orchestrator, the settings and the phase of the daemon.

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use axum::{extract::FromRef, http::HeaderValue};
use serde_json::Value;
use tokio::{
    sync::{Mutex, watch},
    task::spawn_blocking,
    time::Instant,
};
use tokio_util::sync::CancellationToken;

use super::{
    agent_activity::{AgentActivity, SentEvents},
    audit::Audit,
    bundle::BundleKeeper,
    denials::Denials,
    error::ApiError,
    handover_slot::{AcceptGate, HandoverSlot},
    listener_share::ListenerShare,
    loading::Loading,
    page::{DecisionHistory, LiveActivity},
    ship::Shipping,
    tokens::TcpTokens,
    traces::Tracer,
    unloaded::UnloadedWorkspaces,
    watch::WatchState,
    workspace_locator::WorkspaceLocator,
};
use crate::{
    DispatchError, LoadReport, Orchestrator,
    config::{SetKey, Settings, WorkspaceSettings},
    model::WorkspaceId,
    telemetry::{ApiMeters, Exporter},
};

/// The phase of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaemonPhase {
    /// It loads its workspaces; events wait.
    Starting,
    /// It takes events.
    Ready,
    /// It takes events, and says that it is about to stop.
    LameDuck,
    /// It takes no more events and lets those in flight finish.
    Draining,
}

impl DaemonPhase {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::LameDuck | Self::Draining => "draining",
        }
    }
}

/// Where the daemon listens.
#[derive(Debug, Clone)]
pub(super) struct DaemonAddresses {
    /// The event socket.
    pub(super) socket: PathBuf,
    pub(super) control_socket: PathBuf,
    /// The socket of lines.
    pub(super) lines: Option<PathBuf>,
    pub(super) tcp: Option<SocketAddr>,
    /// The TCP address that serves metrics and health only.
    pub(super) metrics: Option<SocketAddr>,
}

/// The observers of outcomes.
#[derive(Debug, Clone)]
pub(super) struct Observers {
    pub(super) audit: Option<Arc<Audit>>,
    pub(super) tracer: Option<Arc<Tracer>>,
    pub(super) shipping: Option<Arc<Shipping>>,
    /// The last decisions.
    pub(super) history: Arc<DecisionHistory>,
    /// What hooks do now, for those who watch.
    pub(super) live: Arc<LiveActivity>,
}

/// A workspace that a client of the API has registered.
#[derive(Debug)]
pub(super) struct Registration {
    /// The body of the request.
    pub(super) body: Value,
    pub(super) settings: WorkspaceSettings,
}

/// The state that all requests share.
#[derive(Debug)]
pub(super) struct DaemonState {
    pub(super) orchestrator: Orchestrator,
    pub(super) settings: Settings,
    /// Which settings were set, and where, unless a program that embeds the daemon has set them.
    pub(super) set_keys: OnceLock<Vec<SetKey>>,
    pub(super) addresses: DaemonAddresses,
    /// The home directory with the user's own hooks.
    pub(super) home: Option<PathBuf>,
    /// The signed bundle, if one is configured.
    pub(super) bundle: Option<BundleKeeper>,
    pub(super) locator: WorkspaceLocator,
    /// The workspaces of the settings that could not be loaded.
    pub(super) unloaded: Arc<UnloadedWorkspaces>,
    pub(super) watch: Arc<WatchState>,
    pub(super) exporter: Exporter,
    pub(super) meters: Arc<ApiMeters>,
    pub(super) observers: Observers,
    pub(super) denials: Arc<Denials>,
    pub(super) tokens: Arc<TcpTokens>,
    /// The last event of each agent.
    pub(super) activity: AgentActivity,
    /// The events that hosts send, for those who record them.
    pub(super) sent: Arc<SentEvents>,
    /// How many readers the stream has, at all listeners.
    pub(super) stream_readers: Arc<AtomicUsize>,
    /// Cancelled when a client of the API asks the daemon to stop.
    pub(super) stop_requested: CancellationToken,
    /// Cancelled to end the lame duck phase before its time.
    pub(super) lameduck_over: CancellationToken,
    /// Cancelled when the daemon begins to stop: connections end after their next response.
    pub(super) draining: CancellationToken,
    /// When the listeners accept connections.
    pub(super) accept_gate: AcceptGate,
    /// The workspaces that clients of the API have registered, with the bodies of their requests.
    pub(super) registrations: parking_lot::Mutex<BTreeMap<WorkspaceId, Registration>>,
    /// What another daemon gets that replaces this one.
    pub(super) handover: HandoverSlot,
    /// Whether `draining` is cancelled, without the lock that the token takes.
    is_draining: AtomicBool,
    /// Cancelled when connections and streams end.
    pub(super) closing: CancellationToken,
    pub(super) started: Instant,
    pub(super) started_at: SystemTime,
    /// The name of the daemon, for people and as a header.
    pub(super) node: String,
    pub(super) node_header: HeaderValue,
    /// The prefix of request ids, different for each start of a daemon.
    pub(super) instance: u32,
    phase: watch::Sender<DaemonPhase>,
    pub(super) loading: Loading,
    /// When the last reload of all workspaces began, and its reports.
    reloaded: Mutex<Option<(Instant, LoadReports)>>,
}

/// What the handlers of one listener's requests have: the state of the daemon, and the share of the listener.
#[derive(Debug, Clone)]
pub(super) struct RequestContext {
    pub(super) daemon: Arc<DaemonState>,
    pub(super) share: Arc<ListenerShare>,
}

impl FromRef<RequestContext> for Arc<DaemonState> {
    fn from_ref(context: &RequestContext) -> Self {
        Self::clone(&context.daemon)
    }
}

/// The load report of each workspace.
type LoadReports = Vec<(WorkspaceId, LoadReport)>;

impl DaemonState {
    pub(super) fn new(
        orchestrator: Orchestrator,
        settings: Settings,
        addresses: DaemonAddresses,
        home: Option<PathBuf>,
        metrics: (Exporter, ApiMeters),
        observers: Observers,
        tokens: &Arc<TcpTokens>,
    ) -> Self {
        let (exporter, meters) = metrics;
        let now = SystemTime::now();
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let watch = Arc::new(WatchState::new(settings.watch));
        let node = settings.node_name();
        let unloaded = Arc::new(UnloadedWorkspaces::default());
        Self {
            locator: WorkspaceLocator::new(
                &settings,
                home.clone(),
                Arc::clone(&watch),
                Arc::clone(&unloaded),
            ),
            unloaded,
            watch,
            exporter,
            meters: Arc::new(meters),
            denials: Denials::new(observers.audit.clone()),
            observers,
            tokens: Arc::clone(tokens),
            activity: AgentActivity::default(),
            sent: Arc::default(),
            stream_readers: Arc::default(),
            stop_requested: CancellationToken::new(),
            lameduck_over: CancellationToken::new(),
            draining: CancellationToken::new(),
            accept_gate: AcceptGate::new(),
            registrations: parking_lot::Mutex::default(),
            handover: HandoverSlot::default(),
            is_draining: AtomicBool::new(false),
            closing: CancellationToken::new(),
            started: Instant::now(),
            started_at: now,
            // A node's name has printable ASCII characters only.
            node_header: HeaderValue::try_from(&node).unwrap_or(HeaderValue::from_static("")),
            node,
            instance: since_epoch.subsec_nanos() ^ std::process::id().rotate_left(16),
            phase: watch::channel(DaemonPhase::Starting).0,
            loading: Loading::begin(),
            bundle: BundleKeeper::of(&settings),
            reloaded: Mutex::default(),
            orchestrator,
            settings,
            set_keys: OnceLock::new(),
            addresses,
            home,
        }
    }

    pub(super) fn phase(&self) -> DaemonPhase {
        *self.phase.borrow()
    }

    pub(super) fn set_phase(&self, phase: DaemonPhase) {
        if matches!(phase, DaemonPhase::LameDuck | DaemonPhase::Draining) {
            self.is_draining.store(true, Ordering::Release);
            self.draining.cancel();
        }
        self.phase.send_replace(phase);
    }

    /// Waits until the workspaces are loaded: an earlier event would find no hooks.
    ///
    /// Returns an error if that takes longer than `limits.pending_deadline`, or if the daemon stops before.
    pub(super) async fn loaded(&self) -> Result<(), ApiError> {
        self.loading.done(self.settings.limits.pending_deadline).await
    }

    /// The workspaces are loaded: events are judged from now on.
    pub(super) fn set_loaded(&self) {
        self.loading.finish();
        self.phase.send_if_modified(|phase| {
            let is_starting = *phase == DaemonPhase::Starting;
            if is_starting {
                *phase = DaemonPhase::Ready;
            }
            is_starting
        });
    }

    /// The daemon stops before its workspaces are loaded: no event is judged any more, and those that wait are answered.
    pub(super) fn abandon_loading(&self) {
        self.loading.abandon();
        self.set_phase(DaemonPhase::Draining);
    }

    /// The daemon does not start: no event is judged, and those that wait are told why.
    pub(super) fn fail_loading(&self, why: &str) {
        self.loading.fail(why);
        self.set_phase(DaemonPhase::Draining);
    }

    /// Begins the lame duck phase, unless the daemon drains already.
    pub(super) fn begin_draining(&self) {
        if !self.is_draining() {
            self.set_phase(DaemonPhase::LameDuck);
        }
    }

    /// Whether the daemon is about to stop, so that responses ask their clients to connect again.
    pub(super) fn is_draining(&self) -> bool {
        self.is_draining.load(Ordering::Acquire)
    }

    /// Reads the hook files of every workspace, the tokens and the record of connected agents again. Concurrent calls run one after the other, and a call that waited
    /// takes the reports of a reload that began after it was made.
    ///
    /// Returns an error if the daemon is shutting down.
    pub(super) async fn reload(&self) -> Result<LoadReports, DispatchError> {
        let asked = Instant::now();
        let mut reloaded = self.reloaded.lock().await;
        if let Some((_, reports)) = reloaded.as_ref().filter(|(begun, _)| *begun > asked) {
            return Ok(reports.clone());
        }
        let begun = Instant::now();
        // First: nothing that is wrong with hooks may keep a token in force.
        let tokens = Arc::clone(&self.tokens);
        if let Err(error) = spawn_blocking(move || tokens.reload()).await {
            tracing::error!(%error, "the tokens were not read again");
        }
        self.locator.reload(&self.settings);
        self.read_bundle().await;
        self.retry_unloaded().await;
        let reports = self.orchestrator.reload().await?;
        self.settle_bundle();
        self.watch.rescan_all();
        *reloaded = Some((begun, reports.clone()));
        Ok(reports)
    }

    /// The audit, if the settings require that each answer has a line in it.
    pub(super) fn required_audit(&self) -> Option<&Audit> {
        self.observers.audit.as_deref().filter(|audit| audit.is_required())
    }
}
