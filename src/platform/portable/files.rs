//! Files below a directory, where the kernel finds none.

use std::{
    ffi::OsStr,
    fs::{File, Metadata},
    io,
    os::fd::{AsFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{AtFlags, FileType, Mode, OFlags, open, statat},
    io::Errno,
};

use super::super::{READ, open_entry};
use crate::model::PathEntry;

/// Flags for a directory below which paths are resolved.
pub(in crate::platform) const DIRECTORY_HANDLE: OFlags = OFlags::RDONLY.union(OFlags::CLOEXEC);

/// Whether the kernel resolves paths below a directory.
pub(in crate::platform) fn kernel_resolves(_: &OwnedFd) -> bool {
    false
}

/// Opens a path below a directory, where the kernel resolves such.
pub(in crate::platform) fn resolve_by_kernel(_: &OwnedFd, _: &Path, _: OFlags) -> Result<OwnedFd, Errno> {
    Err(Errno::NOSYS)
}

/// What there is to know about an entry of a directory. Only a regular file is opened for it.
pub(in crate::platform) fn metadata_in(directory: &impl AsFd, name: &OsStr) -> io::Result<Option<Metadata>> {
    let found = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
    if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
        return Ok(None);
    }
    let metadata = File::from(open_entry(directory, name, READ)?).metadata()?;
    Ok(Some(metadata).filter(Metadata::is_file))
}

/// Opens a directory for reading; `None` if a link was in its place, or in that of one above it. Each of those is opened in the
/// one before, and so has to be readable.
pub(crate) fn open_without_links(directory: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(below) = directory.strip_prefix("/") else { return Ok(None) };
    let mut held = open("/", flags, Mode::empty())?;
    for name in below {
        held = match open_entry(&held, name, flags) {
            // Systems differ in how they refuse a link.
            Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => return Ok(None),
            opened => opened?,
        };
    }
    Ok(Some(held))
}

/// A file that nothing else can open any more: one of this user in the directory for such, whose name is gone.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) fn unnamed_file() -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos();
    let path = std::env::temp_dir().join(format!("hookyard-{}-{now}", std::process::id()));
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

/// Where a path leads that the system makes up for each process that asks. Those systems have none.
pub(crate) fn path_of_process(_: &str, _: &str) -> Option<PathEntry> {
    None
}
