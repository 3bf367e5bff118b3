//! The supervisor's messages, and the snapshots it publishes.

use std::{collections::HashMap, sync::Arc};

use ractor::RpcReplyPort;

use crate::{
    model::{HandlerKind, RunKey, WorkspaceId},
    registry::Snapshot,
    run::{EventSender, RunHandle},
    telemetry::SnapshotMeters,
};

/// A snapshot and the metric handles of its hooks, resolved once when it is published.
#[derive(Debug, Clone)]
pub(crate) struct PublishedSnapshot {
    pub(crate) snapshot: Arc<Snapshot>,
    pub(crate) meters: SnapshotMeters,
}

impl PublishedSnapshot {
    /// Resolves the metric handles of the snapshot's hooks.
    pub(crate) fn new(snapshot: Snapshot) -> Self {
        let meters = SnapshotMeters::resolve(snapshot.hooks().iter().map(|known| &known.hook));
        Self { snapshot: Arc::new(snapshot), meters }
    }
}

/// The current snapshot of each workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct WorkspaceSnapshots {
    workspaces: HashMap<WorkspaceId, PublishedSnapshot>,
    /// The only snapshot, for events that name no workspace.
    only: Option<PublishedSnapshot>,
}

impl WorkspaceSnapshots {
    /// The snapshot of a workspace, or of the only one if none is named.
    pub(crate) fn find(&self, id: Option<&WorkspaceId>) -> Option<&PublishedSnapshot> {
        match id {
            Some(id) => self.workspaces.get(id),
            None => self.only.as_ref(),
        }
    }

    /// The workspaces that are registered.
    pub(crate) fn workspaces(&self) -> impl Iterator<Item = &WorkspaceId> {
        self.workspaces.keys()
    }

    /// The snapshots of all workspaces.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Arc<Snapshot>> {
        self.workspaces.values().map(|published| &published.snapshot)
    }

    /// This registry with a snapshot in the place of the workspace's former one, unless that is newer.
    pub(super) fn with(mut self, published: PublishedSnapshot) -> Self {
        let id = published.snapshot.workspace().id.clone();
        let version = published.snapshot.version();
        let newer = self.workspaces.get(&id).is_some_and(|known| known.snapshot.version() > version);
        if !newer {
            self.workspaces.insert(id, published);
        }
        self.settle()
    }

    /// This registry without a workspace.
    pub(super) fn without(mut self, id: &WorkspaceId) -> Self {
        self.workspaces.remove(id);
        self.settle()
    }

    fn settle(mut self) -> Self {
        let mut snapshots = self.workspaces.values();
        self.only = snapshots.next().filter(|_| snapshots.next().is_none()).cloned();
        self
    }
}

/// Why a run gets no actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpawnRunError {
    /// As many runs are kept as may be.
    TooManyRuns,
    /// The supervisor is shutting down.
    ShuttingDown,
}

/// The messages of the supervisor.
#[derive(Debug)]
pub(crate) enum SupervisorMessage {
    /// Give this run an actor, if it has none, for an event of this sender.
    SpawnRun(RunKey, EventSender, RpcReplyPort<Result<Arc<RunHandle>, SpawnRunError>>),
    /// Use this snapshot for the events to come.
    Publish(PublishedSnapshot, RpcReplyPort<()>),
    /// Take no more events for this workspace.
    Retire(WorkspaceId, RpcReplyPort<()>),
    /// Look for runs that are idle or forgotten.
    Sweep,
    /// Give runs no actors any more.
    Drain,
    /// Start the pool for this kind of handler again.
    RestartPool(HandlerKind),
}
