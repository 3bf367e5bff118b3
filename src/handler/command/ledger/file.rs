//! The file of a ledger. Owns its lock, its places, and that this process has one ledger at most; refuses a file that
//! somebody else may have written. Talks to: `survivors`, which ends what a killed predecessor left.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    os::unix::fs::{FileExt, MetadataExt},
    path::{Path, PathBuf},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use arc_swap::ArcSwapOption;
use rustix::{
    fs::{FlockOperation, Mode, OFlags, flock},
    io::Errno,
    process::{Pid, geteuid, getpid},
};

use super::{
    format::{GroupRecord, HEADER, LINE, LedgerHeader, PidScope, now},
    survivors,
};

/// The name of the variable with the mark.
pub(super) const MARK: &str = "HOOKYARD_LIFE";

/// The most groups that are recorded at once: half a mebibyte. It is far beyond what one machine runs.
const MAX_GROUPS: usize = 8192;

/// The ledger of this process, as its process groups are.
static INSTALLED: ArcSwapOption<LedgerFile> = ArcSwapOption::const_empty();

/// The record of the process groups of this process, from which the next one ends what it left if it is killed.
///
/// There is one in a process. Hooks that are started while it is open are recorded in it until they end. Open it
/// before the first hook is started, and drop it after the last has ended: the file stays locked until both it and
/// every group in it are gone.
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
    _ledger: Arc<LedgerFile>,
}

/// What a killed predecessor had left.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reaped {
    /// Process groups that still ran, and were ended.
    pub groups: usize,
}

/// Why a ledger could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LedgerError {
    /// Somebody else has it open.
    #[error("another hookyard{} uses `{path}`; stop it or choose another file", shown(*pid))]
    InUse {
        /// The file.
        path: PathBuf,
        /// Who, if the file says so.
        pid: Option<i32>,
    },
    /// This process has another one open.
    #[error("`{path}` was not opened: this process records its process groups elsewhere already")]
    Second {
        /// The file.
        path: PathBuf,
    },
    /// Somebody else may have written the file, and signals would be sent to whom they name.
    #[error("`{path}` cannot hold process groups: {why}; remove it or choose another file")]
    Untrusted {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The file, or what the system says about itself, cannot be read or written.
    #[error("`{path}` cannot be read and written")]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl GroupLedger {
    /// Opens the file, or makes it, and ends what its last owner left running. That blocks the thread, for little
    /// more than a second at most, if there is anything to end.
    ///
    /// What cannot be read in the file is passed over, and so is what was recorded in another boot.
    ///
    /// # Errors
    /// Returns an error if the file is in use, if it is no regular file of this user's alone, if this process has
    /// a ledger already, or if the system refuses it.
    pub fn open(path: &Path) -> Result<(Self, Reaped), LedgerError> {
        Self::claim(path)?.open()
    }

    /// Locks the file, or makes it, and touches nothing in it, for those who have more to do before what was left is
    /// ended.
    ///
    /// # Errors
    /// Returns an error if the file is in use, or if it is no regular file of this user's alone.
    pub(crate) fn claim(path: &Path) -> Result<LockedLedger, LedgerError> {
        let file = trusted(path)?;
        lock(&file, path)?;
        Ok(LockedLedger { file, path: path.to_owned() })
    }
}

/// A ledger that nobody else can open.
#[derive(Debug)]
pub(crate) struct LockedLedger {
    file: File,
    path: PathBuf,
}

impl LockedLedger {
    /// Opens it, as [`GroupLedger::open`] does.
    pub(crate) fn open(self) -> Result<(GroupLedger, Reaped), LedgerError> {
        let Self { file, path } = self;
        let refused = |source| LedgerError::Io { path: path.clone(), source };
        let head =
            LedgerHeader { pid_scope: pid_scope()?, pid: getpid().as_raw_nonzero().get(), since: now() };
        let left = left(&file, &head).map_err(refused)?;
        let groups = survivors::end(&left.records, left.mark.as_deref());
        file.set_len(HEADER as u64).map_err(refused)?;
        let ledger = LedgerFile {
            file,
            mark: head.mark(),
            slots: Mutex::default(),
            complained: AtomicBool::new(false),
        };
        let ledger = Arc::new(ledger);
        let former = INSTALLED.compare_and_swap(&None::<Arc<LedgerFile>>, Some(Arc::clone(&ledger)));
        match *former {
            None => Ok((GroupLedger { _ledger: ledger }, Reaped { groups })),
            Some(_) => Err(LedgerError::Second { path }),
        }
    }
}

impl Drop for GroupLedger {
    fn drop(&mut self) {
        INSTALLED.store(None);
    }
}

/// The open file and which of its places are free.
#[derive(Debug)]
struct LedgerFile {
    file: File,
    /// What every process has in its environment that is started while it is open.
    mark: String,
    slots: Mutex<Slots>,
    /// Whether it was logged that groups are not recorded.
    complained: AtomicBool,
}

#[derive(Debug, Default)]
struct Slots {
    free: Vec<usize>,
    /// The first place that was never taken.
    next: usize,
}

