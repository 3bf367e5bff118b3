//! The beats of daemons: what each says of itself, twice a second.

use serde::{Deserialize, Serialize};

/// The version of the format.
const VERSION: u32 = 1;

/// What a daemon says of itself. Later versions may add keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeBeat {
    v: u32,
    pub(crate) node: String,
    /// What tells this process from others of the same name.
    pub(crate) instance: String,
    /// Which beat of the process it is.
    pub(crate) number: u64,
    /// What the daemon is at.
    #[serde(flatten)]
    pub(crate) facts: NodeFacts,
    /// The version of hookyard.
    #[serde(default)]
    pub(crate) version: String,
    /// Its `cluster.halts` is `strict`.
    #[serde(default, rename = "strict", skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_strict: bool,
    /// How many halts it knows of.
    #[serde(default)]
    pub(crate) halts: usize,
    /// How many of its own the bucket does not have.
    #[serde(default)]
    pub(crate) unstored: usize,
}

/// What a daemon is at, as far as operators ask for it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NodeFacts {
    /// `starting`, `ready` or `draining`.
    #[serde(default)]
    pub(crate) phase: String,
    /// The version of its bundle, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bundle: Option<u64>,
    /// How many hooks are loaded, and how many runs are known.
    #[serde(default)]
    pub(crate) hooks: usize,
    #[serde(default)]
    pub(crate) runs: usize,
    /// How long ago it has found that what waited in the queue was lost, if it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) queue_lost_ms: Option<u64>,
}

impl NodeBeat {
    pub(super) fn new(
        (node, instance): (&str, &str),
        number: u64,
        facts: NodeFacts,
        (halts, unstored): (usize, usize),
    ) -> Self {
        Self {
            v: VERSION,
            node: node.to_owned(),
            instance: instance.to_owned(),
            number,
            facts,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            is_strict: false,
            halts,
            unstored,
        }
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("texts and numbers")
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }
}

/// The part of a subject that stands for a daemon. Its name has no `/`, and in subjects a dot has a meaning of its own.
pub(super) fn token_of(node: &str) -> String {
    node.replace('.', "/")
}
