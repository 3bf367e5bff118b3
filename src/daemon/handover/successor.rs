//! The side of the daemon that replaces another one: it takes the listeners, and what the other's last events change.

use std::{
    collections::BTreeMap,
    future::ready,
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    task::{JoinSet, spawn_blocking},
    time::{Instant, sleep},
};

use super::wire::{
    ANSWER_TIMEOUT, ChangedEvent, ChangedRun, Line, Link, MeetingPoint, PROTOCOL, RunName, is_same_directory,
    listeners, receive_offer,
};
use crate::{
    Orchestrator,
    config::ListenSettings,
    daemon::{
        client::{Client, ClientError},
        handed_over::{AssignedListeners, HandedOverError, ListenerOwner, ListenerRole, StdListener},
        start_error::ReplaceError,
    },
    handler::command::{AdoptedHooks, GroupLedger, LedgerError},
    model::WorkspaceId,
    platform::{ProcessHandle, ReadableEnvironment, peer_process},
    run::Courier,
    store::StoredRun,
};

/// How long it may take to end after its connection has.
const END_TIME: Duration = Duration::from_secs(2);

/// Between two looks whether it has ended.
const END_PAUSE: Duration = Duration::from_millis(20);

/// The daemon that is about to be replaced, and the listeners it has handed over.
#[derive(Debug)]
pub(in crate::daemon) struct Replacement {
    listeners: Vec<(ListenerRole, ListenerOwner, StdListener)>,
    /// The process of the other daemon.
    pid: i32,
    process: ProcessHandle,
    /// Its hooks are hooks of this daemon as well.
    hooks: Option<AdoptedHooks>,
    /// Its ledger, which it has locked until it ends.
    ledger: Option<PathBuf>,
    /// Where it keeps the state of runs and the last good rules.
    data: Option<PathBuf>,
    /// Whether it ended before this one accepted connections.
    has_ended: bool,
    link: Link,
    /// Whether its outbox is this daemon's as well.
    shares_outbox: bool,
    /// Events of the other daemon that are being written, by their ids.
    writes: JoinSet<(u64, Option<String>)>,
}

impl Replacement {
    /// Asks the daemon at a control socket for its listeners. Returns nothing if no daemon is there.
    pub(in crate::daemon) async fn request(control_socket: &Path) -> Result<Option<Self>, ReplaceError> {
        if !control_socket.exists() {
            return Ok(None);
        }
        // Removed as well if nobody waits for the answer any more.
        let (meeting_point, _file) = MeetingPoint::open(control_socket)?;
        let asked = control_socket.to_owned();
        let runtime = Handle::current();
        let request = spawn_blocking(move || {
            let _runtime = runtime.enter();
            Self::ask(&asked, &meeting_point)
        });
        // Fails only while the runtime shuts down.
        request.await.map_err(io::Error::other)?
    }

    /// Asks the daemon at a control socket to come to a meeting point. Blocks.
    fn ask(control_socket: &Path, meeting_point: &MeetingPoint) -> Result<Option<Self>, ReplaceError> {
        let body = json!({ "socket": meeting_point.path }).to_string();
        let client = Client::new(control_socket).timeout(ANSWER_TIMEOUT);
        let daemon = match client.connect() {
            Err(ClientError::Down { .. }) => return Ok(None),
            connected => connected.map_err(ReplaceError::Refused)?,
        };
        let daemon = peer_process(&daemon)?;
        let process = ProcessHandle::open(daemon)?;
        let sent = {
            let _readable = ReadableEnvironment::begin();
            client.send("POST", "/v1/handover", Some(body.as_bytes()))
        };
        let answer = match sent {
            Err(ClientError::Down { .. }) => return Ok(None),
            answer => answer.map_err(ReplaceError::Refused)?,
        };
        if answer.status != 202 {
            return Err(ReplaceError::Refused(answer.error_response()));
        }
        let stream = meeting_point.accept(daemon)?;
        let (offer, descriptors) = receive_offer(&stream)?;
        if offer.protocol != PROTOCOL {
            return Err(ReplaceError::Protocol(offer.protocol));
        }
        let listeners = listeners(&offer, descriptors)?;
        let link = Link::new(stream)?;
        let (data, ledger) = (offer.data, None);
        let (shares_outbox, writes) = (false, JoinSet::new());
        Ok(Some(Self {
            listeners,
            pid: daemon,
            process,
            hooks: None,
            ledger,
            data,
            has_ended: false,
            link,
            shares_outbox,
            writes,
        }))
    }

    /// The other daemon of a simulation, which has no listeners.
    #[cfg(test)]
    pub(super) fn simulated(process: ProcessHandle, ledger: PathBuf, data: &Path, link: Link) -> Self {
        Self {
            listeners: Vec::new(),
            pid: 0,
            process,
            hooks: None,
            ledger: Some(ledger),
            data: Some(data.to_owned()),
            has_ended: false,
            link,
            shares_outbox: false,
            writes: JoinSet::new(),
        }
    }

