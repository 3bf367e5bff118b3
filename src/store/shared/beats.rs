//! The beats of daemons: what each says of itself, twice a second.

use serde::{Deserialize, Serialize};

use crate::model::is_node_name;

/// The version of the format.
const VERSION: u32 = 1;

/// The longest beat that is read, and the longest text in it, in bytes.
const LONGEST: usize = 16 << 10;
const LONGEST_WORD: usize = 128;

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

    /// Reads a beat; none if it is damaged, or says what no daemon does.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let beat: Self = serde_json::from_slice(bytes).ok().filter(|_| bytes.len() <= LONGEST)?;
        let words = [&beat.instance, &beat.facts.phase, &beat.version];
        (is_node_name(&beat.node) && words.iter().all(|word| word.len() <= LONGEST_WORD)).then_some(beat)
    }
}

/// The part of a subject that stands for a daemon. Its name has no `/`, and in subjects a dot has a meaning of its own.
pub(super) fn token_of(node: &str) -> String {
    node.replace('.', "/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_beat_says_no_more_than_a_daemon_does() {
        let beat = |field: &str, value: String| {
            let mut beat = json!({"v": 1, "node": "n1", "instance": "ab12", "number": 1, "phase": "ready"});
            beat[field] = value.into();
            NodeBeat::decode(beat.to_string().as_bytes()).is_some()
        };
        let long = |length: usize| "x".repeat(length);
        for (field, value, is_read) in [
            ("node", long(63), true),
            ("node", "edge.7_a-b".to_owned(), true),
            ("node", long(64), false),
            ("node", long(100_000), false),
            ("node", String::new(), false),
            ("node", "a b".to_owned(), false),
            ("node", "\u{1b}[2J".to_owned(), false),
            ("instance", long(129), false),
            ("phase", long(129), false),
            ("version", long(129), false),
            ("of a later version", long(1000), true),
            ("of a later version", long(100_000), false),
        ] {
            assert_eq!(beat(field, value.clone()), is_read, "{field} {}", value.len());
        }
    }
}
