//! The HTTP API: `table` declares every route once; `router` and `openapi` are made from it.

mod addressed;
mod bundle_status;
mod cluster_status;
mod data_status;
mod decisions;
mod events;
mod explain;
mod extract;
mod health;
mod native_events;
mod native_response;
mod now;
mod openapi;
mod operation;
mod outbox;
mod page;
mod reload;
mod router;
mod rule_trial;
mod runs;
mod settings;
mod shared;
mod status;
mod stop;
mod stream;
mod table;
mod trust;
mod unasked;
mod worker_status;
mod workspaces;

#[cfg(feature = "cli")]
pub(crate) use addressed::percent_encoded;
pub(super) use addressed::{partial_event, workspace as addressed_workspace};
pub use bundle_status::BundleStatus;
#[cfg(feature = "cluster")]
pub(super) use cluster_status::instance;
pub use cluster_status::{ClusterNodeStatus, ClusterStatus, ClusterStoreStatus};
pub use data_status::{AgentStatus, AuditStatus, DataStatus, LastGoodFile, ShippingStatus};
pub(super) use events::{UnreadableEvent, decide, dispatch, read_canonical, refuse_own_hook, send_event};
pub(super) use native_events::{UnreadNative, decide_native, read_native};
pub(crate) use native_response::ProcessAnswer;
pub(super) use native_response::{
    AnsweredError, ERROR, EXIT_CODE, NativeAnswer, RETRY, ResponseForm, parse_dialect,
};
pub(super) use operation::{RequestLimit, Route};
pub(super) use router::{find, misaddressed, paths, router};
pub use status::{BrokenWorkspace, DaemonStatus, NotLoadedWorkspace, PowerlessSwitches, RequiredMissing};
pub use trust::NotTrusted;
pub(super) use unasked::{RefusedGuards, answer_refused, refuse_native};
pub use worker_status::DegradedHook;
pub(super) use workspaces::register_again;
