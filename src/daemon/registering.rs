//! Registers the workspaces of the settings, of a former daemon's clients and of the outbox, with the signed bundle above them,
//! and tries again what fails.

use std::{sync::Arc, time::Duration};

use tokio::time::sleep;

use super::{error::ApiError, state::DaemonState, unloaded::UnloadedWorkspace};
use crate::{config::DeclaredRoots, model::WorkspaceId, run::EventSender};

/// The pause before a workspace that could not be loaded is tried again; doubled with each further time.
const FIRST_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// The longest such pause.
const MAX_RETRY_PAUSE: Duration = Duration::from_mins(1);

impl DaemonState {
    /// Registers the workspaces of the settings. Those that cannot be loaded are tried again later.
    pub(super) async fn register_workspaces(&self) {
        self.read_bundle().await;
        let registered: Vec<WorkspaceId> = self.registrations.lock().keys().cloned().collect();
        let declared = Arc::default();
        for id in self.settings.workspaces.keys().chain(&registered) {
            self.register(id, &declared).await;
        }
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
        let declared = Arc::default();
        for UnloadedWorkspace { id, .. } in self.unloaded.all() {
            if self.register(&id, &declared).await {
                self.watch.rescan(&id);
            }
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

    /// Registers a workspace of the settings or of a former daemon's clients, unless a client has done so meanwhile. Returns
    /// whether it is loaded.
    async fn register(&self, id: &WorkspaceId, declared: &Arc<DeclaredRoots>) -> bool {
        let registered = self.registrations.lock().get(id).map(|registration| registration.settings.clone());
        let Some(settings) = registered.or_else(|| self.settings.workspaces.get(id).cloned()) else {
            return self.unloaded.remove(id);
        };
        if self.orchestrator.load_report(id).is_some() {
            return self.unloaded.remove(id);
        }
        let sender = EventSender::Known;
        let error = match self.orchestrator.register_among(declared, sender, id, settings.clone()).await {
            Ok(report) => {
                tracing::info!(workspace = %id, hooks = report.hooks, "workspace loaded");
                self.unloaded.remove(id);
                return true;
            }
            Err(error) => error,
        };
        if self.unloaded.find(id).is_none() {
            tracing::error!(
                workspace = %id, %error,
                "cannot load the workspace; its events are refused until it can be loaded, which is tried again"
            );
        }
        let why = error.to_string().into();
        self.unloaded.insert(&UnloadedWorkspace { id: id.clone(), root: settings.root.clone(), why });
        false
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
