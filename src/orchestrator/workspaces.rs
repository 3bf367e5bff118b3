//! The registered workspaces: added, loaded again, found and removed.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

use futures_util::{Stream, StreamExt, TryStreamExt, stream};

use super::{
    error::{DispatchError, WorkspaceError},
    handle::Orchestrator,
    load_report::LoadReport,
    workspace_table::{InsertedWorkspace, KnownWorkspaces, is_nested, with_real_root},
};
use crate::{
    config::{DeclaredRoots, RegisteredWorkspace, WorkspaceSettings},
    model::WorkspaceId,
    registry::Snapshot,
    run::{EventSender, Outbox},
    supervisor::SupervisorMessage,
    telemetry::ConfigLoaded,
};

/// How many workspaces are read from disk at the same time.
pub(crate) const CONCURRENT_LOADS: usize = 4;

impl Orchestrator {
    /// Registers a workspace and loads its hooks; one that has the id already is replaced.
    ///
    /// Returns an error if the directory is not there, cannot be read and has no last good rules, or is another workspace
    /// already, if there are too many, or if hookyard is shutting down. Mistakes in hook files are no error: they are in
    /// the report.
    pub async fn register(
        &self,
        id: &WorkspaceId,
        settings: WorkspaceSettings,
    ) -> Result<LoadReport, WorkspaceError> {
        self.register_for(EventSender::Known, id, settings).await
    }

    /// The same for an event of a sender, who may take its part of the limit.
    pub(crate) async fn register_for(
        &self,
        sender: EventSender,
        id: &WorkspaceId,
        settings: WorkspaceSettings,
    ) -> Result<LoadReport, WorkspaceError> {
        let inserted = self.insert(sender, id, settings).await?;
        self.load_inserted(id, inserted, &Arc::default()).await
    }

    /// Registers workspaces on one occasion. They get their places in order, are loaded so many at a time, and what becomes of
    /// each is told in order.
    pub(crate) fn register_each(
        &self,
        workspaces: impl Iterator<Item = (WorkspaceId, WorkspaceSettings)>,
        at_once: usize,
    ) -> impl Stream<Item = (WorkspaceId, Result<LoadReport, WorkspaceError>)> {
        let declared = Arc::new(DeclaredRoots::default());
        let inserted = stream::iter(workspaces).then(async |(id, settings)| {
            let inserted = self.insert(EventSender::Known, &id, settings).await;
            (id, inserted)
        });
        let loads = inserted.map(move |(id, inserted)| {
            let declared = Arc::clone(&declared);
            async move {
                let registered = match inserted {
                    Ok(inserted) => self.load_inserted(&id, inserted, &declared).await,
                    Err(error) => Err(error),
                };
                (id, registered)
            }
        });
        loads.buffered(at_once)
    }

    /// Gives a workspace its place, where nobody can use it until it is loaded.
    async fn insert(
        &self,
        sender: EventSender,
        id: &WorkspaceId,
        settings: WorkspaceSettings,
    ) -> Result<InsertedWorkspace, WorkspaceError> {
        let all = Arc::clone(&self.0.settings);
        let settings = tokio::task::spawn_blocking(move || with_real_root(settings, &all));
        let settings = settings.await.map_err(|_| WorkspaceError::ShuttingDown)??;
        let most = sender.part_of(self.0.settings.limits.workspaces.get());
        let inserted = self.0.workspaces.insert(id, settings, most)?;
        if let Some(root) = &inserted.former_root {
            self.0.context.pools.reloaded(root, &[]);
        }
        Ok(inserted)
    }

    /// Loads a workspace that has its place, and those below it, which do not know it yet.
    async fn load_inserted(
        &self,
        id: &WorkspaceId,
        inserted: InsertedWorkspace,
        declared: &Arc<DeclaredRoots>,
    ) -> Result<LoadReport, WorkspaceError> {
        let InsertedWorkspace { entry, loading, nested, .. } = inserted;
        let is_first = entry.report().is_none();
        let report =
            self.load(id, &entry, loading, declared).await.map_err(|_| WorkspaceError::ShuttingDown)?;
        if let Some(path) = report.unreadable_directory().filter(|_| is_first) {
            // Nobody knows which guards are there. Its events in the outbox wait for it.
            self.remove(id, |_| {}).await;
            let source = std::io::ErrorKind::PermissionDenied.into();
            return Err(WorkspaceError::Directory { path, source });
        }
        self.load_all_again(nested, declared).await.map_err(|_| WorkspaceError::ShuttingDown)?;
        Ok(report)
    }

    /// Registers several workspaces.
    ///
    /// Returns an error for the first that cannot be registered.
    pub(super) async fn register_all(
        &self,
        workspaces: Vec<(WorkspaceId, WorkspaceSettings)>,
    ) -> Result<Vec<LoadReport>, WorkspaceError> {
        // One after the other, so that their versions are in order as well.
        self.register_each(workspaces.into_iter(), 1).map(|(_, registered)| registered).try_collect().await
    }

    /// Waits until a workspace that is being loaded is loaded.
    pub async fn loaded(&self, id: &WorkspaceId) {
        if let Some(workspace) = self.0.workspaces.find(id) {
            drop(workspace.loading.lock().await);
        }
    }

    /// Removes a workspace: its runs are cancelled, its workers stopped, and later events for it are errors. Its events in
    /// the outbox are dead letters. Returns whether it was registered.
    pub async fn unregister(&self, id: &WorkspaceId) -> bool {
        self.remove(id, |outbox| outbox.workspace_removed(id)).await
    }

