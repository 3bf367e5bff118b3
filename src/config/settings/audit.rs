//! The types of values of the audit settings.

use std::{path::PathBuf, time::Duration};

use super::{super::quantity, keys::ValueType};
use crate::dialect::Value;

/// Where audit lines are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuditDestination {
    /// At the end of this file.
    File(PathBuf),
    /// To standard output.
    Stdout,
}

/// When audit lines are synced to disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditSync {
    /// When the system sees fit.
    Never,
    /// After each line, before the next is written.
    Always,
    /// At the latest after this time.
    Every(Duration),
}

/// What an audit line says about changes by hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditPatches {
    /// The paths of the values that are not what the host sent.
    Paths,
    /// The changed parts as the host gets them.
    Values,
    /// Nothing.
    Nothing,
}

impl AuditPatches {
    pub(super) const ALL: [Self; 3] = [Self::Paths, Self::Values, Self::Nothing];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Paths => "paths",
            Self::Values => "values",
            Self::Nothing => "none",
        }
    }
}

impl ValueType for AuditDestination {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        if value.as_text() == Some("stdout") {
            return Some(Self::Stdout);
        }
        PathBuf::parse(value).map(Self::File)
    }
}

impl ValueType for AuditSync {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        let text = value.text()?;
        let sync = match text {
            "never" => Some(Self::Never),
            "always" => Some(Self::Always),
            _ => quantity::duration(text).map(Self::Every),
        };
        if sync.is_none() {
            let message = format!("`{}` must be a duration, `always` or `never`", value.name());
            value.error("quantity", message, "write a duration with its unit: `500ms`, `1s`");
        }
        sync
    }
}

impl ValueType for AuditPatches {
    type Field = Self;

    fn parse(value: &Value<'_>) -> Option<Self> {
        let text = value.text()?;
        let patches = Self::ALL.into_iter().find(|patches| patches.as_str() == text);
        if patches.is_none() {
            let message = format!("`{}` has no such choice", value.name());
            value.error("choice", message, "use `paths`, `values` or `none`");
        }
        patches
    }
}
