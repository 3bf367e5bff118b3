//! The file of a ledger: its lock, its slots, and the one ledger that a process may have. A file that another user may
//! have written is refused, because its content says which processes get signals.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rustix::{
    fs::{FlockOperation, OFlags, flock},
    io::Errno,
    process::{Pid, getpid},
};

#[cfg(all(feature = "cli", feature = "daemon"))]
use crate::handler::command::environment::is_inside_hook;

use super::{
    format::{GroupRecord, HEADER, LINE, LedgerHeader, MARK, MAX_GROUPS, PidScope, Slots, now},
    survivors,
};
use crate::{
    handler::private_file::{PrivateFileError, open_private},
    platform,
};

/// The open ledger of this process. Global, because process groups are.
static INSTALLED: ArcSwapOption<LedgerFile> = ArcSwapOption::const_empty();

/// A record of the process groups of this process. If this process is killed, the next one to open the file ends them.
///
/// A process has at most one. Hooks that are started while it is open are recorded in it until they end. Open it before
/// the first hook is started, and drop it after the last has ended: the file stays locked until the ledger and every
/// group in it are gone.
///
/// # Examples
/// ```
/// use hookyard::handler::command::GroupLedger;
///
/// let folder = tempfile::tempdir()?;
/// let (ledger, reaped) = GroupLedger::open(&folder.path().join("groups"))?;
/// assert_eq!(reaped.groups, 0, "nobody was killed here");
/// drop(ledger);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "nothing is recorded once it is dropped"]
pub struct GroupLedger {
    ledger: Arc<LedgerFile>,
    path: PathBuf,
    removed_when_done: bool,
}

/// What a predecessor that was killed had left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Process groups that still ran, and were ended.
    pub groups: usize,
}

/// Why a ledger could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// Another process has it open.
    #[error("another hookyard{} uses `{path}`; stop it or choose another file", shown(*pid))]
    InUse {
        /// The file.
        path: PathBuf,
        /// Its process, if the file names it.
        pid: Option<i32>,
    },
    /// This process has another ledger open.
    #[error("`{path}` was not opened: this process records its process groups elsewhere already")]
    Second {
        /// The file.
        path: PathBuf,
    },
    /// Another user may have written the file, and could choose which processes get signals.
    #[error("`{path}` {why}, so it cannot hold process groups; remove it or choose another file")]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
        why: &'static str,
    },
    /// The file, or a file of `/proc`, cannot be read or written.
    #[error("`{path}` cannot be read and written: {}", crate::model::io_reason(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl GroupLedger {
    /// Opens or creates the file, and ends what its last owner left running. If there is anything to end, that blocks
    /// the thread for up to little more than a second.
    ///
    /// Lines that cannot be read are ignored, and so is everything recorded before the last boot.
    ///
    /// # Errors
    /// Returns an error if the file is in use, if it is not a regular file of this user's alone, if this process has
    /// a ledger already, or if the system refuses it.
    pub fn open(path: &Path) -> Result<(Self, Reaped), LedgerError> {
        Self::claim(path)?.open()
    }

    /// Creates or locks the file without changing it, for callers that have more to do before what was left is
    /// ended.
    ///
    /// # Errors
    /// Returns an error if the file is in use, or if it is not a regular file of this user's alone.
    pub(crate) fn claim(path: &Path) -> Result<LockedLedger, LedgerError> {
        loop {
            let file = open_trusted(path)?;
            lock(&file, path)?;
            let metadata =
                file.metadata().map_err(|source| LedgerError::Io { path: path.to_owned(), source })?;
            // Its owner may have removed it between the two calls; then another file is at the path, or none.
            if metadata.nlink() > 0 {
                return Ok(LockedLedger { file, path: path.to_owned() });
            }
        }
    }

    /// Has the file removed when this is dropped, if no process is left that the next owner would have to end.
    #[cfg_attr(
        not(feature = "daemon"),
        expect(dead_code, reason = "only the daemon knows when a ledger is done with")
    )]
    pub(crate) fn remove_when_done(mut self) -> Self {
        self.removed_when_done = true;
        self
    }
}

/// The locked file of a ledger that is not open yet.
#[derive(Debug)]
pub(crate) struct LockedLedger {
    file: File,
    path: PathBuf,
}

