//! Processes as `sysinfo` shows them on every system; a thread waits for the end of a child.
//!
//! What it does not tell as Linux does: a process is known by its id and the second of its start, so a signal can reach
//! another that got the id in between; and some systems show the environment of some programs to nobody.

use std::{
    ffi::OsString,
    io,
    os::unix::ffi::OsStringExt,
    path::PathBuf,
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};
#[cfg(test)]
use std::{os::fd::OwnedFd, sync::Arc};

use nix::unistd::getpgid;
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, getpid, kill_process, waitid},
    time::{ClockId, clock_gettime},
};
use sysinfo::{Process, ProcessRefreshKind, ProcessStatus, ProcessesToUpdate, System, UpdateKind};
use tokio::sync::watch;

use super::super::{OwnUsage, PidScope, ProcessEntry, ScopeError, process_entry, raw};

/// The stack of a thread that only waits, in bytes.
const WAITER_STACK: usize = 64 << 10;

/// Between two looks whether a process has ended.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// By how many seconds the time of one boot may seem to differ: it is computed from a clock that is set.
const BOOT_ROUNDING: u64 = 5;

/// Stands for the one pid namespace.
const NAMESPACE: &str = "-";

/// Waits for the exit of a child, without reaping it, on a thread that ends with the child.
#[derive(Debug)]
pub(crate) struct ExitWatch(watch::Receiver<bool>);

impl ExitWatch {
    /// # Errors
    /// Returns the system's error if it has no thread or no memory left.
    pub(crate) fn on(child: Pid) -> io::Result<Self> {
        let (sender, ended) = watch::channel(false);
        let waiter = thread::Builder::new().name("hook-exit".into()).stack_size(WAITER_STACK);
        waiter.spawn(move || {
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            // Any other error means that it has been reaped.
            while matches!(waitid(WaitId::Pid(child), options), Err(Errno::INTR)) {}
            sender.send_replace(true);
        })?;
        Ok(Self(ended))
    }

    /// Waits until the child has exited; cancel-safe, and at once from then on.
    pub(crate) async fn exited(&self) {
        // The sender goes only after it has sent.
        let _ = self.0.clone().wait_for(|ended| *ended).await;
    }
}

/// One process, as long as no other gets its id in the second in which it was started.
#[derive(Debug, Clone)]
pub(crate) struct ProcessHandle {
    pid: Pid,
    started: u64,
    #[cfg(test)]
    simulated: Option<Arc<OwnedFd>>,
}

impl ProcessHandle {
    /// # Errors
    /// Returns an error if there is no such process.
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        let started = process(pid)?.started;
        let pid = process_entry::pid(pid)?;
        Ok(Self {
            pid,
            started,
            #[cfg(test)]
            simulated: None,
        })
    }

    /// One that ends when the descriptor becomes readable.
    #[cfg(test)]
    pub(crate) fn ending_with(descriptor: OwnedFd) -> Self {
        Self { pid: getpid(), started: 0, simulated: Some(Arc::new(descriptor)) }
    }

    pub(crate) fn has_ended(&self) -> bool {
        #[cfg(test)]
        if let Some(descriptor) = &self.simulated {
            use rustix::event::{PollFd, PollFlags, Timespec, poll};
            return poll(&mut [PollFd::new(descriptor, PollFlags::IN)], Some(&Timespec::default())) != Ok(0);
        }
        let is_it = |found: ProcessEntry| found.alive && found.started == self.started;
        !process(raw(self.pid)).is_ok_and(is_it)
    }

    /// Waits for its end; returns whether it has ended. Blocks.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        let begun = coarse_milliseconds();
        while !self.has_ended() {
            if u128::from(coarse_milliseconds() - begun) >= longest.as_millis() {
                return false;
            }
            thread::sleep(LOOK_PAUSE);
        }
        true
    }

    /// Signals it, as long as it has its id, which it keeps until it is reaped.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        let is_it = |found: ProcessEntry| found.started == self.started;
        process(raw(self.pid)).is_ok_and(is_it) && kill_process(self.pid, signal).is_ok()
    }
}

