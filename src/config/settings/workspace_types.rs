//! The types of values that the settings of workspaces have.

use super::{
    super::workspace_options::{DialectSelection, RequiredHook, WorkspaceKind},
    keys::ValueType,
};
use crate::dialect::Value;

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
