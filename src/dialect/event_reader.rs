//! Reads events, for all dialects: one strict check of the whole text, then the fields one by one.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;

use super::{
    event_table::{EventRow, FACT_FIELDS, KnownEvent, MatchSource},
    partial_event::string_fields,
    suggest::{did_you_mean, shorten},
};
use crate::model::{
    Delivery, DialectName, Event, EventError, EventId, EventKind, HostEvent, IdError, Json, JsonFields,
    RunId, RunLifetime, SessionId, Target, ToolCallId, WorkspaceId, check_json,
};

/// How much of an unknown event's name is repeated in the error, in characters.
const LONGEST_ECHO: usize = 64;

/// The longest name in an event, such as that of a tool, in bytes. Names are in every log line and table, and
/// matchers read all of them.
const LONGEST_NAME: usize = 1024;

/// The longest path in an event, in bytes: the system has none that are longer.
const LONGEST_PATH: usize = 4096;

/// The longest message or reason of an event, in bytes.
const LONGEST_MESSAGE: usize = 256 << 10;

/// The names of a dialect.
pub(super) struct EventVocabulary {
    /// The dialect of the events.
    pub(super) dialect: DialectName,
    /// The field with the directories of the workspace, if its hosts have one: where an event names no working directory,
    /// the first of them is it.
    pub(super) roots_field: Option<&'static str>,
    /// The session of events that name none, if there are such events.
    pub(super) default_session: Option<&'static str>,
    /// The fields that may name the event; errors name the first.
    pub(super) kind_fields: &'static [&'static str],
    /// The names of its events and fields.
    pub(super) names: NameTable,
}

/// The names of a dialect's events and fields.
pub(super) enum NameTable {
    /// The canonical names; the dialect has these kinds.
    Canonical(&'static [EventKind]),
    /// Names of its own.
    Native {
        /// Its events.
        rows: &'static [EventRow],
        /// Its fields that have a canonical name, each with that name.
        fields: &'static [(&'static str, &'static str)],
        /// Further fields of its hosts.
        also_read: &'static [(&'static str, &'static str)],
    },
}

impl NameTable {
    fn find(&self, name: &str) -> Option<KnownEvent> {
        match self {
            Self::Canonical(kinds) => {
                EventKind::from_name(name).filter(|kind| kinds.contains(kind)).map(KnownEvent::Kind)
            }
            Self::Native { rows, .. } => rows.iter().find(|row| row.name == name).map(KnownEvent::Row),
        }
    }

    fn all(&self) -> Vec<&'static str> {
        match self {
            Self::Canonical(kinds) => kinds.iter().map(|kind| kind.as_str()).collect(),
            Self::Native { rows, .. } => rows.iter().map(|row| row.name).collect(),
        }
    }

    /// The canonical name of a field, if it has one.
    fn canonical<'n>(&self, name: &'n str) -> Option<&'n str> {
        match self {
            Self::Canonical(_) => Some(name),
            Self::Native { fields, also_read, .. } => {
                let mut known = fields.iter().chain(*also_read);
                known.find(|(native, _)| *native == name).map(|(_, canonical)| *canonical)
            }
        }
    }

    /// The text of a field that only the dialect has.
    ///
    /// Returns an error if it is longer than a name may be.
    fn within(&self, name: &'static str, fields: &JsonFields<'_>) -> Result<Option<Arc<str>>, EventError> {
        let Some((outer, inner)) = self.native(name).split_once('.') else { return Ok(None) };
        let object =
            fields.get(outer).and_then(|value| serde_json::from_str::<JsonFields<'_>>(value.get()).ok());
        let text = object.as_ref().and_then(|object| object.get(inner)).and_then(unquoted);
        text.map(|text| within_bound(self.native(name), text, LONGEST_NAME).map(Into::into)).transpose()
    }

    /// The name by which an event has a canonical field, or would have it.
    fn sent(&self, name: &'static str, fields: &JsonFields<'_>) -> &'static str {
        let Self::Native { also_read, .. } = self else { return name };
        let is_sent =
            |(native, canonical): &&(&str, &str)| *canonical == name && fields.get(native).is_some();
        let others = || also_read.iter().find(is_sent).map(|(native, _)| *native);
        if fields.get(name).is_some() { name } else { others().unwrap_or(name) }
    }

    /// The dialect's name of a canonical field.
    fn native(&self, name: &'static str) -> &'static str {
        match self {
            Self::Canonical(_) => name,
            Self::Native { fields, .. } => {
                fields.iter().find(|(_, canonical)| *canonical == name).map_or(name, |(native, _)| *native)
            }
        }
    }
}

