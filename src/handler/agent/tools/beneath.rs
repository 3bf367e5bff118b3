//! The only door to a workspace's files. Owns the descriptor of its directory, and opens what is below it;
//! refuses every path that leads out of it, and everything that is neither a regular file nor a directory.
//!
//! The kernel decides what is below, while it resolves the path, so that nobody can swap a directory for a
//! link between a check and its use. Where it cannot (before Linux 5.6, or behind a filter of system calls)
//! no symbolic link is followed at all.

use std::{ffi::OsStr, fs::File, io, os::fd::OwnedFd, path::Path};

use rustix::{
    fd::AsFd,
    fs::{FileType, Mode, OFlags, ResolveFlags, fstat, open, openat, openat2},
    io::Errno,
    path::Arg,
};

/// The longest path, in bytes: the kernel's own limit.
const LONGEST_PATH: usize = 4096;

/// How often a path with `..` is tried again because directories were moved meanwhile.
const TRIES: usize = 8;

/// A look at something that does nothing to it: a device that is opened for reading may act on it.
const LOOK: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// Nothing that is opened keeps the caller waiting or becomes its terminal.
const READ: OFlags = OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// A directory and what is below it.
#[derive(Debug)]
pub(super) struct Beneath {
    root: OwnedFd,
    way: Way,
}

/// How a path is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// By the kernel, which follows links as long as they stay below the directory.
    Openat2,
    /// By name after name, none of which may be a link or `..`.
    StepByStep,
}

/// What was opened.
#[derive(Debug)]
pub(super) enum Found {
    File(File),
    Directory(OwnedFd),
}

/// Why a path is not opened.
#[derive(Debug, thiserror::Error)]
pub(super) enum Refusal {
    #[error("is no path; name a file or directory relative to the workspace, or `.`")]
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

impl From<Errno> for Refusal {
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

impl Beneath {
    /// Returns an error if the directory cannot be opened.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        let root = open(root, LOOK | OFlags::DIRECTORY, Mode::empty())?;
        // Whatever the reason why the kernel does not do it, the other way does without.
        let way = if resolve(&root, ".", LOOK).is_ok() { Way::Openat2 } else { Way::StepByStep };
        Ok(Self { root, way })
    }

    /// Opens a regular file or a directory.
    ///
    /// Returns an error if the path is something else, leads outside or cannot be opened.
    pub(super) fn find(&self, path: &str) -> Result<Found, Refusal> {
        check(path)?;
        match kind(&self.follow(path, LOOK)?)? {
            FileType::RegularFile => {
                let file = self.follow(path, READ)?;
                // It may have been replaced since the look at it.
                regular(file)?.map(Found::File).ok_or(Refusal::Special)
            }
            FileType::Directory => Ok(Found::Directory(self.follow(path, READ | OFlags::DIRECTORY)?)),
            FileType::Symlink => Err(Refusal::Link),
            _ => Err(Refusal::Special),
        }
    }

    fn follow(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Refusal> {
        match self.way {
            Way::Openat2 => Ok(resolve(&self.root, path, flags)?),
            Way::StepByStep => self.step(path, flags),
        }
    }

    fn step(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Refusal> {
        let names: Vec<_> = path.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
        if names.contains(&"..") {
            return Err(Refusal::Upwards);
        }
        let Some((&last, above)) = names.split_last() else { return Ok(child(&self.root, ".", flags)?) };
        let mut held = None;
        for &name in above {
            let directory = child(held.as_ref().unwrap_or(&self.root), name, LOOK)?;
            if kind(&directory)? == FileType::Symlink {
                return Err(Refusal::Link);
            }
            held = Some(directory);
        }
        Ok(child(held.as_ref().unwrap_or(&self.root), last, flags)?)
    }

    /// The same directory, looked into in either way.
    #[cfg(test)]
    pub(super) fn both_ways(root: &Path) -> [Self; 2] {
        [Way::Openat2, Way::StepByStep].map(|way| Self { way, ..Self::open(root).expect("a directory") })
    }
}

/// The path's form, before the kernel sees it.
fn check(path: &str) -> Result<(), Refusal> {
    if path.starts_with('/') {
        Err(Refusal::Outside)
    } else if path.is_empty() || path.contains('\0') || path.len() >= LONGEST_PATH {
        Err(Refusal::NoPath)
    } else {
        Ok(())
    }
}

fn resolve(root: &OwnedFd, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = TRIES;
    loop {
        match openat2(root, path, flags, Mode::empty(), within) {
            Err(Errno::AGAIN | Errno::INTR) if tries > 1 => tries -= 1,
            done => return done,
        }
    }
}

/// Opens what has this name in a directory, if it is no link.
fn child(directory: &impl AsFd, name: impl Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// Opens a directory by its name in another.
///
/// Returns an error if it is a link or no directory.
pub(super) fn directory_in(directory: &impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    child(directory, name, READ | OFlags::DIRECTORY)
}

/// Opens a file by its name in a directory; `None` if it is no regular file.
///
/// Returns an error if it is a link or cannot be opened.
pub(super) fn file_in(directory: &impl AsFd, name: &OsStr) -> Result<Option<File>, Errno> {
    regular(child(directory, name, READ)?)
}

fn regular(opened: OwnedFd) -> Result<Option<File>, Errno> {
    Ok((kind(&opened)? == FileType::RegularFile).then(|| File::from(opened)))
}

fn kind(opened: &OwnedFd) -> Result<FileType, Errno> {
    fstat(opened).map(|stat| FileType::from_raw_mode(stat.st_mode))
}
