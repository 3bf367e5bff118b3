//! The files of one workspace: whatever a path or a link says, nothing outside its directory is opened.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::{File, Metadata},
    io::{self, ErrorKind},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use rustix::fs::Dir;

use super::files::{self, FileBytes};
use crate::{
    dialect::SettingsLocation,
    model::{Diagnostic, Severity},
    root_dir::{LastLink, OpenError, RootDir},
};

/// How many settings files a directory of an agent may have.
const MOST_SETTINGS_FILES: usize = 64;

/// How many other names beside them are looked at.
const MOST_OTHERS: usize = 64;

/// Read-only access to the directory of a workspace, which stays the one that was opened if its path is replaced.
#[derive(Debug)]
pub(super) struct WorkspaceFiles {
    path: PathBuf,
    /// None if nothing of it may be read.
    root: Option<RootDir>,
}

impl WorkspaceFiles {
    /// Opens a directory whose path has no symbolic links.
    ///
    /// Returns an error if it cannot be opened.
    pub(super) fn open(root: &Path) -> io::Result<Self> {
        RootDir::open(root).map(Self::of)
    }

    fn of(root: RootDir) -> Self {
        Self { path: root.path().to_owned(), root: Some(root) }
    }

    /// A workspace without any files.
    pub(super) fn none(root: &Path) -> Self {
        Self { path: root.to_owned(), root: None }
    }

    /// The path of the workspace's directory.
    pub(super) fn root(&self) -> &Path {
        &self.path
    }

    fn opened(&self) -> Result<&RootDir, OpenError> {
        self.root.as_ref().ok_or(OpenError::Missing)
    }

    /// Whether files of it may be read.
    pub(super) fn has_files(&self) -> bool {
        self.root.is_some()
    }

    /// Whether the path of the workspace still leads to the directory that was opened.
    pub(super) fn is_in_place(&self) -> bool {
        self.root.as_ref().is_none_or(RootDir::is_in_place)
    }

    /// Reads a small regular file by its path, which begins with that of the workspace.
    ///
    /// Returns a diagnostic if it is not one, or cannot be read.
    pub(super) fn read(&self, path: PathBuf, last: LastLink) -> Result<FileBytes, Box<Diagnostic>> {
        let file = self.file(&path, last);
        files::with_bytes(path, file)
    }

    /// Opens a regular file by its path, which begins with that of the workspace.
    ///
    /// Returns what to say after its name if it is not one, or cannot be opened.
    pub(super) fn file(&self, path: &Path, last: LastLink) -> Result<File, String> {
        let relative = path.strip_prefix(self.root()).map_err(|_| OpenError::Outside);
        let file = relative.and_then(|relative| self.opened()?.file(relative, last));
        file.map_err(|error| why_no_file(&error, last))
    }

    /// What there is to know about a regular file without opening it, by its path, which begins with that of the workspace.
    ///
    /// Returns what to say after its name if it is not one, or not there.
    pub(super) fn metadata(&self, path: &Path) -> Result<Metadata, String> {
        let relative = path.strip_prefix(self.root()).map_err(|_| OpenError::Outside);
        let metadata = relative.and_then(|relative| self.opened()?.metadata(relative));
        metadata.map_err(|error| why_no_file(&error, LastLink::Followed))
    }

    /// The bytes of a regular file by its path relative to the workspace.
    ///
    /// Returns why if there are none.
    pub(super) fn bytes(&self, relative: &Path, largest: u64) -> Result<Vec<u8>, UnreadFile> {
        let file = self.opened().and_then(|root| root.file(relative, LastLink::Refused));
        let file = file.map_err(|error| match error {
            OpenError::Missing | OpenError::NoDirectory => UnreadFile::Missing,
            OpenError::Outside => UnreadFile::Outside,
            OpenError::Link if self.leads_outside(relative) => UnreadFile::Outside,
            OpenError::Link => UnreadFile::Other(files::IS_A_LINK.to_owned()),
            other => UnreadFile::Other(files::why(&other)),
        })?;
        files::read_open(file, largest).map_err(UnreadFile::Other)
    }

