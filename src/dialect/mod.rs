//! The dialects hosts and hooks speak: the only place with native field names, pure throughout.
//!
//! `canonical` and `openharness` use hookyard's own names. Every other dialect is a table of its events and a few
//! facts, a [`Native`], in a file of its own; what they share is beside them.

mod answer;
mod canonical;
mod claude;
mod clawd;
mod codebuddy;
mod convert;
mod document;
mod envelope;
mod fields;
mod fold;
mod gemini;
mod native;
mod near;
mod openharness;
mod output;
mod row;
mod settings;

pub use answer::body;
pub use canonical::Canonical;
pub use convert::{Conversion, ConvertedFile, Remark, WrittenHooks, convert};
pub(crate) use document::{Document, Mapping, Mistake, Spot, Value};
pub use native::Native;
pub(crate) use near::{nearest, shorten};
#[cfg(feature = "cli")]
pub(crate) use openharness::OPENHARNESS_KINDS;
pub use openharness::{
    HookRules, Located, OpenHarness, Surroundings, UnixSockets, UnsafeVariables, read_hook,
};
pub(crate) use openharness::{expand, warn_of_mode};
pub use settings::{Common, SettingsHook, SettingsHooks, read_settings};
pub(crate) use settings::{Levels, Place as SettingsPlace, SettingsFile};

use crate::model::{Dialect, DialectName, Event, HostResponse, Outcome, RunId, SessionId};

/// A dialect, by what it is made of.
enum Speaker {
    Plain(&'static dyn Dialect),
    Native(&'static Native),
}

fn speaker(name: DialectName) -> Speaker {
    match name {
        DialectName::Canonical => Speaker::Plain(&Canonical),
        DialectName::OpenHarness => Speaker::Plain(&OpenHarness),
        DialectName::Claude => Speaker::Native(&claude::CLAUDE),
        DialectName::Clawd => Speaker::Native(&clawd::CLAWD),
        DialectName::CodeBuddy => Speaker::Native(&codebuddy::CODEBUDDY),
        DialectName::Gemini => Speaker::Native(&gemini::GEMINI),
    }
}

/// The dialect of a name.
pub fn named(name: DialectName) -> &'static dyn Dialect {
    match speaker(name) {
        Speaker::Plain(dialect) => dialect,
        Speaker::Native(native) => native,
    }
}

/// The answer to an event that could not be read, of which the outcome tells the kind; none if there is no kind to
/// answer for.
pub fn answer_unread(name: DialectName, outcome: &Outcome) -> Option<HostResponse> {
    const UNKNOWN: &str = "unknown";
    let event = Event::new(outcome.event, SessionId::new(UNKNOWN).ok()?, RunId::new(UNKNOWN).ok()?);
    Some(named(name).write_response(&event, outcome))
}

/// The dialects whose hooks stand in settings files, in order.
pub fn natives() -> impl Iterator<Item = &'static Native> {
    DialectName::ALL.iter().filter_map(|name| match speaker(*name) {
        Speaker::Plain(_) => None,
        Speaker::Native(native) => Some(native),
    })
}
