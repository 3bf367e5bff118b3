//! The audit's file: rotated when it is large, and reopened when another program moves it away.
//!
//! It is opened so that neither another user nor a symbolic link decides where lines go.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    time::Duration,
};

use rustix::fs::OFlags;
use tokio::time::Instant;

use super::writer::AuditSink;
use crate::handler::private_file::{PrivateFileError, open_private};

/// How long a file that could not be rotated grows before rotation is tried again.
const ROTATION_RETRY_DELAY: Duration = Duration::from_mins(1);

/// The audit's file, open at its end.
#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    file: File,
    identity: (u64, u64),
    size: u64,
    max_size: u64,
    keep: usize,
    /// Set after a failed rotation: when to try again.
    no_rotation_until: Option<Instant>,
}

impl RotatingFile {
    /// Opens a file at its end, or creates it for this user only.
    ///
    /// Returns what is wrong with it if it is not a regular file of this user, or cannot be opened.
    pub(super) fn open(path: &Path, max_size: u64, keep: usize) -> Result<Self, String> {
        let (file, identity, size) = open_at_end(path)?;
        Ok(Self { path: path.to_owned(), file, identity, size, max_size, keep, no_rotation_until: None })
    }

    /// Whether it had no lines when it was opened.
    #[cfg(feature = "cli")]
    pub(super) fn is_empty(&self) -> bool {
        self.size == 0
    }

    fn reopen(&mut self) -> io::Result<()> {
        // A later sync does not reach the previous file.
        drop(self.file.sync_data());
        let (file, identity, size) = open_at_end(&self.path).map_err(io::Error::other)?;
        (self.file, self.identity, self.size) = (file, identity, size);
        Ok(())
    }

    /// The path of the file that was rotated away `number` rotations ago.
    fn rotated_path(&self, number: usize) -> PathBuf {
        let mut name = OsString::from(&self.path);
        name.push(format!(".{number}"));
        name.into()
    }

    /// Renames `audit` to `audit.1`, that to `audit.2`, and so on. The oldest is overwritten.
    fn rotate(&mut self) -> io::Result<()> {
        let there = |number: &usize| fs::symlink_metadata(self.rotated_path(*number)).is_ok();
        let known = (1..self.keep).take_while(there).count();
        for number in (1..=known).rev() {
            fs::rename(self.rotated_path(number), self.rotated_path(number + 1))?;
        }
        fs::rename(&self.path, self.rotated_path(1))?;
        self.reopen()
    }
}

impl AuditSink for RotatingFile {
    fn remaining_capacity(&self) -> u64 {
        let stays = self.no_rotation_until.is_some_and(|until| Instant::now() < until);
        if stays { u64::MAX } else { self.max_size.saturating_sub(self.size) }
    }

    fn reserve(&mut self, bytes: usize) -> io::Result<()> {
        if self.size == 0 || bytes as u64 <= self.remaining_capacity() {
            return Ok(());
        }
        // Another program may just have moved it away.
        self.reopen_if_moved()?;
        if self.size == 0 {
            return Ok(());
        }
        let rotated = self.rotate();
        self.no_rotation_until = rotated.is_err().then(|| Instant::now() + ROTATION_RETRY_DELAY);
        if let Err(error) = rotated {
            // A file that is too large is better than lost lines.
            tracing::error!(file = %self.path.display(), %error, "the audit file could not be rotated and grows further");
        }
        Ok(())
    }

    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.size += written as u64;
        Ok(written)
    }

    fn discard_tail(&mut self, bytes: usize) -> bool {
        let cut = || {
            let size = self.file.metadata()?.len().saturating_sub(bytes as u64);
            self.file.set_len(size).map(|()| size)
        };
        cut().inspect(|size| self.size = *size).is_ok()
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()
    }

    fn reopen_if_moved(&mut self) -> io::Result<()> {
        let found = fs::symlink_metadata(&self.path).map(|found| (found.dev(), found.ino()));
        match found {
            Ok(identity) if identity == self.identity => Ok(()),
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            Ok(_) | Err(_) => {
                tracing::info!(file = %self.path.display(), "the audit file was moved away; a new one is begun");
                self.reopen()
            }
        }
    }
}

