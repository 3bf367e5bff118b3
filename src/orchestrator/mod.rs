//! The library's entry point: the orchestrator, its builder, and the typed events of a run.
//! It installs no recorder, no logger and no signal handler: those belong to the program that embeds it.

mod broken_files;
mod builder;
#[cfg(feature = "cluster")]
mod cluster;
mod dispatch;
mod error;
mod fail_closed;
mod gauges;
mod handle;
mod lifecycle;
mod load_report;
mod loading;
mod managed;
mod native_hook;
mod notice_stream;
#[cfg(feature = "daemon")]
mod outbox;
#[cfg(feature = "cluster")]
mod queue;
mod reload_log;
#[cfg(any(feature = "cli", feature = "daemon"))]
mod rule_trace;
mod run;
mod runs;
#[cfg(feature = "store")]
mod stored_runs;
#[cfg(test)]
mod tests;
mod workspace_table;
mod workspaces;

pub use builder::Builder;
pub use error::{DispatchError, Overload, StartError, WorkspaceError};
pub(crate) use handle::EventLog;
pub use handle::{Orchestrator, RunCount};
pub use load_report::{KeptFile, LoadReport};
pub use native_hook::NativeHook;
pub use notice_stream::{NoticeStream, NoticesLost};
#[cfg(feature = "daemon")]
pub(crate) use outbox::{OutboxEvent, OutboxSelection};
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) use rule_trace::RuleTracer;
pub use run::{Run, ToolCall};
pub use runs::{CancelSummary, RunFilter, RunList};
#[cfg(feature = "daemon")]
pub(crate) use stored_runs::SuccessorStores;
#[cfg(feature = "daemon")]
pub(crate) use workspaces::CONCURRENT_LOADS;