/// What is known of a process.
///
/// Returns an error if it has ended.
pub(crate) fn process(pid: i32) -> io::Result<ProcessEntry> {
    look_at(pid, basics(), |found| entry(pid, found))?.ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// All processes.
pub(crate) fn processes() -> Vec<ProcessEntry> {
    let Ok(mut system) = System::new() else { return Vec::new() };
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, basics());
    let found = system.processes().iter();
    found.filter_map(|(pid, found)| entry(i32::try_from(pid.as_u32()).ok()?, found)).collect()
}

fn entry(pid: i32, found: &Process) -> Option<ProcessEntry> {
    let group = getpgid(Some(nix::unistd::Pid::from_raw(pid))).ok()?;
    let parent = found.parent().and_then(|parent| i32::try_from(parent.as_u32()).ok());
    let alive = !matches!(found.status(), ProcessStatus::Zombie | ProcessStatus::Dead);
    Some(ProcessEntry {
        pid,
        parent: parent.unwrap_or_default(),
        group: group.as_raw(),
        started: found.start_time(),
        alive,
    })
}

/// What is asked about every process.
fn basics() -> ProcessRefreshKind {
    ProcessRefreshKind::nothing().without_tasks()
}

fn look_at<T>(pid: i32, what: ProcessRefreshKind, read: impl FnOnce(&Process) -> T) -> io::Result<T> {
    let mut system = System::new().map_err(io::Error::other)?;
    let pid = sysinfo::Pid::from_u32(u32::try_from(pid).map_err(io::Error::other)?);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, what);
    let found = system.process(pid).ok_or(io::ErrorKind::NotFound)?;
    Ok(read(found))
}

/// The variables that a process was started with, each with a NUL at its end.
///
/// Returns an error if it has ended, or shows none: it may hide them.
pub(crate) fn environment(pid: i32) -> io::Result<Vec<u8>> {
    let what = basics().with_environ(UpdateKind::Always);
    let variables = look_at(pid, what, |found| found.environ().to_vec())?;
    if variables.is_empty() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let with_end = |variable: OsString| [variable.into_vec(), vec![0]].concat();
    Ok(variables.into_iter().flat_map(with_end).collect())
}

/// The user that a process runs as.
pub(crate) fn user(pid: i32) -> Option<u32> {
    let what = basics().with_user(UpdateKind::Always);
    look_at(pid, what, |found| found.user_id().map(|user| **user)).ok()?
}

/// The program that a process runs.
pub(crate) fn executable(pid: i32) -> io::Result<PathBuf> {
    let what = basics().with_exe(UpdateKind::Always);
    let program = look_at(pid, what, |found| found.exe().map(PathBuf::from))?;
    program.ok_or_else(|| io::ErrorKind::PermissionDenied.into())
}

/// The name of a process.
#[cfg(feature = "daemon")]
pub(crate) fn name(pid: i32) -> Option<String> {
    look_at(pid, basics(), |found| found.name().to_string_lossy().into_owned()).ok()
}

/// The memory that a process occupies, in MiB. `None` if it has exited.
pub(crate) fn memory_mib(pid: i32) -> Option<usize> {
    let what = basics().with_memory();
    let bytes = look_at(pid, what, Process::memory).ok().filter(|bytes| *bytes > 0)?;
    usize::try_from(bytes >> 20).ok()
}

/// The children of this process.
pub(crate) fn children() -> Vec<Pid> {
    let own = raw(getpid());
    let found = processes().into_iter().filter(|found| found.parent == own);
    found.filter_map(|found| Pid::from_raw(found.pid)).collect()
}

/// Has the orphans among the descendants of this process become its children.
///
/// Returns an error: not every system can do it.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Hides the memory and the environment of this process from others of its user.
///
/// Returns an error: not every system can do it.
pub(crate) fn hide_memory() -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// RAII guard: processes of the same user can read the environment of this one, as they always can where nothing hides it.
#[derive(Debug)]
pub(crate) struct ReadableEnvironment;

impl ReadableEnvironment {
    pub(crate) fn begin() -> Self {
        Self
    }
}

