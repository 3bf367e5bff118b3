//! Opens files below a workspace's directory, and nothing outside of it.
//!
//! The kernel checks this while it resolves a path (`openat2`), so that a directory cannot be replaced by a link between
//! check and use. Where it cannot (before Linux 5.6, or under a seccomp filter) no symbolic link is followed at all.

use std::{ffi::OsStr, fs::File, io, os::fd::OwnedFd, path::Path};

use rustix::{
    fd::AsFd,
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2},
    io::Errno,
    path::Arg,
};

/// The longest path, in bytes: the kernel's own limit.
const MAX_PATH: usize = 4096;

/// How often a path with `..` is retried because directories were moved meanwhile.
const MAX_TRIES: usize = 8;

/// Flags that only locate a file: opening a device for reading may have effects.
const INSPECT: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Flags for reading, without blocking on a pipe or acquiring a terminal.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// An open directory below which paths are resolved.
#[derive(Debug)]
pub(super) struct RootDir {
    root: OwnedFd,
    resolution: Resolution,
}

/// How a path is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resolution {
    /// By the kernel, which follows links as long as they stay below the directory.
    Openat2,
    /// Name by name, none of which may be a link or `..`.
    StepByStep,
}

/// What was opened.
#[derive(Debug)]
pub(super) enum OpenedPath {
    File(File),
    Directory(OwnedFd),
}

/// Why a path is not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum PathError {
    #[error("is not a path; name a file or directory relative to the workspace, or `.`")]
    NoPath,
    #[error("is outside the workspace; paths are relative to the workspace's directory and stay below it")]
    Outside,
    #[error("has a `..`, which is not followed here; name it from the workspace's directory")]
    Upwards,
    #[error("is or leads through a symbolic link that is not followed here")]
    Link,
    #[error("does not exist")]
    Missing,
    #[error("leads through something that is not a directory")]
    NoDirectory,
    #[error("is neither a regular file nor a directory")]
    Special,
    #[error("cannot be opened: {}", .0.kind())]
    Failed(io::Error),
}

impl From<Errno> for PathError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::XDEV => Self::Outside,
            Errno::LOOP => Self::Link,
            Errno::NOENT => Self::Missing,
            Errno::NOTDIR => Self::NoDirectory,
            other => Self::Failed(other.into()),
        }
    }
}

impl RootDir {
    /// Returns an error if the directory cannot be opened.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let root = open(root, INSPECT | OFlags::DIRECTORY, Mode::empty())?;
        // Whatever the reason for the failure, the other method does not need `openat2`.
        let resolution =
            if resolve(&root, ".", INSPECT).is_ok() { Resolution::Openat2 } else { Resolution::StepByStep };
        Ok(Self { root, resolution })
    }

    /// Opens a regular file or a directory.
    ///
    /// Returns an error if the path is something else, leads outside or cannot be opened.
    pub(super) fn find(&self, path: &str) -> Result<OpenedPath, PathError> {
        check_form(path)?;
        match file_type(&self.follow(path, INSPECT)?)? {
            FileType::RegularFile => {
                let file = self.follow(path, READ)?;
                // It may have been replaced since the check.
                regular(file)?.map(OpenedPath::File).ok_or(PathError::Special)
            }
            FileType::Directory => Ok(OpenedPath::Directory(self.follow(path, READ | OFlags::DIRECTORY)?)),
            FileType::Symlink => Err(PathError::Link),
            _ => Err(PathError::Special),
        }
    }

    fn follow(&self, path: &str, flags: OFlags) -> Result<OwnedFd, PathError> {
        match self.resolution {
            Resolution::Openat2 => Ok(resolve(&self.root, path, flags)?),
            Resolution::StepByStep => self.resolve_by_steps(path, flags),
        }
    }

    fn resolve_by_steps(&self, path: &str, flags: OFlags) -> Result<OwnedFd, PathError> {
        let names: Vec<_> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.contains(&"..") {
            return Err(PathError::Upwards);
        }
        let Some((&last, above)) = names.split_last() else { return Ok(child(&self.root, ".", flags)?) };
        let mut held = None;
        for &name in above {
            let directory = child(held.as_ref().unwrap_or(&self.root), name, INSPECT)?;
            if file_type(&directory)? == FileType::Symlink {
                return Err(PathError::Link);
            }
            held = Some(directory);
        }
        Ok(child(held.as_ref().unwrap_or(&self.root), last, flags)?)
    }

    /// The same directory with either method.
    #[cfg(test)]
    pub(super) fn both_resolutions(root: &Path) -> [Self; 2] {
        [Resolution::Openat2, Resolution::StepByStep]
            .map(|resolution| Self { resolution, ..Self::open(root).expect("a directory") })
    }
}

/// Checks the form of a path, before the kernel sees it.
fn check_form(path: &str) -> Result<(), PathError> {
    if path.starts_with('/') {
        Err(PathError::Outside)
    } else if path.is_empty() || path.contains('\0') || path.len() >= MAX_PATH {
        Err(PathError::NoPath)
    } else {
        Ok(())
    }
}

fn resolve(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = MAX_TRIES;
    loop {
        match openat2(root, path, flags, Mode::empty(), within) {
            Err(Errno::AGAIN | Errno::INTR) if tries > 1 => tries -= 1,
            done => return done,
        }
    }
}

/// Opens an entry of a directory by its name, unless it is a link.
fn child(directory: &impl AsFd, name: impl Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens a directory by its name in another.
///
/// Returns an error if it is a link or no directory.
pub(super) fn directory_in(directory: &impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    child(directory, name, READ | OFlags::DIRECTORY)
}

/// Opens a file by its name in a directory; `None` if it is not a regular file.
///
/// Returns an error if it is a link or cannot be opened.
pub(super) fn file_in(directory: &impl AsFd, name: &OsStr) -> Result<Option<File>, Errno> {
    regular(child(directory, name, READ)?)
}

fn regular(opened: OwnedFd) -> Result<Option<File>, Errno> {
    Ok((file_type(&opened)? == FileType::RegularFile).then(|| File::from(opened)))
}

fn file_type(opened: &OwnedFd) -> Result<FileType, Errno> {
    fstat(opened).map(|stat| FileType::from_raw_mode(stat.st_mode))
}
