//! What survives a restart: halts, hooks that had their turn, stop counters and ended runs, and lifecycle events whose
//! hooks have not ended.
//!
//! Runs live in memory, and no event reads the store. Runs report changes; the store writes the latest state of each
//! run within a second, and a halt at once. What is in the store is read once, at the start.
//!
//! ```text
//! run::RunDirectory ── save, forget, end ──▶ PendingChanges ── ChangeBatch ──▶ StoreWriter's thread ──▶ Database
//! run::Outbox ── add, update, remove ──▶ OutboxChanges ──────┘
//! ```

#[cfg(all(feature = "cli", feature = "daemon"))]
mod check;
#[cfg(feature = "store")]
mod database;
#[cfg(feature = "store")]
mod error;
#[cfg_attr(not(feature = "store"), allow(dead_code, reason = "nothing is written in this build"))]
mod event_record;
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "there is no cluster in this build"))]
mod freshness;
#[cfg(feature = "store")]
mod location;
#[cfg_attr(not(feature = "store"), allow(dead_code, reason = "nothing is written in this build"))]
mod outbox;
#[cfg(feature = "store")]
mod pending;
#[cfg(feature = "cluster")]
mod queue;
#[cfg_attr(not(feature = "store"), allow(dead_code, reason = "nothing is written in this build"))]
mod record;
#[cfg(feature = "cluster")]
mod shared;
#[cfg(all(test, feature = "daemon"))]
pub(crate) mod tests;
#[cfg(feature = "store")]
mod writer;

use std::{fmt, path::PathBuf, time::Duration};

use tokio::sync::oneshot;

use crate::model::RunKey;

#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use check::{StoreCheck, check};
#[cfg(feature = "store")]
pub use error::StoreError;
pub(crate) use event_record::encode as encode_event;
#[cfg(feature = "daemon")]
pub(crate) use event_record::kept_name;
#[cfg(feature = "cluster")]
pub(crate) use freshness::WhenUnsure;
pub(crate) use freshness::{Freshness, Unsure};
#[cfg(feature = "daemon")]
pub(crate) use outbox::{OutboxChange, RowReceiver};
pub(crate) use outbox::{OutboxRow, OutboxStore, StoredOutbox};
#[cfg(all(test, feature = "cli", feature = "cluster"))]
pub(crate) use queue::tests::Server as NatsServer;
#[cfg(all(feature = "cli", feature = "cluster"))]
pub(crate) use queue::{DeadMessage, NotRetried, QueueOperator, QueueReport};
#[cfg(feature = "cluster")]
pub(crate) use queue::{EventIntake, LifecycleQueue, NotPut, QueueOptions, QueueWorker, QueuedEvent};
#[cfg(feature = "daemon")]
pub(crate) use record::RecordError;
pub(crate) use record::{DeadLetter, DeadLetterReason, DeliveryProgress, StoredHalt, StoredRun, TakenTurn};
#[cfg(feature = "cluster")]
pub use shared::ClusterError;
#[cfg(all(feature = "cli", feature = "cluster"))]
pub(crate) use shared::{ClusterOperator, ClusterSurvey};
#[cfg(feature = "cluster")]
pub(crate) use shared::{ClusterOptions, ClusterStore, HaltListener, NodeFacts, SharedHalts};
#[cfg(feature = "store")]
pub(crate) use writer::FileRunStore;

/// What has changed of a run is not stored: another daemon of the cluster goes on with it.
#[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "there is no cluster in this build"))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moved;

/// Notified once what hooks have done in a run holds on all daemons of a cluster, or that another one goes on with it.
pub(crate) type Commitment = oneshot::Receiver<Result<(), Moved>>;

/// How long an answer waits for its halt to be on disk.
const LONGEST_SAVE: Duration = Duration::from_secs(2);

/// How many ended runs are remembered, to warn when an event comes for one of them.
pub(crate) const ENDED_REMEMBERED: usize = 4096;

/// Keeps the state of runs beyond the life of the process. None of its methods waits for a disk, [`RunStore::close`]
/// aside. Changes of one run are kept in their order.
pub(crate) trait RunStore: fmt::Debug + Send + Sync {
    /// Replaces what is kept of a run, within a second.
    fn save(&self, key: &RunKey, run: StoredRun);

    /// Replaces what is kept of a run, at once.
    fn save_now(&self, key: &RunKey, run: StoredRun);

    /// Removes what is kept of a run that nothing has been asked of for long.
    fn forget(&self, key: &RunKey);

    /// A run goes on that was halted. What is kept of it is replaced besides.
    fn release(&self, _key: &RunKey) {}

    /// Remembers that a run has ended.
    fn end(&self, key: &RunKey);

    /// This daemon does not go on with a run that it had claimed: it is forgotten here, or over.
    fn leave(&self, _key: &RunKey, _is_over: bool) {}

    /// Ends a run that is not known here. Other daemons may know it.
    fn end_elsewhere(&self, _key: &RunKey) {}

    /// A receiver that is notified once everything that had to be saved at once has been written, or could not be.
    fn flushed(&self) -> oneshot::Receiver<()>;

    /// A receiver that is notified once what had to be saved at once of a run has been, or everything.
    fn saved(&self, _key: &RunKey) -> oneshot::Receiver<()> {
        self.flushed()
    }

    /// Whether a halt is answered once other daemons know it as well: then that has to be asked of one that was not halted here.
    #[cfg_attr(not(feature = "store"), allow(dead_code, reason = "nothing is stored in this build"))]
    fn asks_others(&self) -> bool {
        false
    }

    /// Whether nobody may hear of a halt that is not stored.
    fn is_required(&self) -> bool {
        false
    }

    /// How long an answer waits for its halt to be stored. A disk that hangs must not take the verdict away.
    fn patience(&self) -> Duration {
        LONGEST_SAVE
    }

    /// How the store is.
    fn status(&self) -> StoreStatus;

    /// Writes what is left and closes the store. Blocks until that is done or takes too long.
    fn close(&self);
}

/// What the store has when it is opened.
#[cfg(feature = "store")]
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StoredRuns {
    pub(crate) runs: Vec<(RunKey, StoredRun)>,
    /// Runs that have ended, oldest first.
    pub(crate) ended: Vec<RunKey>,
    pub(crate) outbox: StoredOutbox,
}

/// How the store is.
#[cfg_attr(not(feature = "store"), allow(dead_code, reason = "there is no store in this build"))]
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoreStatus {
    pub(crate) directory: PathBuf,
    /// How many runs it had when it was opened.
    pub(crate) restored: usize,
    /// Whether it had a file before that was gone when it was opened.
    pub(crate) former_gone: bool,
    /// How many runs have a state that is not on disk.
    pub(crate) unsaved: usize,
    /// How many of those are halted.
    pub(crate) unsaved_halts: usize,
    /// Why the last write failed, if it did.
    pub(crate) error: Option<String>,
}