/// Whether this process has given up privileges for good, as what runs in a sandbox has. There is none.
pub(crate) fn has_given_up_privileges() -> bool {
    false
}

/// The clock of [`ProcessEntry::started`], in nanoseconds: the time since 1970.
pub(crate) fn process_clock() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

/// The time on a clock that goes on while this process is stopped, and where the system has such a one, while the machine
/// sleeps.
pub(crate) fn clock_since_boot() -> Duration {
    let now = clock_gettime(ClockId::Monotonic);
    Duration::new(
        u64::try_from(now.tv_sec).unwrap_or_default(),
        u32::try_from(now.tv_nsec).unwrap_or_default(),
    )
}

/// The unit of [`ProcessEntry::started`]: a second.
pub(crate) fn process_ticks_per_second() -> u64 {
    1
}

/// Where the ids of processes that this one sees mean the same.
pub(crate) fn pid_scope() -> Result<PidScope, ScopeError> {
    let refused = |error| ScopeError { path: "the time of the boot".into(), source: io::Error::other(error) };
    let boot = System::boot_time().map_err(refused)?;
    Ok(PidScope { boot: boot.to_string(), namespace: NAMESPACE.to_owned() })
}

/// Whether two scopes are one.
pub(crate) fn is_same_scope(one: &PidScope, other: &PidScope) -> bool {
    let time = |scope: &PidScope| scope.boot.parse::<u64>().ok();
    let is_same_boot =
        time(one).zip(time(other)).is_some_and(|(one, other)| one.abs_diff(other) <= BOOT_ROUNDING);
    is_same_boot && one.namespace == other.namespace
}

/// What this process uses of the machine. What cannot be read is left out.
pub(crate) fn own_usage() -> OwnUsage {
    // One of them is that of the listing.
    let open = std::fs::read_dir("/dev/fd").ok().map(|entries| entries.count().saturating_sub(1) as u64);
    let what = ProcessRefreshKind::nothing().with_tasks().with_cpu().with_memory();
    let usage = look_at(raw(getpid()), what, |found| OwnUsage {
        cpu: Some(Duration::from_millis(found.accumulated_cpu_time())),
        children_cpu: None,
        // Not every system tells them. The first of them is the process itself.
        threads: found.tasks().map(|others| others.len() as u64 + 1),
        started: Some(Duration::from_secs(found.start_time())),
        virtual_bytes: Some(found.virtual_memory()),
        resident_bytes: Some(found.memory()),
        open_descriptors: None,
    });
    OwnUsage { open_descriptors: open, ..usage.unwrap_or_default() }
}

/// A monotonic clock in milliseconds.
pub(crate) fn coarse_milliseconds() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * 1_000 + nanoseconds / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_boot_is_told_from_another() {
        let at = |boot: &str, namespace: &str| PidScope { boot: boot.into(), namespace: namespace.into() };
        let own = pid_scope().unwrap();
        assert!(is_same_scope(&own, &pid_scope().unwrap()));
        assert!(is_same_scope(&at("1000", "-"), &at("1003", "-")));
        for other in [at("1100", "-"), at("1000", "x"), at("uuid", "-")] {
            assert!(!is_same_scope(&at("1000", "-"), &other), "{other:?}");
        }
    }

    #[test]
    fn this_process_is_known() {
        let own = process(raw(getpid())).unwrap();
        let parent = i32::try_from(std::os::unix::process::parent_id()).unwrap();
        assert_eq!((own.parent, own.alive), (parent, true));
        assert!(process_clock() / 1_000_000_000 - own.started < 3600);
        assert!(processes().contains(&own));
        assert!(executable(own.pid).unwrap() == std::env::current_exe().unwrap());
        assert!(environment(own.pid).unwrap().starts_with(b"") && memory_mib(own.pid).unwrap() > 0);
        assert_eq!(user(own.pid), Some(rustix::process::getuid().as_raw()));
        assert!(!ProcessHandle::open(raw(getpid())).unwrap().has_ended());
        assert!(process(i32::MAX).is_err() && environment(i32::MAX).is_err());
    }
}
