//! One load of a workspace: what is read from disk, and the snapshot that is made of it.

use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, SystemTime},
};

use tokio::{sync::OwnedMutexGuard, time::sleep};

use super::{
    error::DispatchError, handle::Orchestrator, load_report::LoadReport, reload_log,
    workspace_table::WorkspaceEntry,
};
use crate::{
    config::{self, DeclaredRoots, LoadOptions, LoadedWorkspace, WorkspaceSettings},
    model::{Diagnostic, Hook, HookSource, Severity, WorkspaceId},
    registry::{HookChanges, Snapshot},
    supervisor::{PublishedSnapshot, SupervisorMessage},
    telemetry::ConfigLoaded,
};

/// How long after a load that could not read every file it is tried again.
const SHORTAGE_RETRY: Duration = Duration::from_secs(1);

impl Orchestrator {
    /// Loads a workspace again, unless it was removed or replaced meanwhile.
    pub(super) async fn load_again(
        &self,
        id: &WorkspaceId,
        workspace: &Arc<WorkspaceEntry>,
        declared: &Arc<DeclaredRoots>,
    ) -> Result<Option<LoadReport>, DispatchError> {
        let loading = Arc::clone(&workspace.loading).lock_owned().await;
        if !self.0.workspaces.find(id).is_some_and(|current| Arc::ptr_eq(&current, workspace)) {
            return Ok(None);
        }
        self.load(id, workspace, loading, declared).await.map(Some)
    }

    /// Reads a workspace from disk and publishes what was found, while its `loading` lock is held.
    pub(super) async fn load(
        &self,
        id: &WorkspaceId,
        workspace: &Arc<WorkspaceEntry>,
        _loading: OwnedMutexGuard<()>,
        declared: &Arc<DeclaredRoots>,
    ) -> Result<LoadReport, DispatchError> {
        let before = workspace.report().clone();
        let at = SystemTime::now();
        let (loaded, met_shortage) =
            self.read_workspace(id, &workspace.settings, before.as_ref(), declared).await?;
        if met_shortage {
            self.load_again_soon(id, workspace);
        }
        let report = match &before {
            // What was not read says nothing about the files, and so nothing about the guards in them.
            Some(before) if met_shortage => before.kept_in_shortage(),
            before => LoadReport { at, ..self.publish(loaded, before.as_ref()).await? },
        };
        let all_sound = self.0.workspaces.note(id, workspace, report.clone());
        reload_log::log_load(id, before.as_ref(), &report);
        ConfigLoaded { diagnostics: &report.diagnostics, all_sound }.emit();
        Ok(report)
    }

    /// Reads a workspace from disk. Returns also whether a limit of the process or the machine kept something from being
    /// read.
    async fn read_workspace(
        &self,
        id: &WorkspaceId,
        given: &WorkspaceSettings,
        before: Option<&LoadReport>,
        declared: &Arc<DeclaredRoots>,
    ) -> Result<(LoadedWorkspace, bool), DispatchError> {
        let (id, given, settings) = (id.clone(), given.clone(), Arc::clone(&self.0.settings));
        let declared = Arc::clone(declared);
        let previous = before.map(|report| (report.kind, report.dialects.clone()));
        let client = self.0.models.clone();
        let orchestrator = self.clone();
        let LoadOptions { search, agents, last_good } = self.0.load_options;
        let open = self.0.last_good.get().cloned();
        let managed = self.0.managed.load_full();
        let load = move || {
            let environment = |name: &str| std::env::var(name).ok();
            let connections = agents.read(&settings, &environment);
            let last_good = last_good.records(open.as_ref(), &settings, &environment);
            let context = config::LoadContext {
                models: &|reference| client.as_ref().is_some_and(|client| client.has(reference)),
                previous,
                declared: Some(&declared),
                registered: &|directory| orchestrator.registered_around(directory),
                search,
                last_good: last_good.as_ref(),
                connections: connections.as_ref(),
                managed: managed.as_deref(),
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
            drop(Self(shared).load_again(&id, &workspace, &Arc::default()).await);
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
        let LoadedWorkspace { workspace: place, mut hooks, mut required, mut diagnostics, .. } = loaded;
        let LoadedWorkspace { kind, dialects, files, missing_files, watched, outer, .. } = loaded;
        let LoadedWorkspace { around, project_roots, versions, .. } = loaded;
        diagnostics.extend(self.0.native.iter().filter_map(|native| shadow(&mut hooks, native)));
        hooks.extend(self.0.native.iter().cloned());
        required.extend_from_slice(&self.0.settings.required);
        let (missing, reports) = config::require(&required, &place, &outer, &mut hooks, &diagnostics);
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
