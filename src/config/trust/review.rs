//! What a person is shown before agreeing to the hooks of a workspace, and the agreement.

#[cfg(feature = "daemon")]
use std::collections::BTreeMap;
use std::path::Path;

use parking_lot::Mutex;
#[cfg(feature = "daemon")]
use serde::Serialize;

use super::{
    super::{
        LoadContext, LoadedWorkspace, Settings, TrustPolicy, WorkspaceSettings, digests::sha256,
        load::read_workspace,
    },
    copy_writer,
    inspect::Inspector,
    record::{TreeFile, TrustRecord},
    store::{Environment, TrustError, TrustStore, is_replaced, store_for},
};
use crate::model::{DialectName, Scope, TrustState};

/// The largest file whose text is shown, in bytes.
#[cfg(feature = "daemon")]
const LARGEST_SHOWN: usize = 256 << 10;

/// The most bytes of the files of one review that are shown.
#[cfg(feature = "daemon")]
const MOST_SHOWN: usize = 4 << 20;

/// Held while private copies are made or removed for a change of the records: those of one process have the same names.
static CHANGE: Mutex<()> = Mutex::new(());

/// The hooks of a workspace, with what was agreed to about them before.
pub(crate) struct TrustReview {
    store: TrustStore,
    pub(crate) hooks: Vec<ReviewedHook>,
}

/// A hook of a workspace as it is now and as it was agreed to.
#[derive(Debug)]
pub(crate) struct ReviewedHook {
    pub(crate) name: String,
    pub(crate) before: Option<TrustRecord>,
    /// As it is now; `None` if it is gone. An error says why nobody can agree to it.
    pub(crate) now: Option<Result<TrustRecord, String>>,
}

impl ReviewedHook {
    /// What agreeing to it would mean, in one line.
    fn summary(&self) -> String {
        let former = self.before.as_ref().map(TrustRecord::digest).unwrap_or_default();
        match &self.now {
            Some(Ok(now)) => format!("{} {}", self.name, now.digest()),
            Some(Err(_)) => format!("{} unreadable {former}", self.name),
            None => format!("{} gone {former}", self.name),
        }
    }

    /// What is known about the trust in it.
    pub(crate) fn state(&self) -> TrustState {
        match (&self.before, &self.now) {
            (None, _) => TrustState::Untrusted,
            (Some(_), None) => TrustState::Missing,
            (Some(before), Some(Ok(now))) if before.confirm(now).is_ok() => TrustState::Trusted,
            (Some(_), Some(_)) => TrustState::Modified,
        }
    }
}

/// A file that a hook runs, as it was agreed to and as it is now.
#[cfg(feature = "daemon")]
#[derive(Debug, Serialize)]
pub(crate) struct ShownFile {
    path: String,
    before: Option<FileContent>,
    now: Option<FileContent>,
}

/// What a file has.
#[cfg(feature = "daemon")]
#[derive(Debug, Serialize)]
struct FileContent {
    sha256: String,
    executable: bool,
    text: Option<String>,
    /// Why the text is not shown.
    unshown: Option<&'static str>,
}

/// A hook as it is shown to whoever agrees to it.
#[cfg(feature = "daemon")]
#[derive(Debug, Serialize)]
pub(crate) struct ShownHook {
    hook: String,
    state: TrustState,
    /// Why nobody can agree to it.
    problem: Option<String>,
    before: Option<ShownRecord>,
    now: Option<ShownRecord>,
    /// The places of its files that are not as they were agreed to.
    files: Vec<usize>,
}

/// What a record has, the files aside.
#[cfg(feature = "daemon")]
#[derive(Debug, Serialize)]
struct ShownRecord {
    terms: Vec<String>,
    definition: String,
}

#[cfg(feature = "daemon")]
impl ShownHook {
    fn of(hook: &ReviewedHook, files: Vec<usize>) -> Self {
        let now = hook.now.as_ref().map(Result::as_ref);
        Self {
            hook: hook.name.clone(),
            state: hook.state(),
            problem: now.and_then(Result::err).cloned(),
            before: hook.before.as_ref().map(ShownRecord::of),
            now: now.and_then(Result::ok).map(ShownRecord::of),
            files,
        }
    }
}

#[cfg(feature = "daemon")]
impl ShownRecord {
    fn of(record: &TrustRecord) -> Self {
        Self { terms: record.terms(), definition: record.definition.clone() }
    }
}

