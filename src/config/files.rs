//! Bounded reads of regular files that cannot block on a FIFO or follow a symbolic link unasked.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    os::{fd::OwnedFd, unix::fs::MetadataExt},
    path::{Component, Path, PathBuf},
    sync::Arc,
};
#[cfg(any(feature = "cli", feature = "store"))]
use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt};
#[cfg(feature = "cli")]
use std::{io::Write, os::unix::fs::OpenOptionsExt};

#[cfg(feature = "cli")]
use rustix::fs::{FlockOperation, flock};
use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
    process::geteuid,
};

use crate::{
    model::{Diagnostic, Severity, io_reason},
    root_dir::OpenError,
};

/// The largest hook file, in bytes.
const LARGEST_FILE: u64 = 256 << 10;

/// How many symbolic links of a path are followed: as many as the kernel does.
const MOST_LINKS: usize = 40;

/// The bytes of files with hooks. Trust is checked against these, not against what another reading would find.
pub(super) type DefinitionFiles = HashMap<PathBuf, Arc<[u8]>>;

/// A file that was read.
#[derive(Debug)]
pub(super) struct FileBytes {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// The message about a link where a file must be.
pub(super) const IS_A_LINK: &str = "is a symbolic link; put the file itself here";

/// The message about a link that leads outside.
pub(super) const LEADS_OUTSIDE: &str = "is a symbolic link that leads outside the workspace";

/// Reads a small regular file, also through symbolic links.
///
/// Returns a diagnostic if it is not one, or cannot be read.
pub(super) fn read_anywhere(path: PathBuf) -> Result<FileBytes, Box<Diagnostic>> {
    let file = open_regular(&path, SymlinkPolicy::Followed);
    with_bytes(path, file)
}

/// The bytes of a small file that was opened, or a diagnostic that says why it was not.
pub(super) fn with_bytes(path: PathBuf, file: Result<File, String>) -> Result<FileBytes, Box<Diagnostic>> {
    match file.and_then(|file| read_open(file, LARGEST_FILE)) {
        Ok(bytes) => Ok(FileBytes { path, bytes }),
        Err(why) => {
            let code = if why.contains("bytes") { "too-large" } else { "unreadable" };
            Err(Box::new(Diagnostic::of_file(Severity::Error, code, &path, format!("the file {why}"))))
        }
    }
}

/// Whether a path leads to a directory, or into it, on its way, links and all. What cannot be looked at is taken as it is
/// written: where a link of a user leads nowhere, it still is no link into a workspace.
pub(super) fn leads_through(path: &Path, directory: &Path) -> bool {
    follow(path, |place, link| link.is_none() && place.starts_with(directory))
}

/// Whether a directory, which need not exist yet, is inside another one, by its name or through links.
pub(super) fn is_inside(directory: &Path, other: &Path) -> bool {
    let real = directory.ancestors().find_map(|above| {
        let rest = directory.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    directory.starts_with(other) || real.is_some_and(|real| real.starts_with(other))
}

/// A known directory in whose place there is a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReplacedDirectory {
    pub(crate) directory: PathBuf,
    /// The link, which may be in the place of a directory above it.
    pub(crate) link: PathBuf,
}

/// The innermost known directory that a path leads into by its name only, because a link is in its place.
pub(crate) fn replaced_directory(path: &Path, is_known: &dyn Fn(&Path) -> bool) -> Option<ReplacedDirectory> {
    let mut found = None;
    follow(path, |place, ahead| {
        let Some(ahead) = ahead else { return false };
        let plain = ahead.iter().rev().take_while(|name| *name != "..");
        let spelled: PathBuf =
            [place.as_os_str()].into_iter().chain(plain.map(OsString::as_os_str)).collect();
        let mut replaced = spelled.ancestors().take_while(|directory| directory.starts_with(place));
        let known = replaced.find(|directory| is_known(directory));
        found = known.map(|known| ReplacedDirectory { directory: known.to_owned(), link: place.to_owned() });
        found.is_some()
    });
    found
}

/// Follows a path name by name, until `is_found` says so of a place on its way. Of a link, it also gets the names after
/// it, the last one first. Returns whether it did.
fn follow(path: &Path, mut is_found: impl FnMut(&Path, Option<&[OsString]>) -> bool) -> bool {
    let mut real = PathBuf::from("/");
    let mut links = 0;
    let mut pending = names_backwards(path);
    while let Some(name) = pending.pop() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        match fs::read_link(&next) {
            Ok(target) if links < MOST_LINKS => {
                if is_found(&next, Some(&pending)) {
                    return true;
                }
                links += 1;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                pending.extend(names_backwards(&target));
            }
            _ => {
                if is_found(&next, None) {
                    return true;
                }
                real = next;
            }
        }
    }
    false
}

/// The names in a path, the last one first.
fn names_backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    names.collect()
}

