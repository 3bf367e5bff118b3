//! The workspaces of an orchestrator: which there are, and how one is loaded, published and taken away. Owns the
//! order of loads, so that what was read last is published last; refuses to watch files.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering},
    time::SystemTime,
};

use futures_util::{StreamExt, stream};
use tokio::sync::OwnedMutexGuard;

use super::{DispatchError, Orchestrator, told};
use crate::{
    config::{self, DialectSelection, LoadedWorkspace, WorkspaceKind, WorkspaceSettings},
    model::{Diagnostic, Hook, HookSource, Severity, WorkspaceId},
    registry::{HookChanges, Snapshot, keep_rules_of_broken_files},
    supervisor::{PublishedSnapshot, SupervisorMessage},
    telemetry::ConfigLoaded,
};

/// How many workspaces are read from disk at the same time.
const LOADED_AT_ONCE: usize = 4;

/// What was found when a workspace was loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadReport {
    /// The version of its registry.
    pub version: u64,
    /// Its directory: absolute, without symbolic links.
    pub root: PathBuf,
    /// What it is for.
    pub kind: WorkspaceKind,
    /// Whose hooks it runs.
    pub dialects: DialectSelection,
    /// How many hooks it has.
    pub hooks: usize,
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// What there is to say about them.
    pub diagnostics: Vec<Diagnostic>,
    /// What is different from the version before.
    pub changes: HookChanges,
    /// The broken files whose former rules stay.
    pub kept: Vec<PathBuf>,
    /// When its files were looked at: nothing that was there before was missed.
    pub at: SystemTime,
}

impl LoadReport {
    /// The mistakes that were found.
    pub fn errors(&self) -> impl Iterator<Item = &Diagnostic> {
        self.diagnostics.iter().filter(|diagnostic| diagnostic.severity == Severity::Error)
    }
}

/// Why a directory does not become a workspace.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// It cannot be used.
    #[error("workspace {}: {source}", path.display())]
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
    /// There are as many as there may be.
    #[error("as many workspaces are registered as `limits.workspaces` allows ({0})")]
    TooMany(usize),
    /// hookyard takes no more work.
    #[error("hookyard is shutting down")]
    ShuttingDown,
}

/// The workspaces of an orchestrator.
#[derive(Debug, Default)]
pub(super) struct Workspaces(Mutex<BTreeMap<WorkspaceId, Arc<Workspace>>>);

/// One of them.
#[derive(Debug)]
struct Workspace {
    settings: WorkspaceSettings,
    /// Held from reading to publishing.
    loading: Arc<tokio::sync::Mutex<()>>,
    report: Mutex<Option<LoadReport>>,
}

/// A workspace that has been taken in.
struct Entered {
    workspace: Arc<Workspace>,
    /// Its turn to be loaded.
    held: OwnedMutexGuard<()>,
    /// The directory that is no longer one.
    former: Option<PathBuf>,
}

impl Workspaces {
    fn all(&self) -> MutexGuard<'_, BTreeMap<WorkspaceId, Arc<Workspace>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn find(&self, id: &WorkspaceId) -> Option<Arc<Workspace>> {
        self.all().get(id).cloned()
    }

    /// Takes a workspace in, about to be loaded; one of the same id gives way.
    fn enter(
        &self,
        id: &WorkspaceId,
        settings: WorkspaceSettings,
        most: usize,
    ) -> Result<Entered, WorkspaceError> {
        let mut all = self.all();
        if let Some((other, _)) =
            all.iter().find(|(other, known)| *other != id && known.settings.root == settings.root)
        {
            return Err(WorkspaceError::SameRoot { root: settings.root, id: other.clone() });
        }
        let former = all.get(id).map(|known| known.settings.root.clone());
        if former.is_none() && all.len() >= most {
            return Err(WorkspaceError::TooMany(most));
        }
        let former = former.filter(|root| *root != settings.root);
        let loading = Arc::new(tokio::sync::Mutex::new(()));
        // Nobody else has it yet, so it is free.
        let held = Arc::clone(&loading).try_lock_owned().map_err(|_| WorkspaceError::ShuttingDown)?;
        // A host may register what is there already whenever it starts: that is a reload.
        let same = all.get(id).filter(|known| known.settings == settings);
        let report = Mutex::new(same.and_then(|known| known.report().clone()));
        let workspace = Arc::new(Workspace { settings, loading, report });
        all.insert(id.clone(), Arc::clone(&workspace));
        Ok(Entered { workspace, held, former })
    }

    /// Whether nothing is wrong with any of them.
    fn are_sound(&self) -> bool {
        self.all().values().all(|workspace| {
            workspace.report().as_ref().is_none_or(|report| report.errors().next().is_none())
        })
    }
}

