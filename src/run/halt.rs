//! The halt of a run.

use std::sync::Arc;

use serde::Serialize;

use super::decision_id::next_decision_id;
use crate::{
    dialect,
    model::{Event, EventKind, HookName, Outcome, RunLifetime, Target, Verdict},
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
    /// The host's id of the prompt that was worked on, if it has one.
    #[serde(skip)]
    pub(super) prompt: Option<Arc<str>>,
}

impl Halt {
    pub(super) fn to_stored(&self) -> StoredHalt {
        StoredHalt { reason: self.reason.clone(), by: self.by.clone() }
    }

    #[cfg(feature = "store")]
    pub(super) fn of_stored(stored: StoredHalt) -> Self {
        Self { reason: stored.reason, by: stored.by, prompt: None }
    }

    /// Whether an event belongs to a later prompt than the halt. The run of a host that knows no runs is its session:
    /// there a halt ends the work on one prompt, and what the person asks for next is new. An empty prompt is none: Qwen
    /// Code sends one with the results of tools.
    pub(crate) fn is_over_for(&self, event: &Event) -> bool {
        if event.run_lifetime != RunLifetime::Session {
            return false;
        }
        let is_other = |prompt: &str| self.prompt.as_deref().is_some_and(|halted| halted != prompt);
        let is_empty = || event.targets.get(Target::Prompt).is_some_and(|prompt| prompt.as_str() == r#""""#);
        let is_new = event.kind == EventKind::PromptSubmitted && !is_empty();
        is_new || dialect::prompt_of(event).is_some_and(is_other)
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
