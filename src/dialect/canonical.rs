//! hookyard's own dialect: canonical events in, canonical outcomes out, and the native hooks of an embedding program.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    event_reader,
    event_reader::{EventVocabulary, NameTable},
    patch_merge, response,
};
use crate::model::{
    Dialect, DialectName, Draft, Ended, Event, EventError, EventKind, Failure, Hook, HostResponse, Json,
    JsonError, MatchField, MergeRule, Outcome, RawReply, Reply, ResponseFormat, Strategy, Target, Verdict,
    Workspace,
};

static VOCABULARY: EventVocabulary = EventVocabulary {
    roots_field: None,
    default_session: None,
    dialect: DialectName::Canonical,
    kind_fields: &["event", "hook_event_name"],
    names: NameTable::Canonical(EventKind::ALL),
};

/// hookyard's own format.
#[derive(Debug, Clone, Copy)]
pub struct Canonical;

impl Dialect for Canonical {
    fn name(&self) -> DialectName {
        DialectName::Canonical
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

    fn write_response(&self, _: &Event, outcome: &Outcome) -> HostResponse {
        response::of(outcome, r#"{"verdict":"block","reason":"the outcome could not be written"}"#)
    }

    fn match_field(&self, kind: EventKind) -> Option<MatchField> {
        kind.match_field()
    }

    fn strategy(&self, kind: EventKind) -> Strategy {
        kind.strategy()
    }

    fn ends_chain(&self, _: EventKind, verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Block | Verdict::Halt)
    }

    /// Native hooks are handed the draft itself, so nothing is written.
    fn envelope(&self, _: &Draft, _: &Workspace) -> Bytes {
        Bytes::new()
    }

    fn environment(&self, _: &Draft, _: &Workspace, _: Duration) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// No model is asked in this format, so there is none.
    fn response_format(&self, _: &Hook, _: EventKind) -> ResponseFormat {
        ResponseFormat::default()
    }

    fn read_reply(&self, hook: &Hook, _: EventKind, raw: RawReply) -> Result<Reply, Failure> {
        match raw {
            RawReply::Native(reply) => Ok(reply),
            RawReply::Command { .. } | RawReply::Http { .. } | RawReply::Text(_) => {
                let message = format!("`{}` is a native hook and must answer as one", hook.name);
                Err(Failure::new(Ended::InvalidOutput, message))
            }
        }
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
