//! Where a hook comes from: its scope, file and line.

use std::{fmt, sync::Arc};

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
}