/// Reads an event that is an object with the canonical fields.
///
/// Returns an error that names the field if the bytes are no such event.
pub(super) fn read_event(bytes: &[u8], vocabulary: &EventVocabulary) -> Result<Event, EventError> {
    let text = std::str::from_utf8(bytes).map_err(|e| EventError::NotUtf8(e.valid_up_to()))?;
    check_json(text)?;
    let Ok(fields) = serde_json::from_str::<JsonFields<'_>>(text) else {
        return Err(EventError::NotAnObject(Json::parse(text)?.kind()));
    };
    let known = known_event(&fields, vocabulary)?;
    let default = vocabulary.default_session;
    let session_id =
        required_id(&fields, vocabulary.names.sent("session_id", &fields), default, SessionId::new)?;
    let (run_field, run_lifetime) = match vocabulary.names {
        NameTable::Canonical(_) => ("run_id", RunLifetime::Run),
        NameTable::Native { .. } => ("session_id", RunLifetime::Session),
    };
    let run_id = required_id(&fields, vocabulary.names.sent(run_field, &fields), default, RunId::new)?;
    let mut event = Event::new(known.kind(), session_id, run_id);
    event.run_lifetime = run_lifetime;
    event.dialect = vocabulary.dialect;
    event.host_event = host_event(known, &fields)?;
    for (name, value) in fields.iter().filter(|(name, _)| !vocabulary.kind_fields.contains(name)) {
        match vocabulary.names.canonical(name) {
            Some(canonical) => take(&mut event, name, canonical, value)?,
            None => event.extra.push((name.into(), Json::checked(value))),
        }
    }
    if let Some(roots) = vocabulary.roots_field {
        event.cwd = working_directory(&fields, roots)?;
    }
    if event.attributes.model_ref.is_none() {
        event.attributes.model_ref = vocabulary.names.within("model_ref", &fields)?;
    }
    require(&event, known, vocabulary)?;
    Ok(event)
}

/// Where an event belongs that may name no working directory: in the first directory of the workspace.
fn working_directory(fields: &JsonFields<'_>, roots: &str) -> Result<Option<Arc<str>>, EventError> {
    let cwd = match fields.get("cwd") {
        Some(value) => bounded_text("cwd", value, LONGEST_PATH)?.filter(|cwd| !cwd.is_empty()),
        None => None,
    };
    if let Some(cwd) = cwd {
        return Ok(Some(cwd.into()));
    }
    let Some(value) = fields.get(roots) else { return Ok(None) };
    let Ok(roots_given) = serde_json::from_str::<Vec<Box<RawValue>>>(value.get()) else {
        return Err(wrong_type(roots, "a list of directories", value));
    };
    match roots_given.first() {
        Some(root) => Ok(bounded_text(roots, root, LONGEST_PATH)?.map(Into::into)),
        None => Ok(None),
    }
}

