//! What a handler is checked against.

use crate::model::{Capability, EventKind, Matcher};

/// What a handler is checked against, of the hook that it is of.
#[derive(Clone, Copy)]
pub(super) struct HookContext<'h> {
    pub(super) events: &'h [EventKind],
    pub(super) matcher: Option<&'h Matcher>,
    pub(super) capabilities: &'h [Capability],
    /// Whether an event goes on where the hook fails and where it takes too long.
    pub(super) fails_open: bool,
}
