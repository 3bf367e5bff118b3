//! The side of the daemon that replaces another one: it takes the listeners, and what the other's last events change.

use std::{
    collections::BTreeMap,
    fs, io,
    net::{SocketAddr, TcpListener as StdTcpListener},
    os::{
        fd::OwnedFd,
        unix::{
            fs::PermissionsExt,
            net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde_json::{Value, json};
use tokio::{
    runtime::Handle,
    task::spawn_blocking,
    time::{Instant, sleep},
};

use super::wire::{ChangedRun, Line, Link, Offer, PROTOCOL, RunName, receive_offer};
use crate::{
    Orchestrator,
    config::ListenSettings,
    daemon::{
        client::{Client, ClientError},
        handed_over::{self, AssignedListeners, HandedOverError, ListenerOwner, ListenerRole, StdListener},
        start_error::ReplaceError,
    },
    handler::command::{AdoptedHooks, GroupLedger, LedgerError},
    model::WorkspaceId,
    store::StoredRun,
};

/// How long the other daemon may take to answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long it may take to connect and send its offer.
const OFFER_TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// How long it may take to end after its connection has.
const END_TIME: Duration = Duration::from_secs(2);

/// Between two looks whether it has ended.
const END_PAUSE: Duration = Duration::from_millis(20);

/// How many connections of other processes are closed before that of the other daemon.
const MAX_STRANGERS: usize = 64;

/// The daemon that is about to be replaced, and the listeners it has handed over.
#[derive(Debug)]
pub(in crate::daemon) struct Replacement {
    listeners: Vec<(ListenerRole, ListenerOwner, StdListener)>,
    /// The process of the other daemon.
    pid: i32,
    /// Its hooks are hooks of this daemon as well.
    hooks: Option<AdoptedHooks>,
    /// Its ledger, which it has locked until it ends.
    ledger: Option<PathBuf>,
    /// Where it keeps the state of runs and the last good rules.
    data: Option<PathBuf>,
    /// Whether it ended before this one accepted connections.
    has_ended: bool,
    link: Link,
}

/// The file of a meeting point. Dropping it removes the file.
struct MeetingFile(PathBuf);

impl Drop for MeetingFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// The socket on which the other daemon connects.
struct MeetingPoint {
    path: PathBuf,
    listener: StdUnixListener,
}

impl MeetingPoint {
    /// Opens it beside the control socket.
    fn open(control_socket: &Path) -> io::Result<(Self, MeetingFile)> {
        let path = control_socket.with_file_name(format!(".hookyard-{}.take", std::process::id()));
        drop(fs::remove_file(&path));
        let listener = StdUnixListener::bind(&path)?;
        let file = MeetingFile(path.clone());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok((Self { path, listener }, file))
    }

    /// Waits for the process of the other daemon. Hooks run as the same user: what another process offers is not looked at.
    fn accept(&self, daemon: i32) -> io::Result<StdUnixStream> {
        for _ in 0..MAX_STRANGERS {
            let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
            if poll(&mut ready, Some(&OFFER_TIMEOUT))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let (stream, _) = self.listener.accept()?;
            let pid = getsockopt(&stream, PeerCredentials).map_err(io::Error::from)?.pid();
            if pid == daemon {
                stream.set_read_timeout(Some(ANSWER_TIMEOUT))?;
                return Ok(stream);
            }
            tracing::warn!(
                pid,
                "another process than the running daemon offered its listeners; it is ignored"
            );
        }
        Err(io::ErrorKind::PermissionDenied.into())
    }
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
        let daemon = getsockopt(&daemon, PeerCredentials).map_err(io::Error::from)?.pid();
        let answer = match client.send("POST", "/v1/handover", Some(body.as_bytes())) {
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
        Ok(Some(Self { listeners, pid: daemon, hooks: None, ledger, data, has_ended: false, link }))
    }

    /// Lets the hooks of the other daemon control this one as little as its own. They are recorded in this ledger.
    pub(in crate::daemon) fn adopt_hooks(&mut self, ledger: &Path) {
        self.hooks = Some(AdoptedHooks::of(self.pid, ledger.to_owned()));
        self.ledger = Some(ledger.to_owned());
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

    /// Waits for the permission to accept connections, after the store is open. Nobody withholds it if the other daemon has
    /// ended.
    pub(in crate::daemon) async fn may_begin(
        &mut self,
        orchestrator: &Orchestrator,
    ) -> Result<(), ReplaceError> {
        self.send(&Line::Loaded).await?;
        loop {
            match self.receive().await? {
                Some(Line::Go) | None => return Ok(()),
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
        match self.link.receive().await {
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

    /// Takes in what the other daemon has changed of a run.
    async fn take_in(&mut self, line: Line, orchestrator: &Orchestrator) -> Result<(), ReplaceError> {
        match line {
            Line::Changed(name, change) => {
                adopt(orchestrator, name, change).await.map_err(ReplaceError::System)
            }
            Line::Flush(question) => {
                orchestrator.store_flushed().await;
                Ok(self.link.send(&Line::Flushed(question)).await?)
            }
            _ => Err(unexpected()),
        }
    }

    /// The listeners, by what they are for. A TCP address that the settings do not name is closed.
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
    while let Ok(line) = replacement.link.receive().await {
        if let Err(error) = replacement.take_in(line, &orchestrator).await {
            tracing::error!(%error, "the state of runs of the daemon that was replaced is not taken over any more");
            break;
        }
    }
    tracing::info!(pid = replacement.pid, "the daemon that was replaced has finished");
}

/// The listeners of an offer.
fn listeners(
    offer: &Offer,
    descriptors: Vec<OwnedFd>,
) -> Result<Vec<(ListenerRole, ListenerOwner, StdListener)>, ReplaceError> {
    if offer.listeners.len() != descriptors.len() {
        return Err(io::Error::from(io::ErrorKind::InvalidData).into());
    }
    let mut listeners = Vec::new();
    for (offered, descriptor) in offer.listeners.iter().zip(descriptors) {
        let wrong = |why: String| ReplaceError::Listener { role: offered.role.clone(), why };
        // One that this version does not know is left to the predecessor, which ends.
        let Some(role) = ListenerRole::named(&offered.role) else { continue };
        let owner =
            if offered.of_service_manager { ListenerOwner::ServiceManager } else { ListenerOwner::Daemon };
        let listener = match &offered.path {
            Some(path) => handed_over::unix_listener_at(StdUnixListener::from(descriptor), path),
            None => handed_over::tcp_listener(StdTcpListener::from(descriptor)),
        };
        listeners.push((role, owner, listener.map_err(wrong)?));
    }
    Ok(listeners)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_another_process_offers_is_not_taken() {
        let place = tempfile::tempdir().unwrap();
        let (meeting_point, _file) = MeetingPoint::open(&place.path().join("hookyard-control.sock")).unwrap();
        let connect = || StdUnixStream::connect(&meeting_point.path).unwrap();
        let own = i32::try_from(std::process::id()).unwrap();
        let _strangers: Vec<_> = (0..MAX_STRANGERS).map(|_| connect()).collect();
        let refused = meeting_point.accept(own + 1).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
        let _daemon = connect();
        meeting_point.accept(own).unwrap();
    }

    #[test]
    fn an_address_is_taken_over_if_the_settings_name_it() {
        let address = |text: &str| text.parse().unwrap();
        assert!(is_named(Some(address("127.0.0.1:80")), address("127.0.0.1:80")));
        assert!(is_named(Some(address("127.0.0.1:0")), address("127.0.0.1:80")));
        assert!(!is_named(Some(address("127.0.0.1:81")), address("127.0.0.1:80")));
        assert!(!is_named(None, address("127.0.0.1:80")));
    }
}
