//! Processes as Linux shows them: `/proc` for what they are, pidfds for their ends and for signals that hit no other.

use std::{
    fs,
    future::poll_fn,
    io,
    os::fd::{AsFd, OwnedFd},
    path::PathBuf,
    sync::{Arc, OnceLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    param::{clock_ticks_per_second, page_size},
    process::{
        DumpableBehavior, Pid, PidfdFlags, Signal, dumpable_behavior, getpid, pidfd_open, pidfd_send_signal,
        set_child_subreaper, set_dumpable_behavior,
    },
    thread::no_new_privs,
    time::{ClockId, clock_gettime},
};
use tokio::io::{Interest, unix::AsyncFd};

use super::super::{OwnUsage, PidScope, ProcessEntry, ScopeError, process_entry, raw};

/// What processes are told apart by, in [`PidScope`].
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
const NAMESPACE: &str = "/proc/self/ns/pid";

/// Waits for the exit of a child, without reaping it.
#[derive(Debug)]
pub(crate) struct ExitWatch(AsyncFd<OwnedFd>);

impl ExitWatch {
    /// # Errors
    /// Returns the system's error if it has no descriptor or no memory left.
    #[allow(
        deprecated,
        reason = "its successor is unsafe for types whose descriptor may change; an `OwnedFd`'s cannot"
    )]
    pub(crate) fn on(child: Pid) -> io::Result<Self> {
        let pidfd = pidfd_open(child, PidfdFlags::NONBLOCK)?;
        AsyncFd::with_interest(pidfd, Interest::READABLE).map(Self)
    }

    /// Waits until the child has exited; cancel-safe, and at once from then on.
    pub(crate) async fn exited(&self) {
        // An error means that the runtime shuts down; the child then cannot be reaped, and is killed.
        let _ = poll_fn(|cx| self.0.poll_read_ready(cx).map_ok(drop)).await;
    }
}

/// One process, whatever happens to its id.
#[derive(Debug, Clone)]
pub(crate) struct ProcessHandle(Arc<OwnedFd>);

impl ProcessHandle {
    /// # Errors
    /// Returns the system's error if there is no such process, or no descriptor left.
    pub(crate) fn open(pid: i32) -> io::Result<Self> {
        let pid = process_entry::pid(pid)?;
        Ok(Self(Arc::new(pidfd_open(pid, PidfdFlags::empty())?)))
    }

    /// That of a pidfd, or in tests of what becomes readable in its place.
    pub(crate) fn ending_with(descriptor: OwnedFd) -> Self {
        Self(Arc::new(descriptor))
    }

    pub(crate) fn has_ended(&self) -> bool {
        is_readable(&self.0, Duration::ZERO)
    }

    /// Waits for its end; returns whether it has ended. Blocks.
    pub(crate) fn wait(&self, longest: Duration) -> bool {
        is_readable(&self.0, longest)
    }

    /// Signals it. What has got its id since gets nothing.
    pub(crate) fn signal(&self, signal: Signal) -> bool {
        pidfd_send_signal(&*self.0, signal).is_ok()
    }
}

/// A descriptor of a process can be read once the process has ended.
fn is_readable(process: &impl AsFd, longest: Duration) -> bool {
    let longest = Timespec {
        tv_sec: i64::try_from(longest.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: longest.subsec_nanos().into(),
    };
    poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&longest)) != Ok(0)
}

