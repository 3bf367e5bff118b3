//! The daemon: hooks for hosts in any language, over a Unix socket and TCP. Owns its listeners, its routes and its end;
//! refuses to decide anything about hooks, which is the orchestrator's part.
//!
//! `connections` takes a connection, `admission` a request, `routes` answer it: `routes/events.rs` is the way of an
//! event. `socket` and `door` say who may come in, `locate` where an event belongs, `watch` when files are read again.
//! `audit` writes down what came of it, `traces` how long what took.

mod admission;
mod audit;
mod auth;
mod client;
mod connection_timeouts;
mod connections;
mod error;
mod monitored_io;
mod request_body;
mod routes;
mod server;
mod socket;
#[cfg(feature = "cli")]
mod sse;
mod state;
mod traces;
mod watch;
mod workspace_locator;

pub use audit::AuditError;
pub use auth::TokenError;
pub use client::{Client, ClientError, ClientResponse};
#[cfg(feature = "cli")]
pub(crate) use routes::ProcessAnswer;
pub use routes::{AuditStatus, BrokenWorkspace, DaemonStatus};
pub use server::{Daemon, ServeError};
pub use socket::{SocketError, default_socket};
#[cfg(feature = "cli")]
pub(crate) use sse::ResponseLines;
pub use traces::TracesError;
