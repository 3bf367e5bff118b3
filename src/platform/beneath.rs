//! Opens what is below a directory and nothing outside of it, whatever is renamed or replaced meanwhile.
//!
//! The kernel resolves a path where it can. Elsewhere it is resolved here, name by name: each directory is opened in the
//! one before, no link is ever followed by the system, and the text of one that leads on below the directory is taken for
//! more names. A name that has become a link in between is an error.

use std::{
    collections::VecDeque,
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io,
    os::{
        fd::{AsFd, BorrowedFd, OwnedFd},
        unix::ffi::OsStringExt,
    },
    path::{Component, Path},
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, open, readlinkat, stat, statat},
    io::Errno,
};

use super::{DIRECTORY_HANDLE, READ, kernel_resolves, metadata_in, open_entry, resolve_by_kernel, type_of};

/// The most links on the way to one file, as Linux has it.
const MOST_LINKS: usize = 40;

/// Whether the last name of a path may be a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LastLink {
    /// It may not.
    Refused,
    /// It may, if it stays below the directory.
    Followed,
}

/// An open directory below which paths are resolved.
#[derive(Debug)]
pub(crate) struct OpenBeneath {
    root: OwnedFd,
    resolution: PathResolution,
}

/// How a path is resolved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PathResolution {
    ByKernel,
    NameByName,
}

impl OpenBeneath {
    /// Opens a directory whose path has no symbolic links.
    ///
    /// Returns an error if it cannot be opened.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let root = open(path, DIRECTORY_HANDLE | OFlags::DIRECTORY | OFlags::NOFOLLOW, Mode::empty())?;
        let resolution =
            if kernel_resolves(&root) { PathResolution::ByKernel } else { PathResolution::NameByName };
        Ok(Self { root, resolution })
    }

    /// Whether a path leads to this directory.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
        let opened = fstat(&self.root).map(identity);
        let found = stat(path).map(identity);
        opened.is_ok() && opened == found
    }

    /// What there is at a path, without opening it: a device may have effects.
    pub(crate) fn file_type(&self, path: &Path, last: LastLink) -> Result<FileType, Errno> {
        match self.resolution {
            PathResolution::ByKernel => {
                let opened = resolve_by_kernel(&self.root, path, nofollow(DIRECTORY_HANDLE, last))?;
                type_of(&opened)
            }
            PathResolution::NameByName => {
                let place = self.locate(path, last)?;
                let found = statat(place.directory(&self.root), &place.name, AtFlags::SYMLINK_NOFOLLOW)?;
                Ok(FileType::from_raw_mode(found.st_mode))
            }
        }
    }

    /// What there is to know about a regular file; `None` if something else is there.
    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Option<Metadata>> {
        match self.resolution {
            PathResolution::ByKernel => {
                let found = File::from(resolve_by_kernel(&self.root, path, DIRECTORY_HANDLE)?).metadata()?;
                Ok(Some(found).filter(Metadata::is_file))
            }
            PathResolution::NameByName => {
                let place = self.locate(path, LastLink::Followed)?;
                metadata_in(&place.directory(&self.root), &place.name)
            }
        }
    }

    /// Opens a path for reading.
    pub(crate) fn file(&self, path: &Path, last: LastLink) -> Result<OwnedFd, Errno> {
        self.opened(path, nofollow(READ, last), last)
    }

    /// Opens a directory for reading.
    pub(crate) fn directory(&self, path: &Path) -> Result<OwnedFd, Errno> {
        self.opened(path, READ | OFlags::DIRECTORY, LastLink::Followed)
    }

    /// Returns an error unless there is a directory.
    pub(crate) fn find_directory(&self, path: &Path) -> Result<(), Errno> {
        self.opened(path, DIRECTORY_HANDLE | OFlags::DIRECTORY, LastLink::Followed).map(drop)
    }

    fn opened(&self, path: &Path, flags: OFlags, last: LastLink) -> Result<OwnedFd, Errno> {
        match self.resolution {
            PathResolution::ByKernel => resolve_by_kernel(&self.root, path, flags),
            PathResolution::NameByName => {
                let place = self.locate(path, last)?;
                open_entry(&place.directory(&self.root), &*place.name, flags)
            }
        }
    }

    /// Finds the directory and the name to which a path leads, which is no link unless those are refused.
    fn locate(&self, path: &Path, last: LastLink) -> Result<LocatedName, Errno> {
        let mut walk = NameWalk { root: self.root.as_fd(), at: Vec::new(), held: None, links: 0 };
        let mut ahead = VecDeque::new();
        push_names(&mut ahead, path)?;
        while let Some(name) = ahead.pop_front() {
            if name == ".." {
                walk.go_up()?;
            } else if !ahead.is_empty() {
                walk.enter(name, &mut ahead)?;
            } else if last == LastLink::Refused || !walk.follow(&name, &mut ahead)? {
                return Ok(LocatedName { directory: walk.held, name });
            }
        }
        Ok(LocatedName { directory: walk.held, name: ".".into() })
    }

    /// The same directory with either way of resolving.
    #[cfg(test)]
    pub(crate) fn both_resolutions(path: &Path) -> [Self; 2] {
        let opened = || Self::open(path).expect("a directory");
        [opened(), Self { resolution: PathResolution::NameByName, ..opened() }]
    }
}

