//! The halt of a run.

use std::sync::Arc;

use serde::Serialize;

use super::decision_id::next_decision_id;
use crate::{
    model::{EventKind, HookName, Outcome, Verdict},
    store::StoredHalt,
};

/// Why a run is halted: its interceptor events get this answer from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Halt {
    /// The reason given by whoever ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
    /// The hook that ended it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<HookName>,
}

impl Halt {
    pub(super) fn to_stored(&self) -> StoredHalt {
        StoredHalt { reason: self.reason.clone(), by: self.by.clone() }
    }

    #[cfg(feature = "store")]
    pub(super) fn of_stored(stored: StoredHalt) -> Self {
        Self { reason: stored.reason, by: stored.by }
    }

    /// The outcome of an interceptor event of a halted run.
    pub(crate) fn outcome(&self, event: EventKind, snapshot_version: u64) -> Outcome {
        Outcome {
            verdict: Verdict::Halt,
            reason: self.reason.clone(),
            by: self.by.clone(),
            ..Outcome::proceed(next_decision_id(), event, snapshot_version)
        }
    }
}
