//! The types of settings of which daemon this is among others, of where it keeps the state of runs, and of workspaces.

use std::path::PathBuf;

#[cfg(feature = "daemon")]
use rustix::system::uname;

#[cfg(feature = "daemon")]
use super::table::Settings;
use super::{
    super::workspace_options::{DialectSelection, RequiredHook, WorkspaceKind},
    keys::ValueType,
};
use crate::{
    dialect::Value,
    model::{LONGEST_NODE_NAME, is_node_name},
};

/// The name of a machine that has none.
#[cfg(feature = "daemon")]
const UNNAMED: &str = "localhost";

/// Where the daemon keeps the state of runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DataDirectory {
    /// In the directory of the setting `state_directory`.
    #[default]
    Auto,
    /// In this directory.
    At(PathBuf),
    /// In memory only: a restart forgets it.
    Memory,
}

impl ValueType for DataDirectory {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        if value.is_null() {
            return Some(Self::Memory);
        }
        if value.as_text() == Some("auto") {
            return Some(Self::Auto);
        }
        PathBuf::parse(value).map(Self::At)
    }
}

/// The name of a daemon.
pub(super) struct NodeName;

impl ValueType for NodeName {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        if is_node_name(text) {
            return Some(text.to_owned());
        }
        let message =
            format!("`{}` must be 1 to {LONGEST_NODE_NAME} letters, digits, `.`, `_` and `-`", value.name());
        value.error("node", message, "write it such as `edge-7`, or `null` for the name of the machine");
        None
    }
}

#[cfg(feature = "daemon")]
impl Settings {
    /// The name of this daemon: the setting `node`, or the name of the machine.
    pub(crate) fn node_name(&self) -> String {
        self.node.clone().unwrap_or_else(|| permitted(&uname().nodename().to_string_lossy()))
    }
}

/// A name of a machine with only what a node's name may have.
#[cfg(feature = "daemon")]
fn permitted(machine: &str) -> String {
    let name: String = machine
        .chars()
        .map(|c| if is_node_name(c.encode_utf8(&mut [0; 4])) { c } else { '-' })
        .take(LONGEST_NODE_NAME)
        .collect();
    if name.is_empty() { UNNAMED.to_owned() } else { name }
}

impl ValueType for WorkspaceKind {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        Self::read(value)
    }
}

impl ValueType for RequiredHook {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        Self::read(value)
    }
}

impl ValueType for DialectSelection {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        Self::read(value)
    }
}

#[cfg(all(test, feature = "daemon"))]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_machine_is_made_a_nodes_name() {
        assert_eq!(permitted("edge-7.example"), "edge-7.example");
        assert_eq!(permitted("a b\n\u{e9}"), "a-b--");
        assert_eq!(permitted(&"x".repeat(300)).len(), LONGEST_NODE_NAME);
        assert_eq!(permitted(""), UNNAMED);
    }
}
