//! Finds the workspace of an event that names none, by its working directory.
//!
//! Only directories inside registered workspaces and the `workspace_roots` are considered.

use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::{
    error::ApiError,
    served_roots::ServedRoots,
    unloaded::{UnloadedWorkspace, UnloadedWorkspaces, real},
    watch::WatchState,
};
use crate::{
    Orchestrator, WorkspaceError,
    config::{Settings, TrustedRoots, WorkspaceSettings, nearest_of, replaced_directory, trusted_roots},
    model::{Event, WorkspaceId},
    run::EventSender,
};

/// How long a lookup is cached. Meanwhile a directory inside may get hook files of its own.
const CACHE_TTL: Duration = Duration::from_secs(10);

/// The maximum number of cached lookups.
const MAX_CACHED: usize = 16 << 10;

/// Finds workspaces for events.
#[derive(Debug)]
pub(super) struct WorkspaceLocator {
    pub(super) roots: ArcSwap<ServedRoots>,
    pub(super) directories: EventDirectories,
    home: Option<PathBuf>,
    trusted: TrustedRoots,
    watch: Arc<WatchState>,
    pub(super) unloaded: Arc<UnloadedWorkspaces>,
    cached: Mutex<HashMap<Arc<str>, CachedLookup>>,
}

/// What the directories that events name are good for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventDirectories {
    /// They are on this machine, and say in which workspace an event is.
    Here,
    /// They are on the machines of hosts: this daemon is a node of a cluster.
    Elsewhere,
}

/// The workspace of a directory.
#[derive(Debug, Clone)]
pub(super) struct CachedLookup {
    since: Instant,
    pub(super) workspace: WorkspaceId,
}

/// Why an event has no workspace.
#[derive(Debug)]
pub(super) enum LocateError {
    /// Its working directory is in no registered workspace and below none of the `workspace_roots`. No other workspace
    /// may judge it.
    Outside(Arc<str>),
    /// Its directory cannot be registered as a workspace.
    Unusable(WorkspaceError),
    /// Its workspace could not be loaded.
    NotLoaded(UnloadedWorkspace),
    /// hookyard is shutting down.
    ShuttingDown,
}

impl From<LocateError> for ApiError {
    fn from(error: LocateError) -> Self {
        match error {
            LocateError::Outside(cwd) => ApiError::outside_workspaces(&cwd),
            LocateError::Unusable(error) => error.into(),
            LocateError::NotLoaded(workspace) => Self::not_loaded(&workspace.id, &workspace.why),
            LocateError::ShuttingDown => Self::shutting_down(),
        }
    }
}

/// The workspace of an event, if it has one.
type LocateResult = Result<Option<WorkspaceId>, LocateError>;

/// Where a working directory is.
pub(super) enum LookupResult {
    /// In a registered workspace.
    Registered(WorkspaceId),
    /// A directory below one of the roots that is not registered yet.
    Unregistered(PathBuf),
    /// In no workspace.
    Outside,
}

impl WorkspaceLocator {
    /// `watch` is asked to watch the workspaces that this registers.
    pub(super) fn new(
        settings: &Settings,
        home: Option<PathBuf>,
        watch: Arc<WatchState>,
        unloaded: Arc<UnloadedWorkspaces>,
    ) -> Self {
        let roots = ArcSwap::from_pointee(ServedRoots::read(settings));
        let trusted = trusted_roots(settings, &|name| std::env::var(name).ok());
        let directories =
            if settings.cluster.enabled { EventDirectories::Elsewhere } else { EventDirectories::Here };
        Self { roots, directories, home, trusted, watch, unloaded, cached: Mutex::default() }
    }

    /// Reads again which directories connected agents work in.
    pub(super) fn reload(&self, settings: &Settings) {
        let roots = ServedRoots::read(settings);
        if **self.roots.load() != roots {
            tracing::info!(roots = roots.real.len(), "workspaces of other directories are served now");
            self.roots.store(Arc::new(roots));
            self.cached.lock().clear();
        }
    }

