//! The daemon: hooks for hosts in any language, over a Unix socket and TCP. Owns its listeners, its routes and its end;
//! refuses to decide anything about hooks, which is the orchestrator's part.
//!
//! `connections` takes a connection, `admission` a request, `routes` answer it: `routes/events.rs` is the way of an
//! event. `socket` and `door` say who may come in, `locate` where an event belongs, `watch` when files are read again.
//! `audit` writes down what came of it, `traces` how long what took.

mod admission;
mod audit;
mod body;
mod client;
mod connections;
mod door;
mod error;
#[cfg(feature = "cli")]
mod follow;
mod life;
mod locate;
mod patience;
mod routes;
mod shared;
mod socket;
mod traces;
mod watch;
mod watched;

pub use audit::AuditError;
pub use client::{Answer, Client, ClientError};
pub use door::TokenError;
#[cfg(feature = "cli")]
pub(crate) use follow::Lines;
pub use life::{Daemon, StartError};
#[cfg(feature = "cli")]
pub(crate) use routes::ProcessAnswer;
pub use routes::{AuditStatus, BrokenWorkspace, Status};
pub use socket::{SocketError, default_socket};
pub use traces::TracesError;
