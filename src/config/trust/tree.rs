//! The files that hooks run, with their digests. What has been read once is read again only after a change.

use std::{
    cell::RefCell,
    collections::{BTreeSet, HashMap},
    fs::Metadata,
    os::unix::fs::MetadataExt,
    path::{Component, Path, PathBuf},
    sync::{Arc, LazyLock},
    time::{SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use super::{
    super::files::{self, SymlinkPolicy},
    coverage::WordPath,
    record::{TreeFile, sha256},
};

/// How many files the tree of a hook may have.
const MOST_FILES: usize = 4096;

/// The largest file of a tree, in bytes.
const LARGEST_FILE: u64 = 16 << 20;

/// How deep directories may nest.
const DEEPEST: usize = 32;

/// The most digests that are remembered.
const MOST_REMEMBERED: usize = 65_536;

/// A file changed so recently, in seconds, may change again without a trace in its times.
const RECENT: i64 = 2;

/// Directories that hooks write to, or that only speed up what is read elsewhere.
const UNREAD_DIRECTORIES: [&str; 8] =
    [".git", "__pycache__", "cache", ".cache", "log", "logs", "state", "tmp"];

/// The ends of names of files that hooks write.
const UNREAD_ENDS: [&str; 6] = [".log", ".pid", ".lock", ".pyc", ".tmp", "~"];

/// Where the programs of a system are.
const SYSTEM_DIRECTORIES: [&str; 9] =
    ["/bin", "/sbin", "/usr", "/lib", "/lib64", "/opt", "/nix", "/etc/alternatives", "/run/current-system"];

/// Devices that say nothing about what runs.
const HARMLESS_DEVICES: [&str; 5] = ["/dev/null", "/dev/stderr", "/dev/stdin", "/dev/stdout", "/dev/tty"];

/// The files of a directory, or why they cannot be read.
type FilesOrWhy = Result<Arc<[TreeFile]>, String>;

/// What identifies a version of a file without reading it.
type FileVersion = (u64, u64, u64, (i64, i64), (i64, i64));

/// Digests of files by their versions.
static DIGESTS: LazyLock<Mutex<HashMap<FileVersion, Arc<str>>>> = LazyLock::new(Mutex::default);

/// Reads the files below a workspace.
pub(super) struct TreeReader<'a> {
    root: &'a Path,
    directories: RefCell<HashMap<PathBuf, FilesOrWhy>>,
    /// The files that were read.
    read: RefCell<BTreeSet<PathBuf>>,
}

impl<'a> TreeReader<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self { root, directories: RefCell::default(), read: RefCell::default() }
    }

    pub(super) fn root(&self) -> &'a Path {
        self.root
    }

    /// The files that were read so far.
    pub(super) fn into_read(self) -> BTreeSet<PathBuf> {
        self.read.into_inner()
    }

    /// One file of the workspace.
    pub(super) fn file(&self, path: &Path) -> Result<TreeFile, String> {
        let shown = self.relative(path)?;
        let real = path.canonicalize().map_err(|error| format!("`{shown}` {}", files::unreadable(error)))?;
        if !real.starts_with(self.root) {
            return Err(format!("`{shown}` is a link that leads outside the workspace"));
        }
        let metadata = real.metadata().map_err(|error| format!("`{shown}` {}", files::unreadable(error)))?;
        self.read.borrow_mut().insert(path.to_owned());
        let sha256 = digest_of(&real, &metadata).map_err(|why| format!("`{shown}` {why}"))?;
        Ok(TreeFile { path: shown, executable: metadata.mode() & 0o111 != 0, sha256: sha256.to_string() })
    }

    /// The files below a directory of the workspace, without definitions of hooks and what hooks write.
    pub(super) fn directory(&self, directory: &Path) -> Result<Arc<[TreeFile]>, String> {
        if let Some(known) = self.directories.borrow().get(directory) {
            return known.clone();
        }
        let mut found = Vec::new();
        let result = self.walk(directory, 0, &mut found).map(|()| {
            found.sort();
            Arc::from(found)
        });
        self.directories.borrow_mut().insert(directory.to_owned(), result.clone());
        result
    }

    fn walk(&self, directory: &Path, depth: usize, found: &mut Vec<TreeFile>) -> Result<(), String> {
        let shown = self.relative(directory)?;
        if depth > DEEPEST {
            return Err(format!("`{shown}` nests too deep"));
        }
        let entries =
            directory.read_dir().map_err(|error| format!("`{shown}` {}", files::unreadable(error)))?;
        for entry in entries {
            let entry = entry.map_err(|error| format!("`{shown}` {}", files::unreadable(error)))?;
            let path = entry.path();
            let kind =
                entry.file_type().map_err(|error| format!("`{shown}` {}", files::unreadable(error)))?;
            if is_unread(self.root, &path, kind.is_dir()) {
                continue;
            }
            if kind.is_dir() {
                self.walk(&path, depth + 1, found)?;
            } else if kind.is_file() || (kind.is_symlink() && path.is_file()) {
                found.push(self.file(&path)?);
            }
            if found.len() > MOST_FILES {
                return Err(format!("there are more than {MOST_FILES} files"));
            }
        }
        Ok(())
    }

    fn relative(&self, path: &Path) -> Result<String, String> {
        let relative = path.strip_prefix(self.root).unwrap_or(path);
        relative.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", relative.display()))
    }
}