    /// The workspace of an event: the one it names, or that of its working directory, which is registered if it is below
    /// one of the roots. An event with neither gets none, and the orchestrator takes the only workspace.
    ///
    /// Returns an error if the working directory is in no workspace.
    pub(super) async fn locate(
        &self,
        orchestrator: &Orchestrator,
        sender: EventSender,
        event: &Event,
    ) -> LocateResult {
        if let Some(located) = self.locate_known(orchestrator, event) {
            return located;
        }
        let Some(cwd) = &event.cwd else { return Ok(None) };
        if let Some(workspace) = self.unloaded.of_directory(orchestrator, cwd).await {
            return Err(LocateError::NotLoaded(workspace));
        }
        let found = Box::pin(self.find(orchestrator, cwd)).await?;
        let id = match found {
            LookupResult::Registered(id) if is_loaded(orchestrator, &id).await => id,
            LookupResult::Registered(id) => {
                let (root, why) = (PathBuf::from(&**cwd), "it was removed while it was loaded".into());
                return Err(LocateError::NotLoaded(UnloadedWorkspace { id, root, why }));
            }
            LookupResult::Unregistered(directory) => {
                Box::pin(self.register(orchestrator, sender, directory)).await?
            }
            LookupResult::Outside => return Err(LocateError::Outside(Arc::clone(cwd))),
        };
        self.cache(cwd, id.clone());
        Ok(Some(id))
    }

    /// The same where the disk needs no look, as with nearly every event; nothing where it does.
    pub(super) fn locate_known(&self, orchestrator: &Orchestrator, event: &Event) -> Option<LocateResult> {
        let Some(cwd) = event.cwd.as_ref().filter(|_| event.workspace_id.is_none()) else {
            let unloaded = self.unloaded.of_event(event).map(LocateError::NotLoaded);
            return Some(unloaded.map_or_else(|| Ok(event.workspace_id.clone()), Err));
        };
        self.cached(orchestrator, cwd).map(|cached| Ok(Some(cached.workspace)))
    }

    /// Registers the directory of an unreadable event as [`WorkspaceLocator::locate`] would, so that its guards can block
    /// the event.
    ///
    /// Returns an error if it cannot be registered: nobody knows its guards.
    pub(super) async fn register_for_unreadable(
        &self,
        orchestrator: &Orchestrator,
        sender: EventSender,
        cwd: &Arc<str>,
    ) -> Result<(), LocateError> {
        if self.roots.load().real.is_empty() {
            return Ok(());
        }
        match self.find(orchestrator, cwd).await? {
            LookupResult::Unregistered(directory) => {
                self.register(orchestrator, sender, directory).await.map(drop)
            }
            LookupResult::Registered(_) | LookupResult::Outside => Ok(()),
        }
    }

    /// Registers a workspace in a task of its own: the client may disconnect while others wait for the workspace too.
    pub(super) async fn register(
        &self,
        orchestrator: &Orchestrator,
        sender: EventSender,
        directory: PathBuf,
    ) -> Result<WorkspaceId, LocateError> {
        let orchestrator = orchestrator.clone();
        let watch = Arc::clone(&self.watch);
        let registered = tokio::spawn(async move {
            let id = WorkspaceId::of_path(&directory);
            match orchestrator.register_for(sender, &id, WorkspaceSettings::new(&directory)).await {
                Ok(report) => {
                    watch.rescan(&id);
                    let root = directory.display();
                    tracing::info!(workspace = %id, %root, hooks = report.hooks, "workspace registered");
                    Ok(id)
                }
                // Registered meanwhile, by another event or by a client under an id of its own.
                Err(WorkspaceError::SameRoot { id, .. }) => {
                    orchestrator.loaded(&id).await;
                    Ok(id)
                }
                Err(error) => {
                    if matches!(error, WorkspaceError::TooMany(_)) {
                        orchestrator.turned_away();
                    }
                    Err(LocateError::Unusable(error))
                }
            }
        });
        registered.await.map_err(|_| LocateError::ShuttingDown)?
    }

