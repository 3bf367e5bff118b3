//! The record of the last good rules: a file for each workspace in the data directory, for this user alone.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Write},
    os::unix::ffi::{OsStrExt, OsStringExt},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
        mpsc::SyncSender,
    },
    time::{Duration, UNIX_EPOCH},
};

#[cfg(feature = "store")]
use std::{sync::mpsc::sync_channel, thread};

use rustix::fs::{Mode, OFlags, open};
use serde::{Deserialize, Serialize};

use super::{
    broken_hooks::RecordedHook, content::RulesVersion, digests::sha256, shortage,
    state_directory::StateDirectory,
};
use crate::model::io_reason;

/// The version of the format.
const VERSION: u32 = 1;

/// The largest record, in bytes: hook files have 16 MiB together, and JSON escapes some characters.
const LARGEST_RECORD: u64 = 48 << 20;

/// How many workspaces have a record.
const MOST_RECORDS: usize = 20_000;

/// What begins the digits of a path that is not UTF-8.
const NOT_TEXT: char = '\0';

/// The directory of the records, in the data directory.
#[cfg(any(feature = "cli", feature = "store"))]
const DIRECTORY: &str = "rules";

/// How many new records wait to be synced at most.
#[cfg(feature = "store")]
const MOST_UNSYNCED: usize = 64;

/// The ending of a record that is being written.
const UNFINISHED: &str = "new";

/// A record that was not finished for so long is that of a daemon that was killed.
#[cfg(feature = "store")]
const UNFINISHED_FOR: Duration = Duration::from_mins(10);

/// A file with hooks as it was when nothing was wrong with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GoodFile {
    pub(super) bytes: Arc<[u8]>,
    pub(super) version: RulesVersion,
    /// Its hooks that could stop events.
    pub(super) hooks: Vec<RecordedHook>,
}

/// Files with hooks as they were when nothing was wrong with them.
pub(crate) type GoodFiles = BTreeMap<PathBuf, GoodFile>;

/// No file.
pub(super) static NO_GOOD_FILES: GoodFiles = BTreeMap::new();

/// Why the last good rules cannot be kept.
#[derive(Debug, Clone, thiserror::Error)]
#[error("the last good rules cannot be kept in {}: {why}", path.display())]
#[non_exhaustive]
pub struct LastGoodError {
    /// The directory.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub why: String,
}

/// Only the version, which a later format keeps.
#[derive(Deserialize)]
struct WrittenVersion {
    version: u32,
}

/// A record as it is written.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRecord {
    version: u32,
    /// The directory of the workspace, or the shared file.
    root: String,
    files: Vec<WrittenFile>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenFile {
    path: String,
    sha256: String,
    /// Seconds since 1970.
    since: u64,
    text: String,
    hooks: Vec<RecordedHook>,
}

/// The records of the last good rules of one data directory.
#[derive(Debug, Clone)]
pub(crate) struct LastGoodStore {
    directory: PathBuf,
    /// What is known of the records, where they may be written.
    written: Option<Arc<WrittenRecords>>,
}

#[derive(Debug)]
struct WrittenRecords {
    count: AtomicUsize,
    /// Takes records that have their names, and syncs them and the directory.
    syncing: Option<SyncSender<File>>,
}

impl WrittenRecords {
    /// Has a record that has its name survive a power failure: soon, or at once without a thread for it.
    fn sync(&self, record: File, directory: &Path) -> io::Result<()> {
        let unsent = match &self.syncing {
            Some(syncing) => syncing.send(record).err().map(|unsent| unsent.0),
            None => Some(record),
        };
        let Some(record) = unsent else { return Ok(()) };
        record.sync_data()?;
        sync_names(directory)
    }
}

/// When a record is synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SyncOrder {
    /// Before it takes its name, and so the place of the former record.
    BeforeName,
    /// Afterwards. It must be new: it replaces none, and is damaged at worst.
    Later,
}

impl LastGoodStore {
    /// The store in a data directory, made if it is missing.
    ///
    /// Returns an error unless it belongs to this user, and nobody else may write to it.
    #[cfg(feature = "store")]
    pub(crate) fn open(data: &Path) -> Result<Self, LastGoodError> {
        Self::check(data)?;
        let directory = data.join(DIRECTORY);
        let fault = |why: String| LastGoodError { path: directory.clone(), why };
        StateDirectory(&directory).make().map_err(|error| fault(error.why))?;
        let mut count = 0;
        for entry in fs::read_dir(&directory).map_err(|error| fault(io_reason(&error)))? {
            let path = entry.map_err(|error| fault(io_reason(&error)))?.path();
            if path.extension().is_some_and(|ending| ending == UNFINISHED) {
                remove_old(&path);
            } else {
                count += 1;
            }
        }
        let syncing = sync_in_background(&directory);
        let written = WrittenRecords { count: AtomicUsize::new(count), syncing };
        Ok(Self { directory, written: Some(Arc::new(written)) })
    }

