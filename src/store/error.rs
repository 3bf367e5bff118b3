//! Why the store cannot be used.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use rustix::{
    fs::{Access, access},
    io::Errno,
};

/// What to do about a directory that cannot be read or written.
const DISK_ADVICE: &str = "check its permissions and the space on its disk, or set `data` to another directory, which \
                           forgets the halts and the last good rules in this one";

/// Why the state of runs cannot be kept in a directory.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The directory or its file cannot be used.
    #[error("the state of runs cannot be kept in {}: {why}", path.display())]
    Unusable {
        /// The directory, or the file in it.
        path: PathBuf,
        /// What is wrong, and what to do.
        why: String,
    },
    /// Another hookyard uses it.
    #[error(
        "{} is used by another hookyard; stop that one, or set `data` to another directory, or to `null` to keep the \
         state of runs in memory only; either begins without the halts in this one",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// A later version wrote it.
    #[error(
        "{} has the format {found}, and this hookyard knows {known}; use the version that wrote it, or move the file \
         away, which forgets all halts",
        path.display()
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The version of its format.
        found: i64,
        /// The version that this hookyard reads and writes.
        known: i64,
    },
    /// Whoever used it last did not close it, and its log is not there.
    #[error(
        "{0} was not closed, and its log, {0}-wal, is missing or cut off: halts may be forgotten; restore the log, or run \
         `sqlite3 {0} 'DELETE FROM in_use'` to go on without what was only in it",
        path.display()
    )]
    NotClosed {
        /// The file.
        path: PathBuf,
    },
    /// The log beside it is that of another file.
    #[error(
        "{0}-wal is not the log of {0}: one of them was replaced, and without the right one halts may be forgotten; put back \
         the one that was there, or move {0}-wal away to go on without what is only in it",
        path.display()
    )]
    ForeignLog {
        /// The file.
        path: PathBuf,
    },
    /// It cannot be read.
    #[error(
        "{} is damaged: {why}; restore it, or move it away with its `-wal` file, which forgets all halts",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// No directory is known.
    #[error(
        "no directory for the state of runs is known, because no home directory is; set `data` to a directory, or to \
         `null` to keep the state of runs in memory only"
    )]
    NoDirectory,
}

impl StoreError {
    pub(super) fn unusable(path: &Path, why: impl Into<String>) -> Self {
        Self::Unusable { path: path.to_owned(), why: why.into() }
    }

    pub(super) fn io(path: &Path, error: &std::io::Error) -> Self {
        Self::unusable(path, format!("{}; {DISK_ADVICE}", crate::model::io_reason(error)))
    }

    pub(super) fn damaged(path: &Path, why: impl Into<String>) -> Self {
        Self::Damaged { path: path.to_owned(), why: why.into() }
    }

    /// An error of the database while it is opened and read.
    pub(super) fn of_database(path: &Path, error: &rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Self::InUse { path: path.to_owned() }
            }
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) | None => {
                Self::damaged(path, error.to_string())
            }
            Some(_) => {
                let why = denied(path).unwrap_or_else(|| error.to_string());
                Self::unusable(path, format!("{why}; {DISK_ADVICE}"))
            }
        }
    }
}

/// Why one of the files of a database cannot be read and written, if the system says so: the database calls that a disk
/// error.
fn denied(path: &Path) -> Option<String> {
    ["", "-wal", "-shm"].into_iter().find_map(|end| {
        let mut file = path.to_owned().into_os_string();
        file.push(end);
        let errno = access(Path::new(&file), Access::READ_OK | Access::WRITE_OK).err()?;
        let why = crate::model::io_reason(&errno.into());
        (errno != Errno::NOENT).then(|| format!("{} cannot be written: {why}", Path::new(&file).display()))
    })
}
