//! What a watcher of directories tells.

use std::{ffi::OsString, path::PathBuf, time::SystemTime};

use rustix::io::Errno;

/// The result of watching a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WatchResult {
    /// It was watched before.
    Unchanged,
    /// It is watched from now on, and may have changed before.
    New,
    /// It does not exist.
    Missing,
    /// It cannot be watched.
    Failed(Errno),
}

/// A change.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum FsEvent {
    /// An entry of a directory has changed.
    Entry(PathBuf, OsString),
    /// A directory has changed itself, or is gone.
    Directory(PathBuf),
    /// Entries of a directory may have come and gone since this time: who has read it meanwhile may have read them.
    #[cfg_attr(
        all(target_os = "linux", not(hookyard_portable)),
        allow(dead_code, reason = "the kernel tells of each")
    )]
    Passing(PathBuf, SystemTime),
    /// Events are lost.
    #[cfg_attr(
        not(all(target_os = "linux", not(hookyard_portable))),
        allow(dead_code, reason = "who looks loses nothing")
    )]
    Overflow,
}
