//! Workspaces of the settings that could not be loaded. Their events are refused, so that no other workspace judges them.

use std::{
    collections::BTreeMap,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use arc_swap::ArcSwap;

use crate::{
    Orchestrator,
    model::{Event, WorkspaceId},
};

/// The workspaces that are not loaded, by id.
#[derive(Debug, Default)]
pub(super) struct UnloadedWorkspaces(ArcSwap<BTreeMap<WorkspaceId, UnloadedWorkspace>>);

/// A workspace that is not loaded.
#[derive(Debug, Clone)]
pub(super) struct UnloadedWorkspace {
    pub(super) id: WorkspaceId,
    /// Its directory, as the settings write it.
    pub(super) root: PathBuf,
    /// Why it is not loaded.
    pub(super) why: Arc<str>,
}

impl UnloadedWorkspaces {
    pub(super) fn all(&self) -> Vec<UnloadedWorkspace> {
        self.0.load().values().cloned().collect()
    }

    pub(super) fn find(&self, id: &WorkspaceId) -> Option<UnloadedWorkspace> {
        self.0.load().get(id).cloned()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.load().is_empty()
    }

    /// Returns whether it was there.
    pub(super) fn remove(&self, id: &WorkspaceId) -> bool {
        let was_there = self.0.load().contains_key(id);
        self.update(|all| drop(all.remove(id)));
        was_there
    }

    pub(super) fn insert(&self, workspace: &UnloadedWorkspace) {
        self.update(|all| drop(all.insert(workspace.id.clone(), workspace.clone())));
    }

    fn update(&self, change: impl Fn(&mut BTreeMap<WorkspaceId, UnloadedWorkspace>)) {
        self.0.rcu(|all| {
            let mut all = BTreeMap::clone(all);
            change(&mut all);
            all
        });
    }

    /// The unloaded workspace that an event is for, as far as it says so without a directory. An event that says nothing
    /// may be for any of them.
    pub(super) fn of_event(&self, event: &Event) -> Option<UnloadedWorkspace> {
        let all = self.0.load();
        match (&event.workspace_id, &event.cwd) {
            (Some(id), _) => all.get(id).cloned(),
            (None, None) => all.values().next().cloned(),
            (None, Some(_)) => None,
        }
    }

    /// The unloaded workspace that a directory is in, unless a registered workspace is nearer. Reads the disk, unless all
    /// are loaded.
    pub(super) async fn of_directory(
        self: &Arc<Self>,
        orchestrator: &Orchestrator,
        cwd: &str,
    ) -> Option<UnloadedWorkspace> {
        if self.is_empty() {
            return None;
        }
        let unloaded = Arc::clone(self);
        let orchestrator = orchestrator.clone();
        let cwd = PathBuf::from(cwd);
        let look = move || unloaded.above(&orchestrator, &cwd);
        tokio::task::spawn_blocking(look).await.ok().flatten()
    }

    fn above(&self, orchestrator: &Orchestrator, cwd: &Path) -> Option<UnloadedWorkspace> {
        let cwd = real(cwd)?;
        let length = |root: &Path| root.components().count();
        let registered = orchestrator.workspace_above(&cwd).map_or(0, |(_, root)| length(&root));
        let all = self.0.load();
        let with_root = all.values().filter_map(|workspace| Some((real(&workspace.root)?, workspace)));
        let above = with_root.filter(|(root, _)| cwd.starts_with(root) && length(root) > registered);
        above.max_by_key(|(root, _)| length(root)).map(|(_, workspace)| workspace.clone())
    }
}

/// A directory with symbolic links resolved. One that is gone stays where it was, so that its hooks still run.
pub(super) fn real(cwd: &Path) -> Option<PathBuf> {
    let (there, real) = cwd.ancestors().find_map(|above| Some((above, above.canonicalize().ok()?)))?;
    let gone = cwd.strip_prefix(there).ok()?;
    gone.components().all(|part| matches!(part, Component::Normal(_))).then(|| real.join(gone))
}
