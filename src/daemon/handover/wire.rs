//! What the two daemons of a handover say to each other: lines of JSON on a Unix socket, the first with descriptors.

use std::{
    collections::BTreeMap,
    fmt, fs,
    io::{self, IoSlice, IoSliceMut, Write},
    mem::MaybeUninit,
    net::TcpListener as StdTcpListener,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::{
            fs::PermissionsExt,
            net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream},
        },
    },
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    net::{
        RecvAncillaryBuffer, RecvAncillaryMessage, SendAncillaryBuffer, SendAncillaryMessage, recvmsg,
        sendmsg,
    },
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::{
    io::{
        AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, Lines, ReadHalf, WriteHalf, split,
    },
    net::UnixStream,
};

use super::store::ReportedChange;
use crate::{
    daemon::{
        handed_over::{self, ListenerOwner, ListenerRole, StdListener},
        start_error::ReplaceError,
    },
    model::{RunId, RunKey, WorkspaceId},
    platform::{RECEIVE_FLAGS, SEND_FLAGS, close_on_exec, peer_process},
    store::OutboxChange,
};

/// The version of this protocol. A successor that speaks another one does not take over.
pub(super) const PROTOCOL: u32 = 2;

/// The most listeners that are handed over.
const MAX_LISTENERS: usize = 5;

/// The longest offer, in bytes.
const MAX_OFFER_BYTES: usize = 4096;

/// How long the other daemon may take to answer.
pub(super) const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// How long it may take to connect and send its offer.
const OFFER_TIMEOUT: Timespec = Timespec { tv_sec: 10, tv_nsec: 0 };

/// How many connections of other processes are closed before that of the other daemon.
const MAX_STRANGERS: usize = 64;

/// The first line of the predecessor. The descriptors of the listeners come with it, in their order.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Offer {
    pub(super) protocol: u32,
    pub(super) pid: u32,
    pub(super) listeners: Vec<OfferedListener>,
    /// Where the predecessor keeps the state of runs and the last good rules.
    #[serde(default)]
    pub(super) data: Option<PathBuf>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OfferedListener {
    /// What it is for, as in `FileDescriptorName=`.
    pub(super) role: String,
    /// The path of a Unix socket. Its listener may have been bound under another one.
    pub(super) path: Option<PathBuf>,
    /// Whether the service manager owns it.
    pub(super) of_service_manager: bool,
}

/// The lines after the offer.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Line {
    /// The workspaces that clients of the predecessor have registered, with the bodies of their requests.
    Workspaces(BTreeMap<String, Value>),
    /// Where the successor keeps the state of runs.
    Data(PathBuf),
    /// The successor has loaded its workspaces.
    Ready,
    /// The predecessor has closed the store of runs. These are the registered workspaces now.
    Released(BTreeMap<String, Value>),
    /// The successor has opened the store.
    Loaded,
    /// The predecessor accepts no more connections.
    Go,
    /// The successor accepts connections.
    Started,
    /// The predecessor has changed a run.
    Changed(RunName, ChangedRun),
    /// The predecessor has changed an event in its outbox.
    Event(u64, ChangedEvent),
    /// An event that it has added is on disk, or why it is not.
    Kept(u64, Option<String>),
    /// The predecessor asks whether all changes before this are stored.
    Flush(u64),
    /// They are.
    Flushed(u64),
}

/// The name of a run.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunName {
    workspace: String,
    run: String,
}

/// What became of a run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangedRun {
    /// It has this state, written as in the store.
    Saved(String),
    Forgotten,
    Ended,
}

/// A change of an event in the outbox, as one daemon sends it to the other. Records are written as in the store.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ChangedEvent {
    /// It was accepted.
    Added { workspace: String, event: String, progress: String },
    /// What is known of its deliveries.
    Updated(String),
    /// It is not kept any more.
    Removed,
}

impl ChangedEvent {
    pub(super) fn of(change: &OutboxChange) -> Self {
        match change {
            OutboxChange::Add { workspace, event, progress } => Self::Added {
                workspace: workspace.to_string(),
                event: event.as_ref().to_owned(),
                progress: progress.clone(),
            },
            OutboxChange::Update(progress) => Self::Updated(progress.clone()),
            OutboxChange::Remove => Self::Removed,
        }
    }

