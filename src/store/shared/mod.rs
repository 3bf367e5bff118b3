//! Halts that all daemons of a cluster know: a bucket of NATS `JetStream`, which every daemon reads as a whole and watches.
//!
//! A halt is in the bucket, on the disks of a majority of the servers, before it is answered. No event reads the bucket: a
//! daemon has all halts in memory. That these are all there are, it knows by its beats: twice a second it writes one into the
//! bucket, and reads it there in turn, behind everything that was written before.
//!
//! With `cluster.halts: strict`, a halt is answered once the other daemons say that they know it ([`knowledge`]), and what hooks
//! have done in a run is in the bucket as well ([`claims`]).
//!
//! ```text
//! run::RunDirectory ── ClusterStore ─┬─▶ FileRunStore
//!        ▲                           └─▶ SharedHalts ── Publisher ──▶ bucket ──┐
//!        └── HaltListener ◀──────────── Watcher ◀───────────────────────────────┘
//! ```

mod beats;
mod bucket;
mod claims;
mod cluster_store;
mod conditional;
mod connection;
mod core;
mod error;
mod halts;
mod knowledge;
mod messages;
#[cfg(test)]
mod models;
mod publication;
mod publisher;
mod servers;
mod store_clock;
#[cfg(feature = "cli")]
mod survey;
mod table;
#[cfg(test)]
mod tests;
mod watcher;

use std::{path::PathBuf, time::Duration};

use super::{StoredHalt, freshness::WhenUnsure};
use crate::model::RunKey;

pub(crate) use beats::NodeFacts;
pub(crate) use cluster_store::ClusterStore;
pub(in crate::store) use connection::{ConnectFailure, REQUEST_TIMEOUT, check_server, connect};
pub use error::ClusterError;
pub(in crate::store) use error::unreachable;
pub(crate) use halts::SharedHalts;
#[cfg(feature = "cli")]
pub(crate) use survey::{ClusterOperator, ClusterSurvey};

/// How the daemons of a cluster share halts.
#[derive(Debug, Clone)]
pub(crate) struct ClusterOptions {
    /// The addresses of servers.
    pub(crate) servers: Vec<String>,
    /// The name of the bucket.
    pub(crate) bucket: String,
    /// A file with credentials.
    pub(crate) credentials: Option<PathBuf>,
    /// On how many servers the bucket is.
    pub(crate) replicas: usize,
    /// The name of this daemon, and what tells its process from others of that name.
    pub(crate) node: String,
    pub(crate) instance: String,
    /// How long a halt is kept that nobody asks for, in the directory of runs.
    pub(crate) run_forget: Duration,
    pub(crate) stale_after: Duration,
    pub(crate) when_unsure: WhenUnsure,
    /// A halt is answered once all daemons know it, and what hooks have done in a run holds on all of them.
    pub(crate) is_strict: bool,
}

/// Takes in what other daemons do.
pub(crate) trait HaltListener: Send + Sync {
    /// A run is halted, and the bucket has that. Told for halts of this daemon as well.
    fn halted(&self, key: &RunKey, halt: &StoredHalt);

    /// The halt of a run is over, or the bucket has it no more.
    fn released(&self, key: &RunKey, is_over: bool);

    /// Whether something has been asked of a halted run within this time.
    fn was_asked(&self, key: &RunKey, within: Duration) -> bool;

    /// The runs that are halted here.
    fn all_halted(&self) -> Vec<(RunKey, StoredHalt)>;

    /// Whether a run is halted here.
    fn is_halted(&self, key: &RunKey) -> bool;

    /// Another daemon goes on with a run: what hooks have done in it is known there.
    fn moved(&self, key: &RunKey);
}
