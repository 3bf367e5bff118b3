//! The dialect as the core calls it. Refuses to do anything but hand over to the files beside it.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    super::{answer as shared, fields, fold},
    answer, answer_form, envelope, event, reply,
};
use crate::model::{
    AnswerForm, Dialect, DialectName, Draft, Event, EventError, EventKind, Failure, Hook, Json, JsonError,
    Matched, NativeAnswer, Outcome, Place, RawReply, Reply, Strategy, Target, Ties, Verdict,
};

/// The OpenHarness dialect.
#[derive(Debug, Clone, Copy)]
pub struct OpenHarness;

impl Dialect for OpenHarness {
    fn name(&self) -> DialectName {
        DialectName::OpenHarness
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Event, EventError> {
        fields::read_event(bytes, &event::VOCABULARY)
    }

    fn kind_of(&self, bytes: &[u8]) -> Option<EventKind> {
        fields::kind_of_unread(bytes, &event::VOCABULARY)
    }

    fn cwd_of(&self, bytes: &[u8]) -> Option<Arc<str>> {
        fields::cwd_of_unread(bytes, &event::VOCABULARY)
    }

    fn write_answer(&self, event: &Event, outcome: &Outcome) -> NativeAnswer {
        answer::write(&shared::tellable(self, event, outcome))
    }

    fn matched(&self, kind: EventKind) -> Option<Matched> {
        event::matched(kind)
    }

    fn strategy(&self, kind: EventKind) -> Strategy {
        kind.strategy()
    }

    fn ends_chain(&self, _: EventKind, verdict: Verdict) -> bool {
        matches!(verdict, Verdict::Block | Verdict::Halt)
    }

    fn envelope(&self, draft: &Draft, place: &Place) -> Bytes {
        envelope::write(draft, place)
    }

    fn environment(&self, draft: &Draft, place: &Place, timeout: Duration) -> Vec<(&'static str, String)> {
        envelope::environment(draft, place, timeout)
    }

    fn answer_form(&self, hook: &Hook, kind: EventKind) -> AnswerForm {
        answer_form::of(hook, kind)
    }

    fn read_reply(&self, hook: &Hook, kind: EventKind, raw: RawReply) -> Result<Reply, Failure> {
        reply::read(hook, kind, raw)
    }

    fn ties(&self, _: EventKind) -> Ties {
        Ties::FirstDecides
    }

    fn join(&self, _: &Draft, _: &[Reply], reply: Reply) -> Reply {
        reply
    }

    fn fold(&self, target: Target, current: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
        fold::fold(target, current, patch)
    }
}
