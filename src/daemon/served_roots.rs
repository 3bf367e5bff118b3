//! The directories whose workspaces are registered with their first event.

use std::path::{Path, PathBuf};

use crate::config::{Settings, connections};

/// The `workspace_roots` of the settings, and the directories that connected agents work in.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ServedRoots {
    /// With symbolic links resolved.
    pub(super) real: Vec<PathBuf>,
    /// As they are named.
    pub(super) given: Vec<PathBuf>,
}

impl ServedRoots {
    pub(super) fn read(settings: &Settings) -> Self {
        if settings.cluster.enabled {
            // The directories that events name are not on this machine.
            return Self { real: Vec::new(), given: Vec::new() };
        }
        let connected = connections(settings, &|name| std::env::var(name).ok()).roots();
        let is_new = |root: &PathBuf| root.is_dir() && !settings.workspace_roots.contains(root);
        let connected = connected.into_iter().filter(is_new);
        let given: Vec<PathBuf> = settings.workspace_roots.iter().cloned().chain(connected).collect();
        let real = |root: &PathBuf| {
            real_directory(root).unwrap_or_else(|why| {
                tracing::warn!("one of the `workspace_roots`, {}, cannot be used: {why}", root.display());
                root.clone()
            })
        };
        Self { real: given.iter().map(real).collect(), given }
    }
}

/// A directory with symbolic links resolved.
///
/// Returns why it cannot be used.
pub(crate) fn real_directory(path: &Path) -> Result<PathBuf, String> {
    match path.canonicalize() {
        Ok(real) if real.is_dir() => Ok(real),
        Ok(_) => Err("it is not a directory".to_owned()),
        Err(error) => Err(crate::model::io_reason(&error)),
    }
}