impl Slots {
    /// The place that was left last is taken first, so the file stays as short as it can.
    fn take(&mut self) -> Option<usize> {
        self.free.pop().or_else(|| {
            let slot = self.next;
            self.next = (slot + 1).min(MAX_GROUPS);
            (slot < MAX_GROUPS).then_some(slot)
        })
    }
}

impl LedgerFile {
    fn slots(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self, slot: usize, line: [u8; LINE]) -> io::Result<()> {
        self.file.write_all_at(&line, (HEADER + slot * LINE) as u64)
    }

    fn complain(&self, why: &str) {
        if !self.complained.swap(true, Ordering::Relaxed) {
            tracing::warn!(why, "hooks are not recorded; those that run when hookyard is killed go on");
        }
    }
}

/// The variable that tells the processes of this ledger from all others, if there is a ledger: one that hookyard could
/// not record any more, because it was killed in that very moment, is known by it.
pub(in crate::handler::command) fn mark() -> Option<(OsString, OsString)> {
    let ledger = INSTALLED.load();
    ledger.as_ref().map(|ledger| (MARK.into(), ledger.mark.clone().into()))
}

/// A process is about to be started. It costs the load of a pointer if there is no ledger.
#[derive(Debug)]
pub(in crate::handler::command) struct PendingRecord(Option<(Arc<LedgerFile>, u64)>);

impl PendingRecord {
    pub(in crate::handler::command) fn now() -> Self {
        Self(INSTALLED.load_full().map(|ledger| (ledger, now())))
    }

    /// It was started, as the leader of its group. `None` if it was not recorded, which keeps no hook from running.
    pub(in crate::handler::command) fn record(self, group: Pid) -> Option<RecordedGroup> {
        let (ledger, from) = self.0?;
        let Some(slot) = ledger.slots().take() else {
            ledger.complain("too many at once");
            return None;
        };
        // From here on the place is left again.
        let entry = RecordedGroup { ledger, slot };
        match entry.ledger.write(slot, GroupRecord { group, from, until: now() }.to_bytes()) {
            Ok(()) => Some(entry),
            Err(error) => {
                entry.ledger.complain(&error.to_string());
                None
            }
        }
    }
}

/// A group that stands in the ledger. Dropping it takes the group out.
#[derive(Debug)]
pub(in crate::handler::command) struct RecordedGroup {
    ledger: Arc<LedgerFile>,
    slot: usize,
}

impl Drop for RecordedGroup {
    fn drop(&mut self) {
        // A line that stays names a group that is gone, and is told from a later one by its window.
        if let Err(error) = self.ledger.write(self.slot, GroupRecord::blank()) {
            self.ledger.complain(&error.to_string());
        }
        self.ledger.slots().free.push(self.slot);
    }
}

/// The file, which nobody but this user can have written.
fn trusted(path: &Path) -> Result<File, LedgerError> {
    let refused = |source| LedgerError::Io { path: path.to_owned(), source };
    let untrusted = |why| LedgerError::Untrusted { path: path.to_owned(), why };
    // A pipe is not waited for.
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = match rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => File::from(file),
        Err(Errno::LOOP) => return Err(untrusted("it is a symbolic link")),
        Err(Errno::ISDIR) => return Err(untrusted("it is a directory")),
        Err(error) => return Err(refused(error.into())),
    };
    let metadata = file.metadata().map_err(refused)?;
    let why = match () {
        () if !metadata.is_file() => "it is no regular file",
        () if metadata.uid() != geteuid().as_raw() => "it belongs to another user",
        () if metadata.mode() & 0o022 != 0 => "others may write to it",
        () if metadata.nlink() > 1 => "it has another name",
        () => return Ok(file),
    };
    Err(untrusted(why))
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

/// What the last owner left.
#[derive(Default)]
struct Leftovers {
    records: Vec<GroupRecord>,
    /// What its processes have in their environment.
    mark: Option<String>,
}

/// Reads the groups that the last owner left, and names the new one in the file. They stay in it until they are
/// ended, should this process be killed meanwhile.
fn left(file: &File, head: &LedgerHeader) -> io::Result<Leftovers> {
    let mut text = Vec::new();
    file.take((HEADER + MAX_GROUPS * LINE) as u64).read_to_end(&mut text)?;
    let left = match LedgerHeader::read(&text) {
        Some(former) if former.pid_scope == head.pid_scope => {
            Leftovers { records: GroupRecord::read_all(&text), mark: Some(former.mark()) }
        }
        _ => {
            // Before the head: what it stands above was written where it was read.
            file.set_len(0)?;
            Leftovers::default()
        }
    };
    file.write_all_at(&head.to_bytes(), 0)?;
    Ok(left)
}

fn pid_scope() -> Result<PidScope, LedgerError> {
    let refused = |path: &str| {
        let path = PathBuf::from(path);
        |source| LedgerError::Io { path, source }
    };
    let (boot, namespace) = ("/proc/sys/kernel/random/boot_id", "/proc/self/ns/pid");
    let link = fs::read_link(namespace).map_err(refused(namespace))?;
    let boot = fs::read_to_string(boot).map_err(refused(boot))?;
    Ok(PidScope { boot: boot.trim().to_owned(), namespace: link.to_string_lossy().into_owned() })
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
