//! Files below a directory, found by the kernel.

use std::{
    ffi::OsStr,
    fs::{self, File, Metadata},
    io,
    os::fd::{AsFd, AsRawFd, OwnedFd},
    path::Path,
};

use rustix::{
    fs::{Mode, OFlags, ResolveFlags, open, openat2},
    io::Errno,
};

use super::super::open_entry;
use crate::model::PathEntry;

/// Flags that only locate a file or a directory.
pub(in crate::platform) const DIRECTORY_HANDLE: OFlags = OFlags::PATH.union(OFlags::CLOEXEC);

/// How often a path with `..` is retried because directories were moved meanwhile.
const MAX_TRIES: usize = 8;

/// Whether the kernel resolves paths below a directory. Before Linux 5.6, or under a seccomp filter, it does not.
pub(in crate::platform) fn kernel_resolves(root: &OwnedFd) -> bool {
    // Whatever the reason for the failure, the other method does not need `openat2`.
    resolve_by_kernel(root, Path::new("."), DIRECTORY_HANDLE).is_ok()
}

/// Opens a path below a directory, through links that stay below it.
pub(in crate::platform) fn resolve_by_kernel(
    root: &OwnedFd,
    path: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let within = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let mut tries = MAX_TRIES;
    loop {
        match openat2(root, path, flags, Mode::empty(), within) {
            Err(Errno::AGAIN | Errno::INTR) if tries > 1 => tries -= 1,
            done => return done,
        }
    }
}

/// What there is to know about an entry of a directory, without opening it.
pub(in crate::platform) fn metadata_in(directory: &impl AsFd, name: &OsStr) -> io::Result<Option<Metadata>> {
    let found = File::from(open_entry(directory, name, DIRECTORY_HANDLE)?).metadata()?;
    Ok(Some(found).filter(Metadata::is_file))
}

/// Opens a directory for reading; `None` if a link was in its place, or in that of one above it.
pub(crate) fn open_without_links(directory: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let held = open(directory, flags, Mode::empty())?;
    // The kernel knows where what was opened is.
    let place = fs::read_link(format!("/proc/self/fd/{}", held.as_raw_fd()))?;
    Ok((place == directory).then_some(held))
}

/// A file in memory that nothing else can open.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) fn unnamed_file() -> io::Result<File> {
    Ok(File::from(rustix::fs::memfd_create("hookyard", rustix::fs::MemfdFlags::CLOEXEC)?))
}

/// Where a path leads that the system makes up for each process that asks: its directory and its root. `None` for a path that is the
/// same for all; other paths of the process that asks are no links to files.
pub(crate) fn path_of_process(path: &str, cwd: &str) -> Option<PathEntry> {
    let rest = path.strip_prefix("/proc/")?;
    let (process, part) = rest.split_once('/').unwrap_or((rest, ""));
    let of_thread = part.strip_prefix("task/").and_then(|rest| rest.split_once('/'));
    let part = of_thread.map_or(part, |(_, part)| part);
    match part {
        _ if !matches!(process, "self" | "thread-self") => None,
        "cwd" => Some(PathEntry::Link(cwd.into())),
        "root" => Some(PathEntry::Link("/".into())),
        _ => Some(PathEntry::Plain),
    }
}
