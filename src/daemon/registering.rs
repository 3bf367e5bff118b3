//! Registers the workspaces of the settings, of a former daemon's clients and of the outbox, with the signed bundle above them,
//! and tries again what fails.

use std::{pin::pin, sync::Arc, time::Duration};

use futures_util::StreamExt;
use tokio::time::sleep;

use super::{error::ApiError, state::DaemonState, unloaded::UnloadedWorkspace};
use crate::{
    config::WorkspaceSettings,
    model::WorkspaceId,
    orchestrator::{CONCURRENT_LOADS, WorkspaceError},
    run::EventSender,
};

/// The pause before a workspace that could not be loaded is tried again; doubled with each further time.
const FIRST_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The longest such pause.
const MAX_RETRY_PAUSE: Duration = Duration::from_mins(1);

impl DaemonState {
    /// Registers the workspaces of the settings. Those that cannot be loaded are tried again later.
    pub(super) async fn register_workspaces(&self) {
        self.read_bundle().await;
        let registered: Vec<WorkspaceId> = self.registrations.lock().keys().cloned().collect();
        self.register_each(self.settings.workspaces.keys().chain(&registered).cloned()).await;
        self.publish_unloaded();
        self.settle_bundle();
        self.register_workspaces_of_outbox().await;
    }

    /// Registers the workspaces of events that are to be delivered again, as those events did when they came.
    pub(super) async fn register_workspaces_of_outbox(&self) {
        for (workspace, mut event) in self.orchestrator.workspaces_missing_for_outbox() {
            // Only by its directory: the workspace that it was in is not registered.
            event.workspace_id = None;
            if let Err(error) = self.locator.locate(&self.orchestrator, EventSender::Outbox, &event).await {
                let error = ApiError::from(error);
                tracing::warn!(
                    %workspace, %error, "the workspace of events that are to be delivered again is not registered"
                );
            }
        }
    }

    /// Tries the workspaces that are not loaded again.
    pub(super) async fn retry_unloaded(&self) {
        let unloaded = self.unloaded.all();
        for id in self.register_each(unloaded.into_iter().map(|unloaded| unloaded.id)).await {
            self.watch.rescan(&id);
        }
        self.publish_unloaded();
    }

    /// Tries them again and again, until all are loaded.
    pub(super) async fn retry_until_loaded(self: Arc<Self>) {
        let mut pause = FIRST_RETRY_PAUSE;
        while !self.unloaded.is_empty() {
            sleep(pause).await;
            pause = pause.saturating_mul(2).min(MAX_RETRY_PAUSE);
            self.retry_unloaded().await;
        }
    }

    /// A client registered or removed a workspace, so that of the settings counts no more. Returns whether it was not
    /// loaded.
    pub(super) fn forget_unloaded(&self, id: &WorkspaceId) -> bool {
        let was_unloaded = self.unloaded.remove(id);
        self.publish_unloaded();
        was_unloaded
    }

    fn publish_unloaded(&self) {
        self.meters.set_not_loaded(self.unloaded.all().len());
    }

    /// Registers workspaces of the settings or of a former daemon's clients, unless a client has done so meanwhile. Returns
    /// those that were loaded.
    async fn register_each(&self, ids: impl Iterator<Item = WorkspaceId>) -> Vec<WorkspaceId> {
        let missing = ids.filter_map(|id| {
            let is_loaded = self.orchestrator.load_report(&id).is_some();
            let settings = self.configured(&id).filter(|_| !is_loaded);
            if settings.is_none() {
                self.unloaded.remove(&id);
            }
            Some((id, settings?))
        });
        let mut registered = pin!(self.orchestrator.register_each(missing, CONCURRENT_LOADS));
        let mut loaded = Vec::new();
        while let Some((id, result)) = registered.next().await {
            match result {
                Ok(report) => {
                    tracing::info!(workspace = %id, hooks = report.hooks, "workspace loaded");
                    self.unloaded.remove(&id);
                    loaded.push(id);
                }
                Err(error) => self.note_unloaded(id, &error),
            }
        }
        loaded
    }

    /// What is to be registered under an id: by a client of a former daemon, or else by the settings.
    fn configured(&self, id: &WorkspaceId) -> Option<WorkspaceSettings> {
        let registered = self.registrations.lock().get(id).map(|registration| registration.settings.clone());
        registered.or_else(|| self.settings.workspaces.get(id).cloned())
    }

    fn note_unloaded(&self, id: WorkspaceId, error: &WorkspaceError) {
        let Some(settings) = self.configured(&id) else { return };
        if self.unloaded.find(&id).is_none() {
            tracing::error!(
                workspace = %id, %error,
                "cannot load the workspace; its events are refused until it can be loaded, which is tried again"
            );
        }
        self.unloaded.insert(&UnloadedWorkspace { id, root: settings.root, why: error.to_string().into() });
    }
}

impl DaemonState {
    /// Reads the bundle that is kept again, if one is configured.
    pub(super) async fn read_bundle(&self) {
        if let Some(keeper) = &self.bundle {
            keeper.read(&self.orchestrator).await;
        }
    }

    /// Every workspace was loaded with the bundle that was read last.
    pub(super) fn settle_bundle(&self) {
        if let Some(keeper) = &self.bundle {
            keeper.settle();
        }
    }
}
