//! The latest outcomes of a run: an event that is sent again gets the first outcome and runs no hook twice.

use std::{
    collections::VecDeque,
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    sync::OnceLock,
};

use crate::model::{Event, EventId, Outcome, ToolCallId};

/// Identifies repeated events: by the host's event id or by the tool call, each with a digest of the payload. An id
/// alone is not enough, because it may come from a model: one that is reused with another payload must not get the
/// outcome of the first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IdempotencyKey {
    /// The event id, with a digest of everything that hooks receive.
    id: Option<(EventId, u64)>,
    /// The tool call, with a digest of its kind, its tool and its targets: hosts that repeat a call may add a new
    /// timestamp.
    call: Option<(ToolCallId, u64)>,
}

impl IdempotencyKey {
    /// The key of an event, or `None` if it has neither an event id nor a tool call.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        if event.id.is_none() && event.tool_call_id.is_none() {
            return None;
        }
        let mut hasher = keyed_hasher();
        hash_call(event, &mut hasher);
        let call = event.tool_call_id.clone().map(|call| (call, hasher.finish()));
        let id = event.id.clone().map(|id| {
            hash_rest(event, &mut hasher);
            (id, hasher.finish())
        });
        Some(Self { id, call })
    }

    /// Whether both name the same event.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        let same_id = self.id.is_some() && self.id == other.id;
        let same_call = self.call.is_some() && self.call == other.call;
        // A tool call that is repeated under another event id is the same call, but an event id with another payload
        // is another event, whatever its tool call.
        same_id || (same_call && !self.reuses_id(other))
    }

    /// Whether both have the same event id for different payloads.
    pub(super) fn reuses_id(&self, other: &Self) -> bool {
        match (&self.id, &other.id) {
            (Some((id, digest)), Some((known, known_digest))) => id == known && digest != known_digest,
            _ => false,
        }
    }
}

/// A keyed hash, which nobody outside can predict.
fn keyed_hasher() -> DefaultHasher {
    static SEED: OnceLock<RandomState> = OnceLock::new();
    SEED.get_or_init(RandomState::new).build_hasher()
}

fn hash_call(event: &Event, hasher: &mut DefaultHasher) {
    event.kind.hash(hasher);
    hash_sender(event, hasher);
    event.host_event.as_ref().map(|host| &host.name).hash(hasher);
    event.attributes.tool_name.hash(hasher);
    for (target, value) in event.targets.iter() {
        (target, value.as_str()).hash(hasher);
    }
}

/// What a sender says of itself decides which hooks it is left to run. An outcome without these hooks is none for a sender
/// that leaves them to hookyard.
fn hash_sender(event: &Event, hasher: &mut DefaultHasher) {
    event.dialect.hash(hasher);
    let origin = event.origin.as_ref();
    origin.and_then(|origin| origin.project.as_deref()).hash(hasher);
    origin.is_some_and(|origin| origin.keeps_hooks).hash(hasher);
}

fn hash_rest(event: &Event, hasher: &mut DefaultHasher) {
    event.attributes.hash(hasher);
    event.cwd.hash(hasher);
    for (name, value) in &event.extra {
        (name, value.as_str()).hash(hasher);
    }
}

/// The latest outcomes of one run, oldest first.
#[derive(Debug, Default)]
pub(crate) struct OutcomeCache(VecDeque<(IdempotencyKey, Outcome)>);

impl OutcomeCache {
    /// The outcome of the same event.
    pub(super) fn get(&self, key: &IdempotencyKey) -> Option<&Outcome> {
        self.0.iter().rev().find(|(known, _)| known.is_same(key)).map(|(_, outcome)| outcome)
    }

    /// Whether an earlier event had the same event id and another payload.
    pub(super) fn reuses_id(&self, key: &IdempotencyKey) -> bool {
        self.0.iter().any(|(known, _)| known.reuses_id(key))
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
