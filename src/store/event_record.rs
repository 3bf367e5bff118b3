//! A lifecycle event as the outbox keeps it: all that its hooks receive, and the ids of its first delivery.

use std::{
    collections::BTreeSet,
    net::IpAddr,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::record::{RecordError, check_version};
use crate::model::{
    Arrival, DecisionId, Delivery, DialectName, Event, EventAttributes, EventId, EventKind, EventOrigin,
    EventPeer, HostEvent, Json, RunId, RunLifetime, SessionId, Target, ToolCallId, WorkspaceId,
};

/// The version of the format.
const VERSION: u32 = 1;

/// The maximum number of names of daemons that are kept.
const MOST_NODES: usize = 64;

/// The listeners that an event may have come through.
const LISTENERS: [&str; 4] = ["event_socket", "control_socket", "lines_socket", "tcp"];

/// An event as it is written. Keys are left out where they say nothing.
#[derive(Debug, Serialize)]
struct WrittenEvent<'a> {
    v: u32,
    kind: EventKind,
    dialect: &'static str,
    session: &'a str,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    host: Option<WrittenHost<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workspace: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
    /// Whether its run lasts as long as its session.
    session_run: bool,
    /// Whether the host waits for the outcome.
    wait: bool,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    texts: Vec<(&'static str, &'a str)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    targets: Vec<(&'static str, &'a Json)>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    extra: Vec<(&'a str, &'a Json)>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival: Option<WrittenArrival<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    origin: Option<WrittenOrigin<'a>>,
}

