//! How a dialect with native event names reads and writes, by its table.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;

use super::{
    envelope, event_reader,
    event_table::{EventRow, MatchSource},
    native::NativeDialect,
    response,
};
use crate::model::{
    Dialect, DialectName, Draft, Event, EventError, EventKind, Failure, Hook, HostEvent, HostResponse, Json,
    JsonError, MatchField, MergeRule, Outcome, RawReply, Reply, ResponseFormat, Strategy, Target, Verdict,
    Workspace,
};

impl Dialect for NativeDialect {
    fn name(&self) -> DialectName {
        self.name
    }

    fn read_event(&self, bytes: &[u8]) -> Result<Event, EventError> {
        event_reader::read_event(bytes, &self.vocabulary())
    }

    fn kind_of(&self, bytes: &[u8]) -> Option<EventKind> {
        event_reader::kind_of_unread(bytes, &self.vocabulary())
    }

    fn host_event_of(&self, bytes: &[u8]) -> Option<HostEvent> {
        event_reader::host_event_of_unread(bytes, &self.vocabulary())
    }

    fn cwd_of(&self, bytes: &[u8]) -> Option<Arc<str>> {
        event_reader::cwd_of_unread(bytes, &self.vocabulary())
    }

    fn write_response(&self, event: &Event, outcome: &Outcome) -> HostResponse {
        (self.write_response)(event, self.row(event), &response::expressible(self, event, outcome))
    }

    fn match_field(&self, kind: EventKind) -> Option<MatchField> {
        let looks = |row: &EventRow| row.kind == kind && row.match_source != MatchSource::Unmatched;
        kind.match_field().filter(|_| self.rows.iter().any(looks))
    }

    fn strategy(&self, kind: EventKind) -> Strategy {
        self.row_of(kind, None).map_or(Strategy::Parallel, |row| row.strategy)
    }

    fn ends_chain(&self, kind: EventKind, verdict: Verdict) -> bool {
        (self.ends_chain)(kind).contains(&verdict)
    }

    fn envelope(&self, draft: &Draft, place: &Workspace) -> Bytes {
        envelope::write(self, draft, place)
    }

    fn ends_input_with_newline(&self) -> bool {
        self.ends_input_with_newline
    }

    fn goes_on_in_background(&self, output: &[u8]) -> bool {
        (self.goes_on_in_background)(output)
    }

    fn environment(&self, draft: &Draft, place: &Workspace, _: Duration) -> Vec<(&'static str, String)> {
        (self.environment)(draft, place)
    }

    fn response_format(&self, hook: &Hook, kind: EventKind) -> ResponseFormat {
        match self.row_of(kind, hook.execution.host_event.as_deref()) {
            Some(row) => (self.response_format)(row),
            None => ResponseFormat::default(),
        }
    }

    fn read_reply(&self, hook: &Hook, kind: EventKind, raw: RawReply) -> Result<Reply, Failure> {
        match (raw, self.row_of(kind, hook.execution.host_event.as_deref())) {
            (RawReply::Native(reply), _) => Ok(reply),
            (raw, Some(row)) => (self.read_reply)(self, row, hook, raw),
            (_, None) => Ok(Reply::proceed()),
        }
    }

    fn merge_rule(&self, kind: EventKind) -> MergeRule {
        self.row_of(kind, None).map_or(MergeRule::Strictest, |row| row.merge_rule)
    }

    fn combine(&self, draft: &Draft, earlier: &[Reply], reply: Reply) -> Reply {
        match self.row(draft.event()) {
            Some(row) => (self.combine)(row, draft, earlier, reply),
            None => reply,
        }
    }

    fn apply_patch(&self, target: Target, current: Option<&Json>, patch: &Json) -> Result<Json, JsonError> {
        (self.apply_patch)(target, current, patch)
    }
}
