//! Files of the state directory, which only this user can have written.

#[cfg(any(feature = "cli", feature = "daemon"))]
use std::{fs, io::Write, os::unix::fs::OpenOptionsExt};
#[cfg(any(feature = "cli", feature = "store"))]
use std::{fs::DirBuilder, os::unix::fs::DirBuilderExt};
use std::{
    fs::{File, Metadata},
    io::{self, Read},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

#[cfg(any(feature = "cli", feature = "daemon"))]
use rustix::fs::{FlockOperation, flock};
use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
    process::geteuid,
};

use super::files::reason;
#[cfg(any(feature = "cli", feature = "store"))]
use crate::model::io_reason;

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
        let unreadable = |path: &Path, error: &io::Error| StateFileError::unusable(path, reason(error));
        match self.0.symlink_metadata() {
            Err(error) if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) => {
                return Ok(None);
            }
            Err(error) => return Err(unreadable(self.0, &error)),
            Ok(metadata) => self.check_metadata(&metadata)?,
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
    #[cfg(any(feature = "cli", feature = "store"))]
    pub(super) fn check(self) -> Result<(), StateFileError> {
        let metadata = self.0.symlink_metadata();
        self.check_metadata(&metadata.map_err(|error| StateFileError::unusable(self.0, reason(&error)))?)
    }

    fn check_metadata(self, metadata: &Metadata) -> Result<(), StateFileError> {
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

#[cfg(any(feature = "cli", feature = "daemon"))]
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
}

#[cfg(any(feature = "cli", feature = "daemon"))]
impl StateDirectory<'_> {
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