/// The parts of an event without a kind of its own.
fn host_event(known: KnownEvent, fields: &JsonFields<'_>) -> Result<Option<HostEvent>, EventError> {
    let texts = |field: &str| fields.get(field).and_then(unquoted);
    Ok(match known {
        KnownEvent::Row(row) if row.kind == EventKind::HostEvent => Some(HostEvent {
            name: row.name.into(),
            match_text: match row.match_source {
                MatchSource::Unmatched | MatchSource::Fact => None,
                MatchSource::Field(field) => texts(field).map(Into::into),
                MatchSource::Prefixed(prefix, field) => {
                    texts(field).map(|text| format!("{prefix}{text}").into())
                }
                MatchSource::FileName(field) => {
                    texts(field).map(|path| path.rsplit('/').next().unwrap_or_default().into())
                }
            },
            strategy: row.host_event_strategy(),
        }),
        KnownEvent::Kind(EventKind::HostEvent) => match fields.get("host_event") {
            Some(value) => Some(HostEvent {
                name: within_bound("host_event", text("host_event", value)?, LONGEST_NAME)?.into(),
                match_text: None,
                strategy: EventKind::HostEvent.strategy(),
            }),
            None => None,
        },
        KnownEvent::Row(_) | KnownEvent::Kind(_) => None,
    })
}

/// The kind of an event whose other fields may be unreadable.
pub(super) fn kind_of_unread(bytes: &[u8], vocabulary: &EventVocabulary) -> Option<EventKind> {
    known_event_of_unread(bytes, vocabulary).map(KnownEvent::kind)
}

/// The event without a kind of its own whose other fields may be unreadable.
pub(super) fn host_event_of_unread(bytes: &[u8], vocabulary: &EventVocabulary) -> Option<HostEvent> {
    match known_event_of_unread(bytes, vocabulary)? {
        KnownEvent::Row(row) if row.kind == EventKind::HostEvent => {
            Some(HostEvent { name: row.name.into(), match_text: None, strategy: row.host_event_strategy() })
        }
        KnownEvent::Row(_) | KnownEvent::Kind(_) => None,
    }
}

/// The event that all fields name that may name it.
fn known_event_of_unread(bytes: &[u8], vocabulary: &EventVocabulary) -> Option<KnownEvent> {
    let fields = string_fields(bytes, |name| vocabulary.kind_fields.contains(&name));
    let mut known = fields.iter().map(|(_, name)| vocabulary.names.find(name.as_deref()?));
    let first = known.next()??;
    known.all(|other| other.is_some_and(|other| other.name() == first.name())).then_some(first)
}

/// The working directory of an event whose other fields may be unreadable.
pub(super) fn cwd_of_unread(bytes: &[u8], vocabulary: &EventVocabulary) -> Option<Arc<str>> {
    if let Some(roots) = vocabulary.roots_field {
        let fields: JsonFields<'_> = serde_json::from_slice(bytes).ok()?;
        return working_directory(&fields, roots).ok()?;
    }
    let cwd = vocabulary.names.native("cwd");
    let (_, value) = string_fields(bytes, |name| name == cwd).pop()?;
    value.map(Into::into)
}

fn known_event(fields: &JsonFields<'_>, vocabulary: &EventVocabulary) -> Result<KnownEvent, EventError> {
    let first = vocabulary.kind_fields[0];
    let mut found: Option<KnownEvent> = None;
    for &field in vocabulary.kind_fields {
        let Some(value) = fields.get(field) else { continue };
        let name = text(field, value)?;
        let known = vocabulary.names.find(&name).ok_or_else(|| unknown_event(field, &name, vocabulary))?;
        if found.is_some_and(|other| other.name() != known.name()) {
            let hint = format!("; field `{first}` names another event");
            return Err(EventError::UnknownEvent { field, name: name.into_owned(), hint });
        }
        found = Some(known);
    }
    found.ok_or_else(|| EventError::Missing { field: first, hint: "; it names the kind of event".to_owned() })
}

fn unknown_event(field: &'static str, name: &str, vocabulary: &EventVocabulary) -> EventError {
    let hint = format!("; {}", did_you_mean(name, &vocabulary.names.all()));
    EventError::UnknownEvent { field, name: shorten(name, LONGEST_ECHO), hint }
}

