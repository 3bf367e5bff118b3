//! Opens the files that hookyard writes to, so that neither a link nor another user decides where its bytes go.

use std::{
    fs::{File, Metadata},
    io,
    os::unix::fs::MetadataExt,
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
    process::geteuid,
};

/// Why a file is not opened.
#[derive(Debug)]
pub(crate) enum PrivateFileError {
    /// It is not a regular file of this user; the text continues a sentence about it.
    Untrusted(&'static str),
    /// The system refuses.
    Io(io::Error),
}

/// Opens a file, or creates it for this user only. `access` is how it is opened: for reading, writing or appending.
///
/// Returns an error if it is a link, not a regular file, or another user's.
pub(crate) fn open_private(path: &Path, access: OFlags) -> Result<(File, Metadata), PrivateFileError> {
    // NONBLOCK: opening a named pipe does not wait for its other end.
    let careful = OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match open(path, access | careful, Mode::RUSR | Mode::WUSR) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::LOOP) => return Err(PrivateFileError::Untrusted("is a symbolic link")),
        // NXIO: a pipe without a reader.
        Err(Errno::NXIO | Errno::ISDIR) => return Err(PrivateFileError::Untrusted("is not a regular file")),
        Err(error) => return Err(PrivateFileError::Io(error.into())),
    };
    let metadata = file.metadata().map_err(PrivateFileError::Io)?;
    match () {
        () if !metadata.is_file() => Err(PrivateFileError::Untrusted("is not a regular file")),
        () if metadata.uid() != geteuid().as_raw() => {
            Err(PrivateFileError::Untrusted("belongs to another user"))
        }
        () => Ok((file, metadata)),
    }
}
