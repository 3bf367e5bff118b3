//! The workspace that hooks run in.

use std::path::PathBuf;

use super::WorkspaceId;

/// The workspace that a hook runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The workspace's id.
    pub id: WorkspaceId,
    /// Its directory: absolute, without symbolic links.
    pub root: PathBuf,
}
