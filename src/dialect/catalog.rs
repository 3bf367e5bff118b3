//! The dialects by name.

#[cfg(any(feature = "cli", feature = "daemon"))]
use super::response;
use super::{
    Canonical, NativeDialect, OpenHarness, claude::CLAUDE, clawd::CLAWD, codebuddy::CODEBUDDY, codex::CODEX,
    copilot::COPILOT, cursor::CURSOR, droid::DROID, event_table::extra_field, gemini::GEMINI, qwen::QWEN,
};
use crate::model::{
    Dialect, DialectName, Event, EventKind, HostResponse, Json, Outcome, PartialEvent, RunId, SessionId,
};

/// A dialect, by how it is implemented.
pub(super) enum DialectImpl {
    Plain(&'static dyn Dialect),
    Native(&'static NativeDialect),
}

pub(super) fn implementation(name: DialectName) -> DialectImpl {
    match name {
        DialectName::Canonical => DialectImpl::Plain(&Canonical),
        DialectName::OpenHarness => DialectImpl::Plain(&OpenHarness),
        DialectName::Claude => DialectImpl::Native(&CLAUDE),
        DialectName::Clawd => DialectImpl::Native(&CLAWD),
        DialectName::CodeBuddy => DialectImpl::Native(&CODEBUDDY),
        DialectName::Gemini => DialectImpl::Native(&GEMINI),
        DialectName::Codex => DialectImpl::Native(&CODEX),
        DialectName::Qwen => DialectImpl::Native(&QWEN),
        DialectName::Copilot => DialectImpl::Native(&COPILOT),
        DialectName::Cursor => DialectImpl::Native(&CURSOR),
        DialectName::Droid => DialectImpl::Native(&DROID),
    }
}

/// The dialect of a name.
pub fn named(name: DialectName) -> &'static dyn Dialect {
    match implementation(name) {
        DialectImpl::Plain(dialect) => dialect,
        DialectImpl::Native(native) => native,
    }
}

/// The answer to an event that could not be read, for the kind that the outcome names; `None` if it names none that a
/// host sends.
pub fn unreadable_event_response(name: DialectName, outcome: &Outcome) -> Option<HostResponse> {
    Some(named(name).write_response(&unknown_event(outcome.event)?, outcome))
}

/// The host's id of the prompt that an event belongs to, in its JSON.
pub(crate) fn prompt_of(event: &Event) -> Option<&str> {
    let DialectImpl::Native(native) = implementation(event.dialect) else { return None };
    let field = native.prompt_field?;
    extra_field(event, field).map(Json::as_str)
}

/// What can be read of an event that cannot be read as a whole.
pub(crate) fn read_partial(name: DialectName, bytes: &[u8]) -> PartialEvent {
    let dialect = named(name);
    PartialEvent {
        kind: dialect.kind_of(bytes),
        host_event: dialect.host_event_of(bytes),
        cwd: dialect.cwd_of(bytes),
        workspace_id: None,
    }
}

/// The answer to an event whose hooks did not run: in the format of its kind, or in one that every kind accepts if the
/// kind is unknown.
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) fn unasked_response(name: DialectName, event: &PartialEvent, outcome: &Outcome) -> HostResponse {
    let kind = event.kind.unwrap_or(EventKind::HostEvent);
    let by_exit_code = || response::unreadable_event(outcome);
    unknown_event(kind).map_or_else(by_exit_code, |mut known| {
        known.host_event.clone_from(&event.host_event);
        named(name).write_response(&known, outcome)
    })
}

/// An event of which nothing but the kind is known.
fn unknown_event(kind: EventKind) -> Option<Event> {
    const UNKNOWN: &str = "unknown";
    Some(Event::new(kind, SessionId::new(UNKNOWN).ok()?, RunId::new(UNKNOWN).ok()?))
}

/// The dialects whose hooks are in settings files, in order.
pub fn natives() -> impl Iterator<Item = &'static NativeDialect> {
    DialectName::ALL.iter().filter_map(|name| match implementation(*name) {
        DialectImpl::Plain(_) => None,
        DialectImpl::Native(native) => Some(native),
    })
}
