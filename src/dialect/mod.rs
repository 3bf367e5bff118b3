//! The dialects hosts and hooks speak: the only place with native field names, pure throughout.
//!
//! `canonical` and `openharness` use hookyard's own names. Every other dialect is a table of its events and a few
//! facts, a [`NativeDialect`], in a file of its own; what they share is beside them.

mod canonical;
mod claude;
mod clawd;
mod codebuddy;
mod convert;
mod document;
mod envelope;
mod event_reader;
mod event_table;
mod gemini;
mod native;
mod openharness;
mod output;
mod patch_merge;
mod response;
mod settings;
mod suggest;

pub use canonical::Canonical;
pub use convert::{Conversion, ConversionRemark, ConvertedFile, HookConfigFile, convert};
pub(crate) use document::{Document, Mapping, Mistake, Span, Value};
pub use native::NativeDialect;
#[cfg(feature = "cli")]
pub(crate) use openharness::OPENHARNESS_KINDS;
pub use openharness::{
    HookRules, OpenHarness, ReferenceLookup, ResolvedPath, UnixSockets, UnsafeVariables, read_hook,
};
pub(crate) use openharness::{expand, warn_of_mode};
pub use response::http_body;
pub(crate) use settings::{ScopeMerge, SettingsFile, SettingsLocation};
pub use settings::{SettingsHook, SettingsHooks, SharedSettings, read_settings};
pub(crate) use suggest::{nearest, shorten};

use crate::model::{Dialect, DialectName, Event, HostResponse, Outcome, RunId, SessionId};

/// A dialect, by what it is made of.
enum DialectImpl {
    Plain(&'static dyn Dialect),
    Native(&'static NativeDialect),
}

fn implementation(name: DialectName) -> DialectImpl {
    match name {
        DialectName::Canonical => DialectImpl::Plain(&Canonical),
        DialectName::OpenHarness => DialectImpl::Plain(&OpenHarness),
        DialectName::Claude => DialectImpl::Native(&claude::CLAUDE),
        DialectName::Clawd => DialectImpl::Native(&clawd::CLAWD),
        DialectName::CodeBuddy => DialectImpl::Native(&codebuddy::CODEBUDDY),
        DialectName::Gemini => DialectImpl::Native(&gemini::GEMINI),
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
