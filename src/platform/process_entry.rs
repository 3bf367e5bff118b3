//! What is known of processes, in terms of no system.

use std::{io, path::PathBuf, time::Duration};

use rustix::process::Pid;

/// A process, with its parent and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessEntry {
    pub(crate) pid: i32,
    pub(crate) parent: i32,
    pub(crate) group: i32,
    /// When it was started, in ticks of [`process_clock`]. It tells the process from others that have had its id.
    pub(crate) started: u64,
    /// Whether it is no zombie.
    pub(crate) alive: bool,
}

/// Where a process id means the same process: one boot, and one pid namespace in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PidScope {
    pub(crate) boot: String,
    pub(crate) namespace: String,
}

/// Why it is not known where process ids mean the same.
#[derive(Debug)]
pub(crate) struct ScopeError {
    /// What could not be read.
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// What this process uses of the machine.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnUsage {
    pub(crate) cpu: Option<Duration>,
    /// That of its children which have ended.
    pub(crate) children_cpu: Option<Duration>,
    pub(crate) threads: Option<u64>,
    /// When it was started, since 1970.
    pub(crate) started: Option<Duration>,
    pub(crate) virtual_bytes: Option<u64>,
    pub(crate) resident_bytes: Option<u64>,
    pub(crate) open_descriptors: Option<u64>,
}

/// The process with a number.
///
/// Returns an error if none can have it.
pub(super) fn pid(number: i32) -> io::Result<Pid> {
    // It panics on negative numbers.
    let pid = Some(number).filter(|number| *number > 0).and_then(Pid::from_raw);
    pid.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// The number of a process.
pub(crate) fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}
