//! Which hooks a workspace has, and which of them an event concerns. Pure: refuses I/O, clocks and actors.

mod index;
mod plan;
mod snapshot;

pub use plan::{Explanation, Plan, Skip, Skipped};
pub use snapshot::{Registered, Snapshot};
