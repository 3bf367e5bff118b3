//! The dialects hosts and hooks speak: the only place with native field names, pure throughout.

mod answer;
mod canonical;
mod document;
mod fields;
mod fold;
mod near;
mod openharness;

pub use canonical::Canonical;
pub(crate) use document::{Document, Mapping, Mistake, Spot, Value};
pub use openharness::{
    HookRules, Located, OpenHarness, Surroundings, UnixSockets, UnsafeVariables, read_hook,
};
pub(crate) use openharness::{expand, warn_of_mode};

use crate::model::{Dialect, DialectName};

/// The dialect of a name.
pub fn named(name: DialectName) -> &'static dyn Dialect {
    match name {
        DialectName::Canonical => &Canonical,
        DialectName::OpenHarness => &OpenHarness,
    }
}
