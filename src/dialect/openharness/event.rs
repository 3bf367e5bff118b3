//! The events of OpenHarness.

use super::super::event_reader::{EventVocabulary, NameTable};
use crate::model::{DialectName, EventKind, MatchField, Target};

/// The event kinds of OpenHarness.
pub(crate) const KINDS: &[EventKind] = &[
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
pub(super) static VOCABULARY: EventVocabulary = EventVocabulary {
    dialect: DialectName::OpenHarness,
    kind_fields: &["hook_event_name"],
    names: NameTable::Canonical(KINDS),
};

/// What matchers of hooks on this kind look at. Those on context events look at nothing, though a compaction
/// has a trigger.
pub(super) fn matched(kind: EventKind) -> Option<MatchField> {
    kind.match_field().filter(|_| kind.target() != Some(Target::Context))
}

/// Whether hooks of OpenHarness may want events of a kind.
pub(in crate::dialect) fn has_kind(kind: EventKind) -> bool {
    KINDS.contains(&kind)
}

/// Whether matchers of hooks on a kind look at anything.
pub(in crate::dialect) fn is_matched(kind: EventKind) -> bool {
    matched(kind).is_some()
}
