//! Why a daemon cannot start.

use std::{io, net::SocketAddr, path::PathBuf};

use super::{
    audit::AuditError, client::ClientError, handed_over::HandedOverError, socket::SocketError,
    tokens::TokenError,
};
use crate::{handler::command::LedgerError, model::WorkspaceId};

/// Why a daemon cannot start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// A Unix socket cannot be used.
    #[error(transparent)]
    Socket(#[from] SocketError),
    /// Another daemon does not listen any more, and has not ended.
    #[error(
        "another hookyard{} does not listen any more and still finishes its events; start this one when it has ended",
        pid.map(|pid| format!(" (process {pid})")).unwrap_or_default()
    )]
    Finishing {
        /// Its process, if it is known.
        pid: Option<i32>,
    },
    /// The record of process groups cannot be kept.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The token cannot be used.
    #[error(transparent)]
    Token(#[from] TokenError),
    /// The audit cannot be written.
    #[error(transparent)]
    Audit(#[from] AuditError),
    /// Lines cannot wait until they are shipped.
    #[error(
        "cannot keep lines for `ship.url` in {}: {}", directory.display(), crate::model::io_reason(source)
    )]
    Ship {
        /// The directory of the data.
        directory: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The TCP address cannot be bound.
    #[error("cannot listen on {address}: {}", crate::model::io_reason(source))]
    Tcp {
        /// The address.
        address: SocketAddr,
        /// The error of the system.
        source: io::Error,
    },
    /// The address is to be that for events and that for metrics.
    #[error("`listen.tcp` and `listen.metrics` are both {0}; give each an address of its own")]
    SharedAddress(SocketAddr),
    /// A listener cannot be kept.
    #[error("cannot keep a listener: {}", crate::model::io_reason(.0))]
    Descriptor(#[source] io::Error),
    /// A listener that was handed over cannot be used.
    #[error(transparent)]
    HandedOver(#[from] HandedOverError),
    /// The running daemon cannot be replaced.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    /// Halts cannot be shared with the other nodes of the cluster.
    #[cfg(feature = "cluster")]
    #[error(transparent)]
    Cluster(crate::store::ClusterError),
    /// A worker has no queue.
    #[cfg(feature = "cluster")]
    #[error("a worker takes events from the queue of a cluster; name its servers in `cluster.store`")]
    NoQueue,
    /// The directory of a worker is that of a node.
    #[cfg(feature = "cluster")]
    #[error(
        "{events} accepted lifecycle events wait in the outbox of `data`, which a worker does not deliver; give the worker a `data` \
         of its own, or have `hookyard serve` deliver them first"
    )]
    FullOutbox {
        /// How many.
        events: usize,
    },
    /// A server of the cluster's store confirms what it has not written to disk.
    #[cfg(feature = "cluster")]
    #[error(
        "the NATS server {server} confirms what it has not written to disk, so that halts may be lost; set `jetstream {{ \
         sync_interval: always }}` in its configuration"
    )]
    LateSync {
        /// Its name.
        server: String,
    },
    /// No server of the cluster's store says how it writes to disk.
    #[cfg(feature = "cluster")]
    #[error(
        "whether the servers of `cluster.store` write to disk what they confirm is not known: {why}; add `http: 8222` to their \
         configuration, name their addresses in `cluster.monitoring`, or set `cluster.trust_sync: true`"
    )]
    UnknownSync {
        /// What came of asking one of them.
        why: String,
    },
    /// The settings name a store for the halts of a cluster, which this build cannot use.
    #[cfg(not(feature = "cluster"))]
    #[error(
        "`cluster.store` is set, and this hookyard was built without the feature `cluster`; install it with `cargo install \
         hookyard --features cluster`"
    )]
    NoCluster,
    /// The orchestrator cannot start.
    #[error(transparent)]
    Orchestrator(#[from] crate::StartError),
}

/// Why a daemon cannot take over from another one. The other goes on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// The other daemon refuses.
    #[error("the running hookyard does not hand over: {0}")]
    Refused(#[source] ClientError),
    /// A system call failed, or the other daemon has ended.
    #[error("cannot take over from the running hookyard: {}", crate::model::io_reason(.0))]
    System(#[from] io::Error),
    /// The other daemon is of a version with another protocol.
    #[error("the running hookyard hands over by another protocol ({0}); stop it and start this one")]
    Protocol(u32),
    /// The running daemon has taken over itself, and the one before it has not ended.
    #[error("the daemon before the running one still finishes its events; try again when it has ended")]
    StillFinishing,
    /// A workspace that a client has registered cannot be registered again.
    #[error("the running hookyard has a workspace `{id}` that this one cannot register: {why}")]
    Workspace {
        /// Its id.
        id: WorkspaceId,
        /// What is wrong with its registration.
        why: String,
    },
    /// A listener that was handed over cannot be used.
    #[error("the running hookyard hands over a listener for {role} that {why}")]
    Listener {
        /// What it is for.
        role: String,
        /// What is wrong with it.
        why: String,
    },
}
