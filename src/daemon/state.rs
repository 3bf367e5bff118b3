//! What all requests share: the orchestrator, the settings, and how far the daemon is in its life. Refuses to act.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::SystemTime};

use tokio::{
    sync::{Mutex, Semaphore, watch},
    time::{Instant, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    audit::Audit, error::ApiError, routes, traces::Tracer, watch::WatchState,
    workspace_locator::WorkspaceLocator,
};
use crate::{
    DispatchError, LoadReport, Orchestrator,
    config::Settings,
    model::WorkspaceId,
    telemetry::{ApiMeters, Exporter},
};

/// How far the daemon is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DaemonPhase {
    /// It loads its workspaces.
    Starting,
    /// It takes events.
    Ready,
    /// It lets events under way finish.
    Draining,
}

impl DaemonPhase {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Draining => "draining",
        }
    }
}

/// Where the daemon is reached, and whose it is.
#[derive(Debug)]
pub(super) struct DaemonAddresses {
    /// The Unix socket.
    pub(super) socket: PathBuf,
    pub(super) tcp: Option<SocketAddr>,
    /// Where only metrics are.
    pub(super) metrics: Option<SocketAddr>,
    /// The home directory with the user's own hooks.
    pub(super) home: Option<PathBuf>,
}

/// Who takes note of outcomes.
#[derive(Debug, Clone)]
pub(super) struct Observers {
    pub(super) audit: Option<Arc<Audit>>,
    pub(super) tracer: Option<Arc<Tracer>>,
}

/// What all requests share.
#[derive(Debug)]
pub(super) struct DaemonState {
    pub(super) orchestrator: Orchestrator,
    pub(super) settings: Settings,
    pub(super) addresses: DaemonAddresses,
    pub(super) locator: WorkspaceLocator,
    pub(super) watch: Arc<WatchState>,
    pub(super) exporter: Exporter,
    pub(super) meters: Arc<ApiMeters>,
    pub(super) observers: Observers,
    /// How many requests are worked on at the same time.
    pub(super) requests: Arc<Semaphore>,
    /// How many readers the stream has.
    pub(super) streams: Arc<Semaphore>,
    /// Cancelled when streams end.
    pub(super) closing: CancellationToken,
    pub(super) started: Instant,
    pub(super) started_at: SystemTime,
    /// The beginning of the ids of requests, different in each life of a daemon.
    pub(super) instance: u32,
    phase: watch::Sender<DaemonPhase>,
    /// When the files of all workspaces began to be read last, and what was found.
    reloaded: Mutex<Option<(Instant, LoadReports)>>,
}

/// What was found in the files of each workspace.
type LoadReports = Vec<(WorkspaceId, LoadReport)>;

impl DaemonState {
    pub(super) fn new(
        orchestrator: Orchestrator,
        settings: Settings,
        addresses: DaemonAddresses,
        exporter: Exporter,
        observers: Observers,
    ) -> Self {
        let now = SystemTime::now();
        let since_epoch = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let watch = Arc::new(WatchState::new(settings.watch));
        Self {
            locator: WorkspaceLocator::new(
                settings.workspace_roots.clone(),
                addresses.home.clone(),
                Arc::clone(&watch),
            ),
            watch,
            exporter,
            meters: Arc::new(ApiMeters::resolve(routes::paths())),
            observers,
            requests: Arc::new(Semaphore::new(settings.limits.requests.get())),
            streams: Arc::new(Semaphore::new(settings.limits.streams.get())),
            closing: CancellationToken::new(),
            started: Instant::now(),
            started_at: now,
            instance: since_epoch.subsec_nanos() ^ std::process::id().rotate_left(16),
            phase: watch::channel(DaemonPhase::Starting).0,
            reloaded: Mutex::default(),
            orchestrator,
            settings,
            addresses,
        }
    }

    pub(super) fn phase(&self) -> DaemonPhase {
        *self.phase.borrow()
    }

    pub(super) fn set_phase(&self, phase: DaemonPhase) {
        self.phase.send_replace(phase);
    }

    /// Reads the hook files of every workspace again. However many ask for it at once, files are read one time after
    /// the other, and whoever waits is content with what began after they asked.
    ///
    /// Returns an error if the daemon is shutting down.
    pub(super) async fn reload(&self) -> Result<LoadReports, DispatchError> {
        let asked = Instant::now();
        let mut reloaded = self.reloaded.lock().await;
        if let Some((_, reports)) = reloaded.as_ref().filter(|(begun, _)| *begun > asked) {
            return Ok(reports.clone());
        }
        let begun = Instant::now();
        let reports = self.orchestrator.reload().await?;
        self.watch.rescan_all();
        *reloaded = Some((begun, reports.clone()));
        Ok(reports)
    }

    /// Waits until the workspaces are loaded: an event that came before would find no hooks.
    ///
    /// Returns an error if that takes longer than an event may wait.
    pub(super) async fn loaded(&self) -> Result<(), ApiError> {
        if self.phase() != DaemonPhase::Starting {
            return Ok(());
        }
        let mut phase = self.phase.subscribe();
        let begun = phase.wait_for(|phase| *phase != DaemonPhase::Starting);
        // The sender is here, so it does not end before its value changes.
        let waited = timeout(self.settings.limits.pending_deadline, begun).await;
        waited.map(drop).map_err(|_| ApiError::starting())
    }
}
