//! A hook of a snapshot, with what is prepared for it when it is registered, and a required hook that is missing.

use crate::model::{EventKind, EventKinds, Hook, HookName, Redactor};

/// A hook of a snapshot.
#[derive(Debug)]
pub struct RegisteredHook {
    /// The hook.
    pub hook: Hook,
    /// Its position in [`Snapshot::hooks`](super::Snapshot::hooks).
    pub rank: usize,
    /// Removes the hook's secrets from its output.
    pub(crate) redactor: Redactor,
}

/// A required hook that is not in force.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MissingHook {
    /// Its name.
    pub hook: HookName,
    /// The interceptor events that are blocked.
    pub events: EventKinds,
    /// Why it is not in force, and what to do.
    pub why: String,
}

impl MissingHook {
    /// Whether it blocks an event of a kind, or of any kind if none is known.
    pub(crate) fn blocks(&self, kind: Option<EventKind>) -> bool {
        kind.is_none_or(|kind| self.events.contains(kind))
    }

    /// Why an event is blocked.
    pub(crate) fn reason(&self) -> String {
        format!("the required hook `{}` is not in force: {}", self.hook, self.why)
    }
}
