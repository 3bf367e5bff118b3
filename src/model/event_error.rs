//! Why an event could not be read, with the field at fault, and what is known of it nevertheless.

use std::sync::Arc;

#[cfg(any(feature = "cli", feature = "daemon"))]
use super::Event;
use super::{EventKind, HostEvent, JsonError, Strategy, WorkspaceId, id::IdError};

/// Why a native or canonical event could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventError {
    /// The bytes are not UTF-8.
    #[error("the event is not UTF-8: invalid byte at offset {0}")]
    NotUtf8(usize),
    /// The text is not acceptable JSON.
    #[error("the event is not valid JSON: {0}")]
    Json(#[from] JsonError),
    /// The JSON is no object.
    #[error("the event must be a JSON object, not {0}")]
    NotAnObject(&'static str),
    /// A field that every event of this kind has is not there.
    #[error("field `{field}` is missing{hint}")]
    Missing {
        /// The field's name.
        field: &'static str,
        /// What to do, empty or beginning with `; `.
        hint: String,
    },
    /// A field has another type than it must.
    #[error("field `{field}` must be {expected}, not {found}")]
    WrongType {
        /// The field's name.
        field: String,
        /// What it must be.
        expected: &'static str,
        /// What it is.
        found: &'static str,
    },
    /// A name, such as that of a tool, is longer than any has to be.
    #[error("field `{field}` is {length} bytes long; at most {most} are allowed")]
    TooLong {
        /// The field's name.
        field: String,
        /// How long it is, in bytes.
        length: usize,
        /// How long it may be.
        most: usize,
    },
    /// An identifier breaks its syntax.
    #[error("field `{field}` {source}")]
    Id {
        /// The field's name.
        field: &'static str,
        /// What is wrong with it.
        source: IdError,
    },
    /// The kind of event is not one the dialect knows.
    #[error("unknown event {name:?} in field `{field}`{hint}")]
    UnknownEvent {
        /// The field that names the event.
        field: &'static str,
        /// The name found there, cut to a readable length.
        name: String,
        /// The names that exist, empty or beginning with `; `.
        hint: String,
    },
    /// The request names another run than its event.
    #[error("the request says that its event is of the run {said:?}, and the event that it is of {found:?}")]
    OtherRun {
        /// What the request says.
        said: String,
        /// What the event says.
        found: String,
    },
    /// The request names another id than its event.
    #[error("the request says that its event has the id {said:?}, and the event that it has {found:?}")]
    OtherId {
        /// What the request says.
        said: String,
        /// What the event says.
        found: String,
    },
    /// The request does not say of which run its event is, as a node of a cluster needs.
    #[error("the request does not say of which run its event is")]
    NoRun,
    /// Neither the request nor its event names a workspace, as a node of a cluster needs.
    #[error("neither the event nor its request names a workspace, and its directory is not on this machine")]
    NoWorkspaceId,
    /// The daemon is a worker, which takes events from a queue only.
    #[error("this daemon is a worker: it takes events from the queue of its cluster, and from nobody else")]
    OfWorker,
    /// The request names another workspace than its event.
    #[error(
        "the request says that its event is of the workspace {said:?}, and the event that it is of {found:?}"
    )]
    OtherWorkspace {
        /// What the request says.
        said: String,
        /// What the event says.
        found: String,
    },
    /// Larger than the limit.
    #[error("the event is longer than the {limit} bytes allowed")]
    TooLarge {
        /// Its size in bytes, as far as it was read.
        size: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl EventError {
    /// Whether the event can be read, and is only not for the address that its request has.
    #[cfg(feature = "daemon")]
    pub(crate) fn is_of_request(&self) -> bool {
        matches!(
            self,
            Self::OtherRun { .. }
                | Self::OtherId { .. }
                | Self::OtherWorkspace { .. }
                | Self::NoRun
                | Self::NoWorkspaceId
                | Self::OfWorker
        )
    }
}

/// What is known of an event whose hooks cannot be asked, perhaps because it cannot be read as a whole.
#[derive(Debug, Clone, Default)]
pub(crate) struct PartialEvent {
    pub(crate) kind: Option<EventKind>,
    /// The event without a kind of its own.
    pub(crate) host_event: Option<HostEvent>,
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only the daemon looks for workspaces"))]
    pub(crate) cwd: Option<Arc<str>>,
    /// The workspace that it names, or its request.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "only the daemon looks for workspaces"))]
    pub(crate) workspace_id: Option<WorkspaceId>,
}

impl PartialEvent {
    /// An event that was read.
    #[cfg(any(feature = "cli", feature = "daemon"))]
    pub(crate) fn of(event: &Event) -> Self {
        Self {
            kind: Some(event.kind),
            host_event: event.host_event.clone(),
            cwd: event.cwd.clone(),
            workspace_id: event.workspace_id.clone(),
        }
    }

    /// Whether an agent or one of its subagents is about to end its turn.
    #[cfg(feature = "daemon")]
    pub(crate) fn ends_turn(&self) -> bool {
        matches!(self.kind, Some(EventKind::AgentStopping | EventKind::SubagentStopping))
    }

    /// Whether hooks might stop it, as far as is known.
    pub(crate) fn may_be_stopped(&self) -> bool {
        match (self.kind, &self.host_event) {
            (Some(EventKind::HostEvent), Some(known)) => known.strategy == Strategy::Serial,
            (None | Some(EventKind::HostEvent), _) => true,
            (Some(kind), _) => kind.is_interceptor(),
        }
    }
}
