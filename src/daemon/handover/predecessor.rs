//! The side of the daemon that is replaced: it offers its listeners, leaves them to its successor, and reports how the runs
//! of its last events change.

use std::{
    collections::BTreeMap,
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serde_json::Value;
use tokio::{
    net::UnixStream,
    sync::mpsc::UnboundedReceiver,
    time::{sleep, timeout},
};

use super::{
    store::{ReportedChange, SuccessorStore},
    wire::{Line, Link, Offer, OfferedListener, PROTOCOL, send_offer},
};
use crate::{
    daemon::{
        error::ApiError,
        handed_over::{ListenerOwner, ListenerRole},
        handover_slot::{AcceptPhase, HandoverListener},
        server_identity, socket,
        state::{DaemonPhase, DaemonState},
    },
    handler::command::Lineage,
    store::RunStore,
};

/// How long a successor may take to load its workspaces. Nobody waits for it.
const LOAD_TIMEOUT: Duration = Duration::from_mins(10);

/// How long a successor may take to open the store. Only halts wait for it.
const OPEN_TIMEOUT: Duration = Duration::from_mins(1);

/// How often the store is opened again: a successor that gives up takes a moment to close it.
const MAX_REOPENS: u32 = 50;

/// Between two attempts.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

/// Offers the listeners to the daemon at a socket, and serves the handover in a task.
///
/// Returns an error if another handover is under way, or if the socket is not that of this user.
pub(in crate::daemon) async fn offer(state: &Arc<DaemonState>, socket: &Path) -> Result<(), ApiError> {
    let under_way = state.handover.begin().ok_or_else(ApiError::handover_under_way)?;
    if state.is_draining() || state.phase() == DaemonPhase::Starting {
        return Err(ApiError::handover_under_way());
    }
    let link = connect(state, socket).await.map_err(|error| ApiError::no_handover(&error))?;
    let state = Arc::clone(state);
    tokio::spawn(async move {
        if let Err(error) = hand_over(&state, link).await {
            state.accept_gate.reopen();
            state.handover.abort();
            tracing::warn!(%error, "the daemon that was to take over has not done so; this one goes on");
        }
        drop(under_way);
    });
    Ok(())
}

/// Connects to a successor, and sends the offer. It fits into the buffer of the socket, so nothing blocks for long.
async fn connect(state: &DaemonState, socket: &Path) -> io::Result<Link> {
    let provided = server_identity::check_path(socket).map_err(io::Error::other)?;
    let stream = UnixStream::connect(socket).await?;
    // No hook gets the listeners, whoever asks for it.
    if socket::lineage(&stream, stream.peer_cred()?) != Lineage::Other {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let stream = stream.into_std()?;
    server_identity::check_process(&stream, provided).map_err(io::Error::other)?;
    state.handover.with_listeners(|listeners| {
        let offered = listeners.iter().map(|listener| offered_listener(state, listener)).collect();
        let offer = Offer { protocol: PROTOCOL, pid: std::process::id(), listeners: offered };
        let descriptors: Vec<_> = listeners.iter().map(|listener| listener.descriptor.as_fd()).collect();
        send_offer(&stream, &offer, &descriptors)
    })?;
    Link::new(stream)
}

fn offered_listener(state: &DaemonState, listener: &HandoverListener) -> OfferedListener {
    let addresses = &state.addresses;
    let path = match listener.role {
        ListenerRole::Events => Some(addresses.socket.clone()),
        ListenerRole::Control => Some(addresses.control_socket.clone()),
        ListenerRole::Tcp | ListenerRole::Metrics => None,
    };
    OfferedListener {
        role: listener.role.as_str().to_owned(),
        path,
        of_service_manager: listener.owner == ListenerOwner::ServiceManager,
    }
}

/// Hands the listeners over, and reports changes until the successor is gone.
///
/// Returns an error if the successor gives up before it accepts connections.
async fn hand_over(state: &Arc<DaemonState>, mut link: Link) -> io::Result<()> {
    link.send(&Line::Workspaces(workspaces(state))).await?;
    let ready = timeout(LOAD_TIMEOUT, link.receive()).await.map_err(|_| io::ErrorKind::TimedOut)??;
    if !matches!(ready, Line::Ready) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let frozen = state.handover.freeze_registrations().await;
    let directory = state.orchestrator.store_status().map(|status| status.directory);
    let (store, changes) = SuccessorStore::new(directory.unwrap_or_default());
    let successor: Arc<dyn RunStore> = Arc::clone(&store) as Arc<dyn RunStore>;
    // Only halts that come from here on wait for the successor; everything else goes on.
    let data = state.orchestrator.hand_store_over(successor).await;
    let mut reports = ChangeReports { link, changes, store };
    if let Err(error) = begin(state, &mut reports).await {
        // The successor gives up what it has opened when its connection ends.
        let ChangeReports { store, link, .. } = reports;
        drop(link);
        take_back(state, &store, data).await;
        return Err(error);
    }
    tracing::info!("another daemon has taken over; this one finishes what it has");
    state.begin_draining();
    state.stop_requested.cancel();
    drop(frozen);
    let ended = reports.forward().await;
    reports.store.abandon();
    if let Err(error) = ended
        && state.orchestrator.in_flight() > 0
    {
        tracing::warn!(%error, "the daemon that has taken over has ended; it is not told of halts any more");
    }
    Ok(())
}

/// Lets the successor accept connections in place of this daemon.
async fn begin(state: &DaemonState, reports: &mut ChangeReports) -> io::Result<()> {
    reports.link.send(&Line::Released(workspaces(state))).await?;
    let loaded = reports.until(|line| matches!(line, Line::Loaded));
    timeout(OPEN_TIMEOUT, loaded).await.map_err(|_| io::ErrorKind::TimedOut)??;
    if !state.handover.commit() {
        return Err(io::Error::other("it is about to stop"));
    }
    state.accept_gate.set(AcceptPhase::Paused);
    reports.send_pending().await?;
    reports.link.send(&Line::Go).await?;
    // Without a limit of time: from here on it may accept connections unless it ends.
    reports.until(|line| matches!(line, Line::Started)).await?;
    reports.store.conclude();
    state.handover.conclude();
    state.accept_gate.set(AcceptPhase::HandedOver);
    Ok(())
}

/// Opens the store again that the successor did not keep.
async fn take_back(state: &DaemonState, store: &SuccessorStore, data: Option<PathBuf>) {
    let Some(data) = data else {
        state.orchestrator.set_store(None);
        return store.give_back(None);
    };
    for attempt in 1..=MAX_REOPENS {
        match state.orchestrator.reopen_store(data.clone()).await {
            Ok(opened) => {
                store.give_back(Some(Arc::clone(&opened)));
                return state.orchestrator.set_store(Some(opened));
            }
            Err(error) if attempt == MAX_REOPENS => {
                tracing::error!(%error, "the state of runs is kept in memory only from now on");
            }
            Err(_) => sleep(REOPEN_PAUSE).await,
        }
    }
    store.give_back(None);
}

/// The workspaces that clients of the API have registered.
fn workspaces(state: &DaemonState) -> BTreeMap<String, Value> {
    let registrations = state.registrations.lock();
    registrations.iter().map(|(id, registration)| (id.to_string(), registration.body.clone())).collect()
}

/// Reports changes of runs to the successor.
struct ChangeReports {
    link: Link,
    changes: UnboundedReceiver<ReportedChange>,
    store: Arc<SuccessorStore>,
}

impl ChangeReports {
    /// Reports changes until the successor sends this line.
    ///
    /// Returns an error if it sends another one, or is gone.
    async fn until(&mut self, is_it: impl Fn(&Line) -> bool) -> io::Result<()> {
        loop {
            match self.report_until_line().await? {
                Line::Flushed(question) => self.store.acknowledge(question),
                line if is_it(&line) => return Ok(()),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Reports changes until the successor is gone.
    async fn forward(&mut self) -> io::Result<()> {
        self.until(|_| false).await
    }

    async fn report_until_line(&mut self) -> io::Result<Line> {
        loop {
            tokio::select! {
                line = self.link.receive() => return line,
                Some(change) = self.changes.recv() => self.link.send(&Line::of_change(&change)).await?,
            }
        }
    }

    /// Reports what has changed until now.
    async fn send_pending(&mut self) -> io::Result<()> {
        while let Ok(change) = self.changes.try_recv() {
            self.link.send(&Line::of_change(&change)).await?;
        }
        Ok(())
    }
}
