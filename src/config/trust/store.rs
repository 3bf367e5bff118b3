//! The file with the records of trust. It is used only if nobody but this user can have written it.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    sync::Arc,
};

use parking_lot::Mutex;
use rustix::process::geteuid;
use serde::{Deserialize, Serialize};

#[cfg(any(feature = "cli", feature = "daemon"))]
use super::super::DataDirectory;
use super::{
    super::{
        Settings,
        account::home_directory,
        digests::{FileVersion, digest_of},
        files::{ReplacedDirectory, SymlinkPolicy, is_inside, open_regular, replaced_directory},
        state_directory::{StateDirectory, StateFileError, StateFileFault},
        workspace_options::TrustPolicy,
    },
    record::{TreeFile, TrustRecord, tree_digest},
};

/// The version of the format.
pub(super) const VERSION: u32 = 2;

/// The largest file, in bytes.
const LARGEST_FILE: u64 = 64 << 20;

/// Why the file cannot be used if its content is not what hookyard writes.
const DAMAGED: &str = "it is damaged";

/// The file, in the state directory.
pub(super) const FILE: &str = "trust.json";

/// Why the records cannot be used or written: what is wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {why}", path = path.display())]
pub(crate) struct TrustError {
    pub(crate) path: PathBuf,
    pub(crate) why: String,
    pub(crate) help: String,
    /// Whether there is a record which cannot be used, so that nobody knows what was agreed to.
    pub(super) is_refusal: bool,
}

impl TrustError {
    pub(super) fn new(path: &Path, why: impl Into<String>, help: impl Into<String>) -> Self {
        Self { path: path.to_owned(), why: why.into(), help: help.into(), is_refusal: false }
    }
}

impl From<StateFileError> for TrustError {
    fn from(StateFileError { path, why, reason }: StateFileError) -> Self {
        match reason {
            StateFileFault::Unusable => refused(&path, &why),
            StateFileFault::Unwritten => {
                Self::new(&path, why, "check its permissions and the space on its disk")
            }
        }
    }
}

/// The file as it is written.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct StoreFile {
    version: u32,
    /// The files that hooks run, by their digests: most hooks of a workspace run the same ones.
    trees: BTreeMap<String, Arc<[TreeFile]>>,
    records: Vec<StoredRecord>,
}

/// A record without the files that it runs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRecord {
    /// The digest of the files.
    tree: String,
    record: TrustRecord,
}

/// The file as version 1 was written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FirstStoreFile {
    #[serde(rename = "version")]
    _version: u32,
    records: Vec<TrustRecord>,
}

impl StoreFile {
    #[cfg(any(feature = "cli", feature = "daemon"))]
    pub(super) fn new(records: Vec<TrustRecord>) -> Self {
        let mut file = Self { version: VERSION, trees: BTreeMap::new(), records: Vec::new() };
        for mut record in records {
            let tree = std::mem::take(&mut record.tree);
            let digest = tree_digest(&tree);
            file.records.push(StoredRecord { tree: digest.clone(), record });
            file.trees.insert(digest, tree);
        }
        file
    }

    /// The records with their files, or `None` if some have none.
    fn into_records(self) -> Option<Vec<TrustRecord>> {
        let Self { trees, records, .. } = self;
        let whole = |StoredRecord { tree, record }: StoredRecord| {
            Some(TrustRecord { tree: Arc::clone(trees.get(&tree)?), ..record })
        };
        records.into_iter().map(whole).collect()
    }
}

/// Of each record, only the workspace.
#[derive(Deserialize)]
struct StoredRoots {
    records: Vec<StoredRoot>,
}

#[derive(Deserialize)]
struct StoredRoot {
    /// In version 1.
    root: Option<PathBuf>,
    record: Option<RecordRoot>,
}

#[derive(Deserialize)]
struct RecordRoot {
    root: PathBuf,
}

/// Only the version, which a later format keeps.
#[derive(Deserialize)]
struct StoreVersion {
    version: u32,
}

/// The records of trust of one user.
#[derive(Debug, Clone)]
pub(crate) struct TrustStore {
    pub(super) directory: PathBuf,
}

