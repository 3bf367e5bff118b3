//! The side of the daemon that is replaced: it offers its listeners, leaves them to its successor, and reports how the runs
//! of its last events change.

use std::{
    collections::BTreeMap,
    io,
    os::fd::AsFd,
    path::{Path, PathBuf},
    pin::pin,
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
    store::{ReportedChange, SuccessorOutbox, SuccessorStore},
    wire::{Line, Link, Offer, OfferedListener, PROTOCOL, is_same_directory, send_offer},
};
use crate::{
    daemon::{
        auth,
        error::ApiError,
        handed_over::{ListenerOwner, ListenerRole},
        handover_slot::{AcceptPhase, HandoverListener},
        server_identity, socket,
        state::DaemonState,
    },
    handler::command::Lineage,
    orchestrator::SuccessorStores,
    run::OutboxOwner,
    store::{OutboxStore, RunStore},
};

/// How long a successor may take to load its workspaces. Nobody waits for it.
const LOAD_TIMEOUT: Duration = Duration::from_mins(10);

/// How long a successor may take to open the store. Only halts wait for it.
const OPEN_TIMEOUT: Duration = Duration::from_mins(1);

/// How often the store is opened again: a successor that gives up takes a moment to close it.
const MAX_REOPENS: u32 = 50;

/// Between two attempts.
const REOPEN_PAUSE: Duration = Duration::from_millis(100);

/// How often it is reported that a successor was told to begin and has not.
const BEGIN_WARNING: Duration = Duration::from_secs(5);

/// Offers the listeners to the daemon at a socket, and serves the handover in a task.
///
/// Returns an error if another handover is under way, or if the socket is not that of this user.
pub(in crate::daemon) async fn offer(state: &Arc<DaemonState>, socket: &Path) -> Result<(), ApiError> {
    let under_way = state.handover.begin().ok_or_else(ApiError::handover_under_way)?;
    if state.is_draining() || !state.loading.is_done() {
        return Err(ApiError::handover_under_way());
    }
    let (link, pid) = connect(state, socket).await.map_err(|error| ApiError::no_handover(&error))?;
    let state = Arc::clone(state);
    tokio::spawn(async move {
        serve_successor(&state, link, pid).await;
        drop(under_way);
    });
    Ok(())
}

/// Hands the listeners over. If the successor gives up, this daemon goes on.
pub(super) async fn serve_successor(state: &Arc<DaemonState>, link: Link, pid: i32) {
    if let Err(error) = hand_over(state, link, pid).await {
        listen_again(state);
        state.accept_gate.reopen();
        state.handover.abort();
        tracing::warn!(%error, "the daemon that was to take over has not done so; this one goes on");
    }
}

/// Has clients see this process at its sockets. Since a successor listened there, they see that one, also when it is gone:
/// no other could take over.
fn listen_again(state: &DaemonState) {
    let listened = state.handover.with_listeners(|listeners| {
        let is_socket =
            |role| matches!(role, ListenerRole::Events | ListenerRole::Control | ListenerRole::Lines);
        let mut sockets = listeners.iter().filter(|listener| is_socket(listener.role));
        sockets.try_for_each(|listener| socket::listen_again(&listener.descriptor))
    });
    if let Err(error) = listened {
        tracing::error!(%error, "clients see another process at the sockets than the one that answers");
    }
}

