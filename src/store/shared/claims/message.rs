//! What the bucket has of a run whose state holds on all daemons: who goes on with it, and what hooks have done in it. And what
//! follows from it for a daemon.

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

/// The last message of a run in the bucket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::shared) struct LastClaim {
    pub(in crate::store::shared) number: u64,
    pub(in crate::store::shared) is_over: bool,
    pub(in crate::store::shared) claim: Result<ClaimMessage, UnreadableMessage>,
}

/// What the bucket has of a run; number and epoch are 0 if it has nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store::shared) struct FoundClaim {
    pub(in crate::store::shared) number: u64,
    pub(in crate::store::shared) epoch: u64,
    pub(in crate::store::shared) state: StoredRun,
}

/// What became of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::shared) enum Fate {
    /// The bucket has it, under this number.
    Committed(u64),
    /// Another daemon has claimed the run.
    Moved,
    /// It has to be tried again.
    Unknown,
    /// An earlier attempt was written, under this number: it has to be tried again in place of that.
    Earlier(u64),
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

    /// The claim of a daemon on a run of which the bucket has this; one that is ending here begins anew. None if there were too many.
    pub(in crate::store::shared) fn following(
        key: &RunKey,
        found: FoundClaim,
        instance: &str,
        is_ending: bool,
    ) -> Option<Self> {
        let state = if is_ending { StoredRun::default() } else { found.state };
        let epoch = found.epoch.checked_add(1)?;
        Some(Self { key: key.clone(), epoch, instance: instance.to_owned(), state })
    }

    /// What ends a run of which the bucket has this.
    pub(in crate::store::shared) fn end(key: &RunKey, last: &LastClaim, instance: &str) -> Self {
        // Claims go on to be counted: what was claimed before the end is not taken for what is claimed after it.
        let epoch = last.claim.as_ref().map_or(0, |claim| claim.epoch);
        Self { key: key.clone(), epoch, instance: instance.to_owned(), state: StoredRun::default() }
    }

    /// What became of this message, whose place in the bucket was taken: by another daemon, or by this one, if an earlier attempt
    /// was written and not confirmed.
    pub(in crate::store::shared) fn judged(&self, is_over: bool, last: Option<&LastClaim>) -> Fate {
        let Some(last) = last else { return Fate::Moved };
        if last.is_over {
            return if is_over { Fate::Committed(last.number) } else { Fate::Moved };
        }
        match &last.claim {
            Ok(found) if found.instance == self.instance && found.epoch == self.epoch => {
                if !is_over && found.state == self.state {
                    Fate::Committed(last.number)
                } else {
                    Fate::Earlier(last.number)
                }
            }
            _ => Fate::Moved,
        }
    }

    /// The run that a message is about, also if the rest cannot be read.
    pub(in crate::store::shared) fn key_of(bytes: &[u8]) -> Option<RunKey> {
        let About { workspace, run } =
            serde_json::from_slice(bytes).ok().filter(|_| bytes.len() <= LONGEST)?;
        RunKey::of_texts(workspace, run)
    }
}

impl LastClaim {
    pub(super) fn of(number: u64, is_over: bool, bytes: &[u8]) -> Self {
        Self { number, is_over, claim: ClaimMessage::decode(bytes) }
    }

    /// Whether it was written by another daemon, or ends the run.
    pub(in crate::store::shared) fn is_of_another(&self, instance: &str) -> bool {
        self.is_over || !self.claim.as_ref().is_ok_and(|claim| claim.instance == instance)
    }

    /// What is known of a run by its last message.
    ///
    /// Returns an error if that cannot be read.
    pub(in crate::store::shared) fn found(self, key: &RunKey) -> Result<FoundClaim, String> {
        let Self { number, is_over, claim } = self;
        match claim {
            Ok(claim) if claim.key != *key => Err("it is about another run".to_owned()),
            Ok(claim) => Ok(FoundClaim { number, epoch: claim.epoch, state: claim.state }),
            Err(_) if is_over => Ok(FoundClaim { number, ..FoundClaim::default() }),
            Err(why) => Err(why.to_string()),
        }
    }
}
