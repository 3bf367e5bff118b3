//! A hook of a snapshot, with what is prepared for it when it is registered.

use crate::model::{Hook, Redactor};

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
