//! Loading, publishing and removing workspaces.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use futures_util::{StreamExt, stream};
use tokio::{sync::OwnedMutexGuard, time::sleep};

use super::{
    error::{DispatchError, WorkspaceError},
    handle::Orchestrator,
    load_report::LoadReport,
    reload_log,
    workspace_table::{InsertedWorkspace, WorkspaceEntry, with_real_root},
};
use crate::{
    config::{self, LoadOptions, LoadedWorkspace, RegisteredWorkspace, WorkspaceSettings},
    model::{Diagnostic, Hook, HookSource, Severity, WorkspaceId},
    registry::{HookChanges, Snapshot},
    run::{EventSender, Outbox},
    supervisor::{PublishedSnapshot, SupervisorMessage},
    telemetry::ConfigLoaded,
};

/// How many workspaces are read from disk at the same time.
const CONCURRENT_LOADS: usize = 4;

/// How long after a load that could not read every file it is tried again.
const SHORTAGE_RETRY: Duration = Duration::from_secs(1);

impl Orchestrator {
    /// Registers a workspace and loads its hooks; one that has the id already is replaced.
    ///
    /// Returns an error if the directory is not there, cannot be read and has no last good rules, or is another workspace already, if there are too many, or if
    /// hookyard is shutting down. Mistakes in hook files are no error: they are in the report.
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
        let all = self.0.settings.clone();
        let settings = tokio::task::spawn_blocking(move || with_real_root(settings, &all));
        let settings = settings.await.map_err(|_| WorkspaceError::ShuttingDown)??;
        let most = sender.part_of(self.0.settings.limits.workspaces.get());
        let InsertedWorkspace { entry, loading, former_root } =
            self.0.workspaces.insert(id, settings, most)?;
        if let Some(root) = former_root {
            self.0.context.pools.reloaded(&root, &[]);
        }
        let root = entry.settings.root.clone();
        let is_first = entry.report().is_none();
        let report = self.load(id, &entry, loading).await.map_err(|_| WorkspaceError::ShuttingDown)?;
        if let Some(path) = report.unreadable_directory().filter(|_| is_first) {
            // Nobody knows which guards are there. Its events in the outbox wait for it.
            self.remove(id, |_| {}).await;
            let source = std::io::ErrorKind::PermissionDenied.into();
            return Err(WorkspaceError::Directory { path, source });
        }
        self.reload_nested(&root).await.map_err(|_| WorkspaceError::ShuttingDown)?;
        Ok(report)
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
        // Fails only if hookyard is shutting down.
        drop(self.reload_nested(&workspace.settings.root).await);
        ConfigLoaded { diagnostics: &[], all_sound: self.0.workspaces.are_sound() }.emit();
        true
    }

    /// Reads the hook files of every workspace again. Events in flight keep the hooks they began with, and a file
    /// that is broken now keeps its former hooks.
    ///
    /// Returns an error if hookyard is shutting down.
    pub async fn reload(&self) -> Result<Vec<(WorkspaceId, LoadReport)>, DispatchError> {
        let all: Vec<_> =
            self.0.workspaces.lock().iter().map(|(id, known)| (id.clone(), known.clone())).collect();
        let loads = all.into_iter().map(|(id, workspace)| async move {
            let report = self.load_again(&id, &workspace).await?;
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
            Some(workspace) => self.load_again(id, &workspace).await,
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
    pub(crate) fn without_trusted_guards(&self) -> Option<(WorkspaceId, Diagnostic)> {
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
    fn registered_around(&self, root: &Path) -> Vec<RegisteredWorkspace> {
        let all = self.0.workspaces.lock();
        let around = all.iter().filter(|(_, known)| is_nested(root, &known.settings.root));
        around
            .map(|(id, known)| RegisteredWorkspace { id: id.clone(), settings: known.settings.clone() })
            .collect()
    }

    /// Loads the workspaces nested in a directory again, because what is around them has changed.
    async fn reload_nested(&self, root: &Path) -> Result<(), DispatchError> {
        let nested: Vec<_> = {
            let all = self.0.workspaces.lock();
            let inside = all.iter().filter(|(_, known)| is_nested(&known.settings.root, root));
            inside.map(|(id, known)| (id.clone(), Arc::clone(known))).collect()
        };
        for (id, workspace) in nested {
            self.load_again(&id, &workspace).await?;
        }
        Ok(())
    }

    /// Loads a workspace again, unless it was removed or replaced meanwhile.
    async fn load_again(
        &self,
        id: &WorkspaceId,
        workspace: &Arc<WorkspaceEntry>,
    ) -> Result<Option<LoadReport>, DispatchError> {
        let loading = Arc::clone(&workspace.loading).lock_owned().await;
        if !self.0.workspaces.find(id).is_some_and(|current| Arc::ptr_eq(&current, workspace)) {
            return Ok(None);
        }
        self.load(id, workspace, loading).await.map(Some)
    }

    /// Reads a workspace from disk and publishes what was found, while its `loading` lock is held.
    async fn load(
        &self,
        id: &WorkspaceId,
        workspace: &Arc<WorkspaceEntry>,
        _loading: OwnedMutexGuard<()>,
    ) -> Result<LoadReport, DispatchError> {
        let before = workspace.report().clone();
        let at = SystemTime::now();
        let (loaded, met_shortage) = self.read_workspace(id, &workspace.settings, before.as_ref()).await?;
        if met_shortage {
            self.load_again_soon(id, workspace);
        }
        let report = match &before {
            // What was not read says nothing about the files, and so nothing about the guards in them.
            Some(before) if met_shortage => before.kept_in_shortage(),
            before => LoadReport { at, ..self.publish(loaded, before.as_ref()).await? },
        };
        *workspace.report() = Some(report.clone());
        reload_log::log_load(id, before.as_ref(), &report);
        self.update_hook_gauges();
        ConfigLoaded { diagnostics: &report.diagnostics, all_sound: self.0.workspaces.are_sound() }.emit();
        Ok(report)
    }

    /// Reads a workspace from disk. Returns also whether a limit of the process or the machine kept something from being
    /// read.
    async fn read_workspace(
        &self,
        id: &WorkspaceId,
        given: &WorkspaceSettings,
        before: Option<&LoadReport>,
    ) -> Result<(LoadedWorkspace, bool), DispatchError> {
        let (id, given, settings) = (id.clone(), given.clone(), self.0.settings.clone());
        let previous = before.map(|report| (report.kind, report.dialects.clone()));
        let client = self.0.models.clone();
        let orchestrator = self.clone();
        let LoadOptions { search, agents, last_good } = self.0.load_options;
        let open = self.0.last_good.get().cloned();
        let load = move || {
            let environment = |name: &str| std::env::var(name).ok();
            let connections = agents.read(&settings, &environment);
            let last_good = last_good.records(open.as_ref(), &settings, &environment);
            let context = config::LoadContext {
                models: &|reference| client.as_ref().is_some_and(|client| client.has(reference)),
                previous,
                registered: &|directory| orchestrator.registered_around(directory),
                search,
                last_good: last_good.as_ref(),
                connections: connections.as_ref(),
                ..config::LoadContext::new(&environment)
            };
            config::load_in_context(&given, Some(&id), &settings, &context)
        };
        let read = tokio::task::spawn_blocking(|| config::noting_shortage(load));
        read.await.map_err(|_| DispatchError::ShuttingDown)
    }

    /// Loads a workspace again in a moment, after a load that could not read every file.
    fn load_again_soon(&self, id: &WorkspaceId, workspace: &Arc<WorkspaceEntry>) {
        if workspace.is_load_planned.swap(true, Ordering::Relaxed) {
            return;
        }
        let (shared, id, workspace) = (Arc::downgrade(&self.0), id.clone(), Arc::clone(workspace));
        tokio::spawn(async move {
            sleep(SHORTAGE_RETRY).await;
            workspace.is_load_planned.store(false, Ordering::Relaxed);
            let Some(shared) = shared.upgrade() else { return };
            // Fails only if hookyard is shutting down.
            drop(Self(shared).load_again(&id, &workspace).await);
        });
    }

    /// Makes a new snapshot of what was loaded and has all later events use it. `before` is the report of the load
    /// before it.
    pub(super) async fn publish(
        &self,
        mut loaded: LoadedWorkspace,
        before: Option<&LoadReport>,
    ) -> Result<LoadReport, DispatchError> {
        let former = self.snapshot(Some(&loaded.workspace.id));
        let old = former.as_ref().map_or(&[][..], |snapshot| snapshot.hooks());
        let kept = self.settle_broken_files(&mut loaded, old, before);
        let LoadedWorkspace {
            workspace: place,
            kind,
            dialects,
            mut hooks,
            files,
            missing_files,
            watched,
            outer,
            around,
            project_roots,
            versions,
            mut diagnostics,
            ..
        } = loaded;
        diagnostics.extend(self.0.native.iter().filter_map(|native| shadow(&mut hooks, native)));
        hooks.extend(self.0.native.iter().cloned());
        let (missing, reports) =
            config::require(&self.0.settings.required, &place, &outer, &mut hooks, &diagnostics);
        diagnostics.extend(reports);
        let version = self.0.version.fetch_add(1, Ordering::Relaxed) + 1;
        let content: Arc<str> = config::hash_of_all(hooks.iter()).into();
        let snapshot = Snapshot::new(version, Arc::new(place), hooks)
            .with_missing(missing)
            .with_project_roots(project_roots.into());
        let published = PublishedSnapshot::new(snapshot.with_content(Arc::clone(&content)));
        let snapshot = Arc::clone(&published.snapshot);
        let report = LoadReport {
            version,
            content,
            root: snapshot.workspace().root.clone(),
            kind,
            dialects,
            hooks: snapshot.hooks().len(),
            files,
            missing_files,
            watched,
            around,
            diagnostics,
            changes: HookChanges::between(old, snapshot.hooks()),
            kept,
            versions,
            at: SystemTime::now(),
        };
        ractor::call!(self.0.supervisor, |reply| SupervisorMessage::Publish(published, reply))
            .map_err(|_| DispatchError::ShuttingDown)?;
        self.0.context.pools.reloaded(&snapshot.workspace().root, snapshot.hooks());
        for registered in snapshot.hooks().iter().filter(|known| known.hook.enabled) {
            registered.hook.events.iter().for_each(|kind| self.0.context.meters.expect(kind));
        }
        Ok(report)
    }
}

/// Whether a directory is below another one.
fn is_nested(directory: &Path, outer: &Path) -> bool {
    directory != outer && directory.starts_with(outer)
}

/// Removes the hook of a file that has the name of a native hook, and reports it: of two scopes, the higher one wins.
fn shadow(hooks: &mut Vec<Hook>, native: &Hook) -> Option<Diagnostic> {
    let position = hooks.iter().position(|hook| hook.name == native.name)?;
    let HookSource { file, line, .. } = hooks.remove(position).source;
    let message = format!("the name `{}` is that of a native hook, so this one is not loaded", native.name);
    let mut diagnostic =
        Diagnostic::of_file(Severity::Error, "duplicate-name", &file?, message).help("rename it");
    diagnostic.line = line;
    diagnostic.column = 1;
    Some(diagnostic)
}
