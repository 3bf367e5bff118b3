//! The latest outcomes of a run: an event that is sent again gets the first outcome and runs no hook twice.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, Hash, Hasher, RandomState},
    sync::OnceLock,
};

use crate::model::{Event, EventId, EventKind, Outcome, ToolCallId};

/// Identifies repeated events: by the host's event id, or by tool call, kind and payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct IdempotencyKey {
    id: Option<EventId>,
    call: Option<(EventKind, ToolCallId, u64)>,
}

impl IdempotencyKey {
    /// The key of an event, or `None` if it has neither an event id nor a tool call.
    pub(super) fn of(event: &Event) -> Option<Self> {
        let call = event.tool_call_id.clone().map(|call| (event.kind, call, fingerprint(event)));
        let key = Self { id: event.id.clone(), call };
        (key.id.is_some() || key.call.is_some()).then_some(key)
    }

    /// Whether both name the same event.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same_id = self.id.is_some() && self.id == other.id;
        let same_call = self.call.is_some() && self.call == other.call;
        same_id || same_call
    }
}

/// A keyed hash of the payload, which nobody outside can predict. Ids of tool calls may come from a model: one that is
/// reused with another input must not get the outcome of the first.
fn fingerprint(event: &Event) -> u64 {
    static SEED: OnceLock<RandomState> = OnceLock::new();
    let mut hasher = SEED.get_or_init(RandomState::new).build_hasher();
    event.host_event.as_ref().map(|host| &host.name).hash(&mut hasher);
    event.attributes.tool_name.hash(&mut hasher);
    for (target, value) in event.targets.iter() {
        (target, value.as_str()).hash(&mut hasher);
    }
    hasher.finish()
}

/// The latest outcomes of one run, oldest first.
#[derive(Debug, Default)]
pub(crate) struct OutcomeCache(VecDeque<(IdempotencyKey, Outcome)>);

impl OutcomeCache {
    /// The outcome of the same event.
    pub(super) fn get(&self, key: &IdempotencyKey) -> Option<&Outcome> {
        self.0.iter().rev().find(|(known, _)| known.is_same(key)).map(|(_, outcome)| outcome)
    }

    /// Adds an outcome and forgets the oldest beyond `most`.
    pub(super) fn remember(&mut self, key: IdempotencyKey, outcome: Outcome, most: usize) {
        if self.0.is_empty() {
            // Many runs have one outcome and no more.
            self.0.reserve_exact(1);
        }
        self.0.push_back((key, outcome));
        self.keep(most);
    }

    /// Forgets all but the latest outcomes and shrinks to fit.
    pub(super) fn shrink(&mut self, most: usize) {
        self.keep(most);
        self.0.shrink_to_fit();
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn keep(&mut self, most: usize) {
        let surplus = self.0.len().saturating_sub(most);
        self.0.drain(..surplus);
    }
}
