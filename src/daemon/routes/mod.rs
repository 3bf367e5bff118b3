//! The HTTP API: `table` declares every route once; `router` and `openapi` are made from it.

mod events;
mod extract;
mod health;
mod hooks;
mod openapi;
mod operation;
mod parameters;
mod reload;
mod router;
mod runs;
mod status;
mod stream;
mod table;
mod workspaces;

#[cfg(feature = "cli")]
pub(crate) use events::ProcessAnswer;
pub(super) use events::send_event;
pub(super) use operation::{RequestLimit, Route};
pub(super) use router::{find, paths, router};
pub use status::{AuditStatus, BrokenWorkspace, DaemonStatus};
