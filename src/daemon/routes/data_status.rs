//! The parts of the status about what the daemon writes: the state of runs, and the audit.

use std::sync::atomic::Ordering;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    daemon::{
        audit::Audit,
        schema::{Component, object, optional_string, string, unsigned, unsigned_as},
    },
    store::StoreStatus,
};

/// The store of the state of runs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct DataStatus {
    /// Its directory.
    pub directory: String,
    /// The number of runs it had when the daemon started.
    pub restored: usize,
    /// The number of runs whose latest state is not on disk yet.
    pub unsaved: usize,
    /// The number of halted runs among them.
    pub unsaved_halts: usize,
    /// Why the last write failed, if it did.
    pub error: Option<String>,
}

pub(super) static DATA_STATUS: Component = Component::built("DataStatus", || {
    object(
        "The store of the state of runs.",
        [
            ("directory", string("Its directory.")),
            ("restored", unsigned("The number of runs it had when the daemon started.")),
            ("unsaved", unsigned("The number of runs whose latest state is not on disk yet.")),
            ("unsaved_halts", unsigned("The number of halted runs among them.")),
            ("error", optional_string("Why the last write failed, if it did.")),
        ],
        &["error"],
    )
});

/// Its place in the status.
pub(super) fn nullable_data_status() -> Value {
    let data = DATA_STATUS.described("Where the state of runs is kept, unless it is kept in memory only.");
    json!({ "oneOf": [data, { "type": "null" }] })
}

impl From<StoreStatus> for DataStatus {
    fn from(status: StoreStatus) -> Self {
        let StoreStatus { directory, restored, unsaved, unsaved_halts, error } = status;
        Self { directory: directory.display().to_string(), restored, unsaved, unsaved_halts, error }
    }
}

/// The counters of the audit since the daemon started.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AuditStatus {
    /// Where its lines go: a file, or `stdout`.
    pub to: String,
    /// The number of lines written.
    pub written: u64,
    /// The number of lines lost because the queue was full.
    pub dropped_queue: u64,
    /// The number of lines lost because they could not be written.
    pub dropped_write: u64,
}

pub(super) static AUDIT_STATUS: Component = Component::built("AuditStatus", || {
    object(
        "The counters of the audit since the daemon started.",
        [
            ("to", string("Where its lines go: a file, or `stdout`.")),
            ("written", unsigned_as("int64", "The number of lines written.")),
            ("dropped_queue", unsigned_as("int64", "The number of lines lost because the queue was full.")),
            (
                "dropped_write",
                unsigned_as("int64", "The number of lines lost because they could not be written."),
            ),
        ],
        &[],
    )
});

impl AuditStatus {
    pub(super) fn of(audit: &Audit) -> Self {
        let counters = audit.counters();
        Self {
            to: audit.destination().to_owned(),
            written: counters.written.load(Ordering::Relaxed),
            dropped_queue: counters.dropped_queue.load(Ordering::Relaxed),
            dropped_write: counters.dropped_write.load(Ordering::Relaxed),
        }
    }
}
