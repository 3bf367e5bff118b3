//! Where a hook comes from: its workspace, scope, file and line.

use std::{cmp::Reverse, fmt, path::PathBuf, sync::Arc};

use super::WorkspaceId;

/// Where a hook comes from, in the order in which hooks run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Scope {
    /// Given by the embedding program.
    Host,
    /// Installed on the machine by its administrator.
    Managed,
    /// From the user's own files.
    User,
    /// From the workspace.
    Project,
    /// From the user's own files in the workspace.
    Local,
}

impl Scope {
    /// The name as shown in listings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Host => "host",
            Self::Managed => "managed",
            Self::User => "user",
            Self::Project => "project",
            Self::Local => "local",
        }
    }
}

/// The authority of a hook or of a file. A lower level may add hooks to those of a higher one, and not switch them off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// The embedding program.
    Host,
    /// Who signs the bundle that the operator's settings name.
    Bundle,
    /// The administrator and the operator.
    Managed,
    /// The user.
    User,
    /// A workspace, also its local files, by how far it is around the one that its hooks run for.
    Workspace(Reverse<usize>),
}

impl Scope {
    /// The level of a scope in a workspace, or in one that is around it by `distance` levels.
    pub(crate) fn level(self, distance: usize) -> Level {
        match self {
            Self::Host => Level::Host,
            Self::Managed => Level::Managed,
            Self::User => Level::User,
            Self::Project | Self::Local => Level::Workspace(Reverse(distance)),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The place where a hook was found.
#[derive(Debug, Clone)]
pub struct HookSource {
    /// How far it reaches.
    pub scope: Scope,
    /// Its file; none for native hooks.
    pub file: Option<Arc<std::path::Path>>,
    /// The line of its name, from 1; 0 for native hooks.
    pub line: usize,
    /// Its number among the hooks of its file, or among the native hooks.
    pub position: usize,
    /// A hash over its definition and its scripts, as they were loaded; none for native hooks.
    pub content: Option<Arc<ContentHash>>,
    /// The signed bundle that it is of, if it is of one.
    pub bundle: Option<Arc<HookBundle>>,
}

/// The signed bundle that a hook is of. Nothing below switches its hooks off.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct HookBundle {
    /// Its name, such as `acme/guards`; empty where none can be used and a block is in its place.
    pub name: Box<str>,
    /// Its version.
    pub version: u64,
}

impl HookBundle {
    /// A bundle of this name and version.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only a build with bundles reads any"))]
    pub(crate) fn new(name: &str, version: u64) -> Self {
        Self { name: name.into(), version }
    }

    /// What stands in the place of a bundle that cannot be used.
    pub(crate) fn none() -> Self {
        Self { name: "".into(), version: 0 }
    }
}

impl fmt::Display for HookBundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.is_empty() { f.write_str("none") } else { write!(f, "{} {}", self.name, self.version) }
    }
}

/// A hash over the definition of a hook and its scripts, as hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ContentHash(Box<str>);

impl ContentHash {
    /// The hash with these digits.
    pub(crate) fn new(digits: String) -> Self {
        Self(digits.into())
    }

    /// Its digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The workspace that a hook runs in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Workspace {
    /// The workspace's id.
    pub id: WorkspaceId,
    /// Its directory: absolute, without symbolic links.
    pub root: PathBuf,
    /// The links on the way to it by the names that people gave it, found when it was loaded.
    pub names: Vec<DirectoryName>,
}

impl Workspace {
    /// A workspace in a directory that is absolute and without symbolic links.
    pub fn new(id: WorkspaceId, root: impl Into<PathBuf>) -> Self {
        Self { id, root: root.into(), names: Vec::new() }
    }
}

/// A name of a directory whose last part is a symbolic link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryName {
    /// The name, an absolute path.
    pub name: PathBuf,
    /// The directory, without symbolic links.
    pub directory: PathBuf,
}

/// A workspace that is around another one: its hooks run in both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OuterWorkspace {
    /// The workspace.
    pub workspace: Arc<Workspace>,
    /// How many levels it is above the other one, from 1.
    pub distance: usize,
}
