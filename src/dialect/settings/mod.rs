//! The settings files in which agents keep their hooks, and the hooks in them. The files are other programs':
//! a mistake costs the entry it is in, with a warning that has a place, and what is not about hooks is nobody's
//! concern here.

mod common;
mod dollars;
mod entry;
mod facts;
mod file;
mod handler;
mod matcher;
mod rule;
mod switches;

pub use common::Common;
pub(super) use dollars::{Part, parts};
pub(crate) use facts::{CommonWord, Levels, Place, SettingsFile};
pub(super) use facts::{
    Form, Keys, Means, Repeats, Same, SettingsFacts, Shell, Switches, Timeouts, Unit, Wanted,
};
pub(super) use file::warn_of_slips;
pub use file::{SettingsHook, SettingsHooks, read_settings};
pub(super) use matcher::{exact_list_or_regex, exact_or_regex, refuse};