/// Where a path leads.
struct LocatedName {
    /// `None` for the root.
    directory: Option<OwnedFd>,
    name: OsString,
}

impl LocatedName {
    fn directory<'a>(&'a self, root: &'a OwnedFd) -> BorrowedFd<'a> {
        self.directory.as_ref().unwrap_or(root).as_fd()
    }
}

/// A walk from a directory down.
struct NameWalk<'a> {
    root: BorrowedFd<'a>,
    /// The names of the directories from the root on, none of them a link.
    at: Vec<OsString>,
    /// The last of them; `None` for the root.
    held: Option<OwnedFd>,
    links: usize,
}

impl NameWalk<'_> {
    fn directory(&self) -> BorrowedFd<'_> {
        self.held.as_ref().map_or(self.root, AsFd::as_fd)
    }

    /// Enters a directory, or puts the names of a link before those that are ahead.
    fn enter(&mut self, name: OsString, ahead: &mut VecDeque<OsString>) -> Result<(), Errno> {
        match open_entry(&self.directory(), &*name, DIRECTORY_HANDLE | OFlags::DIRECTORY) {
            Ok(entered) => {
                self.held = Some(entered);
                self.at.push(name);
                Ok(())
            }
            // Systems differ in how they refuse a link.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) if self.follow(&name, ahead)? => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Puts the names of a link before those that are ahead; returns whether there is a link.
    fn follow(&mut self, name: &OsStr, ahead: &mut VecDeque<OsString>) -> Result<bool, Errno> {
        let target = match readlinkat(self.directory(), name, Vec::new()) {
            Ok(target) => OsString::from_vec(target.into_bytes()),
            // It is something else.
            Err(Errno::INVAL) => return Ok(false),
            Err(error) => return Err(error),
        };
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP);
        }
        push_names(ahead, Path::new(&target))?;
        Ok(true)
    }

    /// Goes one directory up, by a walk from the root: what was moved away meanwhile leads nowhere else.
    fn go_up(&mut self) -> Result<(), Errno> {
        self.at.pop().ok_or(Errno::XDEV)?;
        self.held = None;
        for name in &self.at {
            let entered = open_entry(&self.directory(), &**name, DIRECTORY_HANDLE | OFlags::DIRECTORY)?;
            self.held = Some(entered);
        }
        Ok(())
    }
}

/// Puts the names of a path before those that are ahead. An absolute one is outside.
fn push_names(ahead: &mut VecDeque<OsString>, path: &Path) -> Result<(), Errno> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::ParentDir => names.push("..".into()),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    names.into_iter().rev().for_each(|name| ahead.push_front(name));
    Ok(())
}

fn nofollow(flags: OFlags, last: LastLink) -> OFlags {
    if last == LastLink::Refused { flags | OFlags::NOFOLLOW } else { flags }
}