/// Stores one field of the event; a field without a canonical name is kept unchanged.
fn take(event: &mut Event, name: &str, canonical: &str, value: &RawValue) -> Result<(), EventError> {
    match canonical {
        "session_id" | "run_id" => {}
        "host_event" if event.host_event.is_some() => {}
        "event_id" => event.id = optional_id("event_id", value, EventId::new)?,
        "workspace_id" => event.workspace_id = optional_id("workspace_id", value, WorkspaceId::new)?,
        "tool_call_id" => {
            let id = optional_text(name, value)?.map(ToolCallId::new).transpose();
            event.tool_call_id = id.map_err(|source| EventError::Id { field: "tool_call_id", source })?;
        }
        "cwd" => event.cwd = bounded_text(name, value, LONGEST_PATH)?.map(Into::into),
        "wait" => event.delivery = delivery(event.kind, value)?,
        _ => return take_payload(event, name, canonical, value),
    }
    Ok(())
}

fn take_payload(event: &mut Event, name: &str, canonical: &str, value: &RawValue) -> Result<(), EventError> {
    let unusual = event.host_event.is_some() && !matches!(value.get().as_bytes(), [b'"', ..] | b"null");
    if let Some(target) = Target::from_name(canonical) {
        event.targets.set(target, Json::checked(value));
    } else if let Some(fact) = FACT_FIELDS.iter().find(|fact| fact.name == canonical && !unusual) {
        let most = if matches!(fact.name, "message" | "reason") { LONGEST_MESSAGE } else { LONGEST_NAME };
        if let Some(text) = bounded_text(name, value, most)? {
            (fact.set)(&mut event.attributes, text.into());
        }
    } else {
        event.extra.push((name.into(), Json::checked(value)));
    }
    Ok(())
}

/// An interceptor's host needs the outcome, so only lifecycle events can be left behind.
fn delivery(kind: EventKind, value: &RawValue) -> Result<Delivery, EventError> {
    match value.get() {
        "false" if !kind.is_interceptor() => Ok(Delivery::Detached),
        "true" | "false" => Ok(Delivery::Awaited),
        _ => Err(wrong_type("wait", "a boolean", value)),
    }
}

/// Checks that the fields that the kind requires are present.
fn require(event: &Event, known: KnownEvent, vocabulary: &EventVocabulary) -> Result<(), EventError> {
    use EventKind as K;
    let (fact, target) = match event.kind {
        K::BeforeToolDispatch | K::PermissionRequested => (Some("tool_name"), Some(Target::ToolInput)),
        K::AfterToolDispatch | K::ToolFailed => (Some("tool_name"), None),
        K::BeforeModelCall | K::AfterModelCall if matches!(vocabulary.names, NameTable::Canonical(_)) => {
            (Some("model_ref"), None)
        }
        K::PromptSubmitted => (None, Some(Target::Prompt)),
        _ => (None, None),
    };
    let missing = |field| {
        let hint = format!("; `{}` needs it", known.name());
        Err(EventError::Missing { field: vocabulary.names.native(field), hint })
    };
    if let Some(fact) = FACT_FIELDS.iter().find(|known| fact == Some(known.name))
        && (fact.get)(&event.attributes).is_none()
    {
        return missing(fact.name);
    }
    match target {
        Some(target) if event.targets.get(target).is_none() => missing(target.as_str()),
        _ => Ok(()),
    }
}

fn required_id<'a, T>(
    fields: &JsonFields<'a>,
    field: &'static str,
    default: Option<&'static str>,
    new: impl FnOnce(Cow<'a, str>) -> Result<T, IdError>,
) -> Result<T, EventError> {
    let id = match (fields.get(field), default) {
        (Some(value), None) => text(field, value)?,
        (Some(value), Some(default)) => {
            optional_text(field, value)?.filter(|id| !id.is_empty()).unwrap_or(default.into())
        }
        (None, Some(default)) => default.into(),
        (None, None) => return Err(EventError::Missing { field, hint: String::new() }),
    };
    new(id).map_err(|source| EventError::Id { field, source })
}