/// Opens a file for appending. Returns it with its identity (device and inode) and its size.
fn open_at_end(path: &Path) -> Result<(File, (u64, u64), u64), String> {
    let opened = open_private(path, OFlags::WRONLY | OFlags::APPEND).map_err(|error| match error {
        PrivateFileError::Untrusted(why) => why.to_owned(),
        PrivateFileError::Io(error) if error.kind() == io::ErrorKind::NotFound => {
            "cannot be opened: its directory does not exist".to_owned()
        }
        PrivateFileError::Io(error) => format!("cannot be opened: {}", crate::model::io_reason(&error)),
    });
    let (file, metadata) = opened?;
    Ok((file, (metadata.dev(), metadata.ino()), metadata.len()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn put(file: &mut RotatingFile, line: &str) {
        file.reserve(line.len()).unwrap();
        assert_eq!(file.write(line.as_bytes()).unwrap(), line.len());
    }

    #[test]
    fn only_a_regular_file_of_this_user_is_opened() {
        let place = tempfile::tempdir().unwrap();
        let path = |name: &str| place.path().join(name);
        symlink("target", path("link")).unwrap();
        let fifo = path("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
        fs::write(path("foreign"), "").unwrap();
        // Only a privileged user can give a file away.
        let foreign = std::os::unix::fs::chown(path("foreign"), Some(12345), None).is_ok();
        for (path, expected) in [
            (path("link"), "is a symbolic link"),
            (fifo, "is not a regular file"),
            (place.path().to_owned(), "is not a regular file"),
            ("/dev/full".into(), "is not a regular file"),
            (path("no/where"), "cannot be opened"),
            (path("foreign"), "belongs to another user"),
        ] {
            if path.ends_with("foreign") && !foreign {
                continue;
            }
            let why = RotatingFile::open(&path, 100, 2).unwrap_err();
            assert!(why.contains(expected), "{path:?}: {why}");
        }
        assert!(!path("target").exists());
        RotatingFile::open(&path("new"), 100, 2).unwrap();
        assert_eq!(fs::metadata(path("new")).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_full_file_is_rotated_and_old_ones_are_removed() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("audit.jsonl");
        let mut file = RotatingFile::open(&path, 10, 2).unwrap();
        for line in ["first\n", "2\n", "second\n", "third\n", "a fourth longer one\n", "fifth\n"] {
            put(&mut file, line);
        }
        let read = |name: &str| fs::read_to_string(place.path().join(name)).unwrap();
        assert_eq!(read("audit.jsonl"), "fifth\n");
        assert_eq!(read("audit.jsonl.1"), "a fourth longer one\n");
        assert_eq!(read("audit.jsonl.2"), "third\n");
        assert!(!place.path().join("audit.jsonl.3").exists());
        drop(file);
        let mut file = RotatingFile::open(&path, 10, 2).unwrap();
        put(&mut file, "sixth\n");
        assert_eq!(
            (read("audit.jsonl.1"), read("audit.jsonl.2")),
            ("fifth\n".into(), "a fourth longer one\n".into())
        );
    }

    #[test]
    fn a_file_that_cannot_be_rotated_keeps_growing() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("audit.jsonl");
        fs::create_dir_all(place.path().join("audit.jsonl.1/full")).unwrap();
        let mut file = RotatingFile::open(&path, 5, 1).unwrap();
        put(&mut file, "first\n");
        put(&mut file, "second\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "first\nsecond\n");
    }

    #[test]
    fn a_file_that_was_moved_away_is_created_again() {
        let place = tempfile::tempdir().unwrap();
        let (path, moved) = (place.path().join("audit.jsonl"), place.path().join("moved"));
        let mut file = RotatingFile::open(&path, 100, 2).unwrap();
        put(&mut file, "first\n");
        fs::rename(&path, &moved).unwrap();
        file.reopen_if_moved().unwrap();
        put(&mut file, "second\n");
        assert_eq!(fs::read_to_string(&moved).unwrap(), "first\n");
        assert_eq!(fs::read_to_string(&path).unwrap(), "second\n");
        fs::remove_file(&path).unwrap();
        symlink(&moved, &path).unwrap();
        assert!(file.reopen_if_moved().unwrap_err().to_string().contains("symbolic link"));
    }
}
