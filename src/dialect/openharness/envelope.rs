//! Writes the envelope and the variables of OpenHarness hooks, in one pass without a tree.

use std::time::Duration;

use bytes::Bytes;
use serde::{Serialize, Serializer, ser::SerializeMap};

use super::{super::event_table::FACT_FIELDS, kinds::KINDS};
use crate::model::{DialectName, Draft, Event, Target, Workspace};

/// The attributes that OpenHarness has a name for.
const OWN_FACTS: [&str; 6] =
    ["agent_name", "effective_agent_name", "model_ref", "tool_name", "trigger_type", "run_status"];

/// The targets that OpenHarness has a name for.
const OWN_TARGETS: [Target; 5] =
    [Target::ModelRequest, Target::ModelResponse, Target::ToolInput, Target::ToolOutput, Target::Context];

/// The other fields of an envelope.
const OTHER_FIELDS: [&str; 10] = [
    "workspace_id",
    "session_id",
    "run_id",
    "cwd",
    "hook_event_name",
    "tool_call_id",
    "event_id",
    "decision_id",
    "delivery",
    "host_event",
];

/// The bytes of an envelope beside the payload: enough for the usual ids and paths.
const USUAL_FRAME: usize = 512;

/// The envelope of an event with the patches so far.
pub(super) fn write(draft: &Draft, place: &Workspace) -> Bytes {
    let payload = OWN_TARGETS.iter().filter_map(|target| draft.target(*target));
    let size = USUAL_FRAME + payload.map(|part| part.as_str().len()).sum::<usize>();
    let mut text = Vec::with_capacity(size);
    match serde_json::to_writer(&mut text, &Envelope { draft, place }) {
        Ok(()) => text.into(),
        // Every part is a text or checked JSON and the writer is memory. A hook that is told nothing
        // fails by its own policy.
        Err(_) => Bytes::new(),
    }
}

/// The variables a command hook gets beside the allowed ones.
pub(super) fn environment(
    draft: &Draft,
    place: &Workspace,
    timeout: Duration,
) -> Vec<(&'static str, String)> {
    vec![
        ("OPENHARNESS_WORKSPACE_ROOT", place.root.display().to_string()),
        ("HOOKYARD_EVENT", draft.event().kind.as_str().to_owned()),
        ("HOOKYARD_DEADLINE_MS", timeout.as_millis().to_string()),
    ]
}

struct Envelope<'a> {
    draft: &'a Draft,
    place: &'a Workspace,
}

impl Serialize for Envelope<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let event = self.draft.event();
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("workspace_id", event.workspace_id.as_ref().unwrap_or(&self.place.id))?;
        map.serialize_entry("session_id", &event.session_id)?;
        map.serialize_entry("run_id", &event.run_id)?;
        match &event.cwd {
            Some(cwd) => map.serialize_entry("cwd", &**cwd)?,
            None => map.serialize_entry("cwd", &self.place.root.to_string_lossy())?,
        }
        map.serialize_entry("hook_event_name", event.kind.as_str())?;
        self.payload(&mut map, FieldGroup::Own)?;
        if let Some(id) = &event.tool_call_id {
            map.serialize_entry("tool_call_id", id)?;
        }
        if let Some(id) = &event.id {
            map.serialize_entry("event_id", id)?;
        }
        if let Some(arrival) = event.arrival {
            map.serialize_entry("decision_id", &arrival.decision_id())?;
            map.serialize_entry("delivery", &arrival.delivery())?;
        }
        if let Some(host) = &event.host_event {
            map.serialize_entry("host_event", &*host.name)?;
        }
        let is_own_host = matches!(event.dialect, DialectName::OpenHarness | DialectName::Canonical);
        if is_own_host || !KINDS.contains(&event.kind) {
            self.payload(&mut map, FieldGroup::Foreign)?;
        }
        if is_own_host || event.host_event.is_some() {
            extra(event, &mut map)?;
        }
        map.end()
    }
}

/// Which fields of an event are meant.
#[derive(Clone, Copy, PartialEq)]
enum FieldGroup {
    /// Those that OpenHarness has a name for.
    Own,
    /// The other canonical ones, which a host with the same names passes to its own hooks. Events that OpenHarness has no name for
    /// have them whatever the host.
    Foreign,
}

impl Envelope<'_> {
    fn payload<M: SerializeMap>(&self, map: &mut M, group: FieldGroup) -> Result<(), M::Error> {
        let meant = |own: bool| own == (group == FieldGroup::Own);
        let facts = &self.draft.event().attributes;
        for fact in FACT_FIELDS {
            if let Some(text) = (fact.get)(facts)
                && meant(OWN_FACTS.contains(&fact.name))
            {
                map.serialize_entry(fact.name, text)?;
            }
        }
        for target in Target::ALL {
            if let Some(value) = self.draft.target(target)
                && meant(OWN_TARGETS.contains(&target))
            {
                map.serialize_entry(target.as_str(), value)?;
            }
        }
        Ok(())
    }
}

/// An embedding host builds events by hand, so a field of the same name as a known one may be there.
fn extra<M: SerializeMap>(event: &Event, map: &mut M) -> Result<(), M::Error> {
    for (name, value) in event.extra.iter().filter(|(name, _)| !is_known(name)) {
        map.serialize_entry(&**name, value)?;
    }
    Ok(())
}

fn is_known(name: &str) -> bool {
    OTHER_FIELDS.contains(&name)
        || FACT_FIELDS.iter().any(|fact| fact.name == name)
        || Target::from_name(name).is_some()
}
