//! What the two daemons of a handover say to each other: lines of JSON on a Unix socket, the first with descriptors.

use std::{
    collections::BTreeMap,
    io::{self, IoSlice, IoSliceMut, Write},
    mem::MaybeUninit,
    os::{
        fd::{BorrowedFd, OwnedFd},
        unix::net::UnixStream as StdUnixStream,
    },
    path::PathBuf,
};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines},
    net::{
        UnixStream,
        unix::{OwnedReadHalf, OwnedWriteHalf},
    },
};

use super::store::ReportedChange;
use crate::model::{RunId, RunKey, WorkspaceId};

/// The version of this protocol. A successor that speaks another one does not take over.
pub(super) const PROTOCOL: u32 = 1;

/// The most listeners that are handed over.
const MAX_LISTENERS: usize = 4;

/// The longest offer, in bytes.
const MAX_OFFER_BYTES: usize = 4096;

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
    let sent = sendmsg(stream, &[IoSlice::new(&line)], &mut control, SendFlags::NOSIGNAL)?;
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
        let received =
            recvmsg(stream, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(rights) = message {
                descriptors.extend(rights);
            }
        }
        if received.bytes == 0 || line.len() >= MAX_OFFER_BYTES {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        line.extend_from_slice(&bytes);
    }
    Ok((parse(&line)?, descriptors))
}

/// The lines after the offer, from one side.
#[derive(Debug)]
pub(super) struct Link {
    reader: Lines<BufReader<OwnedReadHalf>>,
    writer: OwnedWriteHalf,
}

impl Link {
    pub(super) fn new(stream: StdUnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        let (reader, writer) = UnixStream::from_std(stream)?.into_split();
        Ok(Self { reader: BufReader::new(reader).lines(), writer })
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

fn parse<T: DeserializeOwned>(line: &[u8]) -> io::Result<T> {
    serde_json::from_slice(line).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
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
}