    /// The change, if its workspace id is valid. That of a daemon always is.
    pub(super) fn into_change(self) -> Option<OutboxChange> {
        Some(match self {
            Self::Added { workspace, event, progress } => {
                let workspace = WorkspaceId::new(workspace).ok()?;
                OutboxChange::Add { workspace, event: event.into(), progress }
            }
            Self::Updated(progress) => OutboxChange::Update(progress),
            Self::Removed => OutboxChange::Remove,
        })
    }
}

impl RunName {
    fn of(key: &RunKey) -> Self {
        Self { workspace: key.workspace.to_string(), run: key.run.to_string() }
    }

    /// The run, if the ids are valid. Those of a daemon always are.
    pub(super) fn into_key(self) -> Option<RunKey> {
        let workspace = WorkspaceId::new(self.workspace).ok()?;
        let run = RunId::new(self.run).ok()?;
        Some(RunKey { workspace, run })
    }
}

impl Line {
    pub(super) fn of_change(change: &ReportedChange) -> Self {
        match change {
            ReportedChange::Save(key, run) => {
                Self::Changed(RunName::of(key), ChangedRun::Saved(run.encode()))
            }
            ReportedChange::Forget(key) => Self::Changed(RunName::of(key), ChangedRun::Forgotten),
            ReportedChange::End(key) => Self::Changed(RunName::of(key), ChangedRun::Ended),
            ReportedChange::Event(id, change) => Self::Event(*id, ChangedEvent::of(change)),
            ReportedChange::Flush(number) => Self::Flush(*number),
        }
    }
}

/// Sends the offer with the descriptors. Blocks.
pub(super) fn send_offer(
    mut stream: &StdUnixStream,
    offer: &Offer,
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut line = serde_json::to_vec(offer)?;
    line.push(b'\n');
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LISTENERS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many listeners"));
    }
    let sent = sendmsg(stream, &[IoSlice::new(&line)], &mut control, SEND_FLAGS)?;
    stream.write_all(&line[sent..])
}

/// Receives the offer with the descriptors. Blocks until it is there, or the stream's timeout is over.
pub(super) fn receive_offer(stream: &StdUnixStream) -> io::Result<(Offer, Vec<OwnedFd>)> {
    let mut line = Vec::new();
    let mut descriptors = Vec::new();
    while line.last() != Some(&b'\n') {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_LISTENERS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        // No more than the line: what follows it is read elsewhere.
        let mut bytes = [0; 1];
        let received = recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, RECEIVE_FLAGS)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                for descriptor in rights {
                    // No hook runs yet that could inherit it before.
                    close_on_exec(&descriptor)?;
                    descriptors.push(descriptor);
                }
            }
        }
        if received.bytes == 0 || line.len() >= MAX_OFFER_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(&bytes);
    }
    Ok((parse(&line)?, descriptors))
}

/// What the lines come and go on: a socket. A simulation has a stream in memory.
pub(super) trait LinkStream: AsyncRead + AsyncWrite + fmt::Debug + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + fmt::Debug + Send + Sync + Unpin> LinkStream for S {}

/// The lines after the offer, from one side.
#[derive(Debug)]
pub(super) struct Link {
    reader: Lines<BufReader<ReadHalf<Box<dyn LinkStream>>>>,
    writer: WriteHalf<Box<dyn LinkStream>>,
}

impl Link {
    pub(super) fn new(stream: StdUnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self::of(UnixStream::from_std(stream)?))
    }

    pub(super) fn of(stream: impl LinkStream + 'static) -> Self {
        let (reader, writer) = split::<Box<dyn LinkStream>>(Box::new(stream));
        Self { reader: BufReader::new(reader).lines(), writer }
    }

    pub(super) async fn send(&mut self, line: &Line) -> io::Result<()> {
        let mut bytes = serde_json::to_vec(line)?;
        bytes.push(b'\n');
        self.writer.write_all(&bytes).await
    }

    /// The next line. No part of one is lost if the future is dropped.
    ///
    /// Returns an error if the other side is gone.
    pub(super) async fn receive(&mut self) -> io::Result<Line> {
        let line = self.reader.next_line().await?.ok_or(io::ErrorKind::UnexpectedEof)?;
        parse(line.as_bytes())
    }
}