    /// Removes a workspace. `retire` is called when it has no new events any more, before its runs are cancelled.
    async fn remove(&self, id: &WorkspaceId, retire: impl FnOnce(&Outbox)) -> bool {
        let Some(workspace) = self.0.workspaces.lock().remove(id) else { return false };
        let _loading = workspace.loading.lock().await;
        // A call fails only if the supervisor is gone, and with it every registry.
        drop(ractor::call!(self.0.supervisor, |reply| SupervisorMessage::Retire(id.clone(), reply)));
        if let Some(outbox) = self.0.context.outbox.load_full() {
            retire(&outbox);
        }
        let cancelled = self.cancel_actors_of(id).await;
        self.changes_stored().await;
        self.0.context.pools.reloaded(&workspace.settings.root, &[]);
        tracing::info!(workspace = %id, runs = cancelled.runs, "workspace removed");
        let nested = self.0.workspaces.nested_in(&workspace.settings.root);
        // Fails only if hookyard is shutting down.
        drop(self.load_all_again(nested, &Arc::default()).await);
        ConfigLoaded { diagnostics: &[], all_sound: self.0.workspaces.forget(id) }.emit();
        true
    }

    /// Reads the hook files of every workspace again. Events in flight keep the hooks they began with, and a file
    /// that is broken now keeps its former hooks.
    ///
    /// Returns an error if hookyard is shutting down.
    pub async fn reload(&self) -> Result<Vec<(WorkspaceId, LoadReport)>, DispatchError> {
        let all: Vec<_> =
            self.0.workspaces.lock().iter().map(|(id, known)| (id.clone(), known.clone())).collect();
        let declared = &Arc::default();
        let loads = all.into_iter().map(|(id, workspace)| async move {
            let report = self.load_again(&id, &workspace, declared).await?;
            Ok::<_, DispatchError>(report.map(|report| (id, report)))
        });
        let reports: Vec<_> = stream::iter(loads).buffered(CONCURRENT_LOADS).collect().await;
        reports.into_iter().filter_map(Result::transpose).collect()
    }

    /// Reads the hook files of one workspace again; `None` if there is no such workspace.
    ///
    /// Returns an error if hookyard is shutting down.
    pub async fn reload_workspace(&self, id: &WorkspaceId) -> Result<Option<LoadReport>, DispatchError> {
        match self.0.workspaces.find(id) {
            Some(workspace) => self.load_again(id, &workspace, &Arc::default()).await,
            None => Ok(None),
        }
    }

    /// What was found when the workspaces were loaded last, in the order of their ids.
    pub fn load_reports(&self) -> BTreeMap<WorkspaceId, LoadReport> {
        let all = self.0.workspaces.lock();
        all.iter().filter_map(|(id, known)| Some((id.clone(), known.report().clone()?))).collect()
    }

    /// The ids of all workspaces, in order.
    pub fn workspace_ids(&self) -> Vec<WorkspaceId> {
        self.0.workspaces.lock().keys().cloned().collect()
    }

    /// What was found when a workspace was loaded last.
    pub fn load_report(&self, id: &WorkspaceId) -> Option<LoadReport> {
        self.0.workspaces.find(id)?.report().clone()
    }

    /// The first workspace whose trusted guards cannot be in force, and why: the record of trust cannot be used, or a link is
    /// in its place.
    #[cfg(feature = "daemon")]
    pub(crate) fn without_trusted_guards(&self) -> Option<(WorkspaceId, crate::model::Diagnostic)> {
        let all = self.0.workspaces.lock();
        all.iter().find_map(|(id, known)| {
            let report = known.report();
            let report = report.as_ref()?;
            let found = report.unknown_trust().or_else(|| report.replaced())?;
            Some((id.clone(), found.clone()))
        })
    }

    /// The current snapshots of all workspaces, in the order of their ids.
    pub fn snapshots(&self) -> Vec<Arc<Snapshot>> {
        let registry = self.0.registry.load();
        let mut all: Vec<_> = registry.all().cloned().collect();
        all.sort_by(|one, other| one.workspace().id.cmp(&other.workspace().id));
        all
    }

    /// The workspace whose directory is the nearest above a path, or the path itself; and that directory.
    pub fn workspace_above(&self, path: &Path) -> Option<(WorkspaceId, PathBuf)> {
        let all = self.0.workspaces.lock();
        let above = all.iter().filter(|(_, known)| path.starts_with(&known.settings.root));
        above
            .max_by_key(|(_, known)| known.settings.root.components().count())
            .map(|(id, known)| (id.clone(), known.settings.root.clone()))
    }

    /// The registered workspaces around a directory.
    pub(super) fn registered_around(&self, root: &Path) -> Vec<RegisteredWorkspace> {
        let all = self.0.workspaces.lock();
        let around = all.iter().filter(|(_, known)| is_nested(root, &known.settings.root));
        around
            .map(|(id, known)| RegisteredWorkspace { id: id.clone(), settings: known.settings.clone() })
            .collect()
    }

    /// Loads workspaces again, because what is around them has changed.
    async fn load_all_again(
        &self,
        workspaces: KnownWorkspaces,
        declared: &Arc<DeclaredRoots>,
    ) -> Result<(), DispatchError> {
        for (id, workspace) in workspaces {
            self.load_again(&id, &workspace, declared).await?;
        }
        Ok(())
    }
}