/// The files that are shown, each once: most hooks of a workspace run the same ones.
#[cfg(feature = "daemon")]
#[derive(Default)]
struct FileCollector {
    files: Vec<ShownFile>,
    places: BTreeMap<(Option<TreeFile>, Option<TreeFile>), usize>,
    bytes: usize,
}

#[cfg(feature = "daemon")]
impl FileCollector {
    /// Takes in the files of a hook that are not as they were agreed to. Returns their places.
    fn add(&mut self, review: &TrustReview, hook: &ReviewedHook) -> Vec<usize> {
        let Some(Ok(now)) = &hook.now else { return Vec::new() };
        let mut pairs: BTreeMap<&str, (Option<&TreeFile>, Option<&TreeFile>)> = BTreeMap::new();
        for file in hook.before.iter().flat_map(|before| before.tree.iter()) {
            pairs.entry(&file.path).or_default().0 = Some(file);
        }
        for file in now.tree.iter() {
            pairs.entry(&file.path).or_default().1 = Some(file);
        }
        let changed = pairs.into_iter().filter(|(_, (before, now))| before != now);
        changed.map(|(path, pair)| self.place(review, hook, now, path, pair)).collect()
    }

    fn place(
        &mut self,
        review: &TrustReview,
        hook: &ReviewedHook,
        record: &TrustRecord,
        path: &str,
        (before, now): (Option<&TreeFile>, Option<&TreeFile>),
    ) -> usize {
        let key = (before.cloned(), now.cloned());
        if let Some(place) = self.places.get(&key) {
            return *place;
        }
        let former = |file: &TreeFile| {
            let text = review.former_text(hook.before.as_ref()?, path)?;
            Some(text.into_bytes()).filter(|bytes| sha256(bytes) == *file.sha256)
        };
        let before = before.map(|file| self.content(file, former, "its former text is not kept"));
        let current = |file: &TreeFile| copy_writer::current(record, file).ok();
        let now = now.map(|file| self.content(file, current, "it has changed since it was read: look again"));
        self.files.push(ShownFile { path: path.to_owned(), before, now });
        self.places.insert(key, self.files.len() - 1);
        self.files.len() - 1
    }

    fn content(
        &mut self,
        file: &TreeFile,
        read: impl FnOnce(&TreeFile) -> Option<Vec<u8>>,
        absent: &'static str,
    ) -> FileContent {
        let too_large = "there is too much to show: read it in an editor";
        let read = if self.bytes >= MOST_SHOWN { Err(too_large) } else { read(file).ok_or(absent) };
        let fits = |bytes: &Vec<u8>| bytes.len() <= LARGEST_SHOWN.min(MOST_SHOWN - self.bytes);
        let read = read.and_then(|bytes| if fits(&bytes) { Ok(bytes) } else { Err(too_large) });
        let text = read.and_then(|bytes| String::from_utf8(bytes).map_err(|_| "it is no text"));
        self.bytes += text.as_ref().map_or(0, String::len);
        let (sha256, executable) = (file.sha256.clone(), file.executable);
        let unshown = text.as_ref().err().copied();
        FileContent { sha256, executable, text: text.ok(), unshown }
    }
}

impl TrustReview {
    /// Reads the hooks of a workspace and the records of trust. Hooks named in `in_place` are to run in the workspace;
    /// others as they did before.
    pub(crate) fn of(
        root: &Path,
        settings: &Settings,
        environment: Environment<'_>,
        in_place: bool,
    ) -> Result<Self, TrustError> {
        let store = store_for(root, settings, environment)?;
        let records = store.read()?;
        // As the files have them, with nothing looked up: nobody has agreed to anything.
        let as_written = Settings { trust: TrustPolicy::Enforce, ..settings.clone() };
        let context = LoadContext::new(environment);
        let LoadedWorkspace { workspace, hooks: found, definitions, .. } =
            read_workspace(&WorkspaceSettings::new(root), None, &as_written, &context, &mut []);
        let inspector = Inspector::new(&workspace, &definitions);
        let own = inspector.root().map_err(|why| TrustError::new(root, why, "rename the directory"))?;
        let of_workspace =
            found.iter().filter(|hook| matches!(hook.source.scope, Scope::Project | Scope::Local));
        let mut hooks: Vec<ReviewedHook> = of_workspace
            .map(|hook| {
                let before = records.iter().find(|record| record.is_about(&own, hook.name.as_str())).cloned();
                let in_place = in_place || before.as_ref().is_some_and(|record| record.in_place);
                let now = inspector.inspect(hook, in_place);
                ReviewedHook { name: hook.name.to_string(), before, now: Some(now) }
            })
            .collect();
        let gone = records.iter().filter(|record| record.root == own);
        for record in gone.filter(|record| !found.iter().any(|hook| hook.name.as_str() == record.hook)) {
            // A file that is there and has no such hook may only be broken: its record stays.
            let is_there = !is_replaced(root) && root.join(&record.file).symlink_metadata().is_ok();
            let is_hook_file = record.dialect == DialectName::OpenHarness.as_str();
            let broken =
                || Err(format!("`{}` has errors, or another hook; see `hookyard check`", record.file));
            let now = (is_there && is_hook_file).then(broken);
            hooks.push(ReviewedHook { name: record.hook.clone(), before: Some(record.clone()), now });
        }
        hooks.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(Self { store, hooks })
    }