    /// Takes over the records of another data directory, unless it is this one.
    #[cfg(feature = "daemon")]
    pub(crate) fn import(&self, data: &Path) -> Result<(), LastGoodError> {
        let Some(written) = &self.written else { return Ok(()) };
        let former = data.join(DIRECTORY);
        if former.canonicalize().ok() == self.directory.canonicalize().ok() {
            return Ok(());
        }
        let fault = |why: String| LastGoodError { path: former.clone(), why };
        StateDirectory(&former).check().map_err(|error| fault(error.why))?;
        for entry in fs::read_dir(&former).map_err(|error| fault(io_reason(&error)))? {
            let path = entry.map_err(|error| fault(io_reason(&error)))?.path();
            if path.extension().is_none_or(|ending| ending != "json") {
                continue;
            }
            let Some(name) = path.file_name() else { continue };
            let read = StateDirectory(&former).read(name, LARGEST_RECORD);
            let Some(bytes) = read.map_err(|error| fault(error.why))? else { continue };
            let own = self.directory.join(name);
            let is_new = own.symlink_metadata().is_err();
            replace(&own, &bytes, SyncOrder::BeforeName).map_err(|error| fault(io_reason(&error)))?;
            written.count.fetch_add(usize::from(is_new), Ordering::Relaxed);
        }
        sync_names(&self.directory).map_err(|error| fault(io_reason(&error)))
    }

    /// Whether the records could be kept in a data directory, as far as it is there.
    #[cfg(feature = "store")]
    pub(crate) fn check(data: &Path) -> Result<(), LastGoodError> {
        let path = data.join(DIRECTORY);
        if path.symlink_metadata().is_err() {
            return Ok(());
        }
        StateDirectory(&path).check().map_err(|error| LastGoodError { path: error.path, why: error.why })
    }

    /// The store in a data directory, from which records are only read.
    #[cfg(feature = "cli")]
    pub(crate) fn read_only(data: &Path) -> Self {
        Self { directory: data.join(DIRECTORY), written: None }
    }

    /// The file with the record of a workspace.
    pub(super) fn file_of(&self, root: &Path) -> PathBuf {
        self.directory.join(file_name_of(root))
    }

    /// The files of a workspace as they were when nothing was wrong with them; none if nothing is known.
    ///
    /// Returns why if the record cannot be used.
    pub(super) fn read(&self, root: &Path) -> Result<GoodFiles, String> {
        match StateDirectory(&self.directory).read(file_name_of(root), LARGEST_RECORD) {
            Ok(Some(bytes)) => parse(&bytes, root),
            Ok(None) => Ok(GoodFiles::new()),
            Err(error) if error.path == self.directory => Err(format!("its directory: {}", error.why)),
            Err(error) => Err(error.why),
        }
    }

    /// Replaces the record of a workspace, at once or not at all.
    ///
    /// Returns why if it cannot be written.
    pub(super) fn write(&self, root: &Path, good: &GoodFiles) -> Result<(), String> {
        let Some(written) = &self.written else { return Ok(()) };
        // What was not read for want of descriptors is not gone.
        if shortage::was_met() {
            return Ok(());
        }
        let path = self.file_of(root);
        let is_new = path.symlink_metadata().is_err();
        if is_new && good.is_empty() {
            return Ok(());
        }
        if is_new && written.count.load(Ordering::Relaxed) >= MOST_RECORDS {
            let directory = self.directory.display();
            return Err(format!(
                "{MOST_RECORDS} workspaces have a record; remove those from {directory} that are gone"
            ));
        }
        let (bytes, left_out) = encode(root, good)?;
        if bytes.len() as u64 > LARGEST_RECORD {
            return Err(format!("the record would be larger than {LARGEST_RECORD} bytes"));
        }
        let can_wait = is_new && written.syncing.is_some();
        let order = if can_wait { SyncOrder::Later } else { SyncOrder::BeforeName };
        let replaced = replace(&path, &bytes, order);
        let synced = replaced.and_then(|record| written.sync(record, &self.directory));
        synced.map_err(|error| io_reason(&error))?;
        if is_new {
            written.count.fetch_add(1, Ordering::Relaxed);
        }
        match left_out.first() {
            Some(file) => Err(format!("{} is not UTF-8; the others are kept", file.display())),
            None => Ok(()),
        }
    }
}

fn file_name_of(root: &Path) -> String {
    let digest = sha256(root.as_os_str().as_bytes());
    format!("{}.json", digest.get(..32).unwrap_or(&digest))
}

