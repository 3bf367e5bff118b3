//! Opens files below a workspace's directory, and nothing outside of it, so that a directory cannot be replaced by a link
//! between check and use.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Component, Path, PathBuf},
};

use rustix::{
    fd::AsFd,
    fs::{FileType, OFlags},
    io::Errno,
};

pub(crate) use crate::platform::LastLink;
use crate::platform::{OpenBeneath, READ, open_entry, type_of};

/// The longest path, in bytes: the kernel's own limit.
const MAX_PATH: usize = 4096;

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
    root: OpenBeneath,
    /// The directory's path without symbolic links, where it was opened.
    path: PathBuf,
}

/// What was opened.
#[derive(Debug)]
pub(crate) enum OpenedPath {
    File(File),
    Directory(OwnedFd),
}

/// Why a path is not opened.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OpenError {
    #[error("has no path that can be opened")]
    NoPath,
    #[error("is outside the workspace")]
    Outside,
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

fn of_error(error: io::Error) -> OpenError {
    error.raw_os_error().map_or_else(|| OpenError::Failed(error), of_number)
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
        Ok(Self { root: OpenBeneath::open(path)?, path: path.to_owned() })
    }

    /// The path of the directory, where it was opened.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether its path still leads to the directory that was opened.
    pub(crate) fn is_in_place(&self) -> bool {
        self.root.is_at(&self.path)
    }

    /// What there is to know about a regular file without opening it, also through symbolic links that stay below the
    /// directory.
    ///
    /// Returns an error if the path is something else, leads outside or does not exist.
    pub(crate) fn metadata(&self, path: &Path) -> Result<Metadata, OpenError> {
        self.through_links(path, LastLink::Followed, |path| {
            self.root.metadata(path).map_err(of_error)?.ok_or(OpenError::Special)
        })
    }

    /// Opens a regular file for reading, also through symbolic links that stay below the directory.
    ///
    /// Returns an error if the path is something else, leads outside or cannot be opened.
    pub(crate) fn file(&self, path: &Path, last: LastLink) -> Result<File, OpenError> {
        self.through_links(path, last, |path| {
            // Opened only to be looked at, as opening a device for reading may have effects.
            match self.root.file_type(path, last)? {
                FileType::RegularFile => {
                    let file = self.root.file(path, last)?;
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
        self.through_links(path, LastLink::Followed, |path| Ok(self.root.directory(path)?))
    }

    /// Whether there is a directory, also behind symbolic links that stay below this one.
    ///
    /// Returns an error if the path is something else, leads outside or does not exist.
    pub(crate) fn find_directory(&self, path: &Path) -> Result<(), OpenError> {
        self.through_links(path, LastLink::Followed, |path| Ok(self.root.find_directory(path)?))
    }

    /// Opens a regular file or a directory for reading, also through relative links that stay below this one.
    ///
    /// Returns an error if the path is something else, leads outside or cannot be opened.
    pub(crate) fn find(&self, path: &Path) -> Result<OpenedPath, OpenError> {
        check_form(path)?;
        match self.root.file_type(path, LastLink::Followed)? {
            FileType::RegularFile => {
                let file = self.root.file(path, LastLink::Followed)?;
                // It may have been replaced since the check.
                regular(file)?.map(OpenedPath::File).ok_or(OpenError::Special)
            }
            FileType::Directory => Ok(OpenedPath::Directory(self.root.directory(path)?)),
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
            Err(OpenError::Outside | OpenError::Link | OpenError::NoDirectory) => {
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

    /// The same directory with either way of resolving paths.
    #[cfg(test)]
    pub(crate) fn both_resolutions(path: &Path) -> [Self; 2] {
        OpenBeneath::both_resolutions(path).map(|root| Self { root, path: path.to_owned() })
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

/// Opens a directory by its name in another.
///
/// Returns an error if it is a link or no directory.
pub(crate) fn directory_in(directory: &impl AsFd, name: &OsStr) -> Result<OwnedFd, Errno> {
    open_entry(directory, name, READ | OFlags::DIRECTORY)
}

/// Opens a file by its name in a directory; `None` if it is not a regular file.
///
/// Returns an error if it is a link or cannot be opened.
pub(crate) fn file_in(directory: &impl AsFd, name: &OsStr) -> Result<Option<File>, Errno> {
    regular(open_entry(directory, name, READ)?)
}

fn regular(opened: OwnedFd) -> Result<Option<File>, Errno> {
    Ok((type_of(&opened)? == FileType::RegularFile).then(|| File::from(opened)))
}