    /// Lets the hooks of the other daemon control this one as little as its own. They are recorded in this ledger.
    pub(in crate::daemon) fn adopt_hooks(&mut self, ledger: &Path) {
        self.hooks = Some(AdoptedHooks::of(self.pid, ledger.to_owned()));
        self.ledger = Some(ledger.to_owned());
    }

    /// The process of the other daemon.
    pub(in crate::daemon) fn process(&self) -> ProcessHandle {
        self.process.clone()
    }

    /// Where the other daemon keeps the state of runs and the last good rules.
    pub(in crate::daemon) fn data(&self) -> Option<&Path> {
        self.data.as_deref()
    }

    /// Whether the other daemon ended before this one accepted connections: this one goes on without it.
    pub(in crate::daemon) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The workspaces that clients of the other daemon have registered; none if it has ended.
    pub(in crate::daemon) async fn workspaces(
        &mut self,
    ) -> Result<BTreeMap<WorkspaceId, Value>, ReplaceError> {
        match self.receive().await? {
            Some(Line::Workspaces(workspaces)) => Ok(with_ids(workspaces)),
            Some(_) => Err(unexpected()),
            None => Ok(BTreeMap::new()),
        }
    }

    /// Has the other daemon close the store of runs, after the workspaces are loaded. Returns the workspaces again: clients
    /// may have registered others meanwhile; none if it has ended.
    pub(in crate::daemon) async fn released(
        &mut self,
        data: Option<&Path>,
    ) -> Result<Option<BTreeMap<WorkspaceId, Value>>, ReplaceError> {
        if let Some(data) = data {
            self.send(&Line::Data(data.to_owned())).await?;
        }
        self.send(&Line::Ready).await?;
        match self.receive().await? {
            Some(Line::Released(workspaces)) => Ok(Some(with_ids(workspaces))),
            Some(_) => Err(unexpected()),
            None => Ok(None),
        }
    }

    /// Who delivers what the outbox in a directory has.
    pub(in crate::daemon) fn courier(&mut self, data: &Path) -> Courier {
        self.shares_outbox = !self.has_ended && is_same_directory(self.data.as_deref(), Some(data));
        if self.shares_outbox { Courier::Predecessor } else { Courier::Own }
    }

    /// Waits for the permission to accept connections, after the store is open. Nobody withholds it if the other daemon has
    /// ended.
    pub(in crate::daemon) async fn may_begin(
        &mut self,
        orchestrator: &Orchestrator,
    ) -> Result<(), ReplaceError> {
        self.send(&Line::Loaded).await?;
        loop {
            match self.receive().await? {
                Some(Line::Go) | None => {
                    orchestrator.leave_event_ids();
                    return Ok(());
                }
                Some(line) => {
                    if let Err(error) = self.take_in(line, orchestrator).await {
                        self.require_end(error).await?;
                    }
                }
            }
        }
    }

    /// Sends a line, unless the other daemon has ended.
    async fn send(&mut self, line: &Line) -> Result<(), ReplaceError> {
        if self.has_ended {
            return Ok(());
        }
        match self.link.send(line).await {
            Ok(()) => Ok(()),
            Err(error) => self.require_end(error.into()).await,
        }
    }

    /// The next line, unless the other daemon has ended.
    async fn receive(&mut self) -> Result<Option<Line>, ReplaceError> {
        if self.has_ended {
            return Ok(None);
        }
        match self.next_line().await {
            Ok(line) => Ok(Some(line)),
            Err(error) => self.require_end(error.into()).await.map(|()| None),
        }
    }

    /// Waits a moment until the other daemon has ended, and ends what its hooks left. Returns the error if it goes on.
    async fn require_end(&mut self, error: ReplaceError) -> Result<(), ReplaceError> {
        let Some(ledger) = self.ledger.clone() else { return Err(error) };
        let begun = Instant::now();
        // Locked by the process until it ends, whatever becomes of the connection.
        let left = loop {
            match GroupLedger::claim(&ledger) {
                Ok(left) => break left,
                Err(LedgerError::InUse { .. }) if begun.elapsed() < END_TIME => sleep(END_PAUSE).await,
                Err(_) => return Err(error),
            }
        };
        // An error is that of the file; its hooks are not known then.
        match spawn_blocking(move || left.clear()).await {
            Ok(Ok(reaped)) => tracing::warn!(
                pid = self.pid,
                groups = reaped.groups,
                "the daemon that was to be replaced has ended; this one goes on in its place"
            ),
            _ => return Err(error),
        }
        self.has_ended = true;
        Ok(())
    }

    /// Tells the other daemon that this one accepts connections.
    pub(in crate::daemon) async fn started(&mut self) {
        if let Err(error) = self.link.send(&Line::Started).await {
            tracing::warn!(%error, "the daemon that was replaced has ended before its time");
        }
    }

    /// The next line of the other daemon. Meanwhile it learns which of its events are on disk.
    async fn next_line(&mut self) -> io::Result<Line> {
        loop {
            tokio::select! {
                line = self.link.receive() => return line,
                Some(Ok((id, error))) = self.writes.join_next() => self.link.send(&Line::Kept(id, error)).await?,
            }
        }
    }