/// Removes what a daemon was writing when it was killed, and not what another one writes now.
#[cfg(feature = "store")]
fn remove_old(unfinished: &Path) {
    let written = unfinished.symlink_metadata().and_then(|metadata| metadata.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    if age.is_some_and(|age| age > UNFINISHED_FOR) {
        drop(fs::remove_file(unfinished));
    }
}

/// Syncs records and their directory in a thread of its own, so that a start with many workspaces need not wait for as many
/// syncs. Nothing, if there can be no thread.
#[cfg(feature = "store")]
fn sync_in_background(directory: &Path) -> Option<SyncSender<File>> {
    let (syncing, records) = sync_channel::<File>(MOST_UNSYNCED);
    let directory = directory.to_owned();
    let sync = move || {
        while let Ok(first) = records.recv() {
            let synced =
                records.try_iter().fold(first.sync_data(), |synced, next| synced.and(next.sync_data()));
            // Without their names, records that are on disk are not found.
            if let Err(error) = synced.and(sync_names(&directory)) {
                tracing::error!(%error, "a record of last good rules may not survive a power failure");
            }
        }
    };
    thread::Builder::new().name("last-good".to_owned()).spawn(sync).ok().map(|_| syncing)
}

/// Syncs the names in a directory.
fn sync_names(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Writes a file under another name, and gives it its own. Returns the file.
fn replace(path: &Path, bytes: &[u8], order: SyncOrder) -> io::Result<File> {
    /// Tells the files apart that threads write for the same workspace.
    static NUMBER: AtomicUsize = AtomicUsize::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let unfinished = path.with_extension(format!("{}-{number}.{UNFINISHED}", std::process::id()));
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let write = || {
        let mut file = File::from(open(&unfinished, flags, Mode::RUSR | Mode::WUSR)?);
        file.write_all(bytes)?;
        if order == SyncOrder::BeforeName {
            file.sync_data()?;
        }
        fs::rename(&unfinished, path)?;
        Ok(file)
    };
    write().inspect_err(|_| drop(fs::remove_file(&unfinished)))
}

/// The bytes of a record, and the files that cannot be in it.
fn encode(root: &Path, good: &GoodFiles) -> Result<(Vec<u8>, Vec<PathBuf>), String> {
    let mut files = Vec::with_capacity(good.len());
    let mut left_out = Vec::new();
    for (path, GoodFile { bytes, version, hooks }) in good {
        let Ok(text) = std::str::from_utf8(bytes) else {
            left_out.push(path.clone());
            continue;
        };
        files.push(WrittenFile {
            path: text_of(path),
            sha256: version.sha256.to_string(),
            since: version.since.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
            text: text.to_owned(),
            hooks: hooks.clone(),
        });
    }
    let record = WrittenRecord { version: VERSION, root: text_of(root), files };
    let bytes = serde_json::to_vec(&record).map_err(|error| error.to_string())?;
    Ok((bytes, left_out))
}

/// A path as text. The digits of one that is not UTF-8 follow a byte that no path has.
fn text_of(path: &Path) -> String {
    let digits = || path.as_os_str().as_bytes().iter().map(|byte| format!("{byte:02x}"));
    path.to_str().map_or_else(|| [NOT_TEXT.to_string()].into_iter().chain(digits()).collect(), str::to_owned)
}

/// The path of a text; none if that has digits that are none.
fn path_of(text: &str) -> Option<PathBuf> {
    let Some(digits) = text.strip_prefix(NOT_TEXT) else { return Some(text.into()) };
    let digit = |digit: u8| char::from(digit).to_digit(16);
    let byte = |pair: &[u8]| match pair {
        [high, low] => u8::try_from(digit(*high)? * 16 + digit(*low)?).ok(),
        _ => None,
    };
    let bytes: Option<Vec<u8>> = digits.as_bytes().chunks(2).map(byte).collect();
    bytes.map(|bytes| OsString::from_vec(bytes).into())
}

fn parse(bytes: &[u8], root: &Path) -> Result<GoodFiles, String> {
    let damaged = || "it is damaged".to_owned();
    let WrittenVersion { version } = serde_json::from_slice(bytes).map_err(|_| damaged())?;
    if version != VERSION {
        return Err(format!("its version is {version}, and this hookyard knows {VERSION}"));
    }
    let record: WrittenRecord = serde_json::from_slice(bytes).map_err(|_| damaged())?;
    if path_of(&record.root).as_deref() != Some(root) {
        return Err("it is that of another workspace".to_owned());
    }
    let mut good = GoodFiles::new();
    for WrittenFile { path, sha256: digest, since, text, hooks } in record.files {
        if sha256(text.as_bytes()) != digest {
            return Err(damaged());
        }
        let since = UNIX_EPOCH.checked_add(Duration::from_secs(since)).ok_or_else(damaged)?;
        let version = RulesVersion { sha256: digest.into(), since };
        let path = path_of(&path).ok_or_else(damaged)?;
        good.insert(path, GoodFile { bytes: text.into_bytes().into(), version, hooks });
    }
    Ok(good)
}
