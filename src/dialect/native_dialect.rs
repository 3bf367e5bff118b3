//! How a dialect with native event names reads and writes, by its table. Envelopes are written in one pass without a
//! tree.

use std::{collections::HashSet, sync::Arc, time::Duration};

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{
    event_reader,
    event_table::{EventRow, FACT_FIELDS, MatchSource, extra_field},
    native::{EnvelopeField, NativeDialect},
    response,
};
use crate::model::{
    Dialect, DialectName, Draft, Event, EventError, EventKind, Failure, Hook, HostEvent, HostResponse, Json,
    JsonError, MatchField, MergeRule, Outcome, RawReply, Reply, ResponseFormat, Strategy, Target, Verdict,
    Workspace,
};

/// The bytes of an envelope beside the payload: enough for the usual ids and paths.
const USUAL_FRAME: usize = 512;

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
        write_envelope(self, draft, place)
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

/// The envelope of an event with the patches so far.
fn write_envelope(native: &NativeDialect, draft: &Draft, place: &Workspace) -> Bytes {
    let payload = Target::ALL.iter().filter_map(|target| draft.target(*target));
    let size = USUAL_FRAME + payload.map(|part| part.as_str().len()).sum::<usize>();
    let mut text = Vec::with_capacity(size);
    match serde_json::to_writer(&mut text, &Envelope { native, draft, place }) {
        Ok(()) => text.into(),
        // Every part is a text or checked JSON and the writer is memory. A hook that is told nothing
        // fails by its own policy.
        Err(_) => Bytes::new(),
    }
}

struct Envelope<'a> {
    native: &'a NativeDialect,
    draft: &'a Draft,
    place: &'a Workspace,
}

impl Serialize for Envelope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for (name, frame) in self.native.envelope_fields {
            self.frame(&mut map, name, *frame)?;
        }
        let framed = |name: &str| self.native.envelope_fields.iter().any(|(known, _)| *known == name);
        // A name with a dot in it is a part of another field.
        let fields = self.native.fields.iter().filter(|(name, _)| !framed(name) && !name.contains('.'));
        for (name, canonical) in fields {
            self.field(&mut map, name, canonical)?;
        }
        self.rest(&mut map)?;
        map.end()
    }
}

