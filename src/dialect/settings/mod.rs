//! The settings files in which agents keep their hooks, and the hooks in them. The files are other programs':
//! a mistake costs the entry it is in, with a warning that has a place, and what is not about hooks is nobody's
//! concern here.

mod dollars;
mod entry;
mod facts;
mod file;
mod handler;
mod matcher;
mod rule;
mod switches;

pub(super) use dollars::{Part, parts};
pub(super) use facts::{Form, Keys, Same, SettingsFacts, Shell, Switches, Timeouts, Unit};
pub(crate) use facts::{Levels, Place, SettingsFile};
pub use file::{SettingsHook, SettingsHooks, read_settings};
pub(super) use matcher::{exact_list_or_regex, exact_or_regex};