impl Workspace {
    fn report(&self) -> MutexGuard<'_, Option<LoadReport>> {
        self.report.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Orchestrator {
    /// Registers a workspace and loads its hooks; one that has the id already is replaced.
    ///
    /// Returns an error if the directory is not there or is another workspace already, if there are too many, or if
    /// hookyard is shutting down. Mistakes in hook files are no error: they stand in the report.
    pub async fn register(
        &self,
        id: &WorkspaceId,
        settings: WorkspaceSettings,
    ) -> Result<LoadReport, WorkspaceError> {
        let settings = tokio::task::spawn_blocking(|| directory(settings));
        let settings = settings.await.map_err(|_| WorkspaceError::ShuttingDown)??;
        let most = self.0.settings.limits.workspaces.get();
        let Entered { workspace, held, former } = self.0.workspaces.enter(id, settings, most)?;
        if let Some(former) = former {
            self.0.context.pools.reloaded(&former, &[]);
        }
        self.load(id, &workspace, held).await.map_err(|_| WorkspaceError::ShuttingDown)
    }

    /// Waits until a workspace that is being loaded is there.
    pub async fn loaded(&self, id: &WorkspaceId) {
        if let Some(workspace) = self.0.workspaces.find(id) {
            drop(workspace.loading.lock().await);
        }
    }

    /// Takes a workspace away: its runs are cancelled, its workers stopped, its events refused. Returns whether it
    /// was there.
    pub async fn unregister(&self, id: &WorkspaceId) -> bool {
        let Some(workspace) = self.0.workspaces.all().remove(id) else { return false };
        let _loading = workspace.loading.lock().await;
        // A call fails only if the supervisor is gone, and with it every registry.
        drop(ractor::call!(self.0.supervisor, |reply| SupervisorMessage::Retire(id.clone(), reply)));
        let cancelled = self.cancel_runs_of(id).await;
        self.0.context.pools.reloaded(&workspace.settings.root, &[]);
        tracing::info!(workspace = %id, runs = cancelled.runs, "workspace removed");
        ConfigLoaded { diagnostics: &[], all_sound: self.0.workspaces.are_sound() }.emit();
        true
    }

    /// Reads the hook files of every workspace again. Events under way keep the hooks they began with, and a file
    /// that is broken now keeps its old rules.
    ///
    /// Returns an error if hookyard is shutting down.
    pub async fn reload(&self) -> Result<Vec<(WorkspaceId, LoadReport)>, DispatchError> {
        let all: Vec<_> =
            self.0.workspaces.all().iter().map(|(id, known)| (id.clone(), known.clone())).collect();
        let loads = all.into_iter().map(|(id, workspace)| async move {
            let report = self.load_again(&id, &workspace).await?;
            Ok::<_, DispatchError>(report.map(|report| (id, report)))
        });
        let reports: Vec<_> = stream::iter(loads).buffered(LOADED_AT_ONCE).collect().await;
        reports.into_iter().filter_map(Result::transpose).collect()
    }

    /// The same for one workspace; none if there is no such workspace.
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
        let all = self.0.workspaces.all();
        all.iter().filter_map(|(id, known)| Some((id.clone(), known.report().clone()?))).collect()
    }

    /// The ids of all workspaces, in order.
    pub fn workspace_ids(&self) -> Vec<WorkspaceId> {
        self.0.workspaces.all().keys().cloned().collect()
    }

    /// What was found when a workspace was loaded last.
    pub fn load_report(&self, id: &WorkspaceId) -> Option<LoadReport> {
        self.0.workspaces.find(id)?.report().clone()
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
        let all = self.0.workspaces.all();
        let above = all.iter().filter(|(_, known)| path.starts_with(&known.settings.root));
        above
            .max_by_key(|(_, known)| known.settings.root.components().count())
            .map(|(id, known)| (id.clone(), known.settings.root.clone()))
    }

