//! Which hooks a workspace has, and which of them an event concerns. Pure: refuses I/O, clocks and actors.

mod diff;
mod index;
mod listing;
mod plan;
mod snapshot;

pub use diff::{HookChanges, keep_rules_of_broken_files};
pub use listing::HookListing;
pub use plan::{Explanation, Plan, SkipReason, SkippedHook};
pub use snapshot::{RegisteredHook, Snapshot};
