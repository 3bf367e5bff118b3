//! The setting of where the daemon keeps the state of runs.

use std::path::PathBuf;

use super::keys::ValueType;
use crate::dialect::Value;

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