/// What is known of a process.
///
/// Returns an error if it has ended.
pub(crate) fn process(pid: i32) -> io::Result<ProcessEntry> {
    let stat = fs::read(format!("/proc/{pid}/stat"))?;
    read_entry(pid, &stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// All processes.
pub(crate) fn processes() -> Vec<ProcessEntry> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter_map(|pid| process(pid).ok()).collect()
}

/// Parses a `stat` file.
fn read_entry(pid: i32, stat: &[u8]) -> Option<ProcessEntry> {
    let fields = fields(stat)?;
    let alive = !matches!(*fields.first()?, "Z" | "X" | "x");
    Some(ProcessEntry {
        pid,
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        alive,
    })
}

/// The fields of a `stat` file from the third on. The name before them may contain anything, including brackets and spaces.
fn fields(stat: &[u8]) -> Option<Vec<&str>> {
    let name_end = stat.iter().rposition(|byte| *byte == b')')?;
    Some(std::str::from_utf8(&stat[name_end + 1..]).ok()?.split_ascii_whitespace().collect())
}

/// The variables that a process was started with, each with a NUL at its end.
///
/// Returns an error if it has ended, or hides them.
pub(crate) fn environment(pid: i32) -> io::Result<Vec<u8>> {
    fs::read(format!("/proc/{pid}/environ"))
}

/// The user that a process runs as.
pub(crate) fn user(pid: i32) -> Option<u32> {
    let status = fs::read(format!("/proc/{pid}/status")).ok()?;
    let real = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"))?;
    std::str::from_utf8(real).ok()?.split_ascii_whitespace().next()?.parse().ok()
}

/// The program that a process runs.
pub(crate) fn executable(pid: i32) -> io::Result<PathBuf> {
    fs::read_link(format!("/proc/{pid}/exe"))
}

/// The name of a process.
#[cfg(feature = "daemon")]
pub(crate) fn name(pid: i32) -> Option<String> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(name.trim_end().to_owned())
}

/// The memory that a process occupies, in MiB. `None` if it has exited.
pub(crate) fn memory_mib(pid: i32) -> Option<usize> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    Some(line.split_whitespace().nth(1)?.parse::<usize>().ok()? / 1024)
}

/// The children of this process. One that ends meanwhile can hide others, for this time.
pub(crate) fn children() -> Vec<Pid> {
    let threads = fs::read_dir("/proc/self/task").into_iter().flatten().flatten();
    let lists = threads.filter_map(|thread| fs::read_to_string(thread.path().join("children")).ok());
    let pids = |list: String| list.split_ascii_whitespace().map(str::parse).collect::<Vec<_>>();
    lists.flat_map(pids).filter_map(|pid| Pid::from_raw(pid.ok()?)).collect()
}

/// Has the orphans among the descendants of this process become its children.
///
/// Returns an error where the system cannot do it, or does not list them.
pub(crate) fn adopt_orphans() -> io::Result<()> {
    // Without these lists nothing could be reaped.
    fs::read(format!("/proc/self/task/{}/children", raw(getpid())))?;
    Ok(set_child_subreaper(Some(getpid()))?)
}

/// Hides the memory and the environment of this process from others of its user.
///
/// Returns an error where that cannot be done.
pub(crate) fn hide_memory() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

/// RAII guard: processes of the same user can read the environment of this one, which otherwise may hide it.
#[derive(Debug)]
pub(crate) struct ReadableEnvironment {
    before: Option<DumpableBehavior>,
}

impl ReadableEnvironment {
    pub(crate) fn begin() -> Self {
        let before = dumpable_behavior().ok();
        // If it fails, the daemon that is asked refuses.
        set_dumpable_behavior(DumpableBehavior::Dumpable).ok();
        Self { before }
    }
}

impl Drop for ReadableEnvironment {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It is one of the two that can be set.
            set_dumpable_behavior(before).ok();
        }
    }
}

/// Whether this process has given up privileges for good, as what runs in a sandbox has.
pub(crate) fn has_given_up_privileges() -> bool {
    no_new_privs().unwrap_or_default()
}

/// The clock of [`ProcessEntry::started`], in nanoseconds: that since the boot.
pub(crate) fn process_clock() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec);
    let nanoseconds = u64::try_from(time.tv_nsec);
    seconds.unwrap_or_default() * 1_000_000_000 + nanoseconds.unwrap_or_default()
}

/// The time since the boot, on a clock that goes on while this process is stopped and the machine sleeps.
pub(crate) fn clock_since_boot() -> Duration {
    Duration::from_nanos(process_clock())
}

/// The unit of [`ProcessEntry::started`].
pub(crate) fn process_ticks_per_second() -> u64 {
    clock_ticks_per_second().clamp(1, 1_000_000_000)
}

