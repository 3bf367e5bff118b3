//! Daemons without listeners, which hand over to each other inside one process. What becomes of their runs and events is
//! simulated in `orchestrator::tests::simulated_lives`.

use std::{
    io::{PipeWriter, pipe},
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{io::DuplexStream, sync::OwnedMutexGuard};

use super::{
    predecessor::serve_successor,
    successor::{Replacement, serve_predecessor},
    wire::Link,
};
use crate::{
    Orchestrator,
    config::{ListenSettings, Settings},
    daemon::{
        page::{DecisionHistory, HistoryScope},
        startup::open_store,
        state::{DaemonAddresses, DaemonState, Observers},
        tokens::TcpTokens,
    },
    handler::command::{GroupLedger, LockedLedger},
    platform::ProcessHandle,
    telemetry::{ApiMeters, Exporter},
};

/// A daemon without listeners.
#[derive(Debug)]
pub(crate) struct SimulatedDaemon {
    state: Arc<DaemonState>,
    /// What its process gives up when it ends.
    held: Mutex<Option<(LockedLedger, PipeWriter)>>,
    /// Ends with its process.
    process: ProcessHandle,
    files: TempDir,
}

/// How another daemon notices the end of a process.
#[derive(Debug)]
pub(crate) struct SimulatedDeath {
    process: ProcessHandle,
    ledger: PathBuf,
}

impl SimulatedDaemon {
    pub(crate) fn new(orchestrator: &Orchestrator) -> Self {
        let addresses = DaemonAddresses {
            socket: "/nowhere".into(),
            control_socket: "/nowhere".into(),
            lines: None,
            tcp: None,
            metrics: None,
        };
        let tokens = Arc::new(TcpTokens::read(&ListenSettings::default()).expect("there are none"));
        let metrics = (Exporter::none(), ApiMeters::resolve(std::iter::empty()));
        let settings = Settings { watch: false, ..Settings::default() };
        let history = Arc::new(DecisionHistory::new(HistoryScope::Notable));
        let observers =
            Observers { audit: None, tracer: None, shipping: None, history, live: Arc::default() };
        let state =
            DaemonState::new(orchestrator.clone(), settings, addresses, None, metrics, observers, &tokens);
        let files = tempfile::tempdir().expect("a directory");
        let ledger = GroupLedger::claim(&files.path().join("ledger")).expect("a file of its own");
        let (process, writer) = pipe().expect("a pipe");
        let held = Mutex::new(Some((ledger, writer)));
        Self { state: Arc::new(state), held, process: ProcessHandle::ending_with(process.into()), files }
    }

    /// It has loaded its workspaces, and takes events.
    pub(crate) fn begin(&self) {
        self.state.set_loaded();
    }

    /// Its process is gone.
    pub(crate) fn end(&self) {
        self.held.lock().take();
    }

    pub(crate) fn death(&self) -> SimulatedDeath {
        SimulatedDeath { process: self.process.clone(), ledger: self.files.path().join("ledger") }
    }

    /// Whether it takes events, or forwards them.
    pub(crate) fn is_ready(&self) -> bool {
        self.state.loading.is_done()
    }

    /// Begins a handover, unless one is under way or done.
    pub(crate) fn begin_handover(&self) -> Option<OwnedMutexGuard<()>> {
        let may_begin = self.is_ready() && !self.state.is_draining();
        self.state.handover.begin().filter(|_| may_begin)
    }

    /// Hands over to the daemon at the other end of a stream.
    pub(crate) async fn hand_over(&self, under_way: OwnedMutexGuard<()>, stream: DuplexStream) {
        serve_successor(&self.state, Link::of(stream), 0).await;
        drop(under_way);
    }

    /// Whether requests wait until it is known who accepts connections.
    pub(crate) fn is_engaged(&self) -> bool {
        self.state.handover.is_engaged()
    }

    /// Waits until it is known. Returns whether another daemon does.
    pub(crate) async fn settled(&self) -> bool {
        self.state.handover.settled().await
    }

    /// Keeps others from taking over from now on. Returns whether one has.
    pub(crate) async fn refuse(&self) -> bool {
        self.state.handover.refuse().await
    }

    /// Waits until it is to stop, because another daemon has taken over.
    pub(crate) async fn stop_requested(&self) {
        self.state.stop_requested.cancelled().await;
    }

    /// Takes over from the daemon at the other end of a stream, and returns once that one has ended.
    ///
    /// Returns an error if it does not come to that. A daemon ends then.
    pub(crate) async fn take_over(
        &self,
        predecessor: SimulatedDeath,
        data: &Path,
        stream: DuplexStream,
    ) -> Result<(), String> {
        let orchestrator = &self.state.orchestrator;
        let SimulatedDeath { process, ledger } = predecessor;
        let mut replacement = Replacement::simulated(process, ledger, data, Link::of(stream));
        replacement.workspaces().await.map_err(|error| error.to_string())?;
        replacement.released(Some(data)).await.map_err(|error| error.to_string())?;
        let courier = replacement.courier(data);
        open_store(orchestrator, data, courier, &replacement).await.map_err(|error| error.to_string())?;
        replacement.may_begin(orchestrator).await.map_err(|error| error.to_string())?;
        self.begin();
        replacement.started().await;
        serve_predecessor(replacement, orchestrator.clone()).await;
        orchestrator.release_outbox();
        Ok(())
    }
}
