//! Other names of a workspace and of directories around it: those in the settings, and that of the home directory.

use std::path::Path;

use super::{Settings, account::home_directory, loaded_workspace::LoadContext};
use crate::model::{DirectoryName, WorkspaceId};

/// The names with a symbolic link in them by which somebody has named a workspace, the directories that workspaces are in,
/// and the home directory.
pub(super) fn of(
    root: &Path,
    id: &WorkspaceId,
    settings: &Settings,
    context: &LoadContext<'_>,
) -> Vec<DirectoryName> {
    let declared = settings.declared_id(root, id).and_then(|id| settings.workspaces.get(id));
    let own = declared.map(|declared| declared.root.clone()).into_iter();
    let home = home_directory(settings, context.environment);
    let above = settings.workspace_roots.iter().cloned().chain(home);
    let mut names: Vec<DirectoryName> = Vec::new();
    let all = own.filter(|name| name.canonicalize().is_ok_and(|real| real == root)).chain(above);
    for name in all.filter(|name| name.is_absolute()) {
        // Each on its own, in the order in which a path leads through them.
        let steps: Vec<&Path> = name.ancestors().collect();
        for link in steps.into_iter().rev().filter_map(link_at) {
            if !names.contains(&link) {
                names.push(link);
            }
        }
    }
    names
}

/// Where the last part of a path leads, if that is a link.
fn link_at(path: &Path) -> Option<DirectoryName> {
    let name = path.parent()?.canonicalize().ok()?.join(path.file_name()?);
    let directory = name.canonicalize().ok()?;
    let is_text = name.to_str().is_some() && directory.to_str().is_some();
    (is_text && name != directory).then_some(DirectoryName { name, directory })
}