fn optional_id<'a, T>(
    field: &'static str,
    value: &'a RawValue,
    new: impl FnOnce(Cow<'a, str>) -> Result<T, IdError>,
) -> Result<Option<T>, EventError> {
    let Some(text) = optional_text(field, value)? else { return Ok(None) };
    new(text).map(Some).map_err(|source| EventError::Id { field, source })
}

/// Many hosts write `null` for what they do not have.
fn optional_text<'a>(field: &str, value: &'a RawValue) -> Result<Option<Cow<'a, str>>, EventError> {
    if value.get() == "null" { Ok(None) } else { text(field, value).map(Some) }
}

/// The same, and an error if it is longer than `most` bytes: cutting it could change which hooks match.
fn bounded_text<'a>(
    field: &str,
    value: &'a RawValue,
    most: usize,
) -> Result<Option<Cow<'a, str>>, EventError> {
    match optional_text(field, value)? {
        Some(text) => within_bound(field, text, most).map(Some),
        None => Ok(None),
    }
}

fn within_bound<'a>(field: &str, text: Cow<'a, str>, most: usize) -> Result<Cow<'a, str>, EventError> {
    if text.len() > most {
        return Err(EventError::TooLong { field: field.to_owned(), length: text.len(), most });
    }
    Ok(text)
}

fn text<'a>(field: &str, value: &'a RawValue) -> Result<Cow<'a, str>, EventError> {
    unquoted(value).ok_or_else(|| wrong_type(field, "a string", value))
}

/// The text of a checked JSON string, or `None` for any other value.
pub(super) fn unquoted(value: &RawValue) -> Option<Cow<'_, str>> {
    let inner = value.get().strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains('\\') {
        serde_json::from_str(value.get()).ok().map(Cow::Owned)
    } else {
        Some(Cow::Borrowed(inner))
    }
}

