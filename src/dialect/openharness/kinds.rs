//! The events of OpenHarness.

use crate::model::EventKind;

/// The event kinds that hosts of OpenHarness send. Hook files may name every kind, since their hooks run for all hosts.
pub(super) const KINDS: &[EventKind] = &[
    EventKind::BeforeContextBuild,
    EventKind::AfterContextBuild,
    EventKind::BeforeContextCompact,
    EventKind::AfterContextCompact,
    EventKind::BeforeModelCall,
    EventKind::AfterModelCall,
    EventKind::BeforeToolDispatch,
    EventKind::AfterToolDispatch,
    EventKind::RunCompleted,
    EventKind::RunFailed,
];

/// Whether an event of a kind can be stopped; of host events, some can.
pub(super) fn may_stop(kind: EventKind) -> bool {
    kind.is_interceptor() || kind == EventKind::HostEvent
}