/// An event as it is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadEvent<'a> {
    #[serde(rename = "v")]
    _version: u32,
    kind: String,
    dialect: String,
    session: String,
    run: String,
    host: Option<ReadHost>,
    id: Option<String>,
    workspace: Option<String>,
    call: Option<String>,
    cwd: Option<Arc<str>>,
    session_run: bool,
    wait: bool,
    #[serde(default)]
    texts: Vec<(String, Arc<str>)>,
    #[serde(default, borrow)]
    targets: Vec<(String, &'a RawValue)>,
    #[serde(default, borrow)]
    extra: Vec<(String, &'a RawValue)>,
    arrival: Option<ReadArrival>,
    trace: Option<String>,
    origin: Option<ReadOrigin>,
}

#[derive(Debug, Serialize)]
struct WrittenHost<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadHost {
    name: Arc<str>,
    text: Option<Arc<str>>,
}

#[derive(Debug, Serialize)]
struct WrittenArrival<'a> {
    micros: u64,
    node: &'a str,
    process: u64,
    number: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadArrival {
    micros: u64,
    node: String,
    process: u64,
    number: u64,
}

#[derive(Debug, Serialize)]
struct WrittenOrigin<'a> {
    listener: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<IpAddr>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ReadOrigin {
    listener: String,
    user: Option<u32>,
    address: Option<IpAddr>,
}

/// The record of an event.
pub(crate) fn encode(event: &Event) -> String {
    let texts = attributes(&event.attributes).into_iter();
    let written = WrittenEvent {
        v: VERSION,
        kind: event.kind,
        dialect: event.dialect.as_str(),
        session: event.session_id.as_str(),
        run: event.run_id.as_str(),
        host: event
            .host_event
            .as_ref()
            .map(|host| WrittenHost { name: &host.name, text: host.match_text.as_deref() }),
        id: event.id.as_ref().map(EventId::as_str),
        workspace: event.workspace_id.as_ref().map(WorkspaceId::as_str),
        call: event.tool_call_id.as_ref().map(ToolCallId::as_str),
        cwd: event.cwd.as_deref(),
        session_run: event.run_lifetime == RunLifetime::Session,
        wait: event.delivery == Delivery::Awaited,
        texts: texts.filter_map(|(name, text)| Some((name, text.as_deref()?))).collect(),
        targets: event.targets.iter().map(|(target, value)| (target.as_str(), value)).collect(),
        extra: event.extra.iter().map(|(name, value)| (&**name, value)).collect(),
        arrival: event.arrival.map(|arrival| {
            let (node, process, number) = arrival.decision_id().parts();
            let since_epoch = arrival.time().duration_since(UNIX_EPOCH).unwrap_or_default();
            let micros = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
            WrittenArrival { micros, node, process, number }
        }),
        trace: event.trace.map(|trace| trace.to_string()),
        origin: event.origin.as_ref().map(|EventOrigin { listener, peer, .. }| match *peer {
            EventPeer::User(user) => WrittenOrigin { listener, user: Some(user), address: None },
            EventPeer::Address(address) => WrittenOrigin { listener, user: None, address: Some(address) },
        }),
    };
    serde_json::to_string(&written).expect("texts, numbers and JSON")
}

/// Reads the record of an event.
pub(crate) fn decode(text: &str) -> Result<Event, RecordError> {
    check_version(text, VERSION)?;
    let read: ReadEvent<'_> = serde_json::from_str(text).map_err(|_| RecordError::Damaged)?;
    event(read).ok_or(RecordError::Damaged)
}

fn event(read: ReadEvent<'_>) -> Option<Event> {
    let kind = EventKind::from_name(&read.kind)?;
    let mut event = Event::new(kind, SessionId::new(read.session).ok()?, RunId::new(read.run).ok()?);
    event.dialect = DialectName::ALL.iter().copied().find(|name| name.as_str() == read.dialect)?;
    let lifecycle = |ReadHost { name, text }| HostEvent { match_text: text, ..HostEvent::lifecycle(name) };
    event.host_event = read.host.map(lifecycle);
    if event.is_interceptor() {
        return None;
    }
    event.id = read.id.map(EventId::new).transpose().ok()?;
    event.workspace_id = read.workspace.map(WorkspaceId::new).transpose().ok()?;
    event.tool_call_id = read.call.map(ToolCallId::new).transpose().ok()?;
    event.cwd = read.cwd;
    event.run_lifetime = if read.session_run { RunLifetime::Session } else { RunLifetime::Run };
    event.delivery = if read.wait { Delivery::Awaited } else { Delivery::Detached };
    for (name, text) in read.texts {
        *attribute(&mut event.attributes, &name)? = Some(text);
    }
    for (name, value) in read.targets {
        let target = Target::ALL.into_iter().find(|target| target.as_str() == name)?;
        event.targets.set(target, Json::parse(value.get()).ok()?);
    }
    for (name, value) in read.extra {
        event.extra.push((name.into(), Json::parse(value.get()).ok()?));
    }
    event.arrival = match read.arrival {
        Some(ReadArrival { micros, node, process, number }) => {
            let id = DecisionId::new(process, number).of_node(kept_name(&node));
            Some(Arrival::new(UNIX_EPOCH.checked_add(Duration::from_micros(micros))?, id))
        }
        None => None,
    };
    event.trace = read.trace.map(|text| text.parse()).transpose().ok()?;
    event.origin = match read.origin {
        Some(origin) => Some(read_origin(&origin)?),
        None => None,
    };
    Some(event)
}

fn read_origin(read: &ReadOrigin) -> Option<EventOrigin> {
    let listener = LISTENERS.into_iter().find(|known| *known == read.listener)?;
    let peer = match (read.user, read.address) {
        (Some(user), None) => EventPeer::User(user),
        (None, Some(address)) => EventPeer::Address(address),
        _ => return None,
    };
    Some(EventOrigin::new(listener, peer))
}

/// The name of a daemon, kept for as long as the program runs. There are hardly ever two in one store; of more than
/// [`MOST_NODES`] the others have none.
pub(crate) fn kept_name(name: &str) -> &'static str {
    static KEPT: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut kept = KEPT.lock();
    if let Some(known) = kept.get(name) {
        return known;
    }
    if kept.len() >= MOST_NODES {
        return "";
    }
    let name: &'static str = Box::leak(name.into());
    kept.insert(name);
    name
}

