//! What a repeated event is recognised by: one that is sent again gets the first outcome and runs no hook twice.

use std::{
    hash::{BuildHasher, DefaultHasher, Hash, Hasher, RandomState},
    num::NonZeroU64,
    sync::OnceLock,
};

use crate::model::Event;

/// Identifies repeated events: by the host's event id or by the tool call, each with a digest of the payload. An id
/// alone is not enough, because it may come from a model: one that is reused with another payload must not get the
/// outcome of the first. Ids are hashed too: a run may remember many of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IdempotencyKey {
    /// The event id, with a digest of everything that hooks receive.
    id: Option<Identity>,
    /// The tool call, with a digest of its kind, its tool and its targets: hosts that repeat a call may add a new
    /// timestamp.
    call: Option<Identity>,
}

/// An id and what it names, each as a hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    id: NonZeroU64,
    digest: NonZeroU64,
}

impl Identity {
    fn new(id: &str, content: &DefaultHasher) -> Self {
        let mut hasher = keyed_hasher();
        id.hash(&mut hasher);
        Self { id: non_zero(&hasher), digest: non_zero(content) }
    }
}

fn non_zero(hasher: &DefaultHasher) -> NonZeroU64 {
    NonZeroU64::new(hasher.finish()).unwrap_or(NonZeroU64::MIN)
}

impl IdempotencyKey {
    /// The key of an event, or `None` if it has neither an event id nor a tool call.
    pub(crate) fn of(event: &Event) -> Option<Self> {
        if event.id.is_none() && event.tool_call_id.is_none() {
            return None;
        }
        let mut content = keyed_hasher();
        hash_call(event, &mut content);
        let call = event.tool_call_id.as_ref().map(|call| Identity::new(call.as_str(), &content));
        let id = event.id.as_ref().map(|id| {
            hash_rest(event, &mut content);
            Identity::new(id.as_str(), &content)
        });
        Some(Self { id, call })
    }

    /// Whether both name the same event.
    pub(super) fn is_same(self, other: Self) -> bool {
        let same_id = self.id.is_some() && self.id == other.id;
        let same_call = self.call.is_some() && self.call == other.call;
        // A tool call that is repeated under another event id is the same call, but an event id with another payload
        // is another event, whatever its tool call.
        same_id || (same_call && !self.reuses_id(other))
    }

    /// Whether both have the same event id for different payloads.
    pub(super) fn reuses_id(self, other: Self) -> bool {
        match (self.id, other.id) {
            (Some(own), Some(known)) => own.id == known.id && own.digest != known.digest,
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
