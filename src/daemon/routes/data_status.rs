//! The part of the status that says where the state of runs is kept.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    daemon::schema::{Component, object, optional_string, string, unsigned},
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