impl TrustStore {
    /// The store in a state directory, which need not exist yet. `root` is the workspace, which must not contain it.
    pub(super) fn new(directory: &Path, root: &Path) -> Result<Self, TrustError> {
        if is_inside(directory, root) {
            let why = "the state directory is inside the workspace, which could then trust itself";
            return Err(TrustError::new(directory, why, "set `state_directory` to another directory"));
        }
        Ok(Self { directory: directory.to_owned() })
    }

    /// The file with the records.
    pub(super) fn file(&self) -> PathBuf {
        self.directory.join(FILE)
    }

    /// The directory of the private copies.
    pub(super) fn copies(&self) -> PathBuf {
        self.directory.join(COPIES)
    }

    /// The private copy of the files of a record, which is named by the digest of their content.
    pub(super) fn copy_of(&self, record: &TrustRecord) -> PathBuf {
        self.copies().join(tree_digest(&record.tree))
    }

    /// The records; none if nobody has trusted anything yet.
    pub(super) fn read(&self) -> Result<Vec<TrustRecord>, TrustError> {
        let Some(bytes) = self.bytes()? else { return Ok(Vec::new()) };
        parse(&bytes).map_err(|why| refused(&self.file(), &why))
    }

    /// The workspaces that the records are of.
    fn roots(&self) -> Result<BTreeSet<PathBuf>, TrustError> {
        let Some(bytes) = self.bytes()? else { return Ok(BTreeSet::new()) };
        let StoredRoots { records } =
            serde_json::from_slice(&bytes).map_err(|_| refused(&self.file(), DAMAGED))?;
        let root = |StoredRoot { root, record }: StoredRoot| root.or(record.map(|record| record.root));
        Ok(records.into_iter().filter_map(root).collect())
    }

    fn bytes(&self) -> Result<Option<Vec<u8>>, TrustError> {
        Ok(StateDirectory(&self.directory).read(FILE, LARGEST_FILE)?)
    }
}

/// The directory of the private copies in the state directory.
const COPIES: &str = "trees";

/// Looks up environment variables.
pub(super) type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The directory with the records, if it is known.
pub(crate) fn state_directory(settings: &Settings, environment: Environment<'_>) -> Option<PathBuf> {
    let of_home = || home_directory(settings, environment).map(|home| home.join(".local/state/hookyard"));
    settings.state_directory.clone().or_else(of_home)
}

/// The directory of the private copies of what people have agreed to, if it is known.
#[cfg(all(feature = "cli", feature = "daemon"))]
pub(crate) fn private_copies(settings: &Settings, environment: Environment<'_>) -> Option<PathBuf> {
    state_directory(settings, environment).map(|directory| directory.join(COPIES))
}

/// The directory of what the daemon keeps, unless it keeps it in memory only or no directory is known.
#[cfg(any(feature = "cli", feature = "daemon"))]
pub(crate) fn data_directory(settings: &Settings, environment: Environment<'_>) -> Option<PathBuf> {
    match &settings.data {
        DataDirectory::Memory => None,
        DataDirectory::At(directory) => Some(directory.clone()),
        DataDirectory::Auto => state_directory(settings, environment),
    }
}

/// The store for a workspace.
pub(super) fn store_for(
    root: &Path,
    settings: &Settings,
    environment: Environment<'_>,
) -> Result<TrustStore, TrustError> {
    let Some(directory) = state_directory(settings, environment) else {
        let why = "there is no directory for the record of trust: this account has no home directory";
        return Err(TrustError::new(root, why, "set `state_directory` in the settings file"));
    };
    TrustStore::new(&directory, root)
}

/// In which workspaces somebody has agreed to hooks; in none where trust is off.
pub(crate) fn trusted_roots(settings: &Settings, environment: Environment<'_>) -> TrustedRoots {
    let is_used = settings.trust == TrustPolicy::Enforce;
    TrustedRoots::new(is_used.then(|| state_directory(settings, environment)).flatten())
}

/// Where a workspace is.
#[derive(Debug)]
pub(crate) struct WorkspacePlace {
    /// Its directory without symbolic links. One with trusted hooks stays where it was if a link is in its place: whoever can
    /// write to the directory above it could replace it.
    pub(crate) root: PathBuf,
    /// The link in its place, or in that of a directory above it.
    pub(crate) link: Option<PathBuf>,
}

