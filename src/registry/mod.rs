//! Which hooks a workspace has, and which of them an event concerns. Pure: refuses I/O, clocks and actors.

mod diff;
mod index;
mod plan;
mod row;
mod snapshot;

pub use diff::{Changes, keep_rules_of_broken_files};
pub use plan::{Explanation, Plan, Skip, Skipped};
pub use row::HookRow;
pub use snapshot::{Registered, Snapshot};