impl LockedLedger {
    /// Removes the file if nobody has used it yet.
    #[cfg_attr(
        not(feature = "daemon"),
        expect(dead_code, reason = "only the daemon claims a ledger before it opens it")
    )]
    pub(crate) fn discard(self) {
        if self.file.metadata().is_ok_and(|metadata| metadata.len() == 0) {
            drop(fs::remove_file(&self.path));
        }
    }

    /// Ends what its last owner left running, and removes it: this process has another one.
    #[cfg(feature = "daemon")]
    pub(crate) fn clear(self) -> Result<Reaped, LedgerError> {
        let (_, reaped) = self.take_over()?;
        fs::remove_file(&self.path).map_err(|source| self.refused(source))?;
        Ok(reaped)
    }

    /// Opens it, as [`GroupLedger::open`] does.
    pub(crate) fn open(self) -> Result<(GroupLedger, Reaped), LedgerError> {
        let (head, reaped) = self.take_over()?;
        self.file.set_len(HEADER as u64).map_err(|source| self.refused(source))?;
        let Self { file, path } = self;
        let ledger = LedgerFile {
            file,
            mark: head.mark(),
            slots: Mutex::default(),
            has_warned: AtomicBool::new(false),
        };
        let ledger = Arc::new(ledger);
        let former = INSTALLED.compare_and_swap(&None::<Arc<LedgerFile>>, Some(Arc::clone(&ledger)));
        match *former {
            None => Ok((GroupLedger { ledger, path, removed_when_done: false }, reaped)),
            Some(_) => Err(LedgerError::Second { path }),
        }
    }

    /// Writes the header of this process, and ends what the last owner left running.
    fn take_over(&self) -> Result<(LedgerHeader, Reaped), LedgerError> {
        let head =
            LedgerHeader { pid_scope: pid_scope()?, pid: getpid().as_raw_nonzero().get(), since: now() };
        let left = take_over(&self.file, &head).map_err(|source| self.refused(source))?;
        let mark = left.mark.map(|mark| format!("{MARK}={mark}"));
        let groups = survivors::end(&left.records, mark.as_deref());
        Ok((head, Reaped { groups }))
    }

    fn refused(&self, source: io::Error) -> LedgerError {
        LedgerError::Io { path: self.path.clone(), source }
    }
}

impl Drop for GroupLedger {
    fn drop(&mut self) {
        INSTALLED.store(None);
        // While the file is locked: whoever opens it next finds that it is gone, and begins another one.
        if self.removed_when_done && self.ledger.is_empty() && !survivors::has_marked(&self.ledger.mark) {
            drop(fs::remove_file(&self.path));
        }
    }
}

/// The open file and its free slots.
#[derive(Debug)]
struct LedgerFile {
    file: File,
    /// The value of the environment variable [`MARK`] of every process that is started while it is open.
    mark: String,
    slots: Mutex<Slots>,
    /// Whether it was logged that groups are not recorded.
    has_warned: AtomicBool,
}

impl LedgerFile {
    fn write(&self, slot: usize, line: [u8; LINE]) -> io::Result<()> {
        self.file.write_all_at(&line, (HEADER + slot * LINE) as u64)
    }

    /// Whether it holds no group.
    fn is_empty(&self) -> bool {
        let slots = self.slots.lock();
        slots.free.len() == slots.next
    }

    fn warn_once(&self, why: &str) {
        if !self.has_warned.swap(true, Ordering::Relaxed) {
            tracing::warn!(why, "hooks are not recorded; those that run when hookyard is killed go on");
        }
    }
}

/// The environment variable that marks the processes of the open ledger, if there is one. By it the next hookyard
/// recognises a process that this one was killed before recording.
pub(in crate::handler::command) fn mark() -> Option<(OsString, OsString)> {
    let ledger = INSTALLED.load();
    ledger.as_ref().map(|ledger| (MARK.into(), ledger.mark.clone().into()))
}

/// Whether a mark is that of the processes of the open ledger: whoever has it is a hook of this process, or was started
/// by one.
#[cfg(feature = "daemon")]
pub(in crate::handler::command) fn is_own_mark(mark: &[u8]) -> bool {
    INSTALLED.load().as_ref().is_some_and(|ledger| ledger.mark.as_bytes() == mark)
}

/// The mark that this process was started with, if it was started by a hook.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) fn mark_of_environment() -> Option<String> {
    is_inside_hook().then(|| std::env::var(MARK).ok()).flatten()
}

/// The ids of the recorded groups, which are those of hooks at work. Reads the file.
#[cfg(feature = "daemon")]
pub(in crate::handler::command) fn recorded_groups() -> Vec<i32> {
    let Some(ledger) = INSTALLED.load_full() else { return Vec::new() };
    let mut text = vec![0; HEADER + ledger.slots.lock().next * LINE];
    let length = ledger.file.read_at(&mut text, 0).unwrap_or_default();
    text.truncate(length);
    GroupRecord::read_all(&text).iter().map(|record| record.group.as_raw_nonzero().get()).collect()
}