/// What to say after the name of a file that was not opened below a directory.
pub(super) fn why(error: &OpenError) -> String {
    match error {
        OpenError::Special => "is not a regular file".to_owned(),
        OpenError::Failed(error) => format!("cannot be read: {}", io_reason(error)),
        other => other.to_string(),
    }
}

/// Whether a file may be named by a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymlinkPolicy {
    /// It may not: whoever can write here could have another file read.
    Refused,
    /// It may.
    Followed,
}

/// The bytes of a regular file that only its owner, who is this user or root, can read.
#[cfg(feature = "daemon")]
pub(crate) fn read_private(path: &Path, largest: u64) -> Result<Vec<u8>, String> {
    let file = open_regular(path, SymlinkPolicy::Followed)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("is open to others: its mode is {mode:04o}; run `chmod 600 {}`", path.display()));
    }
    if metadata.uid() != 0 && metadata.uid() != geteuid().as_raw() {
        return Err("belongs to another user".to_owned());
    }
    read_open(file, largest)
}

/// Why a file of the state directory is not used or not written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}", path = path.display())]
pub(crate) struct StateFileError {
    pub(super) path: PathBuf,
    pub(super) why: String,
    pub(super) reason: StateFileFault,
}

/// What is wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum StateFileFault {
    /// What is there cannot be used: somebody else may have written it, or it is damaged.
    Unusable,
    /// It could not be written.
    #[cfg_attr(
        not(any(feature = "cli", feature = "store")),
        expect(dead_code, reason = "only commands and a store write")
    )]
    Unwritten,
}

impl StateFileError {
    pub(super) fn unusable(path: &Path, why: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into(), reason: StateFileFault::Unusable }
    }

    #[cfg(any(feature = "cli", feature = "store"))]
    fn unwritten(path: &Path, error: &io::Error) -> Self {
        Self { path: path.to_owned(), why: io_reason(error), reason: StateFileFault::Unwritten }
    }
}

/// A directory for files that only this user can have written.
#[derive(Debug, Clone, Copy)]
pub(super) struct StateDirectory<'a>(pub(super) &'a Path);

impl StateDirectory<'_> {
    /// The bytes of a file; none if it or the directory is missing.
    ///
    /// Returns an error unless both belong to this user, who alone can write them.
    pub(super) fn read(
        self,
        name: impl AsRef<Path>,
        largest: u64,
    ) -> Result<Option<Vec<u8>>, StateFileError> {
        let unreadable = |path: &Path, error: &io::Error| StateFileError::unusable(path, io_reason(error));
        match self.0.symlink_metadata() {
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(None);
            }
            Err(error) => return Err(unreadable(self.0, &error)),
            Ok(_) => self.check()?,
        }
        let path = self.0.join(name.as_ref());
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = match open(&path, flags, Mode::empty()) {
            Ok(file) => File::from(file),
            Err(Errno::NOENT) => return Ok(None),
            Err(Errno::LOOP) => return Err(StateFileError::unusable(&path, "it is a symbolic link")),
            Err(error) => return Err(unreadable(&path, &error.into())),
        };
        let metadata = file.metadata().map_err(|error| unreadable(&path, &error))?;
        let why = match () {
            () if !metadata.is_file() => Some("it is no regular file"),
            () if metadata.uid() != geteuid().as_raw() => Some("it belongs to another user"),
            () if metadata.mode() & 0o077 != 0 => Some("others may read or write it"),
            () if metadata.nlink() > 1 => Some("it has another name"),
            () if metadata.len() > largest => Some("it is too large"),
            () => None,
        };
        if let Some(why) = why {
            return Err(StateFileError::unusable(&path, why));
        }
        let mut bytes = Vec::new();
        file.take(largest).read_to_end(&mut bytes).map_err(|error| unreadable(&path, &error))?;
        Ok(Some(bytes))
    }

    /// Checks that it belongs to this user, who alone can write to it.
    pub(super) fn check(self) -> Result<(), StateFileError> {
        let metadata = self.0.symlink_metadata();
        let metadata = metadata.map_err(|error| StateFileError::unusable(self.0, io_reason(&error)))?;
        let why = match () {
            () if metadata.is_symlink() => "it is a symbolic link",
            () if !metadata.is_dir() => "it is no directory",
            () if metadata.uid() != geteuid().as_raw() => "it belongs to another user",
            () if metadata.mode() & 0o022 != 0 => "others may write to it; run `chmod go-w` on it",
            () => return Ok(()),
        };
        Err(StateFileError::unusable(self.0, why))
    }

    /// Makes it for this user alone, with those above it.
    #[cfg(any(feature = "cli", feature = "store"))]
    pub(super) fn make(self) -> Result<(), StateFileError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(self.0);
        made.map_err(|error| StateFileError::unwritten(self.0, &error))?;
        self.check()
    }
}

