//! Where the roots of the workspaces in the settings lead.

use std::{collections::HashMap, os::unix::fs::MetadataExt, path::Path, sync::OnceLock};

use super::{Settings, WorkspaceSettings};
use crate::model::WorkspaceId;

/// A directory, whatever its name: its device and its number there.
type DirectoryIdentity = (u64, u64);

/// Where the roots of the workspaces in the settings lead, looked up once for all that are loaded on one occasion: there may
/// be thousands, and each load asks for those around its workspace.
#[derive(Debug, Default)]
pub(crate) struct DeclaredRoots(OnceLock<HashMap<DirectoryIdentity, Vec<WorkspaceId>>>);

impl DeclaredRoots {
    /// The workspaces of the settings around a directory, from the innermost one, with their real roots.
    pub(super) fn around(
        &self,
        directory: &Path,
        settings: &Settings,
    ) -> Vec<(WorkspaceId, WorkspaceSettings)> {
        if settings.workspaces.is_empty() {
            return Vec::new();
        }
        let ids = self.0.get_or_init(|| Self::look_up(settings));
        let above = directory.ancestors().skip(1).filter_map(identity);
        let ids = above.filter_map(|directory| ids.get(&directory)).flatten();
        let found = ids.filter_map(|id| {
            let declared = settings.workspaces.get(id)?;
            let real = declared.root.canonicalize().ok()?;
            let is_around = directory != real && directory.starts_with(&real);
            let settings = WorkspaceSettings { root: real, ..declared.clone() };
            is_around.then(|| (id.clone(), settings))
        });
        found.collect()
    }

    fn look_up(settings: &Settings) -> HashMap<DirectoryIdentity, Vec<WorkspaceId>> {
        let mut found: HashMap<_, Vec<_>> = HashMap::new();
        for (id, declared) in &settings.workspaces {
            if let Some(directory) = identity(&declared.root) {
                found.entry(directory).or_default().push(id.clone());
            }
        }
        found
    }
}

fn identity(path: &Path) -> Option<DirectoryIdentity> {
    path.metadata().map(|found| (found.dev(), found.ino())).ok()
}
