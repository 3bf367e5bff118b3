//! The workspaces that the settings name. Refuses to look at them.

use std::{collections::BTreeMap, path::PathBuf};

use super::super::{
    section::{Section, absolute},
    workspace_options::{DialectSelection, WorkspaceKind},
};
use crate::{dialect::Value, model::WorkspaceId};

/// A workspace as the settings have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkspaceSettings {
    /// Its directory, by an absolute path.
    pub root: PathBuf,
    /// What it is for; none leaves it to the workspace's own file.
    pub kind: Option<WorkspaceKind>,
    /// Whose hooks it runs; none leaves it to the workspace's own file.
    pub dialects: Option<DialectSelection>,
}

impl WorkspaceSettings {
    /// A workspace in a directory, whose own file says the rest.
    ///
    /// ```
    /// use hookyard::config::WorkspaceSettings;
    ///
    /// assert_eq!(WorkspaceSettings::new("/srv/shop").kind, None);
    /// ```
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into(), kind: None, dialects: None }
    }

    fn read(entry: &Value<'_>, section: &mut Section<'_>) -> Option<Self> {
        let message = format!("`{}` needs `root`", entry.name());
        let root = section.required("root", &message, "the directory, by an absolute path");
        let kind = section.value("kind").and_then(|value| WorkspaceKind::read(&value));
        let dialects = section.value("dialects").and_then(|value| DialectSelection::read(&value));
        Some(Self { root: absolute(&root?)?, kind, dialects })
    }
}

/// Reads `workspaces` of a settings file.
pub(super) fn read(root: &mut Section<'_>, into: &mut BTreeMap<WorkspaceId, WorkspaceSettings>) {
    let mut roots: BTreeMap<PathBuf, WorkspaceId> = BTreeMap::new();
    root.entries("workspaces", into, |entry, section| {
        let id = WorkspaceId::new(entry.name()).map_err(|e| {
            let message = format!("the id of a workspace {e}");
            entry.error_at(entry.key_spot(), "workspaces", message, "write it as hosts have it");
        });
        let settings = WorkspaceSettings::read(entry, section);
        let (id, settings) = (id.ok()?, settings?);
        if let Some(twin) = roots.insert(settings.root.clone(), id.clone()) {
            let message = format!("the workspaces `{twin}` and `{id}` have the same root");
            entry.warn("workspaces", message, "keep one of the two, unless hosts use both ids");
        }
        Some((id, settings))
    });
}
