//! What clients are told when an event gets no outcome, or a directory does not become a workspace.

use axum::http::StatusCode;

use super::error::ApiError;
use crate::{DispatchError, WorkspaceError};

impl From<DispatchError> for ApiError {
    fn from(error: DispatchError) -> Self {
        let message = error.to_string();
        match error {
            DispatchError::Event(error) => error.into(),
            DispatchError::UnknownWorkspace(_) => Self::not_found(
                "unknown_workspace",
                message,
                "register it with `PUT /v1/workspaces/{id}`, or add it to `workspaces` in the settings",
            ),
            DispatchError::NoWorkspace => Self::not_found(
                "no_workspace",
                message,
                "set `workspace_id`, or a `cwd` inside a workspace or one of the `workspace_roots`",
            ),
            DispatchError::Overloaded(_) => Self::overloaded(message),
            DispatchError::RunLost => Self::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "run_lost",
                message,
                "send the event again if its hooks may run twice; the log has the cause",
            ),
            DispatchError::NotStored(_) => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "not_stored",
                message,
                "make room in the directory of `data`; `hookyard status` says what is wrong with it",
            ),
            DispatchError::LargerThanOutbox { .. } => Self::new(
                StatusCode::PAYLOAD_TOO_LARGE,
                "too_large",
                message,
                "send a smaller event, or wait for its outcome, or raise `outbox.max_size` in the settings",
            ),
            DispatchError::ClusterUnsure => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Self::CLUSTER_UNSURE,
                message,
                "send the event to another daemon of the cluster; `hookyard status` says what is wrong with its store",
            ),
            DispatchError::HaltNotStored => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Self::HALT_NOT_STORED,
                message,
                "stop the run, or send the event again; `hookyard status` says what is wrong with the store of the cluster",
            )
            .after_hooks(),
            DispatchError::RunMoved => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                Self::MOVED,
                message,
                "send the event again; events of one run should go to one daemon",
            )
            .after_hooks(),
            DispatchError::ShuttingDown => Self::shutting_down(),
            DispatchError::Interrupted => Self::interrupted(),
        }
    }
}

impl From<WorkspaceError> for ApiError {
    fn from(error: WorkspaceError) -> Self {
        let message = error.to_string();
        match error {
            WorkspaceError::Directory { .. } => {
                Self::bad_request("bad_root", message, "use the absolute path of a directory on this machine")
            }
            WorkspaceError::SameRoot { .. } => Self::new(
                StatusCode::CONFLICT,
                "same_root",
                message,
                "use that workspace, or remove it first",
            ),
            WorkspaceError::TooMany(_) => Self::overloaded(message),
            WorkspaceError::ShuttingDown => Self::shutting_down(),
        }
    }
}
