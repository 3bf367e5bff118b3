//! The ledger of process groups: what a hookyard that is killed leaves behind is ended by the next one. Owns the
//! file, what stands in it, and whom a new start may signal; refuses to watch a process and to end one that this
//! process started. Talks to: `group`, which has each group recorded.
//!
//! A process that gets SIGKILL ends nobody, so its hooks would go on without anyone to read them. What it wrote
//! outlives it in the page cache; no disk is waited for, and after a crash of the machine there is nobody to end.
//!
//! | file | role |
//! | --- | --- |
//! | `file` | the file, its lock, and who has it open in this process |
//! | `format` | the text of the file; pure |
//! | `survivors` | which recorded groups live on, and their end |

mod file;
mod format;
mod survivors;

pub use file::{GroupLedger, LedgerError, Reaped};
pub(super) use file::{PendingRecord, RecordedGroup, mark};
