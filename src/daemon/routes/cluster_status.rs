//! The part of the status about the cluster that the daemon is a node of.

#[cfg(feature = "cluster")]
use std::time::Duration;
use std::{
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{
    Orchestrator,
    config::Settings,
    daemon::schema::{Component, boolean, object, optional_string, string, unsigned, unsigned_as},
};

/// What a node says of itself and its cluster.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterStatus {
    /// Where the name of the node is from: `settings`, or `machine`, whose name it is then.
    pub named_by: String,
    /// A word that no other process has: two nodes with the same name differ by it.
    pub instance: String,
    /// The store in which nodes share halts, if the settings name one.
    #[serde(default)]
    pub store: Option<ClusterStoreStatus>,
}

/// How the store is in which nodes share halts, as this node sees it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterStoreStatus {
    /// Whether this node knows all halts of the cluster.
    pub fresh: bool,
    /// How long ago the store was heard of, in milliseconds; null if it never was.
    pub heard_ms: Option<u64>,
    /// How many halts this node knows.
    pub halts: usize,
    /// How many of its own the store does not have.
    pub unstored: usize,
    /// The nodes that were heard of in the last five minutes, this one among them.
    pub nodes: Vec<ClusterNodeStatus>,
    /// Why the store cannot be read, if it cannot.
    pub error: Option<String>,
}

/// A node, as it says itself.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ClusterNodeStatus {
    /// The name of the node.
    pub node: String,
    /// A word that no other process has.
    pub instance: String,
    /// How long ago it was heard of, in milliseconds.
    pub heard_ms: u64,
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
            ("store", json!({ "oneOf": [CLUSTER_STORE_STATUS.reference(), { "type": "null" }] })),
        ],
        &["store"],
    )
});

pub(super) static CLUSTER_STORE_STATUS: Component = Component::built("ClusterStoreStatus", || {
    let nodes = "The nodes that were heard of in the last five minutes, this one among them.";
    let mut heard =
        unsigned_as("int64", "How long ago the store was heard of, in milliseconds; null if it never was.");
    heard["type"] = json!(["integer", "null"]);
    object(
        "The store in which nodes share halts, as this node sees it.",
        [
            ("fresh", boolean("Whether this node knows all halts of the cluster.")),
            ("heard_ms", heard),
            ("halts", unsigned("How many halts this node knows.")),
            ("unstored", unsigned("How many of its own the store does not have.")),
            (
                "nodes",
                json!({ "type": "array", "description": nodes, "items": CLUSTER_NODE_STATUS.reference() }),
            ),
            ("error", optional_string("Why the store cannot be read, if it cannot.")),
        ],
        &[],
    )
});

pub(super) static CLUSTER_NODE_STATUS: Component = Component::built("ClusterNodeStatus", || {
    object(
        "A node, as it says itself.",
        [
            ("node", string("The name of the node.")),
            ("instance", string("A word that no other process has.")),
            ("heard_ms", unsigned_as("int64", "How long ago it was heard of, in milliseconds.")),
        ],
        &[],
    )
});

/// The schema where the daemon may be no node.
pub(super) fn nullable_cluster_status() -> Value {
    let status = CLUSTER_STATUS.described("What it says as a node of a cluster, if it is one.");
    json!({ "oneOf": [status, { "type": "null" }] })
}

/// A word that no other process has.
pub(in crate::daemon) fn instance() -> &'static str {
    static INSTANCE: LazyLock<String> =
        LazyLock::new(|| format!("{:016x}", RandomState::new().hash_one(std::process::id())));
    &INSTANCE
}

impl ClusterStatus {
    /// The status of this process, if it is a node.
    pub(in crate::daemon) fn of(settings: &Settings, orchestrator: &Orchestrator) -> Option<Self> {
        (settings.cluster.enabled || settings.cluster.is_shared()).then(|| Self {
            named_by: if settings.node.is_some() { "settings" } else { "machine" }.to_owned(),
            instance: instance().to_owned(),
            store: ClusterStoreStatus::of(orchestrator),
        })
    }
}

impl ClusterStoreStatus {
    #[cfg(feature = "cluster")]
    fn of(orchestrator: &Orchestrator) -> Option<Self> {
        let shared = orchestrator.cluster()?.status();
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let nodes = shared.nodes.into_iter().map(|(beat, heard)| ClusterNodeStatus {
            node: beat.node,
            instance: beat.instance,
            heard_ms: milliseconds(heard),
        });
        Some(Self {
            fresh: shared.is_fresh,
            heard_ms: shared.heard.map(milliseconds),
            halts: shared.halts,
            unstored: shared.unstored,
            nodes: nodes.collect(),
            error: shared.problem,
        })
    }

    #[cfg(not(feature = "cluster"))]
    fn of(_: &Orchestrator) -> Option<Self> {
        None
    }
}
