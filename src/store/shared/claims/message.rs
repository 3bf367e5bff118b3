//! What the bucket has of a run whose state holds on all daemons: who goes on with it, and what hooks have done in it.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::super::messages::{LONGEST, UnreadableMessage};
use crate::{model::RunKey, store::StoredRun};

/// The version of the format. Another one is not read: what it would have hooks do is not known.
const VERSION: u32 = 1;

/// The claim of a daemon on a run, and the state of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::shared) struct ClaimMessage {
    pub(in crate::store::shared) key: RunKey,
    /// Which claim of the run it is.
    pub(in crate::store::shared) epoch: u64,
    /// The process that goes on with the run.
    pub(in crate::store::shared) instance: String,
    /// What hooks have done in the run, without its halt.
    pub(in crate::store::shared) state: StoredRun,
}

/// It as it is written.
#[derive(Serialize, Deserialize)]
struct Written {
    v: u32,
    workspace: String,
    run: String,
    epoch: u64,
    instance: String,
    /// The name of the daemon, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    node: String,
    state: Box<RawValue>,
}

/// Which run a message is about, whatever else it says.
#[derive(Deserialize)]
struct About {
    workspace: String,
    run: String,
}

impl ClaimMessage {
    /// Returns an error if it is longer than what is read.
    pub(super) fn encode(&self, node: &str) -> Result<Vec<u8>, UnreadableMessage> {
        let written = Written {
            v: VERSION,
            workspace: self.key.workspace.to_string(),
            run: self.key.run.to_string(),
            epoch: self.epoch,
            instance: self.instance.clone(),
            node: node.to_owned(),
            state: RawValue::from_string(self.state.encode()).expect("a record is JSON"),
        };
        let bytes = serde_json::to_vec(&written).expect("texts and numbers");
        if bytes.len() > LONGEST { Err(UnreadableMessage::TooLong) } else { Ok(bytes) }
    }

    /// Reads a message.
    ///
    /// Returns an error if it has another version, is damaged or too long.
    pub(super) fn decode(bytes: &[u8]) -> Result<Self, UnreadableMessage> {
        if bytes.len() > LONGEST {
            return Err(UnreadableMessage::TooLong);
        }
        let read: Written = serde_json::from_slice(bytes).map_err(|_| UnreadableMessage::Damaged)?;
        let Written { v: VERSION, workspace, run, epoch, instance, state, .. } = read else {
            return Err(UnreadableMessage::Damaged);
        };
        match (RunKey::of_texts(workspace, run), StoredRun::decode(state.get())) {
            (Some(key), Ok(state)) => {
                Ok(Self { key, epoch, instance, state: StoredRun { halt: None, ..state } })
            }
            _ => Err(UnreadableMessage::Damaged),
        }
    }

    /// The run that a message is about, also if the rest cannot be read.
    pub(in crate::store::shared) fn key_of(bytes: &[u8]) -> Option<RunKey> {
        let About { workspace, run } =
            serde_json::from_slice(bytes).ok().filter(|_| bytes.len() <= LONGEST)?;
        RunKey::of_texts(workspace, run)
    }
}