/// The short texts of an event, with their names.
fn attributes(attributes: &EventAttributes) -> [(&'static str, &Option<Arc<str>>); 12] {
    let EventAttributes {
        agent_name,
        effective_agent_name,
        model_ref,
        tool_name,
        trigger_type,
        run_status,
        source,
        reason,
        trigger,
        notification_type,
        message,
        agent_type,
    } = attributes;
    [
        ("agent_name", agent_name),
        ("effective_agent_name", effective_agent_name),
        ("model_ref", model_ref),
        ("tool_name", tool_name),
        ("trigger_type", trigger_type),
        ("run_status", run_status),
        ("source", source),
        ("reason", reason),
        ("trigger", trigger),
        ("notification_type", notification_type),
        ("message", message),
        ("agent_type", agent_type),
    ]
}

/// The short text of a name.
fn attribute<'a>(attributes: &'a mut EventAttributes, name: &str) -> Option<&'a mut Option<Arc<str>>> {
    Some(match name {
        "agent_name" => &mut attributes.agent_name,
        "effective_agent_name" => &mut attributes.effective_agent_name,
        "model_ref" => &mut attributes.model_ref,
        "tool_name" => &mut attributes.tool_name,
        "trigger_type" => &mut attributes.trigger_type,
        "run_status" => &mut attributes.run_status,
        "source" => &mut attributes.source,
        "reason" => &mut attributes.reason,
        "trigger" => &mut attributes.trigger,
        "notification_type" => &mut attributes.notification_type,
        "message" => &mut attributes.message,
        "agent_type" => &mut attributes.agent_type,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::run::next_decision_id;

    fn full_event() -> Event {
        let text = r#"{"event":"notification","session_id":"s","run_id":"r","workspace_id":"shop","event_id":"e","cwd":"/x",
            "wait":false,"agent_name":"a","notification_type":"idle","message":"it \"waits\"","more":{"a":[1.50,"\u00e9"]}}"#;
        let mut event = crate::dialect::named(DialectName::Canonical).read_event(text.as_bytes()).unwrap();
        event.arrival = Some(Arrival::new(UNIX_EPOCH + Duration::from_micros(1_234_567), next_decision_id()));
        event.origin = Some(EventOrigin::new("tcp", EventPeer::Address([127, 0, 0, 1].into())));
        event.trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01".parse().ok();
        event
    }

    #[test]
    fn what_is_written_is_read() {
        let plain = Event::new(EventKind::RunFailed, SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        let mut host = full_event();
        host.kind = EventKind::HostEvent;
        host.host_event = Some(HostEvent::lifecycle("TaskCreated").match_text("deploy"));
        for event in [plain, full_event(), host] {
            let read = decode(&encode(&event)).unwrap();
            // A span ends with its process.
            assert_eq!(format!("{read:?}"), format!("{:?}", Event { span: None, ..event }));
        }
    }

    #[test]
    fn no_part_of_a_record_is_a_record() {
        let whole = encode(&full_event());
        for (cut, _) in whole.char_indices() {
            assert_eq!(decode(&whole[..cut]).unwrap_err(), RecordError::Damaged, "{cut}");
        }
        assert_eq!(decode(r#"{"v":2}"#).unwrap_err(), RecordError::Version(2));
        let tool = whole.replace("\"notification\"", "\"before_tool_dispatch\"");
        assert_eq!(decode(&tool).unwrap_err(), RecordError::Damaged, "interceptors are never kept");
    }

    proptest! {
        #[test]
        fn no_change_of_a_record_breaks_the_reader(place in 0_usize..400, text in ".{0,3}") {
            let whole = encode(&full_event());
            let place = whole.floor_char_boundary(place.min(whole.len()));
            let changed = format!("{}{text}{}", &whole[..place], &whole[whole.ceil_char_boundary(place + 1)..]);
            if let Ok(event) = decode(&changed) {
                prop_assert!(!event.is_interceptor());
                prop_assert_eq!(encode(&decode(&encode(&event)).unwrap()), encode(&event));
            }
        }
    }
}