/// Whether a path is no part of what hooks run: a definition, which each hook has of its own, or something that hooks
/// write.
fn is_unread(root: &Path, path: &Path, is_directory: bool) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    if is_directory {
        return UNREAD_DIRECTORIES.contains(&name);
    }
    let relative = path.strip_prefix(root).unwrap_or(path);
    let is_yaml = [".yaml", ".yml"].iter().any(|end| name.ends_with(end));
    let is_definition = is_yaml
        && relative.parent().is_some_and(|parent| {
            parent == Path::new(".openharness/hooks") || parent == Path::new(".openharness")
        });
    is_definition || UNREAD_ENDS.iter().any(|end| name.ends_with(end))
}

/// The digest of a file, from memory if it has not changed.
pub(super) fn digest_of(path: &Path, metadata: &Metadata) -> Result<Arc<str>, String> {
    let version = version_of(metadata);
    if let Some(known) = DIGESTS.lock().get(&version) {
        return Ok(Arc::clone(known));
    }
    let file = files::open_regular(path, SymlinkPolicy::Refused)?;
    let opened = file.metadata().map_err(files::unreadable)?;
    let digest: Arc<str> = sha256(&files::read_open(file, LARGEST_FILE)?).into();
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let is_settled = i64::try_from(now.as_secs()).unwrap_or_default() - metadata.ctime() > RECENT;
    if is_settled && version_of(&opened) == version {
        let mut digests = DIGESTS.lock();
        if digests.len() >= MOST_REMEMBERED {
            digests.clear();
        }
        digests.insert(version, Arc::clone(&digest));
    }
    Ok(digest)
}

fn version_of(metadata: &Metadata) -> FileVersion {
    (
        metadata.dev(),
        metadata.ino(),
        metadata.size(),
        (metadata.mtime(), metadata.mtime_nsec()),
        (metadata.ctime(), metadata.ctime_nsec()),
    )
}

/// Where a word of a command leads from a directory of the workspace.
pub(super) fn word_path(root: &Path, from: &Path, text: &str) -> WordPath {
    const DYNAMIC: [&str; 2] = ["/proc", "/dev"];
    if text.is_empty() || text.contains('\0') {
        return WordPath::Absent;
    }
    let joined = from.join(text);
    let plain = without_dots(from, text);
    if DYNAMIC.iter().any(|directory| joined.starts_with(directory) || plain.starts_with(directory)) {
        let is_stream = HARMLESS_DEVICES.iter().any(|device| joined.as_os_str() == *device);
        let why = "is known only when it runs";
        return if is_stream { WordPath::System } else { WordPath::Elsewhere { why } };
    }
    // As the kernel follows it: a `..` after a link leads elsewhere than the text says.
    let Ok(real) = joined.canonicalize() else { return WordPath::Absent };
    if !plain.starts_with(root) {
        let is_of_system =
            |path: &Path| SYSTEM_DIRECTORIES.iter().any(|directory| path.starts_with(directory));
        return match () {
            () if real.starts_with(root) => {
                WordPath::Elsewhere { why: "leads into the workspace from outside" }
            }
            () if is_of_system(&plain) && is_of_system(&real) => WordPath::System,
            () => WordPath::Elsewhere { why: "is outside the workspace" },
        };
    }
    match () {
        () if plain.canonicalize().ok().as_deref() != Some(&*real) => {
            WordPath::Elsewhere { why: "has `..` after a link" }
        }
        () if real.is_file() && !real.starts_with(root) => WordPath::LinksOut { target: real },
        () if !real.starts_with(root) => {
            WordPath::Elsewhere { why: "is a link that leads outside the workspace" }
        }
        () if real.is_file() => WordPath::File(plain),
        () if real.is_dir() => WordPath::Directory,
        () => WordPath::Elsewhere { why: "is no regular file" },
    }
}

fn without_dots(from: &Path, text: &str) -> PathBuf {
    inside(Path::new("/"), from, text).unwrap_or_else(|| PathBuf::from("/"))
}

/// A path without `.` and `..`, if it stays below the root.
pub(super) fn inside(root: &Path, from: &Path, text: &str) -> Option<PathBuf> {
    let mut path = from.to_path_buf();
    for component in Path::new(text).components() {
        match component {
            Component::Normal(name) => path.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                path.pop();
            }
            Component::RootDir => path = PathBuf::from("/"),
            Component::Prefix(_) => return None,
        }
    }
    (path.starts_with(root) && path != root).then_some(path)
}
