//! Entries of open directories.

use std::os::fd::{AsFd, OwnedFd};

use rustix::{
    fs::{FileType, Mode, OFlags, fstat, openat},
    io::Errno,
    path::Arg,
};

/// Flags for reading, without blocking on a pipe or acquiring a terminal.
pub(crate) const READ: OFlags =
    OFlags::RDONLY.union(OFlags::NONBLOCK).union(OFlags::NOCTTY).union(OFlags::CLOEXEC);

/// Opens an entry of a directory by its name, unless it is a link.
pub(crate) fn open_entry(directory: &impl AsFd, name: impl Arg, flags: OFlags) -> Result<OwnedFd, Errno> {
    openat(directory, name, flags | OFlags::NOFOLLOW, Mode::empty())
}

/// What kind of file is open.
pub(crate) fn type_of(opened: &OwnedFd) -> Result<FileType, Errno> {
    fstat(opened).map(|stat| FileType::from_raw_mode(stat.st_mode))
}