fn wrong_type(field: &str, expected: &'static str, value: &RawValue) -> EventError {
    EventError::WrongType { field: field.to_owned(), expected, found: Json::checked(value).kind() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{dialect::named, model::DialectName};

    fn read(text: &str) -> Result<Event, EventError> {
        named(DialectName::Canonical).read_event(text.as_bytes())
    }

    #[test]
    fn every_part_of_an_event_finds_its_place() {
        let event = read(
            r#"{"event":"before_tool_dispatch","event_id":"e1","workspace_id":"w","session_id":"s","run_id":"r",
                "tool_call_id":"c","cwd":"/x","wait":false,"agent_name":"a","effective_agent_name":null,
                "tool_name":"B\u0061sh","tool_input":{"n":1.0},"later":[1, 2],"message":"m"}"#,
        )
        .unwrap();
        assert_eq!(event.kind, EventKind::BeforeToolDispatch);
        assert_eq!(event.id.unwrap().as_str(), "e1");
        assert_eq!(event.workspace_id.unwrap().as_str(), "w");
        assert_eq!(event.tool_call_id.unwrap().as_str(), "c");
        assert_eq!(event.cwd.as_deref(), Some("/x"));
        assert_eq!(event.delivery, Delivery::Awaited);
        assert_eq!(event.attributes.tool_name.as_deref(), Some("Bash"));
        assert_eq!(event.attributes.effective_agent_name, None);
        assert_eq!(event.targets.get(Target::ToolInput).unwrap().as_str(), r#"{"n":1.0}"#);
        assert_eq!(event.extra.len(), 1);
        assert_eq!(event.extra[0].1.as_str(), "[1, 2]");
    }

    #[test]
    fn names_are_bounded() {
        let event = |field: &str, length: usize| {
            let text = "x".repeat(length);
            let name = if field == "tool_name" { String::new() } else { r#""tool_name":"Bash","#.to_owned() };
            let head = r#"{"event":"before_tool_dispatch","session_id":"s","run_id":"r","tool_input":{},"#;
            read(&format!(r#"{head}{name}"{field}":"{text}"}}"#))
        };
        for (field, most) in [
            ("tool_name", LONGEST_NAME),
            ("agent_type", LONGEST_NAME),
            ("notification_type", LONGEST_NAME),
            ("model_ref", LONGEST_NAME),
            ("cwd", LONGEST_PATH),
            ("message", LONGEST_MESSAGE),
        ] {
            assert!(event(field, most).is_ok(), "{field}");
            let error = event(field, most + 1).unwrap_err();
            assert_eq!(error, EventError::TooLong { field: field.to_owned(), length: most + 1, most });
        }
    }

    #[test]
    fn only_lifecycle_events_can_be_left_behind() {
        let event = read(r#"{"event":"run_completed","session_id":"s","run_id":"r","wait":false}"#).unwrap();
        assert_eq!(event.delivery, Delivery::Detached);
    }

    #[test]
    fn every_mistake_names_its_field() {
        let tool = r#""event":"before_tool_dispatch","session_id":"s","run_id":"r""#;
        let cases: &[(String, &str)] = &[
            ("{".into(), "not valid JSON: EOF"),
            (format!("{{{tool}}} x"), "trailing characters"),
            (r#"{"a":1,"a":2}"#.into(), "duplicate key"),
            (r#"{"a":"\ud800"}"#.into(), "not valid JSON"),
            (r#"{"a":1e400}"#.into(), "out of range"),
            ("[1]".into(), "must be a JSON object, not an array"),
            ("{}".into(), "field `event` is missing"),
            (r#"{"event":7}"#.into(), "field `event` must be a string, not a number"),
            (r#"{"event":"before_tool_dispach"}"#.into(), "did you mean `before_tool_dispatch`?"),
            (r#"{"event":"zzz"}"#.into(), "known are `session_started`"),
            (r#"{"event":"run_failed","hook_event_name":"run_completed"}"#.into(), "names another event"),
            (r#"{"event":"run_failed","run_id":"r"}"#.into(), "field `session_id` is missing"),
            (r#"{"event":"run_failed","session_id":"s"}"#.into(), "field `run_id` is missing"),
            (r#"{"event":"run_failed","session_id":"s","run_id":""}"#.into(), "field `run_id` is empty"),
            (r#"{"event":"run_failed","session_id":"s","run_id":null}"#.into(), "not null"),
            (r#"{"event":"run_failed","session_id":"s\n","run_id":"r"}"#.into(), "control character"),
            (format!("{{{tool}}}"), "field `tool_name` is missing; `before_tool_dispatch` needs it"),
            (format!(r#"{{{tool},"tool_name":"B"}}"#), "field `tool_input` is missing"),
            (format!(r#"{{{tool},"tool_name":["B"]}}"#), "field `tool_name` must be a string, not an array"),
            (format!(r#"{{{tool},"wait":"no"}}"#), "field `wait` must be a boolean, not a string"),
            (format!(r#"{{{tool},"cwd":{{}}}}"#), "field `cwd` must be a string, not an object"),
            (
                r#"{"event":"before_model_call","session_id":"s","run_id":"r"}"#.into(),
                "field `model_ref` is missing",
            ),
            (
                r#"{"event":"prompt_submitted","session_id":"s","run_id":"r"}"#.into(),
                "field `prompt` is missing",
            ),
        ];
        for (text, expected) in cases {
            let error = read(text).expect_err(text).to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
        let error = named(DialectName::Canonical).read_event(b"{\"a\":\"\xff\"}").unwrap_err();
        assert_eq!(error, EventError::NotUtf8(6));
    }

    #[test]
    fn an_unknown_event_is_echoed_shortly() {
        let error = read(&format!(r#"{{"event":"{}"}}"#, "\\u001b".repeat(200))).unwrap_err().to_string();
        assert!(error.len() < 1500 && !error.contains('\u{1b}'), "{error}");
    }
}
