//! The errors of the library's entry point: why an orchestrator does not start, why a directory is not a workspace,
//! and why an event got no outcome.

use std::{fmt, path::PathBuf, sync::Arc};

use crate::{
    model::{Diagnostic, EventError, IdError, JsonError, WorkspaceId},
    run::RunRejection,
};

/// Why an orchestrator does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StartError {
    /// Two workspaces have the same id.
    #[error("two workspaces have the id `{0}`; give one of them another id")]
    SameWorkspace(WorkspaceId),
    /// A directory given as a workspace cannot be one.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A native hook cannot work.
    #[error("native hook `{name}`: {message}")]
    NativeHook {
        /// Its name as given.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// Hook files have mistakes, and the builder is [strict](crate::Builder::strict).
    #[error("{}", ErrorList(.0))]
    HookFiles(Vec<Diagnostic>),
    /// The state of runs cannot be kept in the directory given for it.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Store(#[from] crate::store::StoreError),
    /// The last good rules cannot be kept in the directory given for them.
    #[error(transparent)]
    LastGood(#[from] crate::config::LastGoodError),
    /// The internal supervisor task did not start.
    #[error("the supervisor did not start: {0}")]
    Supervisor(String),
    /// The orchestrator was stopped while it started.
    #[error(transparent)]
    Dispatch(#[from] DispatchError),
}

/// Writes the mistakes of hook files, one a line.
struct ErrorList<'a>(&'a [Diagnostic]);

impl fmt::Display for ErrorList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.0.len();
        let noun = if count == 1 { "error" } else { "errors" };
        write!(f, "{count} {noun} in hook files")?;
        self.0.iter().try_for_each(|diagnostic| write!(f, "\n{diagnostic}"))
    }
}

/// Why a directory does not become a workspace.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorkspaceError {
    /// It cannot be used.
    #[error("workspace {}: {}", path.display(), crate::model::io_reason(source))]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },
    /// It is another workspace already. Two with one directory would share their workers.
    #[error("{} is the workspace `{id}` already", root.display())]
    SameRoot {
        /// The directory.
        root: PathBuf,
        /// The workspace that it is.
        id: WorkspaceId,
    },
    /// `limits.workspaces` workspaces are registered already.
    #[error("as many workspaces are registered as `limits.workspaces` allows ({0})")]
    TooMany(usize),
    /// hookyard takes no more work.
    #[error("hookyard is shutting down")]
    ShuttingDown,
}

/// Why an event got no outcome. Nothing was decided: the host chooses whether to go on or to stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DispatchError {
    /// The event cannot be read.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The event names a workspace that is not registered.
    #[error("unknown workspace `{0}`")]
    UnknownWorkspace(WorkspaceId),
    /// The event names no workspace, and there is more than one.
    #[error("the event names no workspace, and there is more than one; set `workspace_id`")]
    NoWorkspace,
    /// A limit is reached; a later attempt may succeed.
    #[error("overloaded: {0}; try again later")]
    Overloaded(Overload),
    /// The actor of the run died while it worked on the event; hooks may have run.
    #[error("the run's actor died while it worked on the event; hooks may have run")]
    RunLost,
    /// The event could not be written to the outbox. No hook has run.
    #[error("the event could not be stored: {0}")]
    NotStored(Arc<str>),
    /// The event has more bytes than all that may wait in the outbox. No hook has run.
    #[error("the event takes {size} bytes in the outbox, and `outbox.max_size` allows {limit}")]
    LargerThanOutbox {
        /// The bytes of its record.
        size: usize,
        /// `outbox.max_size`
        limit: usize,
    },
    /// Another daemon of the cluster may have halted the run without this one knowing, and `cluster.unsure` is `refuse`. No
    /// hook has run.
    #[error("the store of the cluster does not answer, so the run may be halted without this daemon knowing")]
    ClusterUnsure,
    /// A hook has halted the run, the store of the cluster does not confirm it, so that other daemons would go on, and
    /// `cluster.unsure` is `refuse`.
    #[error("a hook has halted the run, and the store of the cluster does not confirm it")]
    HaltNotStored,
    /// What hooks have done in the run has to hold on all daemons of the cluster, and another one goes on with the run, or the
    /// store of the cluster does not answer. Hooks may have run; what they have done counts only where the run goes on.
    #[error("another daemon of the cluster goes on with the run, or its store does not answer")]
    RunMoved,
    /// hookyard takes no more events. No hook has run.
    #[error("hookyard is shutting down")]
    ShuttingDown,
    /// hookyard has shut down before the event's hooks had ended; hooks may have run.
    #[error("hookyard shut down before the event's hooks had ended; hooks may have run")]
    Interrupted,
}

/// Which limit was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Overload {
    /// `limits.in_flight`
    #[error("as many events are under way as `limits.in_flight` allows")]
    InFlight,
    /// `limits.pending_per_run`
    #[error("the run has as many events in hand as `limits.pending_per_run` allows")]
    PendingPerRun,
    /// `limits.pending_deadline`
    #[error("the event waited longer for its turn than `limits.pending_deadline`")]
    PendingDeadline,
    /// `outbox.max_size`
    #[error("as much waits to be delivered as `outbox.max_size` allows")]
    Outbox,
    /// `limits.runs`
    #[error("as many runs are known as `limits.runs` allows")]
    Runs,
}

impl From<RunRejection> for DispatchError {
    fn from(rejection: RunRejection) -> Self {
        match rejection {
            RunRejection::PendingDeadline => Self::Overloaded(Overload::PendingDeadline),
            RunRejection::HaltNotStored => Self::HaltNotStored,
            RunRejection::Moved => Self::RunMoved,
        }
    }
}

impl DispatchError {
    pub(super) fn id(field: &'static str, source: IdError) -> Self {
        Self::Event(EventError::Id { field, source })
    }
}

impl From<JsonError> for DispatchError {
    fn from(error: JsonError) -> Self {
        Self::Event(error.into())
    }
}
