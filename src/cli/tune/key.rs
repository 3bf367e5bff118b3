//! How the settings name a hook.

use crate::{
    model::{DialectName, Handler, Hook},
    registry::Snapshot,
};

/// The longest command that is a key of its own: YAML has no longer keys.
const LONGEST_KEY: usize = 1000;

/// The name of a hook in the settings: its command if its own name says only where it is in the settings of an agent, and no
/// other hook has the same command.
pub(super) fn key_of(hook: &Hook, snapshot: &Snapshot) -> String {
    let line_of = |hook: &Hook| match &hook.handler {
        Handler::Command(command) => Some(command.line.in_a_shell().into_owned()),
        _ => None,
    };
    let has_own_name = matches!(hook.dialect.name(), DialectName::OpenHarness | DialectName::Canonical);
    let line = line_of(hook).filter(|line| !has_own_name && line.len() <= LONGEST_KEY);
    let is_only = |line: &String| {
        snapshot.hooks().iter().filter(|other| line_of(&other.hook).as_ref() == Some(line)).count() == 1
    };
    line.filter(is_only).unwrap_or_else(|| hook.name.as_str().to_owned())
}
