//! The part of the status about the cluster that the daemon is a node of.

use std::{
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    config::Settings,
    daemon::schema::{Component, object, string},
};

/// What a node says of itself and its cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// Where the name of the node is from: `settings`, or `machine`, whose name it is then.
    pub named_by: String,
    /// A word that no other process has: two nodes with the same name differ by it.
    pub instance: String,
}

pub(super) static CLUSTER_STATUS: Component = Component::built("ClusterStatus", || {
    object(
        "What a node says of itself and its cluster.",
        [
            ("named_by", string("Where the name of the node is from: `settings`, or `machine`.")),
            (
                "instance",
                string("A word that no other process has: two nodes with the same name differ by it."),
            ),
        ],
        &[],
    )
});

/// The schema where the daemon may be no node.
pub(super) fn nullable_cluster_status() -> Value {
    let status = CLUSTER_STATUS.described("What it says as a node of a cluster, if it is one.");
    json!({ "oneOf": [status, { "type": "null" }] })
}

impl ClusterStatus {
    /// The status of this process, if it is a node.
    pub(in crate::daemon) fn of(settings: &Settings) -> Option<Self> {
        static INSTANCE: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(std::process::id()));
        settings.cluster.enabled.then(|| Self {
            named_by: if settings.node.is_some() { "settings" } else { "machine" }.to_owned(),
            instance: format!("{:016x}", *INSTANCE),
        })
    }
}
