//! The dialects by name.

use super::{
    Canonical, NativeDialect, OpenHarness, claude::CLAUDE, clawd::CLAWD, codebuddy::CODEBUDDY, gemini::GEMINI,
};
use crate::model::{Dialect, DialectName, Event, HostResponse, Outcome, RunId, SessionId};

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
    }
}

/// The dialect of a name.
pub fn named(name: DialectName) -> &'static dyn Dialect {
    match implementation(name) {
        DialectImpl::Plain(dialect) => dialect,
        DialectImpl::Native(native) => native,
    }
}

/// The answer to an event that could not be read, of which the outcome tells the kind; none if there is no kind to
/// answer for.
pub fn unreadable_event_response(name: DialectName, outcome: &Outcome) -> Option<HostResponse> {
    const UNKNOWN: &str = "unknown";
    let event = Event::new(outcome.event, SessionId::new(UNKNOWN).ok()?, RunId::new(UNKNOWN).ok()?);
    Some(named(name).write_response(&event, outcome))
}

/// The dialects whose hooks stand in settings files, in order.
pub fn natives() -> impl Iterator<Item = &'static NativeDialect> {
    DialectName::ALL.iter().filter_map(|name| match implementation(*name) {
        DialectImpl::Plain(_) => None,
        DialectImpl::Native(native) => Some(native),
    })
}