/// Finds the directory of a workspace.
///
/// Returns an error if there is none.
pub(crate) fn workspace_place(
    path: &Path,
    settings: &Settings,
    environment: Environment<'_>,
) -> io::Result<WorkspacePlace> {
    // Paths are equal with and without a slash at their end; what the records have is as the system writes it.
    let real = match path.canonicalize() {
        Ok(real) if real == path => return Ok(WorkspacePlace { root: real, link: None }),
        real => real,
    };
    let path: PathBuf = std::path::absolute(path)?.components().collect();
    let trusted = trusted_roots(settings, environment).read();
    match replaced_directory(&path, &|directory| trusted.contains(directory)) {
        Some(ReplacedDirectory { directory, link }) => {
            Ok(WorkspacePlace { root: directory, link: Some(link) })
        }
        // It was replaced only for a moment.
        None if real.is_ok() && trusted.contains(&path) => {
            Ok(WorkspacePlace { root: path.clone(), link: Some(path) })
        }
        None => Ok(WorkspacePlace { root: real?, link: None }),
    }
}

/// Whether a link is in the place of a directory.
pub(super) fn is_replaced(root: &Path) -> bool {
    root.canonicalize().is_ok_and(|real| real != root)
}

/// Looks up in which workspaces somebody has agreed to hooks. Such a directory stays a workspace when its hook files are
/// gone: the records say what becomes of its events then.
#[derive(Debug, Clone, Default)]
pub(crate) struct TrustedRoots(Option<Arc<RootsOfStore>>);

#[derive(Debug)]
struct RootsOfStore {
    store: TrustStore,
    /// Those of the version of the file that was read last.
    last: Mutex<Option<(FileVersion, Arc<BTreeSet<PathBuf>>)>>,
}

impl TrustedRoots {
    /// Those of the records in a state directory; none without one.
    pub(super) fn new(directory: Option<PathBuf>) -> Self {
        Self(directory.map(|directory| {
            Arc::new(RootsOfStore { store: TrustStore { directory }, last: Mutex::default() })
        }))
    }

    /// The directories. None if the record cannot be used, which is reported with the workspace that needs it.
    pub(crate) fn read(&self) -> Arc<BTreeSet<PathBuf>> {
        let Some(known) = &self.0 else { return Arc::default() };
        let Some(version) = FileVersion::at(&known.store.file()) else { return Arc::default() };
        let last = known.last.lock().clone();
        if let Some((_, roots)) = last.filter(|(read, _)| *read == version) {
            return roots;
        }
        let Ok(roots) = known.store.roots().map(Arc::new) else { return Arc::default() };
        *known.last.lock() = Some((version, Arc::clone(&roots)));
        roots
    }
}

/// Whether the copy has every file as it was agreed to. Returns what is wrong.
pub(super) fn verify_copy(copy: &Path, tree: &[TreeFile]) -> Result<(), String> {
    for file in tree {
        let path = copy.join(&file.path);
        let shown = &file.path;
        let metadata =
            path.symlink_metadata().map_err(|_| format!("`{shown}` is not in its private copy"))?;
        let is_private = metadata.is_file()
            && metadata.uid() == geteuid().as_raw()
            && metadata.mode() & 0o022 == 0
            && (metadata.mode() & 0o111 != 0) == file.executable;
        let open = || open_regular(&path, SymlinkPolicy::Refused);
        if !is_private || *digest_of(&metadata, open)?.sha256 != *file.sha256 {
            return Err(format!("`{shown}` was changed in its private copy"));
        }
    }
    Ok(())
}

fn refused(path: &Path, why: &str) -> TrustError {
    let help = "until it is mended or moved away, no hook of a workspace is trusted, and every event that can be stopped is blocked; then run `hookyard trust` again";
    let error = TrustError::new(path, format!("the record of trust cannot be used: {why}"), help);
    TrustError { is_refusal: true, ..error }
}

fn parse(bytes: &[u8]) -> Result<Vec<TrustRecord>, String> {
    let damaged = || DAMAGED.to_owned();
    let version: StoreVersion = serde_json::from_slice(bytes).map_err(|_| damaged())?;
    match version.version {
        1 => {
            let file: FirstStoreFile = serde_json::from_slice(bytes).map_err(|_| damaged())?;
            Ok(file.records)
        }
        VERSION => {
            let file: StoreFile = serde_json::from_slice(bytes).map_err(|_| damaged())?;
            file.into_records().ok_or_else(damaged)
        }
        other => Err(format!("its version is {other}, and this hookyard knows {VERSION}")),
    }
}
