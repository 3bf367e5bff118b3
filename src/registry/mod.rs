//! The hooks of a workspace, and which of them an event concerns. Pure.

mod diff;
mod index;
mod listing;
mod plan;
mod registered_hook;
mod snapshot;

pub(crate) use diff::guards_alike;
pub use diff::{HookChanges, keep_rules_of_broken_files};
pub use listing::HookListing;
pub use plan::{Explanation, Plan, SkipReason, SkippedHook};
pub use registered_hook::{MissingHook, RegisteredHook, RequiredEvents};
pub use snapshot::Snapshot;
