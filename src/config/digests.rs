//! Digests of files. What has been read once is read again only after a change.

use std::{
    collections::HashMap,
    fmt::Write as _,
    fs::{File, Metadata},
    os::unix::fs::MetadataExt,
    path::Path,
    sync::{Arc, LazyLock},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::files::{read_open, unreadable};

/// The largest file that is read, in bytes.
pub(super) const LARGEST_FILE: u64 = 16 << 20;

/// How much of the first line of a file counts, in bytes: no kernel reads more.
const LONGEST_LINE: usize = 4096;

/// Files with a longer first line are read each time.
const LONGEST_REMEMBERED_LINE: usize = 256;

/// The most files that are remembered.
const MOST_REMEMBERED: usize = 65_536;

/// A file changed so recently may change again without a trace in its times.
pub(super) const RECENT: Duration = Duration::from_secs(2);

/// What identifies a version of a file or of a directory without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct FileVersion {
    device: u64,
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl FileVersion {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }

    /// The version of the file or directory that a path leads to, also through links.
    pub(super) fn at(path: &Path) -> Option<Self> {
        path.metadata().ok().map(|metadata| Self::of(&metadata))
    }

    /// When it was changed last, its mode and its names included, as the time since 1970. No program can set it back.
    pub(super) fn changed(&self) -> Duration {
        let (seconds, nanoseconds) = self.changed;
        let whole = Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
        whole + Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default())
    }
}

/// What counts of the bytes of a file.
#[derive(Debug, Clone)]
pub(super) struct FileDigest {
    /// In hexadecimal digits.
    pub(super) sha256: Arc<str>,
    /// The first line of a script that says what runs it, from `#!` on. What is not UTF-8 in it is replaced.
    pub(super) interpreter_line: Option<Arc<str>>,
}

impl FileDigest {
    fn of(bytes: &[u8]) -> Self {
        let start = &bytes[..bytes.len().min(LONGEST_LINE)];
        let line = start.split(|byte| *byte == b'\n').next().filter(|line| line.starts_with(b"#!"));
        let interpreter_line = line.map(|line| String::from_utf8_lossy(line).into());
        Self { sha256: sha256(bytes).into(), interpreter_line }
    }

    fn is_small(&self) -> bool {
        self.interpreter_line.as_ref().is_none_or(|line| line.len() <= LONGEST_REMEMBERED_LINE)
    }
}

/// Digests of files by their versions.
static REMEMBERED: LazyLock<Mutex<HashMap<FileVersion, FileDigest>>> = LazyLock::new(Mutex::default);

/// The digest of a file with this metadata, from memory if it has not changed. Otherwise it is opened and read.
pub(super) fn digest_of(
    metadata: &Metadata,
    open: impl FnOnce() -> Result<File, String>,
) -> Result<FileDigest, String> {
    let version = FileVersion::of(metadata);
    if let Some(known) = REMEMBERED.lock().get(&version) {
        return Ok(known.clone());
    }
    let file = open()?;
    let opened = file.metadata().map_err(unreadable)?;
    let digest = FileDigest::of(&read_open(file, LARGEST_FILE)?);
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let is_settled = version.changed() < now.saturating_sub(RECENT) && FileVersion::of(&opened) == version;
    if is_settled && digest.is_small() {
        let mut remembered = REMEMBERED.lock();
        if remembered.len() >= MOST_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(version, digest.clone());
    }
    Ok(digest)
}

/// A SHA-256 digest in hexadecimal digits.
pub(crate) fn sha256(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(64);
    for byte in Sha256::digest(bytes) {
        // Writing to a string cannot fail.
        write!(text, "{byte:02x}").ok();
    }
    text
}
