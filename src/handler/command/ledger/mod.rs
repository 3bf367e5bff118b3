//! The ledger of process groups: a file from which the next hookyard ends what one that was killed left running.
//!
//! A process that gets SIGKILL cannot stop its hooks. What it wrote survives in the page cache, so no write waits for
//! the disk; after a crash of the machine no process is left to end.
//!
//! | file | role |
//! | --- | --- |
//! | `file` | the file, its lock, and the ledger that this process has open |
//! | `format` | the text of the file; pure |
//! | `survivors` | which recorded groups still run, and ending them |

mod file;
mod format;
mod survivors;

#[cfg(feature = "daemon")]
pub(crate) use file::LockedLedger;
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) use file::mark_of_environment;
pub use file::{GroupLedger, LedgerError, Reaped};
pub(super) use file::{PendingRecord, RecordedGroup, mark};
#[cfg(feature = "daemon")]
pub(super) use file::{is_own_mark, recorded_groups};
pub(super) use format::MARK;
#[cfg(feature = "daemon")]
pub(super) use survivors::read_ledger;
pub(super) use survivors::{PROCESS_MARK, count_marked, end_marked, process_mark};
