//! Reading events, shared by the dialects: one strict check over the whole text, then the fields one by one.
//! Refuses what hooks and hosts could read differently, and names the field in every error.

use std::{borrow::Cow, sync::Arc};

use serde_json::value::RawValue;

use super::near::{did_you_mean, shorten};
use crate::model::{
    Delivery, DialectName, Event, EventError, EventId, EventKind, Facts, Fields, IdError, Json, RunId,
    SessionId, Target, ToolCallId, WorkspaceId, check_json,
};

/// How much of an unknown event's name is repeated in the error, in characters.
const LONGEST_ECHO: usize = 64;

/// The words of a dialect whose events are objects with the canonical fields.
pub(super) struct Vocabulary {
    /// The dialect of the events.
    pub(super) dialect: DialectName,
    /// The fields that may name the kind; errors name the first.
    pub(super) kind_fields: &'static [&'static str],
    /// The kinds the dialect has.
    pub(super) kinds: &'static [EventKind],
}

/// One of the short texts of an event, by its canonical name.
pub(super) struct Fact {
    pub(super) name: &'static str,
    pub(super) get: fn(&Facts) -> Option<&str>,
    set: fn(&mut Facts, Arc<str>),
}

macro_rules! facts {
    ($($name:ident)*) => {
        /// Every fact an event may have.
        pub(super) static FACTS: &[Fact] = &[$(Fact {
            name: stringify!($name),
            get: |facts| facts.$name.as_deref(),
            set: |facts, text| facts.$name = Some(text),
        },)*];
    };
}

facts! {
    agent_name effective_agent_name model_ref tool_name trigger_type run_status source reason trigger
    notification_type message agent_type
}

/// Reads an event that is an object with the canonical fields.
///
/// Returns an error that names the field if the bytes are no such event.
pub(super) fn read_event(bytes: &[u8], vocabulary: &Vocabulary) -> Result<Event, EventError> {
    let text = std::str::from_utf8(bytes).map_err(|e| EventError::NotUtf8(e.valid_up_to()))?;
    check_json(text)?;
    let Ok(fields) = serde_json::from_str::<Fields<'_>>(text) else {
        return Err(EventError::NotAnObject(Json::parse(text)?.kind()));
    };
    let kind = kind_of(&fields, vocabulary)?;
    let session_id = required_id(&fields, "session_id", SessionId::new)?;
    let run_id = required_id(&fields, "run_id", RunId::new)?;
    let mut event = Event::new(kind, session_id, run_id);
    event.dialect = vocabulary.dialect;
    for (name, value) in fields.iter() {
        if !vocabulary.kind_fields.contains(&name) {
            take(&mut event, name, value)?;
        }
    }
    require(&event)?;
    Ok(event)
}

/// The kind of an event whose other fields may be unreadable.
pub(super) fn kind_of_unread(bytes: &[u8], vocabulary: &Vocabulary) -> Option<EventKind> {
    let text = String::from_utf8_lossy(bytes);
    kind_of(&serde_json::from_str(&text).ok()?, vocabulary).ok()
}

fn kind_of(fields: &Fields<'_>, vocabulary: &Vocabulary) -> Result<EventKind, EventError> {
    let first = vocabulary.kind_fields[0];
    let mut found = None;
    for &field in vocabulary.kind_fields {
        let Some(value) = fields.get(field) else { continue };
        let name = text(field, value)?;
        let known = EventKind::from_name(&name).filter(|kind| vocabulary.kinds.contains(kind));
        let kind = known.ok_or_else(|| unknown_event(field, &name, vocabulary))?;
        if found.is_some_and(|other| other != kind) {
            let hint = format!("; field `{first}` names another event");
            return Err(EventError::UnknownEvent { field, name: name.into_owned(), hint });
        }
        found = Some(kind);
    }
    found.ok_or_else(|| EventError::Missing { field: first, hint: "; it names the kind of event".to_owned() })
}

fn unknown_event(field: &'static str, name: &str, vocabulary: &Vocabulary) -> EventError {
    let names: Vec<&str> = vocabulary.kinds.iter().map(|kind| kind.as_str()).collect();
    let hint = format!("; {}", did_you_mean(name, &names));
    EventError::UnknownEvent { field, name: shorten(name, LONGEST_ECHO), hint }
}

/// Puts one field where it belongs; a field without a canonical name is kept as it is.
fn take(event: &mut Event, name: &str, value: &RawValue) -> Result<(), EventError> {
    match name {
        "session_id" | "run_id" => {}
        "event_id" => event.id = optional_id("event_id", value, EventId::new)?,
        "workspace_id" => event.workspace_id = optional_id("workspace_id", value, WorkspaceId::new)?,
        "tool_call_id" => event.tool_call_id = optional_id("tool_call_id", value, ToolCallId::new)?,
        "cwd" => event.cwd = optional_text(name, value)?.map(Into::into),
        "wait" => event.delivery = delivery(event.kind, value)?,
        _ => return take_payload(event, name, value),
    }
    Ok(())
}

fn take_payload(event: &mut Event, name: &str, value: &RawValue) -> Result<(), EventError> {
    if let Some(target) = Target::from_name(name) {
        event.targets.set(target, Json::checked(value));
    } else if let Some(fact) = FACTS.iter().find(|fact| fact.name == name) {
        if let Some(text) = optional_text(name, value)? {
            (fact.set)(&mut event.facts, text.into());
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

/// Checks for what the kind makes no sense without.
fn require(event: &Event) -> Result<(), EventError> {
    use EventKind as K;
    let (fact, target) = match event.kind {
        K::BeforeToolDispatch | K::PermissionRequested => (Some("tool_name"), Some(Target::ToolInput)),
        K::AfterToolDispatch | K::ToolFailed => (Some("tool_name"), None),
        K::BeforeModelCall | K::AfterModelCall => (Some("model_ref"), None),
        K::PromptSubmitted => (None, Some(Target::Prompt)),
        _ => (None, None),
    };
    let missing = |field| Err(EventError::Missing { field, hint: format!("; `{}` needs it", event.kind) });
    if let Some(fact) = FACTS.iter().find(|known| fact == Some(known.name))
        && (fact.get)(&event.facts).is_none()
    {
        return missing(fact.name);
    }
    match target {
        Some(target) if event.targets.get(target).is_none() => missing(target.as_str()),
        _ => Ok(()),
    }
}

fn required_id<'a, T>(
    fields: &Fields<'a>,
    field: &'static str,
    new: impl FnOnce(Cow<'a, str>) -> Result<T, IdError>,
) -> Result<T, EventError> {
    let value = fields.get(field).ok_or_else(|| EventError::Missing { field, hint: String::new() })?;
    new(text(field, value)?).map_err(|source| EventError::Id { field, source })
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
        assert_eq!(event.facts.tool_name.as_deref(), Some("Bash"));
        assert_eq!(event.facts.effective_agent_name, None);
        assert_eq!(event.targets.get(Target::ToolInput).unwrap().as_str(), r#"{"n":1.0}"#);
        assert_eq!(event.extra.len(), 1);
        assert_eq!(event.extra[0].1.as_str(), "[1, 2]");
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