    /// Loads a workspace anew, unless it has been taken away or replaced meanwhile.
    async fn load_again(
        &self,
        id: &WorkspaceId,
        workspace: &Arc<Workspace>,
    ) -> Result<Option<LoadReport>, DispatchError> {
        let held = Arc::clone(&workspace.loading).lock_owned().await;
        if !self.0.workspaces.find(id).is_some_and(|current| Arc::ptr_eq(&current, workspace)) {
            return Ok(None);
        }
        self.load(id, workspace, held).await.map(Some)
    }

    async fn load(
        &self,
        id: &WorkspaceId,
        workspace: &Workspace,
        _held: OwnedMutexGuard<()>,
    ) -> Result<LoadReport, DispatchError> {
        let (told, id, given) = (id.clone(), id.clone(), workspace.settings.clone());
        let settings = self.0.settings.clone();
        let before = workspace.report().clone();
        let former = before.as_ref().map(|report| (report.kind, report.dialects.clone()));
        let at = SystemTime::now();
        let client = self.0.models.clone();
        let load = move || {
            let outside = config::LoadContext {
                environment: &|name| std::env::var(name).ok(),
                models: &|reference| client.as_ref().is_some_and(|client| client.has(reference)),
                former,
            };
            config::load_in_context(&given, Some(id), &settings, &outside)
        };
        let loaded = tokio::task::spawn_blocking(load).await.map_err(|_| DispatchError::ShuttingDown)?;
        let report = LoadReport { at, ..self.publish(loaded).await? };
        *workspace.report() = Some(report.clone());
        told::tell(&told, before.as_ref(), &report);
        self.sample_hooks();
        ConfigLoaded { diagnostics: &report.diagnostics, all_sound: self.0.workspaces.are_sound() }.emit();
        Ok(report)
    }

    pub(super) async fn publish(&self, loaded: LoadedWorkspace) -> Result<LoadReport, DispatchError> {
        let LoadedWorkspace { place, kind, dialects, mut hooks, files, mut diagnostics } = loaded;
        let before = self.snapshot(Some(&place.id));
        let old = before.as_ref().map_or(&[][..], |snapshot| snapshot.hooks());
        let kept = keep_rules_of_broken_files(old, &mut hooks, &place.root, &diagnostics);
        diagnostics.extend(self.0.native.iter().filter_map(|native| shadow(&mut hooks, native)));
        hooks.extend(self.0.native.iter().cloned());
        let version = self.0.version.fetch_add(1, Ordering::Relaxed) + 1;
        let root = place.root.clone();
        let published = PublishedSnapshot::new(Snapshot::new(version, Arc::new(place), hooks));
        let snapshot = Arc::clone(&published.snapshot);
        let report = LoadReport {
            version,
            root,
            kind,
            dialects,
            hooks: snapshot.hooks().len(),
            files,
            diagnostics,
            changes: HookChanges::between(old, snapshot.hooks()),
            kept,
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

/// The same with its directory without symbolic links.
pub(super) fn directory(settings: WorkspaceSettings) -> Result<WorkspaceSettings, WorkspaceError> {
    match settings.root.canonicalize() {
        Ok(root) if root.is_dir() => Ok(WorkspaceSettings { root, ..settings }),
        Ok(path) => Err(WorkspaceError::Directory { path, source: std::io::ErrorKind::NotADirectory.into() }),
        Err(error) => Err(WorkspaceError::Directory { path: settings.root, source: error }),
    }
}

/// Leaves out the hook of a file that has the name of a native hook: of two scopes, the higher one wins.
fn shadow(hooks: &mut Vec<Hook>, native: &Hook) -> Option<Diagnostic> {
    let position = hooks.iter().position(|hook| hook.name == native.name)?;
    let HookSource { file, line, .. } = hooks.remove(position).source;
    let message = format!("the name `{}` is that of a native hook, so this one is not loaded", native.name);
    let mut diagnostic =
        Diagnostic::of_file(Severity::Error, "duplicate-name", &file?, message).help("rename it");
    (diagnostic.line, diagnostic.column) = (line, 1);
    Some(diagnostic)
}
