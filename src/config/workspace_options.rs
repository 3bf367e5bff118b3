//! What a workspace is for and whose hooks it runs.

use crate::{dialect::Value, model::DialectName};

/// What a workspace is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WorkspaceKind {
    /// Work on files; hooks run.
    #[default]
    Project,
    /// Conversation; hooks never run.
    Chat,
}

impl WorkspaceKind {
    /// All kinds.
    pub(super) const ALL: [Self; 2] = [Self::Project, Self::Chat];

    /// The word for it in settings files.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Chat => "chat",
        }
    }

    /// The value of a settings file, or `None` if it is wrong, which is recorded in the document.
    pub(super) fn read(value: &Value<'_>) -> Option<Self> {
        value.choice(&Self::ALL.map(|kind| (kind.as_str(), kind)))
    }
}

/// The dialects whose hooks a workspace runs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DialectSelection {
    /// All of which there are hooks.
    #[default]
    Auto,
    /// These.
    Only(Vec<DialectName>),
}

impl DialectSelection {
    /// Whether hooks of a dialect run.
    pub fn has(&self, name: DialectName) -> bool {
        match self {
            Self::Auto => true,
            Self::Only(names) => names.contains(&name),
        }
    }

    /// The value of a settings file, or `None` if it is wrong, which is recorded in the document.
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