/// Where the ids of processes that this one sees mean the same.
pub(crate) fn pid_scope() -> Result<PidScope, ScopeError> {
    let refused = |path: &str| {
        let path = PathBuf::from(path);
        |source| ScopeError { path, source }
    };
    let link = fs::read_link(NAMESPACE).map_err(refused(NAMESPACE))?;
    let boot = fs::read_to_string(BOOT).map_err(refused(BOOT))?;
    Ok(PidScope { boot: boot.trim().to_owned(), namespace: link.to_string_lossy().into_owned() })
}

/// Whether two scopes are one.
pub(crate) fn is_same_scope(one: &PidScope, other: &PidScope) -> bool {
    one == other
}

/// What this process uses of the machine. What cannot be read is left out.
pub(crate) fn own_usage() -> OwnUsage {
    // One of them is that of the listing.
    let open = fs::read_dir("/proc/self/fd").ok().map(|entries| entries.count().saturating_sub(1) as u64);
    let stat = fs::read("/proc/self/stat").unwrap_or_default();
    OwnUsage { open_descriptors: open, ..read_usage(&stat).unwrap_or_default() }
}

fn read_usage(stat: &[u8]) -> Option<OwnUsage> {
    let fields = fields(stat)?;
    // The first of them is the third of the line.
    let number = |place: usize| fields.get(place - 3)?.parse::<u64>().ok();
    #[expect(
        clippy::cast_precision_loss,
        reason = "ticks of a process are exact up to nine thousand million million"
    )]
    let ticks = |count: u64| Duration::from_secs_f64(count as f64 / clock_ticks_per_second() as f64);
    Some(OwnUsage {
        cpu: Some(ticks(number(14)? + number(15)?)),
        children_cpu: Some(ticks(number(16)? + number(17)?)),
        threads: Some(number(20)?),
        started: Some(booted() + ticks(number(22)?)),
        virtual_bytes: Some(number(23)?),
        resident_bytes: Some(number(24)?.saturating_mul(page_size() as u64)),
        open_descriptors: None,
    })
}

/// When the machine was started, since 1970. Looked at once: clocks are set, and what changes would look like a start.
fn booted() -> Duration {
    static BOOTED: OnceLock<Duration> = OnceLock::new();
    let since_1970 = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    *BOOTED.get_or_init(|| since_1970().saturating_sub(Duration::from_nanos(process_clock())))
}

/// A monotonic clock in milliseconds, accurate to a few of them. It costs a fraction of a precise one.
pub(crate) fn coarse_milliseconds() -> u64 {
    let now = clock_gettime(ClockId::MonotonicCoarse);
    let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
    let nanoseconds = u64::try_from(now.tv_nsec).unwrap_or_default();
    seconds * 1_000 + nanoseconds / 1_000_000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let rest = "S 1 4700 1 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 1";
        for name in ["sh", "a b", ") Z 9 9 (", "\u{fffd}"] {
            let stat = format!("4711 ({name}) {rest}");
            let expected = ProcessEntry { pid: 4711, parent: 1, group: 4700, started: 123_456, alive: true };
            assert_eq!(read_entry(4711, stat.as_bytes()), Some(expected), "{name}");
        }
        assert_eq!((read_entry(1, b"1 (sh) S 1 4700"), read_entry(1, b"")), (None, None));
    }

    #[test]
    fn the_start_of_the_machine_is_that_of_the_kernel() {
        let text = fs::read_to_string("/proc/stat").unwrap();
        let btime = text.lines().find_map(|line| line.strip_prefix("btime ")).unwrap();
        let btime = btime.parse::<u64>().unwrap();
        assert!(booted().as_secs().abs_diff(btime) <= 2, "{:?} is not {btime}", booted());
    }

    #[test]
    fn the_usage_is_read_whatever_the_name_of_the_program_is() {
        let line = "7 (a) S 1 (b) R 1 1 1 0 -1 0 0 0 0 0 100 50 0 0 20 0 9 0 300 4096 2 18446744073709551615";
        let usage = read_usage(line.as_bytes()).unwrap();
        let ticks = u32::try_from(clock_ticks_per_second()).unwrap();
        assert_eq!(usage.cpu, Some(Duration::from_secs(150) / ticks));
        assert_eq!((usage.threads, usage.virtual_bytes), (Some(9), Some(4096)));
        assert_eq!(usage.resident_bytes, Some(2 * page_size() as u64));
    }
}
