//! What the process of a command hook may do: its files, its network and its resources.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    time::Duration,
};

/// The restrictions of a command hook. The default restricts nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sandbox {
    /// Which files it may use.
    pub filesystem: FilesystemAccess,
    /// What it may read besides the workspace and the system's programs; absolute paths.
    pub read: Vec<PathBuf>,
    /// What it may write; absolute paths.
    pub write: Vec<PathBuf>,
    /// Whom it may connect to.
    pub network: NetworkAccess,
    /// What it may use of the machine.
    pub limits: ResourceLimits,
    /// Whether it fails where the kernel or the host cannot enforce all of this.
    pub require: bool,
    /// The program that applies the restrictions to itself and then runs the hook's program. Without one, nothing is
    /// enforced.
    pub launcher: Option<PathBuf>,
}

/// Which files the process of a command hook may use, from the mildest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum FilesystemAccess {
    /// All that its user may.
    #[default]
    Any,
    /// It reads the system's programs and reads and writes the workspace.
    Workspace,
    /// It reads the system's programs and the workspace.
    ReadOnly,
}

impl FilesystemAccess {
    /// Every access.
    pub const ALL: [Self; 3] = [Self::Any, Self::Workspace, Self::ReadOnly];

    /// Its name in hook files and settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::Workspace => "workspace",
            Self::ReadOnly => "read_only",
        }
    }
}

/// Whether the process of a command hook may use the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum NetworkAccess {
    /// It may.
    #[default]
    Any,
    /// It cannot create a socket of any kind.
    None,
}

impl NetworkAccess {
    /// Every access.
    pub const ALL: [Self; 2] = [Self::Any, Self::None];

    /// Its name in hook files and settings.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::None => "none",
        }
    }
}

/// What a process of a command hook may use of the machine. Each process that it starts has the same limits for itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceLimits {
    /// Processor time; a process that uses more is killed.
    pub cpu: Option<Duration>,
    /// Memory for data, in bytes.
    pub memory: Option<usize>,
    /// Open files.
    pub files: Option<NonZeroUsize>,
    /// Processes and threads of its user, those of others included. Root has no such limit.
    pub processes: Option<NonZeroUsize>,
    /// The size of a file that it writes, in bytes.
    pub file_size: Option<usize>,
}

impl ResourceLimits {
    /// Of each limit the lower one.
    #[must_use]
    pub fn stricter(self, other: Self) -> Self {
        Self {
            cpu: lower(self.cpu, other.cpu),
            memory: lower(self.memory, other.memory),
            files: lower(self.files, other.files),
            processes: lower(self.processes, other.processes),
            file_size: lower(self.file_size, other.file_size),
        }
    }
}

fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Sandbox {
    /// Whether it restricts anything.
    pub fn is_active(&self) -> bool {
        let limits_nothing = self.limits == ResourceLimits::default();
        self.filesystem != FilesystemAccess::Any || self.network != NetworkAccess::Any || !limits_nothing
    }

    /// What both sandboxes allow in the workspace at `root`.
    #[must_use]
    pub fn stricter(&self, other: &Self, root: &Path) -> Self {
        let write = match (self.writable(root), other.writable(root)) {
            (None, None) => Vec::new(),
            (Some(areas), None) | (None, Some(areas)) => areas,
            (Some(ours), Some(theirs)) => common_areas(&ours, &theirs),
        };
        let filesystem = self.filesystem.max(other.filesystem);
        Self {
            filesystem,
            read: self.read.iter().chain(&other.read).cloned().collect(),
            write: write
                .into_iter()
                .filter(|path| path != root || filesystem == FilesystemAccess::ReadOnly)
                .collect(),
            network: self.network.max(other.network),
            limits: self.limits.stricter(other.limits),
            require: self.require || other.require,
            launcher: self.launcher.clone().or_else(|| other.launcher.clone()),
        }
    }

    /// Whether a process may write to a path; `root` is its workspace's.
    pub fn may_write(&self, path: &Path, root: &Path) -> bool {
        self.writable(root).is_none_or(|areas| areas.iter().any(|area| path.starts_with(area)))
    }

    /// The directories and files that may be written to; `None` for all.
    fn writable(&self, root: &Path) -> Option<Vec<PathBuf>> {
        match self.filesystem {
            FilesystemAccess::Any => None,
            FilesystemAccess::Workspace => {
                Some(std::iter::once(root.to_owned()).chain(self.write.iter().cloned()).collect())
            }
            FilesystemAccess::ReadOnly => Some(self.write.clone()),
        }
    }
}

/// The areas that lie in one of both lists.
fn common_areas(ours: &[PathBuf], theirs: &[PathBuf]) -> Vec<PathBuf> {
    let within = |path: &PathBuf, areas: &[PathBuf]| areas.iter().any(|area| path.starts_with(area));
    let mut common: Vec<_> = ours.iter().filter(|path| within(path, theirs)).cloned().collect();
    common.extend(theirs.iter().filter(|path| within(path, ours) && !ours.contains(path)).cloned());
    common
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "/srv/shop";

    fn sandbox(filesystem: FilesystemAccess, write: &[&str]) -> Sandbox {
        Sandbox { filesystem, write: write.iter().map(PathBuf::from).collect(), ..Sandbox::default() }
    }

    #[test]
    fn the_stricter_of_two_sandboxes_allows_what_both_allow() {
        use FilesystemAccess::{Any, ReadOnly, Workspace};
        let cases: [(Sandbox, Sandbox, FilesystemAccess, &[&str]); 7] = [
            (sandbox(Any, &[]), sandbox(Any, &[]), Any, &[]),
            (sandbox(Any, &[]), sandbox(ReadOnly, &["/srv/shop/build"]), ReadOnly, &["/srv/shop/build"]),
            (sandbox(Workspace, &[]), sandbox(Any, &[]), Workspace, &[]),
            (
                sandbox(Workspace, &["/var/cache/x"]),
                sandbox(ReadOnly, &["/srv/shop/build"]),
                ReadOnly,
                &["/srv/shop/build"],
            ),
            (sandbox(ReadOnly, &[]), sandbox(Workspace, &[]), ReadOnly, &[]),
            (sandbox(ReadOnly, &[ROOT]), sandbox(Workspace, &[]), ReadOnly, &[ROOT]),
            (
                sandbox(ReadOnly, &["/srv/shop/a"]),
                sandbox(ReadOnly, &["/srv/shop/a/b", "/home"]),
                ReadOnly,
                &["/srv/shop/a/b"],
            ),
        ];
        for (one, other, filesystem, write) in cases {
            for (one, other) in [(&one, &other), (&other, &one)] {
                let both = one.stricter(other, Path::new(ROOT));
                assert_eq!(
                    (both.filesystem, &both.write),
                    (filesystem, &sandbox(Any, write).write),
                    "{one:?} {other:?}"
                );
            }
        }
    }

    #[test]
    fn the_stricter_of_two_sandboxes_has_the_lower_limits_and_no_network() {
        let limits = ResourceLimits { memory: Some(9), files: NonZeroUsize::new(5), ..Default::default() };
        let one = Sandbox { limits, network: NetworkAccess::None, ..Sandbox::default() };
        let limits = ResourceLimits { memory: Some(7), ..Default::default() };
        let other = Sandbox { limits, require: true, ..Sandbox::default() };
        let both = one.stricter(&other, Path::new(ROOT));
        assert_eq!((both.limits.memory, both.limits.files), (Some(7), NonZeroUsize::new(5)));
        assert!(both.network == NetworkAccess::None && both.require && both.is_active());
        assert!(!Sandbox::default().is_active());
    }
}