    /// Whether a link leads outside: only for the message about it.
    fn leads_outside(&self, relative: &Path) -> bool {
        self.root().join(relative).canonicalize().is_ok_and(|real| !real.starts_with(self.root()))
    }

    /// Opens a directory by its path relative to the workspace, to list it; `None` if there is none.
    ///
    /// Returns why if it is something else, leads outside or cannot be read.
    pub(super) fn directory(&self, relative: &Path) -> Result<Option<OwnedFd>, String> {
        self.unless_missing(relative, self.opened().and_then(|root| root.directory(relative)))
    }

    /// Whether there is a directory at a path relative to the workspace.
    ///
    /// Returns why if it is something else or leads outside.
    pub(super) fn has_directory(&self, relative: &Path) -> Result<bool, String> {
        let found = self.opened().and_then(|root| root.find_directory(relative));
        Ok(self.unless_missing(relative, found)?.is_some())
    }

    fn unless_missing<T>(&self, relative: &Path, found: Result<T, OpenError>) -> Result<Option<T>, String> {
        match found {
            Ok(directory) => Ok(Some(directory)),
            Err(OpenError::Missing)
                if !self.has_files() || self.root().join(relative).symlink_metadata().is_err() =>
            {
                Ok(None)
            }
            Err(OpenError::NoDirectory) => Err("is not a directory".to_owned()),
            Err(OpenError::Outside) => Err(files::LEADS_OUTSIDE.to_owned()),
            Err(error) => Err(files::why(&error)),
        }
    }

    /// The same workspace with each way of resolving paths.
    #[cfg(test)]
    pub(super) fn both_resolutions(root: &Path) -> [Self; 2] {
        RootDir::both_resolutions(root).map(Self::of)
    }
}

fn why_no_file(error: &OpenError, last: LastLink) -> String {
    match error {
        OpenError::Link if last == LastLink::Refused => files::IS_A_LINK.to_owned(),
        OpenError::Outside => files::LEADS_OUTSIDE.to_owned(),
        other => files::why(other),
    }
}

/// Why a file was not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UnreadFile {
    /// It does not exist.
    Missing,
    /// It is outside the workspace.
    Outside,
    /// What to say after its name.
    Other(String),
}

/// Calls `visit` with each name in a directory, in the order of the file system.
///
/// Returns why if it cannot be read.
pub(super) fn each_name(directory: OwnedFd, mut visit: impl FnMut(OsString)) -> Result<(), String> {
    let unreadable = |errno: rustix::io::Errno| files::unreadable(errno.into());
    let entries = Dir::new(directory).map_err(unreadable)?;
    for entry in entries {
        let entry = entry.map_err(unreadable)?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if name != "." && name != ".." {
            visit(name.to_owned());
        }
    }
    Ok(())
}

/// Whether there is something at a path below a directory, or nobody can tell: what cannot be looked at may be the file of
/// a guard. So may what is behind a link that leads nowhere, or in the place of a directory. Nothing is below a directory
/// that is not there.
pub(super) fn is_there(directory: &Path, path: &Path) -> bool {
    let absent = [ErrorKind::NotFound, ErrorKind::NotADirectory];
    let is_absent = |error: &std::io::Error| absent.contains(&error.kind());
    if directory.metadata().map_or_else(|error| is_absent(&error), |found| !found.is_dir()) {
        return false;
    }
    match directory.join(path).symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
            // What is there leads somewhere if what is above it does.
            let nearest =
                above.map(|above| directory.join(above)).find(|above| above.symlink_metadata().is_ok());
            nearest.is_some_and(|nearest| nearest.metadata().is_err())
        }
        _ => true,
    }
}

