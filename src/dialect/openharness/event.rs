//! Which events OpenHarness has and how its hosts name them. Refuses events of other dialects.

use super::super::fields::Vocabulary;
use crate::model::{DialectName, EventKind};

/// The event kinds of OpenHarness.
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

/// How events of OpenHarness hosts are read.
pub(super) static VOCABULARY: Vocabulary =
    Vocabulary { dialect: DialectName::OpenHarness, kind_fields: &["hook_event_name"], kinds: KINDS };

/// Whether hooks on this kind have something to match on. Those on context events have not, though a
/// compaction has a trigger.
pub(super) fn has_matcher(kind: EventKind) -> bool {
    match kind {
        EventKind::BeforeContextBuild
        | EventKind::AfterContextBuild
        | EventKind::BeforeContextCompact
        | EventKind::AfterContextCompact => false,
        _ => kind.matched().is_some(),
    }
}
