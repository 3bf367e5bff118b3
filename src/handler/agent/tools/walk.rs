//! Walks a directory depth first, names in byte order. Follows no links and skips `.git`.
//!
//! Each directory is opened by its name in its parent, which is still open: renaming directories during the walk cannot
//! lead it elsewhere.

use std::{
    ffi::{OsStr, OsString},
    fs::File,
    ops::ControlFlow,
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    vec,
};

use rustix::{
    fs::{AtFlags, Dir, FileType, statat},
    io::Errno,
};

use super::output::ToolOutput;
use crate::root_dir;

/// The most names that are read.
const MAX_ENTRIES: usize = 20_000;

/// How many directories deep the walk goes; each on the way down keeps a descriptor open.
const MAX_DEPTH: usize = 64;

/// The note of a tool that was stopped.
pub(super) const STOPPED_NOTE: &str = "stopped early: the time is over";

/// Something in the tree that is not a directory.
#[derive(Debug)]
pub(super) struct WalkEntry<'a> {
    /// Relative to the workspace's directory.
    pub(super) path: &'a Path,
    directory: &'a OwnedFd,
    kind: FileType,
}

impl WalkEntry<'_> {
    /// Opens a regular file; `None` if it is something else.
    ///
    /// Returns an error if it cannot be opened.
    pub(super) fn open(&self) -> Result<Option<File>, Errno> {
        match (self.kind, self.path.file_name()) {
            (FileType::RegularFile, Some(name)) => root_dir::file_in(self.directory, name),
            _ => Ok(None),
        }
    }
}

/// What a walk has left out.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct WalkOmissions {
    /// There are more names than are read.
    more: bool,
    /// The time was over.
    stopped: bool,
    /// Directories that were too deep.
    deep: usize,
    /// Directories that could not be read.
    unreadable: usize,
}

impl WalkOmissions {
    /// Adds a note about each.
    pub(super) fn tell(&self, answer: &mut ToolOutput) {
        if self.stopped {
            answer.note(STOPPED_NOTE);
        }
        if self.more {
            answer.note(&format!("stopped early: only {MAX_ENTRIES} files and directories are searched"));
        }
        if self.deep > 0 {
            answer.note(&format!("directories more than {MAX_DEPTH} deep, not entered: {}", self.deep));
        }
        if self.unreadable > 0 {
            answer.note(&format!("directories that could not be read: {}", self.unreadable));
        }
    }
}

#[derive(Debug)]
struct DirEntry {
    name: OsString,
    kind: FileType,
}

#[derive(Debug)]
struct OpenDirectory {
    directory: OwnedFd,
    path: PathBuf,
    entries: vec::IntoIter<DirEntry>,
}

struct Walk<'a> {
    levels: Vec<OpenDirectory>,
    left: usize,
    stop: &'a AtomicBool,
    omitted: WalkOmissions,
}

/// Visits everything in a tree that is not a directory, until the visitor breaks. `path` is the directory's path
/// relative to the workspace's.
pub(super) fn walk(
    directory: OwnedFd,
    path: PathBuf,
    stop: &AtomicBool,
    mut visit: impl FnMut(&WalkEntry<'_>) -> ControlFlow<()>,
) -> WalkOmissions {
    let mut walk = Walk { levels: Vec::new(), left: MAX_ENTRIES, stop, omitted: WalkOmissions::default() };
    walk.enter(directory, path);
    while let Some(level) = walk.levels.last_mut() {
        if walk.omitted.stopped || stop.load(Ordering::Relaxed) {
            walk.omitted.stopped = true;
            break;
        }
        let Some(DirEntry { name, kind }) = level.entries.next() else {
            walk.levels.pop();
            continue;
        };
        let path = level.path.join(&name);
        if kind == FileType::Directory {
            walk.descend(&name, path);
        } else if visit(&WalkEntry { path: &path, directory: &level.directory, kind }).is_break() {
            break;
        }
    }
    walk.omitted
}

impl Walk<'_> {
    fn descend(&mut self, name: &OsStr, path: PathBuf) {
        let Some(above) = self.levels.last() else { return };
        if name == ".git" {
            return;
        }
        if self.levels.len() > MAX_DEPTH {
            self.omitted.deep += 1;
        } else if self.left == 0 {
            self.omitted.more = true;
        } else if let Ok(directory) = root_dir::directory_in(&above.directory, name) {
            self.enter(directory, path);
        } else {
            self.omitted.unreadable += 1;
        }
    }

    fn enter(&mut self, directory: OwnedFd, path: PathBuf) {
        let mut entries = Vec::new();
        if self.list(&directory, &mut entries).is_err() {
            self.omitted.unreadable += 1;
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        self.levels.push(OpenDirectory { directory, path, entries: entries.into_iter() });
    }

    /// Reads the names in a directory, up to the limit.
    fn list(&mut self, directory: &OwnedFd, entries: &mut Vec<DirEntry>) -> Result<(), Errno> {
        for entry in Dir::read_from(directory)? {
            let entry = entry?;
            let name = OsStr::from_bytes(entry.file_name().to_bytes());
            if name == "." || name == ".." {
                continue;
            }
            if self.stop.load(Ordering::Relaxed) {
                self.omitted.stopped = true;
                break;
            }
            if self.left == 0 {
                self.omitted.more = true;
                break;
            }
            self.left -= 1;
            let kind = known(directory, name, entry.file_type());
            entries.push(DirEntry { name: name.to_owned(), kind });
        }
        Ok(())
    }
}

/// The type of an entry. Not every file system reports it with the name.
fn known(directory: &OwnedFd, name: &OsStr, kind: FileType) -> FileType {
    match kind {
        FileType::Unknown => statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_or(FileType::Unknown, |stat| FileType::from_raw_mode(stat.st_mode)),
        kind => kind,
    }
}
