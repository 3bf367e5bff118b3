//! What a workspace is for and whose hooks it runs, as its own file or the settings have it. Refuses to look for
//! the hooks.

use crate::{dialect::Value, model::DialectName};

/// What a workspace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkspaceKind {
    /// Work on files; its hooks run.
    #[default]
    Project,
    /// Conversation; it never runs hooks.
    Chat,
}

impl WorkspaceKind {
    /// What a settings file says, or `None` if it is a mistake.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        value.choice(&[("project", Self::Project), ("chat", Self::Chat)])
    }
}

/// Whose hooks a workspace runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DialectSelection {
    /// Those that are there.
    #[default]
    Auto,
    /// Those of these dialects.
    Only(Vec<DialectName>),
}

impl DialectSelection {
    /// Whether it runs the hooks of a dialect.
    pub fn has(&self, name: DialectName) -> bool {
        match self {
            Self::Auto => true,
            Self::Only(names) => names.contains(&name),
        }
    }

    /// What a settings file says, or `None` if it is a mistake.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        match value.as_text() {
            Some("auto") => return Some(Self::Auto),
            Some(_) => {
                value.error("dialects", "`dialects` is neither `auto` nor a list", "write `[claude]`, say");
                return None;
            }
            None => {}
        }
        let known: Vec<_> = DialectName::ALL
            .iter()
            .filter(|name| **name != DialectName::Canonical)
            .map(|name| (name.as_str(), *name))
            .collect();
        value.list()?.iter().map(|item| item.choice(&known)).collect::<Option<_>>().map(Self::Only)
    }
}
