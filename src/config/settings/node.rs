//! The setting `node`: the name of this daemon among others.

#[cfg(feature = "daemon")]
use rustix::system::uname;

use super::keys::ValueType;
#[cfg(feature = "daemon")]
use super::table::Settings;
use crate::dialect::Value;

/// The longest name, in bytes: that of a label in a host name.
const MAX_BYTES: usize = 63;

/// The name of a machine that has none.
#[cfg(feature = "daemon")]
const UNNAMED: &str = "localhost";

/// The name of a daemon.
pub(super) struct NodeName;

impl ValueType for NodeName {
    type Field = String;

    fn parse(value: &Value<'_>) -> Option<String> {
        let text = value.text()?;
        if !text.is_empty() && text.len() <= MAX_BYTES && text.chars().all(is_permitted) {
            return Some(text.to_owned());
        }
        let message =
            format!("`{}` must be 1 to {MAX_BYTES} letters, digits, `.`, `_` and `-`", value.name());
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
    let name: String =
        machine.chars().map(|c| if is_permitted(c) { c } else { '-' }).take(MAX_BYTES).collect();
    if name.is_empty() { UNNAMED.to_owned() } else { name }
}

fn is_permitted(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')
}

#[cfg(all(test, feature = "daemon"))]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_machine_is_made_a_nodes_name() {
        assert_eq!(permitted("edge-7.example"), "edge-7.example");
        assert_eq!(permitted("a b\n\u{e9}"), "a-b--");
        assert_eq!(permitted(&"x".repeat(300)).len(), MAX_BYTES);
        assert_eq!(permitted(""), UNNAMED);
    }
}