/// Whether two paths lead to one directory.
pub(super) fn is_same_directory(one: Option<&Path>, other: Option<&Path>) -> bool {
    match (one.map(Path::canonicalize), other.map(Path::canonicalize)) {
        (Some(Ok(one)), Some(Ok(other))) => one == other,
        _ => false,
    }
}

fn parse<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// The file of a meeting point. Dropping it removes the file.
pub(super) struct MeetingFile(PathBuf);

impl Drop for MeetingFile {
    fn drop(&mut self) {
        drop(fs::remove_file(&self.0));
    }
}

/// The socket on which the other daemon connects.
pub(super) struct MeetingPoint {
    pub(super) path: PathBuf,
    listener: StdUnixListener,
}

impl MeetingPoint {
    /// Opens it beside the control socket.
    pub(super) fn open(control_socket: &Path) -> io::Result<(Self, MeetingFile)> {
        let path = control_socket.with_file_name(format!(".hookyard-{}.take", std::process::id()));
        drop(fs::remove_file(&path));
        let listener = StdUnixListener::bind(&path)?;
        let file = MeetingFile(path.clone());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        Ok((Self { path, listener }, file))
    }

    /// Waits for the process of the other daemon. Hooks run as the same user: what another process offers is not looked at.
    pub(super) fn accept(&self, daemon: i32) -> io::Result<StdUnixStream> {
        for _ in 0..MAX_STRANGERS {
            let mut ready = [PollFd::new(&self.listener, PollFlags::IN)];
            if poll(&mut ready, Some(&OFFER_TIMEOUT))? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            let (stream, _) = self.listener.accept()?;
            let pid = peer_process(&stream)?;
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

/// The listeners of an offer.
pub(super) fn listeners(
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
    use std::os::fd::AsFd;

    use super::*;
    use crate::store::StoredRun;

    #[test]
    fn an_offer_arrives_with_its_descriptors() {
        let (one, other) = StdUnixStream::pair().unwrap();
        let listeners = vec![OfferedListener {
            role: "events".to_owned(),
            path: Some("/s".into()),
            of_service_manager: true,
        }];
        let offer = Offer { protocol: PROTOCOL, pid: 7, listeners, data: None };
        let file = tempfile::tempfile().unwrap();
        send_offer(&one, &offer, &[file.as_fd(), file.as_fd()]).unwrap();
        let (received, descriptors) = receive_offer(&other).unwrap();
        assert_eq!((received.pid, received.listeners.len(), descriptors.len()), (7, 1, 2));
        drop(one);
        assert!(receive_offer(&other).is_err());
    }

    #[tokio::test]
    async fn lines_arrive_in_their_order_and_end_with_the_other_side() {
        let (one, other) = StdUnixStream::pair().unwrap();
        let (mut one, mut other) = (Link::new(one).unwrap(), Link::new(other).unwrap());
        let key =
            RunKey { workspace: WorkspaceId::new("shop").unwrap(), run: RunId::new("a \"b\"").unwrap() };
        one.send(&Line::Ready).await.unwrap();
        one.send(&Line::Released(BTreeMap::new())).await.unwrap();
        one.send(&Line::of_change(&ReportedChange::Save(key.clone(), StoredRun::default()))).await.unwrap();
        assert!(matches!(other.receive().await.unwrap(), Line::Ready));
        assert!(
            matches!(other.receive().await.unwrap(), Line::Released(workspaces) if workspaces.is_empty())
        );
        let Line::Changed(name, ChangedRun::Saved(record)) = other.receive().await.unwrap() else {
            panic!("no change");
        };
        assert_eq!((name.into_key(), StoredRun::decode(&record)), (Some(key), Ok(StoredRun::default())));
        drop(one);
        assert!(other.receive().await.is_err());
    }

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
}
