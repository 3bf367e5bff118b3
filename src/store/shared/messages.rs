//! What is written into the bucket: halts, and that one is over.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::{
    model::{HookName, RunKey, hex_digits},
    store::StoredHalt,
};

/// The version of the format.
const VERSION: u32 = 1;

/// The longest message that is read, in bytes.
pub(super) const LONGEST: usize = 256 << 10;

/// The longest reason that is written, in bytes. The daemon that halted the run has all of it.
const LONGEST_REASON: usize = 16 << 10;

/// A message about the halt of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HaltMessage {
    pub(super) key: RunKey,
    /// The halt; none if it is over.
    pub(super) halt: Option<StoredHalt>,
    /// The process that wrote it; empty if an operator or an earlier version did.
    pub(super) instance: String,
}

/// It as it is read: whatever a later version makes of the rest, it is about this run.
#[derive(Deserialize)]
struct Read {
    workspace: String,
    run: String,
    #[serde(default)]
    reason: Value,
    #[serde(default)]
    by: Value,
    #[serde(default)]
    instance: Value,
}

/// It as it is written.
#[derive(Serialize)]
struct Written {
    v: u32,
    workspace: String,
    run: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    by: Option<String>,
    /// The daemon that wrote it, for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    node: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    instance: String,
}

impl HaltMessage {
    pub(super) fn encode(key: &RunKey, halt: Option<&StoredHalt>, (node, instance): (&str, &str)) -> Vec<u8> {
        let reason = halt.and_then(|halt| halt.reason.as_deref()).map(shortened);
        let by = halt.and_then(|halt| halt.by.as_ref()).map(ToString::to_string);
        let (workspace, run) = (key.workspace.to_string(), key.run.to_string());
        let (node, instance) = (node.to_owned(), instance.to_owned());
        let written = Written { v: VERSION, workspace, run, reason, by, node, instance };
        serde_json::to_vec(&written).expect("texts and a number")
    }

    /// Reads a message. What a later version adds is passed over: its halts are halts here as well.
    ///
    /// Returns an error if it does not say which run it is about.
    pub(super) fn decode(bytes: &[u8], is_over: bool) -> Result<Self, UnreadableMessage> {
        if bytes.len() > LONGEST {
            return Err(UnreadableMessage::TooLong);
        }
        let Read { workspace, run, reason, by, instance } =
            serde_json::from_slice(bytes).map_err(|_| UnreadableMessage::Damaged)?;
        let key = RunKey::of_texts(workspace, run).ok_or(UnreadableMessage::Damaged)?;
        let reason = reason.as_str().map(Arc::from);
        let by = by.as_str().and_then(|by| HookName::new(by).ok());
        let halt = (!is_over).then_some(StoredHalt { reason, by });
        let instance = instance.as_str().unwrap_or_default().to_owned();
        Ok(Self { key, halt, instance })
    }
}

/// Why a message is passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum UnreadableMessage {
    /// It has too many bytes.
    #[error("it is longer than {LONGEST} bytes")]
    TooLong,
    /// It is no message of a hookyard.
    #[error("it is damaged, or not written by hookyard")]
    Damaged,
}

/// The part of a subject that stands for a run: ids have characters that subjects cannot.
pub(super) fn token_of(key: &RunKey) -> String {
    let mut hash = Sha256::new();
    hash.update(key.workspace.as_str().as_bytes());
    hash.update([0]);
    hash.update(key.run.as_str().as_bytes());
    hex_digits(&hash.finalize()[..20])
}

fn shortened(reason: &str) -> Arc<str> {
    if reason.len() <= LONGEST_REASON {
        return reason.into();
    }
    format!("{}…", &reason[..reason.floor_char_boundary(LONGEST_REASON)]).into()
}