impl Envelope<'_> {
    fn frame<M: SerializeMap>(&self, map: &mut M, name: &str, frame: EnvelopeField) -> Result<(), M::Error> {
        let event = self.draft.event();
        match frame {
            EnvelopeField::Session => map.serialize_entry(name, &event.session_id),
            EnvelopeField::EventName => match self.native.row(event) {
                Some(row) => map.serialize_entry(name, row.name),
                None => map.serialize_entry(name, &event.kind),
            },
            EnvelopeField::EventNameOf(kind) | EnvelopeField::InputOf(kind) if event.kind != kind => Ok(()),
            EnvelopeField::InputOf(_) => self.field(map, name, "tool_input"),
            EnvelopeField::EventNameOf(_) => self.frame(map, name, EnvelopeField::EventName),
            EnvelopeField::Milliseconds => match event.arrival {
                Some(arrival) => map.serialize_entry(name, &arrival.milliseconds()),
                None => Ok(()),
            },
            EnvelopeField::Cwd => match &event.cwd {
                Some(cwd) => map.serialize_entry(name, &**cwd),
                None => map.serialize_entry(name, &self.place.root.to_string_lossy()),
            },
            EnvelopeField::CwdOfOthers if event.dialect != self.native.name => {
                self.frame(map, name, EnvelopeField::Cwd)
            }
            EnvelopeField::Roots => match self.extra(name) {
                Some(value) => map.serialize_entry(name, value),
                None => map.serialize_entry(name, &[self.place.root.to_string_lossy()]),
            },
            // A host that says so itself has it read as where the event belongs.
            EnvelopeField::Project if event.dialect == self.native.name && event.cwd.is_some() => {
                map.serialize_entry(name, &event.cwd)
            }
            EnvelopeField::Own(_)
            | EnvelopeField::CwdOfOthers
            | EnvelopeField::Project
            | EnvelopeField::Timestamp
            | EnvelopeField::Uuid => match self.extra(name) {
                Some(value) => map.serialize_entry(name, value),
                None => match self.unsaid(frame) {
                    Some(text) => map.serialize_entry(name, &text),
                    None => Ok(()),
                },
            },
        }
    }

    /// The default for a field that the host did not send.
    fn unsaid(&self, frame: EnvelopeField) -> Option<String> {
        let arrival = self.draft.event().arrival;
        match frame {
            EnvelopeField::Own(absent) => absent.map(str::to_owned),
            EnvelopeField::Project => Some(self.place.root.to_string_lossy().into_owned()),
            EnvelopeField::Timestamp => arrival.map(|arrival| arrival.timestamp().to_string()),
            EnvelopeField::Uuid => arrival.map(|arrival| arrival.uuid().to_string()),
            EnvelopeField::Session
            | EnvelopeField::EventName
            | EnvelopeField::EventNameOf(_)
            | EnvelopeField::InputOf(_)
            | EnvelopeField::Milliseconds
            | EnvelopeField::CwdOfOthers
            | EnvelopeField::Roots
            | EnvelopeField::Cwd => None,
        }
    }

    /// A field that has a canonical name, if the event has it.
    fn field<M: SerializeMap>(&self, map: &mut M, name: &str, canonical: &str) -> Result<(), M::Error> {
        let event = self.draft.event();
        if let Some(target) = Target::from_name(canonical) {
            match self.draft.target(target) {
                Some(value) => match self.translated(target, value) {
                    Some(value) => map.serialize_entry(name, &value),
                    None => map.serialize_entry(name, value),
                },
                None => Ok(()),
            }
        } else if let Some(fact) = FACT_FIELDS.iter().find(|fact| fact.name == canonical) {
            match (fact.get)(&event.attributes) {
                Some(text) if canonical == "tool_name" => map.serialize_entry(name, self.tool_name(text)),
                Some(text) => map.serialize_entry(name, text),
                None => Ok(()),
            }
        } else {
            match &event.tool_call_id {
                Some(id) if canonical == "tool_call_id" => map.serialize_entry(name, id),
                _ => Ok(()),
            }
        }
    }

    /// Tools of a host have other names in the second spelling of its dialect. Those of other hosts are theirs.
    fn tool_name<'n>(&self, name: &'n str) -> &'n str {
        let is_own = self.draft.event().dialect == self.native.name;
        if is_own { self.native.spelling.name_of(name) } else { name }
    }

    /// The form in this dialect, or in this spelling of it, of a part of the payload.
    fn translated(&self, target: Target, value: &Json) -> Option<Json> {
        let event = self.draft.event();
        let is_as_sent = event.dialect == self.native.name && !self.native.spelling.renames();
        if is_as_sent { None } else { (self.native.translate)(event, target, value) }
    }

    /// Fields without a canonical name: all that a host of this dialect sent, and of other hosts those that
    /// have the same meaning here.
    fn rest<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        let event = self.draft.event();
        let native = self.native;
        let is_own = |name: &str| event.dialect == native.name || native.own_fields.contains(&name);
        // Facts of another type than a text stay among the extra fields of host events.
        let is_written =
            |name: &str| native.fields.iter().any(|(known, _)| *known == name) && !self.is_left(name);
        let mut seen: HashSet<&str> = native.envelope_fields.iter().map(|(name, _)| *name).collect();
        for (name, value) in &event.extra {
            let name = native.spelling.name_of(name);
            if is_own(name) && !is_written(name) && seen.insert(name) {
                map.serialize_entry(name, value)?;
            }
        }
        Ok(())
    }

    /// Whether a field with a canonical name was left among the extra ones.
    fn is_left(&self, name: &str) -> bool {
        self.draft.event().host_event.is_some() && self.extra(name).is_some()
    }

    /// The value of an extra field. Only hosts with native names send extra fields under the names of the dialects.
    fn extra(&self, name: &str) -> Option<&Json> {
        let event = self.draft.event();
        extra_field(event, name).filter(|_| event.dialect != DialectName::OpenHarness)
    }
}
