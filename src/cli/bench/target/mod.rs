//! What events are sent to: one that answers at once, an orchestrator in this process, or a daemon.

mod address;
mod connection;
mod door;
mod gone;
mod in_process;
mod lines;
mod null_server;
mod stream;
mod usage;

pub(super) use address::{DaemonAddress, DaemonToken, RemotePolicy};
pub(super) use connection::DaemonTarget;
pub(super) use door::{BenchTarget, Door};
pub(super) use gone::TargetGone;
pub(super) use in_process::InProcessTarget;
pub(super) use lines::LinesTarget;
pub(super) use usage::TargetUsage;
