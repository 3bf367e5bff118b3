//! The daemon: hooks for hosts in any language, over Unix sockets and TCP.
//!
//! `connections` accepts connections, `admission` checks requests, `routes` answers them; `routes/events.rs` handles
//! events, also those that come as `lines`. `socket`, `auth` and `tokens` decide who may send requests, `workspace_locator` finds the workspace of an event, `watch`
//! reloads changed hook files. `page` is what browsers get. `audit` and `traces` record outcomes, `ship` sends them to a server. `client` and `sse` are the client's side.

mod access;
mod admission;
mod agent_activity;
mod audit;
mod auth;
mod bundle;
mod client;
#[cfg(feature = "cluster")]
mod cluster;
mod connection_timeouts;
mod connections;
mod denials;
mod dispatch_error;
mod error;
mod exchange;
mod guard_scope;
mod gzip;
mod handed_over;
mod handover;
mod handover_slot;
mod ledger_claim;
mod lines;
mod listener_share;
mod listeners;
mod loading;
mod monitored_io;
mod otlp;
mod page;
#[cfg(feature = "cli")]
mod preflight;
mod registering;
mod request_body;
mod routes;
mod schema;
mod served_roots;
mod server;
mod server_identity;
mod ship;
mod socket;
#[cfg(feature = "cli")]
mod sse;
mod start_error;
mod startup;
mod state;
mod stop;
mod tokens;
mod traces;
mod unloaded;
mod watch;
mod workspace_locator;

pub use audit::AuditError;
pub use client::{Client, ClientError, ClientResponse};
#[cfg(all(feature = "cli", feature = "cluster"))]
pub(crate) use cluster::{StoreSync, check_store, cluster_options, queue_options, store_sync};
pub use error::Retry;
#[cfg(feature = "cli")]
pub(crate) use exchange::{Exchange, MAX_HEADERS, whole_body};
#[cfg(feature = "cli")]
pub(crate) use handed_over::HandedOver;
pub use handed_over::HandedOverError;
#[cfg(test)]
pub(crate) use handover::SimulatedDaemon;
#[cfg(feature = "cli")]
pub(crate) use listeners::ListenerSource;
#[cfg(feature = "cli")]
pub(crate) use loading::StoppableStart;
#[cfg(feature = "cli")]
pub(crate) use preflight::{RunningDaemon, StartFinding, StartFindingLevel, preflight};
pub use routes::{
    AgentStatus, AuditStatus, BrokenWorkspace, BundleStatus, ClusterNodeStatus, ClusterStatus,
    ClusterStoreStatus, DaemonStatus, DataStatus, DegradedHook, LastGoodFile, NotLoadedWorkspace, NotTrusted,
    PowerlessSwitches, RequiredMissing, ShippingStatus,
};
#[cfg(feature = "cli")]
pub(crate) use routes::{ProcessAnswer, percent_encoded};
#[cfg(feature = "cli")]
pub(crate) use served_roots::real_directory;
pub use server::Daemon;
#[cfg(feature = "cli")]
pub(crate) use socket::has_listener;
pub use socket::{SocketError, default_control_socket, default_socket};
#[cfg(feature = "cli")]
pub(crate) use sse::ResponseLines;
pub use start_error::{ReplaceError, ServeError};
pub use tokens::TokenError;