/// A process that is about to be started. Without a ledger this costs one load of a pointer.
#[derive(Debug)]
pub(in crate::handler::command) struct PendingRecord(Option<(Arc<LedgerFile>, u64)>);

impl PendingRecord {
    pub(in crate::handler::command) fn now() -> Self {
        Self(INSTALLED.load_full().map(|ledger| (ledger, now())))
    }

    /// Records the process, which was started as the leader of its group. `None` if that fails, which keeps no hook
    /// from running.
    pub(in crate::handler::command) fn record(self, group: Pid) -> Option<RecordedGroup> {
        let (ledger, from) = self.0?;
        let Some(slot) = ledger.slots.lock().take() else {
            ledger.warn_once("too many at once");
            return None;
        };
        // From here on the slot is freed on every path.
        let entry = RecordedGroup { ledger, slot };
        match entry.ledger.write(slot, GroupRecord { group, from, until: now() }.to_bytes()) {
            Ok(()) => Some(entry),
            Err(error) => {
                entry.ledger.warn_once(&error.to_string());
                None
            }
        }
    }
}

/// A group that is recorded in the ledger. Dropping it removes the group.
#[derive(Debug)]
pub(in crate::handler::command) struct RecordedGroup {
    ledger: Arc<LedgerFile>,
    slot: usize,
}

impl Drop for RecordedGroup {
    fn drop(&mut self) {
        // A line that stays names a group that is gone. Its time window tells it from a later group of that id.
        if let Err(error) = self.ledger.write(self.slot, GroupRecord::blank()) {
            self.ledger.warn_once(&error.to_string());
        }
        self.ledger.slots.lock().free.push(self.slot);
    }
}

/// Opens a file that only this user can have written.
fn open_trusted(path: &Path) -> Result<File, LedgerError> {
    let untrusted = |why| LedgerError::Untrusted { path: path.to_owned(), why };
    let (file, metadata) = open_private(path, OFlags::RDWR).map_err(|error| match error {
        PrivateFileError::Untrusted(why) => untrusted(why),
        PrivateFileError::Io(source) => LedgerError::Io { path: path.to_owned(), source },
    })?;
    match () {
        () if metadata.mode() & 0o022 != 0 => Err(untrusted("can be written by other users")),
        () if metadata.nlink() > 1 => Err(untrusted("has another name")),
        () => Ok(file),
    }
}

fn lock(file: &File, path: &Path) -> Result<(), LedgerError> {
    match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(()),
        Err(Errno::WOULDBLOCK) => {
            let mut head = [0; HEADER];
            let read = file.read_exact_at(&mut head, 0).ok().and_then(|()| LedgerHeader::read(&head));
            Err(LedgerError::InUse { path: path.to_owned(), pid: read.map(|head| head.pid) })
        }
        Err(error) => Err(LedgerError::Io { path: path.to_owned(), source: error.into() }),
    }
}

/// What the last owner of the file left.
#[derive(Default)]
struct Leftovers {
    records: Vec<GroupRecord>,
    /// The value of [`MARK`] in the environment of its processes.
    mark: Option<String>,
}

/// Reads the groups that the last owner left, and writes the new header. The groups stay in the file until they are
/// ended, should this process be killed meanwhile.
fn take_over(file: &File, head: &LedgerHeader) -> io::Result<Leftovers> {
    let mut text = Vec::new();
    file.take((HEADER + MAX_GROUPS * LINE) as u64).read_to_end(&mut text)?;
    let left = match LedgerHeader::read(&text) {
        Some(former) if platform::is_same_scope(&former.pid_scope, &head.pid_scope) => {
            Leftovers { records: GroupRecord::read_all(&text), mark: Some(former.mark()) }
        }
        _ => {
            // Before the header is written: lines of another boot must never follow it.
            file.set_len(0)?;
            Leftovers::default()
        }
    };
    file.write_all_at(&head.to_bytes(), 0)?;
    Ok(left)
}

fn pid_scope() -> Result<PidScope, LedgerError> {
    platform::pid_scope().map_err(|error| LedgerError::Io { path: error.path, source: error.source })
}

fn shown(pid: Option<i32>) -> String {
    pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_used_again() {
        let mut slots = Slots::default();
        let taken: Vec<_> = std::iter::from_fn(|| slots.take()).collect();
        assert_eq!(taken, (0..MAX_GROUPS).collect::<Vec<_>>());
        slots.free.push(7);
        assert_eq!((slots.take(), slots.take()), (Some(7), None));
    }
}