/// Connects to a successor, and sends the offer. It fits into the buffer of the socket, so nothing blocks for long.
/// Returns its process as well.
async fn connect(state: &DaemonState, socket: &Path) -> io::Result<(Link, i32)> {
    let provided = server_identity::check_path(socket).map_err(io::Error::other)?;
    let stream = UnixStream::connect(socket).await?;
    let peer = stream.peer_cred()?;
    // No hook gets the listeners, whoever asks for it.
    if auth::lineage(&stream, peer) != Lineage::Other {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let stream = stream.into_std()?;
    server_identity::check_process(&stream, provided).map_err(io::Error::other)?;
    let data = state.orchestrator.store_status().map(|status| status.directory);
    state.handover.with_listeners(|listeners| {
        let offered = listeners.iter().map(|listener| offered_listener(state, listener)).collect();
        let offer = Offer { protocol: PROTOCOL, pid: std::process::id(), listeners: offered, data };
        let descriptors: Vec<_> = listeners.iter().map(|listener| listener.descriptor.as_fd()).collect();
        send_offer(&stream, &offer, &descriptors)
    })?;
    Ok((Link::new(stream)?, peer.pid().unwrap_or_default()))
}

fn offered_listener(state: &DaemonState, listener: &HandoverListener) -> OfferedListener {
    let addresses = &state.addresses;
    let path = match listener.role {
        ListenerRole::Events => Some(addresses.socket.clone()),
        ListenerRole::Control => Some(addresses.control_socket.clone()),
        ListenerRole::Lines => addresses.lines.clone(),
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
async fn hand_over(state: &Arc<DaemonState>, mut link: Link, pid: i32) -> io::Result<()> {
    link.send(&Line::Workspaces(workspaces(state))).await?;
    let ready = timeout(LOAD_TIMEOUT, receive_ready(&mut link));
    let successor_data = ready.await.map_err(|_| io::ErrorKind::TimedOut)??;
    let frozen = state.handover.freeze_registrations().await;
    let data = state.orchestrator.store_status().map(|status| status.directory);
    let opens_the_same = is_same_directory(data.as_deref(), successor_data.as_deref());
    if !opens_the_same && let Some(data) = &data {
        let data = data.display();
        tracing::warn!(%data, "the daemon that takes over has another `data`: lifecycle events that wait in this one stay there");
    }
    let (store, changes) = SuccessorStore::new(successor_data.clone().unwrap_or_default());
    let successor: Arc<dyn RunStore> = Arc::clone(&store) as Arc<dyn RunStore>;
    // Only halts that come from here on wait for the successor; everything else goes on.
    let outbox = SuccessorOutbox::new(Arc::clone(&store));
    let successor = SuccessorStores { runs: successor, outbox: Arc::clone(&outbox) as Arc<dyn OutboxStore> };
    let data = state.orchestrator.hand_store_over(successor, opens_the_same).await;
    let mut reports = ChangeReports { link, changes, store, pid, outbox };
    if let Err(error) = begin(state, &mut reports).await {
        let (store, had_store) = (reports.end(), data.is_some());
        if take_back(state, &store, data, OutboxOwner::Own).await {
            state.orchestrator.start_courier();
        } else if !had_store {
            state.orchestrator.set_store(None);
        }
        return Err(error);
    }
    tracing::info!("another daemon has taken over; this one finishes what it has");
    state.begin_draining();
    state.stop_requested.cancel();
    drop(frozen);
    reports.forward().await;
    let store = reports.end();
    if state.orchestrator.in_flight() == 0 {
        store.give_back(None);
        return Ok(());
    }
    tracing::warn!(
        "the daemon that has taken over has ended; this one stores the halts of its last events itself"
    );
    // The next daemon starts once this one has ended.
    let outbox = if opens_the_same || data.is_none() { OutboxOwner::Own } else { OutboxOwner::Successor };
    take_back(state, &store, successor_data.or(data), outbox).await;
    Ok(())
}

/// Waits until a successor is ready. Returns where it keeps the state of runs.
async fn receive_ready(link: &mut Link) -> io::Result<Option<PathBuf>> {
    let mut data = None;
    loop {
        match link.receive().await? {
            Line::Data(directory) => data = Some(directory),
            Line::Ready => return Ok(data),
            _ => return Err(io::ErrorKind::InvalidData.into()),
        }
    }
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
    reports.until_started().await?;
    reports.store.conclude();
    state.handover.conclude();
    state.accept_gate.set(AcceptPhase::HandedOver);
    Ok(())
}

/// Opens the store again that the successor has given up. Returns whether there is one.
async fn take_back(
    state: &DaemonState,
    store: &SuccessorStore,
    data: Option<PathBuf>,
    outbox: OutboxOwner,
) -> bool {
    let Some(data) = data else {
        store.give_back(None);
        return false;
    };
    for attempt in 1..=MAX_REOPENS {
        match state.orchestrator.reopen_store(data.clone(), outbox).await {
            Ok(opened) => {
                store.give_back(Some(Arc::clone(&opened)));
                state.orchestrator.set_store(Some(opened));
                return true;
            }
            Err(error) if attempt == MAX_REOPENS => {
                tracing::error!(%error, "the state of runs is kept in memory only from now on");
                state.orchestrator.give_up_outbox();
            }
            Err(_) => sleep(REOPEN_PAUSE).await,
        }
    }
    store.give_back(None);
    false
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
    /// The process of the successor.
    pid: i32,
    outbox: Arc<SuccessorOutbox>,
}

impl ChangeReports {
    /// Reports changes until the successor sends this line.
    ///
    /// Returns an error if it sends another one, or is gone.
    async fn until(&mut self, is_it: impl Fn(&Line) -> bool) -> io::Result<()> {
        loop {
            match self.report_until_line().await? {
                Line::Flushed(question) => self.store.acknowledge(question),
                Line::Kept(id, error) => self.outbox.settle(id, error),
                line if is_it(&line) => return Ok(()),
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    /// Reports changes until the successor has started. There is no limit of time: from here on it may accept connections
    /// unless it ends.
    async fn until_started(&mut self) -> io::Result<()> {
        let pid = self.pid;
        let mut started = pin!(self.until(|line| matches!(line, Line::Started)));
        loop {
            if let Ok(started) = timeout(BEGIN_WARNING, started.as_mut()).await {
                return started;
            }
            tracing::warn!(
                pid,
                "the daemon that takes over was told to begin and does not; events and a stop wait for it; end it if it hangs"
            );
        }
    }

    /// Reports changes until the successor is gone.
    async fn forward(&mut self) {
        // It ends with an error: no line is the last one.
        self.until(|_| false).await.ok();
    }

    /// Closes the connection, so that a successor that has not begun gives up what it has opened. Events that wait for its
    /// disk are refused.
    fn end(self) -> Arc<SuccessorStore> {
        self.outbox.abandon();
        self.store
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