    /// The digest of everything that is agreed to, which includes that hooks are gone.
    pub(crate) fn digest(&self) -> String {
        let lines: Vec<String> = self.hooks.iter().map(ReviewedHook::summary).collect();
        sha256(lines.join("\n").as_bytes())
    }

    /// The hooks as they are shown to whoever agrees to them, and their files that are not as they were agreed to.
    #[cfg(feature = "daemon")]
    pub(crate) fn shown(&self) -> (Vec<ShownHook>, Vec<ShownFile>) {
        let mut files = FileCollector::default();
        let hooks = self.hooks.iter().map(|hook| {
            let places = files.add(self, hook);
            ShownHook::of(hook, places)
        });
        let hooks = hooks.collect();
        (hooks, files.files)
    }

    fn current(&self) -> impl Iterator<Item = &TrustRecord> {
        self.hooks.iter().filter_map(|hook| hook.now.as_ref()?.as_ref().ok())
    }

    /// Whether everything is agreed to as it is.
    pub(crate) fn is_agreed(&self) -> bool {
        self.hooks.iter().all(|hook| hook.state() == TrustState::Trusted)
    }

    /// Agrees to all hooks as they were read, and forgets those that are gone.
    pub(crate) fn agree(&self, root: &Path) -> Result<(), TrustError> {
        let _change = CHANGE.lock();
        for record in self.current() {
            copy_writer::make(&self.store, record)?;
        }
        let own = root.to_str().unwrap_or_default();
        self.store.update(|records| {
            let unreadable = |name: &str| {
                self.hooks.iter().any(|hook| hook.name == name && matches!(hook.now, Some(Err(_))))
            };
            records.retain(|record| record.root != own || unreadable(&record.hook));
            records.extend(self.current().cloned());
        })
    }

    /// Agrees to some of the hooks as they were read, and leaves the others as they are.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(crate) fn agree_to(&self, root: &Path, agreed: &[&ReviewedHook]) -> Result<(), TrustError> {
        let _change = CHANGE.lock();
        let now: Vec<&TrustRecord> =
            agreed.iter().filter_map(|hook| hook.now.as_ref()?.as_ref().ok()).collect();
        for record in &now {
            copy_writer::make(&self.store, record)?;
        }
        let own = root.to_str().unwrap_or_default();
        self.store.update(|records| {
            records
                .retain(|record| record.root != own || !now.iter().any(|agreed| agreed.hook == record.hook));
            records.extend(now.iter().map(|record| (*record).clone()));
        })
    }

    /// The text of a file as it was agreed to.
    pub(crate) fn former_text(&self, record: &TrustRecord, path: &str) -> Option<String> {
        copy_writer::text(&self.store, record, path)
    }

    /// The text of a file as it would be agreed to; none if it has changed meanwhile.
    #[cfg(feature = "cli")]
    pub(crate) fn current_text(record: &TrustRecord, file: &TreeFile) -> Option<String> {
        let bytes = copy_writer::current(record, file).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

/// Forgets the trust in the hooks of a workspace, or in one of them. Returns the names of those that were trusted.
pub(crate) fn revoke_trust(
    root: &Path,
    name: Option<&str>,
    settings: &Settings,
    environment: Environment<'_>,
) -> Result<Vec<String>, TrustError> {
    let _change = CHANGE.lock();
    let store = store_for(root, settings, environment)?;
    let own = root.to_str().unwrap_or_default();
    let mut revoked = Vec::new();
    let mut left = Vec::new();
    store.update(|records| {
        let is_meant =
            |record: &TrustRecord| record.root == own && name.is_none_or(|name| record.hook == name);
        revoked.extend(records.iter().filter(|record| is_meant(record)).map(|record| record.hook.clone()));
        records.retain(|record| !is_meant(record));
        left.clone_from(records);
    })?;
    copy_writer::remove_unused(&store, &left);
    Ok(revoked)
}
