//! What is known of an event whose hooks cannot be asked.

use std::sync::Arc;

#[cfg(any(feature = "cli", feature = "daemon"))]
use super::Event;
use super::{EventKind, HostEvent, Strategy};

/// What is known of an event whose hooks cannot be asked, perhaps because it cannot be read as a whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartialEvent {
    pub(crate) kind: Option<EventKind>,
    /// The event without a kind of its own.
    pub(crate) host_event: Option<HostEvent>,
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only the daemon looks for workspaces"))]
    pub(crate) cwd: Option<Arc<str>>,
}

impl PartialEvent {
    /// An event that was read.
    #[cfg(any(feature = "cli", feature = "daemon"))]
    pub(crate) fn of(event: &Event) -> Self {
        Self { kind: Some(event.kind), host_event: event.host_event.clone(), cwd: event.cwd.clone() }
    }

    /// Whether an agent or one of its subagents is about to end its turn.
    #[cfg(feature = "daemon")]
    pub(crate) fn ends_turn(&self) -> bool {
        matches!(self.kind, Some(EventKind::AgentStopping | EventKind::SubagentStopping))
    }

    /// Whether hooks might stop it, as far as is known.
    pub(crate) fn may_be_stopped(&self) -> bool {
        match (self.kind, &self.host_event) {
            (Some(EventKind::HostEvent), Some(known)) => known.strategy == Strategy::Serial,
            (None | Some(EventKind::HostEvent), _) => true,
            (Some(kind), _) => kind.is_interceptor(),
        }
    }
}