    /// Takes in a change of the other daemon's outbox.
    fn take_in_event(
        &mut self,
        id: u64,
        change: ChangedEvent,
        orchestrator: &Orchestrator,
    ) -> Result<(), ReplaceError> {
        let change = change.into_change().ok_or_else(unexpected)?;
        if !self.shares_outbox {
            let why = "the daemon that takes over has another directory of `data`";
            self.writes.spawn(ready((id, Some(why.to_owned()))));
            return Ok(());
        }
        if let Some(written) = orchestrator.adopt_event(id, change).map_err(|_| unexpected())? {
            self.writes.spawn(async move {
                let written = written.await.unwrap_or_else(|_| Err("the store is closed".into()));
                (id, written.err().map(|error| error.to_string()))
            });
        }
        Ok(())
    }

    /// Takes in what the other daemon has changed of a run or of its outbox.
    async fn take_in(&mut self, line: Line, orchestrator: &Orchestrator) -> Result<(), ReplaceError> {
        match line {
            Line::Changed(name, change) => {
                adopt(orchestrator, name, change).await.map_err(ReplaceError::System)
            }
            Line::Event(id, change) => self.take_in_event(id, change, orchestrator),
            Line::Flush(question) => {
                orchestrator.store_flushed().await;
                Ok(self.link.send(&Line::Flushed(question)).await?)
            }
            _ => Err(unexpected()),
        }
    }

    /// The listeners, by what they are for. A TCP address that the settings do not name is closed, and so is the socket of
    /// lines.
    ///
    /// Returns an error if a socket is at another place than the settings say.
    pub(in crate::daemon) fn assign(
        &mut self,
        listen: &ListenSettings,
        [events, control]: [&Path; 2],
    ) -> Result<AssignedListeners, HandedOverError> {
        let sockets = ListenSettings {
            socket: Some(events.into()),
            control_socket: Some(control.into()),
            ..listen.clone()
        };
        let mut assigned = AssignedListeners::default();
        for (role, owner, listener) in std::mem::take(&mut self.listeners) {
            let is_wanted = match (role, &listener) {
                (ListenerRole::Lines, StdListener::Unix(_, path)) => listen.lines.as_ref() == Some(path),
                (ListenerRole::Tcp, StdListener::Tcp(_, address)) => is_named(listen.tcp, *address),
                (ListenerRole::Metrics, StdListener::Tcp(_, address)) => is_named(listen.metrics, *address),
                _ => true,
            };
            if is_wanted {
                assigned.add((role, owner, listener), &sockets)?;
            }
        }
        assigned.check_apart()?;
        Ok(assigned)
    }
}

/// What the other daemon has said is out of order.
fn unexpected() -> ReplaceError {
    io::Error::from(io::ErrorKind::InvalidData).into()
}

fn with_ids(workspaces: BTreeMap<String, Value>) -> BTreeMap<WorkspaceId, Value> {
    workspaces.into_iter().filter_map(|(id, body)| Some((WorkspaceId::new(id).ok()?, body))).collect()
}

/// Whether an address is that of a setting, whose port may be any.
fn is_named(setting: Option<SocketAddr>, address: SocketAddr) -> bool {
    setting.is_some_and(|setting| {
        setting.ip() == address.ip() && (setting.port() == 0 || setting.port() == address.port())
    })
}

/// Takes over what has become of a run.
async fn adopt(orchestrator: &Orchestrator, name: RunName, change: ChangedRun) -> io::Result<()> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let key = name.into_key().ok_or_else(invalid)?;
    match change {
        ChangedRun::Saved(record) => {
            let run = StoredRun::decode(&record).map_err(|_| invalid())?;
            orchestrator.adopt_run(key, run).await;
        }
        ChangedRun::Forgotten => orchestrator.adopt_forgotten(&key),
        ChangedRun::Ended => orchestrator.adopt_ended(&key),
    }
    Ok(())
}

/// Takes in what the predecessor's last events change, until it has ended.
pub(in crate::daemon) async fn serve_predecessor(mut replacement: Replacement, orchestrator: Orchestrator) {
    while let Ok(line) = replacement.next_line().await {
        if let Err(error) = replacement.take_in(line, &orchestrator).await {
            tracing::error!(%error, "the state of runs of the daemon that was replaced is not taken over any more");
            break;
        }
    }
    let Replacement { process, pid, link, has_ended: had_ended, .. } = replacement;
    drop(link);
    // Its connection may end before it does, and its hooks go on until then.
    while !had_ended && !process.has_ended() {
        sleep(END_PAUSE).await;
    }
    tracing::info!(pid, "the daemon that was replaced has finished");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_taken_over_if_the_settings_name_it() {
        let address = |text: &str| text.parse().unwrap();
        assert!(is_named(Some(address("127.0.0.1:80")), address("127.0.0.1:80")));
        assert!(is_named(Some(address("127.0.0.1:0")), address("127.0.0.1:80")));
        assert!(!is_named(Some(address("127.0.0.1:81")), address("127.0.0.1:80")));
        assert!(!is_named(None, address("127.0.0.1:80")));
    }
}