#[cfg(feature = "cli")]
impl StateDirectory<'_> {
    /// Makes it, and takes the lock of a file in it, which ends when the lock is dropped.
    pub(super) fn lock(self, name: &str) -> Result<File, StateFileError> {
        self.make()?;
        let (path, lock) = self.open_lock(name)?;
        flock(&lock, FlockOperation::LockExclusive)
            .map_err(|error| StateFileError::unwritten(&path, &error.into()))?;
        Ok(lock)
    }

    /// Takes the lock of a file in it; none if another process has it.
    pub(super) fn try_lock(self, name: &str) -> Result<Option<File>, StateFileError> {
        self.check()?;
        let (path, lock) = self.open_lock(name)?;
        match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => Ok(Some(lock)),
            Err(Errno::AGAIN) => Ok(None),
            Err(error) => Err(StateFileError::unwritten(&path, &error.into())),
        }
    }

    fn open_lock(self, name: &str) -> Result<(PathBuf, File), StateFileError> {
        let path = self.0.join(name);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let lock = open(&path, flags, Mode::RUSR | Mode::WUSR)
            .map_err(|error| StateFileError::unwritten(&path, &error.into()))?;
        Ok((path, File::from(lock)))
    }

    /// Writes a file at once or not at all.
    pub(super) fn replace(self, name: &str, bytes: &[u8]) -> Result<(), StateFileError> {
        let path = self.0.join(name);
        let new = self.0.join(format!("{name}.new"));
        let write = || {
            match fs::remove_file(&new) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut target = File::options().create_new(true).write(true).mode(0o600).open(&new)?;
            target.write_all(bytes)?;
            target.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(self.0)?.sync_all()
        };
        write().map_err(|error| StateFileError::unwritten(&path, &error))
    }
}

/// Opens a regular file without waiting, as opening a FIFO would.
pub(super) fn open_regular(path: &Path, links: SymlinkPolicy) -> Result<File, String> {
    let usual = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let flags = if links == SymlinkPolicy::Refused { usual | OFlags::NOFOLLOW } else { usual };
    let file = match open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::LOOP) if links == SymlinkPolicy::Refused => {
            return Err(IS_A_LINK.to_owned());
        }
        Err(error) => return Err(unreadable(error.into())),
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_file() { Ok(file) } else { Err("is not a regular file".to_owned()) }
}

/// Opens a directory to list it.
pub(super) fn open_directory(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR => "is not a directory".to_owned(),
        other => unreadable(other.into()),
    })
}

/// The bytes of an open file.
pub(super) fn read_open(file: File, largest: u64) -> Result<Vec<u8>, String> {
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.len() > largest {
        return Err(too_large(largest));
    }
    // With room to see the end of the file in the same buffer.
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default() + 64);
    file.take(largest + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    // The file may have grown since it was measured.
    if bytes.len() as u64 > largest { Err(too_large(largest)) } else { Ok(bytes) }
}

fn too_large(largest: u64) -> String {
    format!("is larger than the {largest} bytes allowed")
}

/// What to say after the name of a file or directory.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
pub(super) fn unreadable(error: io::Error) -> String {
    format!("cannot be read: {}", io_reason(&error))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_in_whose_place_there_is_a_link_is_found_by_its_name() {
        let here = tempfile::tempdir().unwrap();
        let here = here.path().canonicalize().unwrap();
        fs::create_dir_all(here.join("real/shop/src")).unwrap();
        for (target, link) in [
            ("real", "above"),
            ("real/shop", "shop"),
            ("above/shop", "twice"),
            ("nowhere", "gone"),
            ("self", "self"),
        ] {
            symlink(target, here.join(link)).unwrap();
        }
        // The path, the known directory, and where the link is.
        for (path, known, link) in [
            ("shop", "shop", Some("shop")),
            ("shop/src/not/there", "shop", Some("shop")),
            ("above/shop/src", "above/shop", Some("above")),
            ("real/../above/shop/src", "above/shop", Some("above")),
            ("twice/src", "above/shop", Some("above")),
            ("gone/src", "gone", Some("gone")),
            ("self", "self", Some("self")),
            // It is as it was, or the link is inside.
            ("real/shop/src", "real/shop", None),
            ("shop/src", "real/shop", None),
            ("shop/src", "", None),
            ("above/../shop", "above/shop", None),
        ] {
            let (known, link) = (here.join(known), link.map(|link| here.join(link)));
            let found = replaced_directory(&here.join(path), &|directory| directory == known);
            let expected = link.map(|link| ReplacedDirectory { directory: known.clone(), link });
            assert_eq!(found, expected, "{path}");
        }
    }
}
