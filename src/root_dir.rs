//! Opens files below a workspace's directory, and nothing outside of it.
//!
//! The kernel checks this while it resolves a path (`openat2`), so that a directory cannot be replaced by a link between
//! check and use. Where it cannot (before Linux 5.6, or under a seccomp filter) no symbolic link is followed at all.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fd::AsFd,
    fs::{FileType, Mode, OFlags, ResolveFlags, Stat, fstat, open, openat, openat2, stat},
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

/// What is there differs from process to process, or is no directory of programs.
const CHANGING: [&str; 2] = ["/proc", "/dev"];

/// Whether a directory of a `PATH` is there, the same for every process, and outside of the roots of a project: that
/// could put programs of its own into any other.
pub(crate) fn is_safe_in_path(directory: &Path, roots: &[PathBuf]) -> bool {
    let is_outside = |path: &Path| {
        !roots.iter().any(|root| path.starts_with(root))
            && !CHANGING.iter().any(|changing| path.starts_with(changing))
    };
    directory.is_absolute()
        && !directory.components().any(|part| part == Component::ParentDir)
        && is_outside(directory)
        && directory.canonicalize().is_ok_and(|real| is_outside(&real))
}

/// An open directory below which paths are resolved.
#[derive(Debug)]
pub(crate) struct RootDir {
    root: OwnedFd,
    /// The directory's path without symbolic links, where it was opened.
    path: PathBuf,
    resolution: PathResolution,
}

/// Whether the last name of a path may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    /// It may not.
    Refused,
    /// It may, if it stays below the directory.
    Followed,
}

/// What was opened.
#[derive(Debug)]
pub(crate) enum OpenedPath {
    File(File),
    Directory(OwnedFd),
}

/// How a path is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathResolution {
    /// By the kernel, which follows links as long as they stay below the directory.
    Openat2,
    /// Name by name, none of which may be a link or `..`.
    StepByStep,
}

/// Why a path is not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("has no path that can be opened")]
    NoPath,
    #[error("is outside the workspace")]
    Outside,
    #[error("has a `..` that is not followed here")]
    Upwards,
    #[error("is or leads through a symbolic link that is not followed here")]
    Link,
    #[error("does not exist")]
    Missing,
    #[error("leads through something that is not a directory")]
    NoDirectory,
    #[error("is not a regular file")]
    Special,
    #[error("cannot be opened: {}", crate::model::io_reason(.0))]
    Failed(io::Error),
}

/// The error of a number of the system.
fn of_number(number: i32) -> OpenError {
    Errno::from_raw_os_error(number).into()
}