    pub(super) async fn find(
        &self,
        orchestrator: &Orchestrator,
        cwd: &Arc<str>,
    ) -> Result<LookupResult, LocateError> {
        let cwd = PathBuf::from(&**cwd);
        let roots = self.roots.load_full();
        let home = self.home.clone();
        let trusted = self.trusted.clone();
        if !cwd.is_absolute() {
            return Ok(LookupResult::Outside);
        }
        let orchestrator = orchestrator.clone();
        let look = move || {
            let all_roots = [&roots.real[..], &roots.given[..]].concat();
            if let Some(replaced) = in_replaced(&cwd, &all_roots, &orchestrator, &trusted) {
                return replaced;
            }
            let Some(real) = real(&cwd) else { return LookupResult::Outside };
            let above = orchestrator.workspace_above(&real);
            let below = nearest_below(&real, &roots.real, home.as_deref(), &trusted);
            match (above, below) {
                (Some((id, root)), Some(nearest)) if root.starts_with(&nearest) => {
                    LookupResult::Registered(id)
                }
                (_, Some(nearest)) => LookupResult::Unregistered(nearest),
                (Some((id, _)), None) => LookupResult::Registered(id),
                (None, None) => LookupResult::Outside,
            }
        };
        tokio::task::spawn_blocking(look).await.map_err(|_| LocateError::ShuttingDown)
    }

    pub(super) fn cached(&self, orchestrator: &Orchestrator, cwd: &Arc<str>) -> Option<CachedLookup> {
        let cached = self.cached.lock().get(cwd)?.clone();
        let is_there = orchestrator.snapshot(Some(&cached.workspace)).is_some();
        Some(cached).filter(|cached| is_there && cached.since.elapsed() < CACHE_TTL)
    }

    fn cache(&self, cwd: &Arc<str>, workspace: WorkspaceId) {
        let mut cached = self.cached.lock();
        if cached.len() >= MAX_CACHED {
            cached.clear();
        }
        cached.insert(Arc::clone(cwd), CachedLookup { since: Instant::now(), workspace });
    }
}

/// Whether a registered workspace is loaded. One that another event has just registered is waited for: until it is loaded,
/// nobody knows its guards.
pub(super) async fn is_loaded(orchestrator: &Orchestrator, id: &WorkspaceId) -> bool {
    if orchestrator.snapshot(Some(id)).is_none() {
        orchestrator.loaded(id).await;
    }
    orchestrator.snapshot(Some(id)).is_some()
}

/// The workspace with trusted hooks that a directory is in by its name only, because a link is in the place of the workspace:
/// what was agreed to there still counts.
fn in_replaced(
    cwd: &Path,
    roots: &[PathBuf],
    orchestrator: &Orchestrator,
    trusted: &TrustedRoots,
) -> Option<LookupResult> {
    if cwd.canonicalize().is_ok_and(|real| real == cwd) {
        return None;
    }
    let trusted = trusted.read();
    let replaced = replaced_directory(cwd, &|directory| trusted.contains(directory))?.directory;
    match orchestrator.workspace_above(&replaced) {
        Some((id, root)) if root == replaced => Some(LookupResult::Registered(id)),
        _ if roots.iter().any(|root| replaced.starts_with(root)) => {
            Some(LookupResult::Unregistered(replaced))
        }
        _ => None,
    }
}

/// The nearest directory with hook files, or with hooks that a person has agreed to, that is not above the roots. Without
/// one it is the root itself, where the user's own hooks run.
fn nearest_below(
    cwd: &Path,
    roots: &[PathBuf],
    home: Option<&Path>,
    trusted: &TrustedRoots,
) -> Option<PathBuf> {
    let root =
        roots.iter().filter(|root| cwd.starts_with(root)).max_by_key(|root| root.components().count())?;
    let trusted = trusted.read();
    // A directory that is gone is in the workspaces that it was in, and what was agreed to in one that is gone still counts.
    let there = cwd.ancestors().find(|above| above.is_dir());
    let nearest = there.and_then(|there| nearest_of(there, home, &trusted));
    let agreed = cwd.ancestors().find_map(|above| trusted.get(above)).cloned();
    let found = nearest.into_iter().chain(agreed).filter(|found| found.starts_with(root));
    let innermost = found.max_by_key(|found| found.components().count());
    Some(innermost.unwrap_or_else(|| root.clone()))
}
