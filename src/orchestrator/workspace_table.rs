//! The table of registered workspaces.

use std::{
    collections::{BTreeMap, BTreeSet},
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
    sync::{Arc, atomic::AtomicBool},
};

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::OwnedMutexGuard;

use super::{error::WorkspaceError, load_report::LoadReport};
use crate::{
    config::{self, Settings, WorkspaceSettings},
    model::WorkspaceId,
};

/// Registered workspaces with their ids.
pub(super) type KnownWorkspaces = Vec<(WorkspaceId, Arc<WorkspaceEntry>)>;

/// The registered workspaces by id.
#[derive(Debug, Default)]
pub(super) struct WorkspaceTable {
    all: Mutex<BTreeMap<WorkspaceId, Arc<WorkspaceEntry>>>,
    /// Those with errors in their hook files: each load asks whether there are any.
    unsound: Mutex<BTreeSet<WorkspaceId>>,
}

/// A registered workspace.
#[derive(Debug)]
pub(super) struct WorkspaceEntry {
    pub(super) settings: WorkspaceSettings,
    /// Held from reading to publishing, so that what was read last is published last.
    pub(super) loading: Arc<tokio::sync::Mutex<()>>,
    /// What its last load found; none until it has been loaded once.
    report: Mutex<Option<LoadReport>>,
    /// Whether it will be loaded again in a moment.
    pub(super) is_load_planned: AtomicBool,
}

/// A workspace that was just inserted and has to be loaded.
pub(super) struct InsertedWorkspace {
    pub(super) entry: Arc<WorkspaceEntry>,
    /// The entry's `loading` lock.
    pub(super) loading: OwnedMutexGuard<()>,
    /// The directory that its id named before, if that was another one.
    pub(super) former_root: Option<PathBuf>,
    /// Those below its directory that were there before, and were loaded without it.
    pub(super) nested: KnownWorkspaces,
}

impl WorkspaceTable {
    pub(super) fn lock(&self) -> MutexGuard<'_, BTreeMap<WorkspaceId, Arc<WorkspaceEntry>>> {
        self.all.lock()
    }

    pub(super) fn find(&self, id: &WorkspaceId) -> Option<Arc<WorkspaceEntry>> {
        self.lock().get(id).cloned()
    }

    /// Inserts a workspace that is about to be loaded, in the place of one with the same id.
    ///
    /// Returns an error if the directory is another workspace, or if there are `most` workspaces already.
    pub(super) fn insert(
        &self,
        id: &WorkspaceId,
        settings: WorkspaceSettings,
        most: usize,
    ) -> Result<InsertedWorkspace, WorkspaceError> {
        let mut all = self.lock();
        if let Some((other, _)) =
            all.iter().find(|(other, known)| *other != id && is_same(&known.settings.root, &settings.root))
        {
            return Err(WorkspaceError::SameRoot { root: settings.root, id: other.clone() });
        }
        let former = all.get(id).map(Arc::clone);
        if former.is_none() && all.len() >= most {
            return Err(WorkspaceError::TooMany(most));
        }
        let lock = Arc::new(tokio::sync::Mutex::new(()));
        // Nobody else has the lock yet, so it is free.
        let loading = Arc::clone(&lock).try_lock_owned().map_err(|_| WorkspaceError::ShuttingDown)?;
        // A host may register what is there already whenever it starts: that is a reload, compared with the last one.
        let same = former.as_ref().filter(|known| known.settings == settings);
        let report = Mutex::new(same.and_then(|known| known.report().clone()));
        let former_root =
            former.map(|known| known.settings.root.clone()).filter(|root| *root != settings.root);
        let entry = Arc::new(WorkspaceEntry {
            settings,
            loading: lock,
            report,
            is_load_planned: AtomicBool::new(false),
        });
        let nested = nested_in(&all, &entry.settings.root);
        all.insert(id.clone(), Arc::clone(&entry));
        Ok(InsertedWorkspace { entry, loading, former_root, nested })
    }

    /// The workspaces below a directory.
    pub(super) fn nested_in(&self, directory: &Path) -> KnownWorkspaces {
        nested_in(&self.lock(), directory)
    }

    /// Notes what the last load of a workspace found, unless it was removed or replaced meanwhile. Returns whether no
    /// workspace has errors in its hook files.
    pub(super) fn note(&self, id: &WorkspaceId, entry: &Arc<WorkspaceEntry>, report: LoadReport) -> bool {
        let is_sound = report.errors().next().is_none();
        *entry.report() = Some(report);
        let all = self.lock();
        let mut unsound = self.unsound.lock();
        if all.get(id).is_some_and(|current| Arc::ptr_eq(current, entry)) {
            if is_sound {
                unsound.remove(id);
            } else {
                unsound.insert(id.clone());
            }
        }
        unsound.is_empty()
    }

    /// Forgets what was found in a workspace that was removed. Returns whether no other has errors in its hook files.
    pub(super) fn forget(&self, id: &WorkspaceId) -> bool {
        let all = self.lock();
        let mut unsound = self.unsound.lock();
        if !all.contains_key(id) {
            unsound.remove(id);
        }
        unsound.is_empty()
    }
}

impl WorkspaceEntry {
    pub(super) fn report(&self) -> MutexGuard<'_, Option<LoadReport>> {
        self.report.lock()
    }
}

fn nested_in(all: &BTreeMap<WorkspaceId, Arc<WorkspaceEntry>>, directory: &Path) -> KnownWorkspaces {
    let nested = all.iter().filter(|(_, known)| is_nested(&known.settings.root, directory));
    nested.map(|(id, known)| (id.clone(), Arc::clone(known))).collect()
}

/// Whether a directory is below another one. Their names are compared only where the bytes agree: each load asks for every
/// workspace, and there may be thousands.
pub(super) fn is_nested(directory: &Path, outer: &Path) -> bool {
    let (inner, around) = (directory.as_os_str().as_bytes(), outer.as_os_str().as_bytes());
    inner.starts_with(around) && directory != outer && directory.starts_with(outer)
}

/// Whether two directories without links are the same one. Each load of a new workspace compares all of them.
fn is_same(one: &Path, other: &Path) -> bool {
    one.as_os_str() == other.as_os_str()
}

/// The settings of a workspace with its directory absolute and without symbolic links.
///
/// Returns an error if it is no directory.
pub(super) fn with_real_root(
    settings: WorkspaceSettings,
    all: &Settings,
) -> Result<WorkspaceSettings, WorkspaceError> {
    let environment = |name: &str| std::env::var(name).ok();
    match config::workspace_place(&settings.root, all, &environment).map(|place| place.root) {
        Ok(root) if root.is_dir() => Ok(WorkspaceSettings { root, ..settings }),
        Ok(path) => Err(WorkspaceError::Directory { path, source: std::io::ErrorKind::NotADirectory.into() }),
        Err(error) => Err(WorkspaceError::Directory { path: settings.root, source: error }),
    }
}