impl From<Errno> for OpenError {
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
    /// Opens a directory whose path has no symbolic links.
    ///
    /// Returns an error if the directory cannot be opened.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = open(path, INSPECT | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        // Whatever the reason for the failure, the other method does not need `openat2`.
        let resolution = if resolve(&root, Path::new("."), INSPECT).is_ok() {
            PathResolution::Openat2
        } else {
            PathResolution::StepByStep
        };
        Ok(Self { root, path: path.to_owned(), resolution })
    }

    /// The path of the directory, where it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its path still leads to the directory that was opened.
    pub(crate) fn is_in_place(&self) -> bool {
        let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
        let opened = fstat(&self.root).map(identity);
        let found = stat(&self.path).map(identity);
        opened.is_ok() && opened == found
    }

    /// What there is to know about a regular file without opening it, also through symbolic links that stay below the
    /// directory.
    ///
    /// Returns an error if the path is something else, leads outside or does not exist.
    pub(crate) fn metadata(&self, path: &Path) -> Result<Metadata, OpenError> {
        self.through_links(path, LastLink::Followed, |path| {
            let found = File::from(self.follow(path, INSPECT)?).metadata().map_err(OpenError::Failed)?;
            match () {
                () if found.is_file() => Ok(found),
                () if found.is_symlink() => Err(OpenError::Link),
                () => Err(OpenError::Special),
            }
        })
    }

    /// Opens a regular file for reading, also through symbolic links that stay below the directory.
    ///
    /// Returns an error if the path is something else, leads outside or cannot be opened.
    pub(crate) fn file(&self, path: &Path, last: LastLink) -> Result<File, OpenError> {
        let nofollow = if last == LastLink::Refused { OFlags::NOFOLLOW } else { OFlags::empty() };
        self.through_links(path, last, |path| {
            // Opened only to be looked at, as opening a device for reading may have effects.
            match file_type(&self.follow(path, INSPECT | nofollow)?)? {
                FileType::RegularFile => {
                    let file = self.follow(path, READ | nofollow)?;
                    // It may have been replaced since the check.
                    regular(file)?.ok_or(OpenError::Special)
                }
                FileType::Symlink => Err(OpenError::Link),
                _ => Err(OpenError::Special),
            }
        })
    }

    /// Opens a directory for reading, also through symbolic links that stay below this one.
    ///
    /// Returns an error if the path is something else, leads outside or cannot be opened.
    pub(crate) fn directory(&self, path: &Path) -> Result<OwnedFd, OpenError> {
        self.through_links(path, LastLink::Followed, |path| self.follow(path, READ | OFlags::DIRECTORY))
    }

    /// Whether there is a directory, also behind symbolic links that stay below this one.
    ///
    /// Returns an error if the path is something else, leads outside or does not exist.
    pub(crate) fn find_directory(&self, path: &Path) -> Result<(), OpenError> {
        let found = self
            .through_links(path, LastLink::Followed, |path| self.follow(path, INSPECT | OFlags::DIRECTORY));
        found.map(drop)
    }

    /// Opens a regular file or a directory for reading, through links only where the kernel follows them.
    ///
    /// Returns an error if the path is something else, leads outside or cannot be opened.
    pub(crate) fn find(&self, path: &Path) -> Result<OpenedPath, OpenError> {
        check_form(path)?;
        match file_type(&self.follow(path, INSPECT)?)? {
            FileType::RegularFile => {
                let file = self.follow(path, READ)?;
                // It may have been replaced since the check.
                regular(file)?.map(OpenedPath::File).ok_or(OpenError::Special)
            }
            FileType::Directory => Ok(OpenedPath::Directory(self.follow(path, READ | OFlags::DIRECTORY)?)),
            FileType::Symlink => Err(OpenError::Link),
            _ => Err(OpenError::Special),
        }
    }

    /// Opens a path; if links keep it from being opened, once more by its path without links. That path is only a hint
    /// where to look: like any other, it is opened below the directory.
    fn through_links<T>(
        &self,
        path: &Path,
        last: LastLink,
        open: impl Fn(&Path) -> Result<T, OpenError>,
    ) -> Result<T, OpenError> {
        check_form(path)?;
        match open(path) {
            Err(OpenError::Outside | OpenError::Link | OpenError::Upwards | OpenError::NoDirectory) => {
                open(&self.without_links(path, last)?)
            }
            opened => opened,
        }
    }

    fn without_links(&self, path: &Path, last: LastLink) -> Result<PathBuf, OpenError> {
        let full = self.path.join(path);
        let real = match (last, full.parent(), full.file_name()) {
            (LastLink::Refused, Some(above), Some(name)) => {
                above.canonicalize().map(|above| above.join(name))
            }
            _ => full.canonicalize(),
        };
        let real = real.map_err(|error| error.raw_os_error().map_or(OpenError::Missing, of_number))?;
        let inside = real.strip_prefix(&self.path).map_err(|_| OpenError::Outside)?;
        Ok(if inside.as_os_str().is_empty() { PathBuf::from(".") } else { inside.to_owned() })
    }

    fn follow(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, OpenError> {
        match self.resolution {
            PathResolution::Openat2 => Ok(resolve(&self.root, path, flags)?),
            PathResolution::StepByStep => self.resolve_by_steps(path, flags),
        }
    }

    fn resolve_by_steps(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, OpenError> {
        let mut names = Vec::new();
        for component in path.components() {
            match component {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir => return Err(OpenError::Upwards),
                Component::RootDir | Component::Prefix(_) => return Err(OpenError::Outside),
            }
        }
        let Some((&last, above)) = names.split_last() else { return Ok(child(&self.root, ".", flags)?) };
        let mut held = None;
        for &name in above {
            let directory = child(held.as_ref().unwrap_or(&self.root), name, INSPECT)?;
            if file_type(&directory)? == FileType::Symlink {
                return Err(OpenError::Link);
            }
            held = Some(directory);
        }
        Ok(child(held.as_ref().unwrap_or(&self.root), last, flags)?)
    }

    /// The same directory with either method.
    #[cfg(test)]
    pub(crate) fn both_resolutions(root: &Path) -> [Self; 2] {
        [PathResolution::Openat2, PathResolution::StepByStep]
            .map(|resolution| Self { resolution, ..Self::open(root).expect("a directory") })
    }
}

/// Checks the form of a path, before the kernel sees it.
fn check_form(path: &Path) -> Result<(), OpenError> {
    let bytes = path.as_os_str().as_bytes();
    if path.is_absolute() {
        Err(OpenError::Outside)
    } else if bytes.is_empty() || bytes.contains(&0) || bytes.len() >= MAX_PATH {
        Err(OpenError::NoPath)
    } else {
        Ok(())
    }
}

fn resolve(root: &OwnedFd, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
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
pub(crate) fn directory_in(directory: &impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    child(directory, name, READ | OFlags::DIRECTORY)
}

/// Opens a file by its name in a directory; `None` if it is not a regular file.
///
/// Returns an error if it is a link or cannot be opened.
pub(crate) fn file_in(directory: &impl AsFd, name: &OsStr) -> Result<Option<File>, Errno> {
    regular(child(directory, name, READ)?)
}

fn regular(opened: OwnedFd) -> Result<Option<File>, Errno> {
    Ok((file_type(&opened)? == FileType::RegularFile).then(|| File::from(opened)))
}

fn file_type(opened: &OwnedFd) -> Result<FileType, Errno> {
    fstat(opened).map(|stat| FileType::from_raw_mode(stat.st_mode))
}
