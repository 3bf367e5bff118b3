//! The OpenHarness dialect as the core calls it, and its events.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    super::{
        event_reader::{self, EventVocabulary, NameTable},
        patch_merge, response as shared,
    },
    envelope,
    kinds::KINDS,
    reply, response,
};
use crate::model::{
    Dialect, DialectName, Draft, Event, EventError, EventKind, Failure, Hook, HostResponse, Json, JsonError,
    MatchField, MergeRule, Outcome, RawReply, Reply, ResponseFormat, Strategy, Target, Verdict, Workspace,
};

/// How events of OpenHarness hosts are read.
static VOCABULARY: EventVocabulary = EventVocabulary {
    dialect: DialectName::OpenHarness,
    roots_field: None,
    default_session: None,
    kind_fields: &["hook_event_name"],
    names: NameTable::Canonical(KINDS),
};

/// The OpenHarness dialect.
#[derive(Debug, Clone, Copy)]
pub struct OpenHarness;

impl Dialect for OpenHarness {
    fn name(&self) -> DialectName {
        DialectName::OpenHarness
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Event, EventError> {
        event_reader::read_event(bytes, &VOCABULARY)
    }

    fn kind_of(&self, bytes: &[u8]) -> Option<EventKind> {
        event_reader::kind_of_unread(bytes, &VOCABULARY)
    }

    fn cwd_of(&self, bytes: &[u8]) -> Option<Arc<str>> {
        event_reader::cwd_of_unread(bytes, &VOCABULARY)
    }

    fn write_response(&self, event: &Event, outcome: &Outcome) -> HostResponse {
        response::write(&shared::expressible(self, event, outcome))
    }

    fn match_field(&self, kind: EventKind) -> Option<MatchField> {
        matched(kind)
    }

    fn strategy(&self, kind: EventKind) -> Strategy {
        kind.strategy()
    }

    fn ends_chain(&self, _: EventKind, verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Block | Verdict::Halt)
    }

    fn envelope(&self, draft: &Draft, place: &Workspace) -> Bytes {
        envelope::write(draft, place)
    }

    fn environment(
        &self,
        draft: &Draft,
        place: &Workspace,
        timeout: Duration,
    ) -> Vec<(&'static str, String)> {
        envelope::environment(draft, place, timeout)
    }

    fn response_format(&self, hook: &Hook, kind: EventKind) -> ResponseFormat {
        response::model_format(hook, kind)
    }

    fn read_reply(&self, hook: &Hook, kind: EventKind, raw: RawReply) -> Result<Reply, Failure> {
        reply::read(hook, kind, raw)
    }

    fn merge_rule(&self, _: EventKind) -> MergeRule {
        MergeRule::Strictest
    }

    fn combine(&self, _: &Draft, _: &[Reply], reply: Reply) -> Reply {
        reply
    }

    fn apply_patch(&self, target: Target, current: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
        patch_merge::merge_patch(target, current, patch)
    }
}

/// What matchers of hooks on this kind look at. Those on context events look at nothing, though a compaction
/// has a trigger.
pub(super) fn matched(kind: EventKind) -> Option<MatchField> {
    kind.match_field().filter(|_| kind.target() != Some(Target::Context))
}

/// Whether hook files can name an event of a kind alone. Of host events they name all or none.
pub(in crate::dialect) fn has_kind(kind: EventKind) -> bool {
    kind != EventKind::HostEvent
}

/// Whether matchers of hooks on a kind look at anything.
pub(in crate::dialect) fn is_matched(kind: EventKind) -> bool {
    matched(kind).is_some()
}