/// The settings files in a directory of an agent, in byte order of their names, and what is wrong with it.
pub(super) fn settings_files(
    directory: &Path,
    opened: Result<Option<OwnedFd>, String>,
) -> (BTreeSet<PathBuf>, Vec<Diagnostic>) {
    let (mut files, mut others, mut total) = (BTreeSet::new(), BTreeSet::new(), 0);
    let listed = opened.and_then(|opened| match opened {
        None => Ok(()),
        Some(opened) => each_name(opened, |name| {
            let is_file = SettingsLocation::takes(&name);
            total += usize::from(is_file);
            let (names, most) =
                if is_file { (&mut files, MOST_SETTINGS_FILES) } else { (&mut others, MOST_OTHERS) };
            names.insert(directory.join(name));
            if names.len() > most {
                names.pop_last();
            }
        }),
    });
    let mut diagnostics = Vec::new();
    if let Err(why) = listed {
        let message = format!("the directory {why}");
        diagnostics.push(Diagnostic::of_file(Severity::Error, "unreadable", directory, message));
    }
    if total > MOST_SETTINGS_FILES {
        let message =
            format!("{total} settings files; only the first {MOST_SETTINGS_FILES} by name are loaded");
        let error = Diagnostic::of_file(Severity::Error, "too-many-files", directory, message);
        diagnostics.push(error.help("remove files, or join those that do the same"));
    }
    let below = others.iter().filter(|path| path.is_dir());
    diagnostics.extend(below.map(|path| {
        let message = "files of this directory are not read, but those of the directory above";
        let warning = Diagnostic::of_file(Severity::Warning, "ignored-file", path, message);
        warning.help("move them up, or leave their hooks to the agent")
    }));
    (files, diagnostics)
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    /// Kernels before 5.6 and some sandboxes have no `openat2`.
    #[test]
    fn both_ways_of_resolving_paths_agree() {
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("file"), "outside").unwrap();
        let root = tempfile::tempdir().unwrap();
        let path = root.path().canonicalize().unwrap();
        fs::create_dir(path.join("real")).unwrap();
        fs::write(path.join("real/file"), "inside").unwrap();
        let links: [(&Path, &str); 7] = [
            (Path::new("real"), "directory"),
            (&path.join("real"), "absolute"),
            (outside.path(), "away"),
            (Path::new("real/file"), "linked"),
            (&outside.path().join("file"), "linked-away"),
            (Path::new("loop"), "loop"),
            (Path::new("nothing"), "dangling"),
        ];
        for (target, link) in links {
            symlink(target, path.join(link)).unwrap();
        }
        let read = |last: LastLink| {
            [
                "real/file",
                "directory/file",
                "absolute/file",
                "away/file",
                "linked",
                "linked-away",
                "loop",
                "dangling",
                "real",
                "none",
                "real/file/x",
            ]
            .map(|name| {
                let [kernel, steps] = WorkspaceFiles::both_resolutions(&path).map(|workspace| {
                    let read = workspace.read(path.join(name), last);
                    read.map(|file| String::from_utf8(file.bytes).unwrap()).map_err(|d| d.message)
                });
                assert_eq!(kernel, steps, "{name}");
                kernel
            })
        };
        let inside = || Ok("inside".to_owned());
        let refused = |why: &str| Err(format!("the file {why}"));
        let link = || refused(files::IS_A_LINK);
        let away = || refused(files::LEADS_OUTSIDE);
        let missing = || refused("does not exist");
        let special = || refused("is not a regular file");
        let below = || refused("leads through something that is not a directory");
        assert_eq!(
            read(LastLink::Refused),
            [
                inside(),
                inside(),
                inside(),
                away(),
                link(),
                link(),
                link(),
                link(),
                special(),
                missing(),
                below()
            ]
        );
        let looped = || refused("is or leads through a symbolic link that is not followed here");
        assert_eq!(
            read(LastLink::Followed),
            [
                inside(),
                inside(),
                inside(),
                away(),
                inside(),
                away(),
                looped(),
                missing(),
                special(),
                missing(),
                below()
            ]
        );
        for workspace in WorkspaceFiles::both_resolutions(&path) {
            for name in ["real", "directory", "absolute"] {
                assert!(workspace.directory(Path::new(name)).unwrap().is_some(), "{name}");
                assert_eq!(workspace.has_directory(Path::new(name)), Ok(true), "{name}");
            }
            assert_eq!(workspace.has_directory(Path::new("none")), Ok(false));
            assert_eq!(workspace.has_directory(Path::new("away")), Err(files::LEADS_OUTSIDE.to_owned()));
            assert_eq!(workspace.has_directory(Path::new("real/file")), Err("is not a directory".to_owned()));
        }
    }
}
