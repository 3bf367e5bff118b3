//! The files that hooks run, with their digests.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    fs::{File, FileType},
    io,
    os::unix::{ffi::OsStrExt, fs::MetadataExt},
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    super::{
        digests::{FileVersion, digest_of},
        files,
        workspace_files::{WorkspaceFiles, each_name},
    },
    record::TreeFile,
};
use crate::root_dir::LastLink;

/// How many files the tree of a hook may have.
const MOST_FILES: usize = 4096;

/// How deep directories may nest.
const DEEPEST: usize = 32;

/// Directories that hooks write to, or that only speed up what is read elsewhere.
const UNREAD_DIRECTORIES: [&str; 8] =
    [".git", "__pycache__", "cache", ".cache", "log", "logs", "state", "tmp"];

/// The ends of names of files that hooks write.
const UNREAD_ENDS: [&str; 6] = [".log", ".pid", ".lock", ".pyc", ".tmp", "~"];

/// The ends of names of files with code.
const CODE_ENDS: [&str; 18] = [
    "bash", "cjs", "js", "mjs", "mts", "node", "php", "pl", "pm", "py", "pyc", "pyd", "rb", "sh", "so", "ts",
    "wasm", "zsh",
];

/// Where a hook runs, which says what its scripts can open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum RunPlace {
    /// In the private copy.
    Copy,
    /// In the workspace.
    Workspace,
}

impl RunPlace {
    /// The place that a record says.
    pub(super) fn of(in_place: bool) -> Self {
        if in_place { Self::Workspace } else { Self::Copy }
    }
}

/// A file that was read.
#[derive(Debug, Clone)]
struct KnownFile {
    file: TreeFile,
    interpreter_line: Option<Arc<str>>,
}

/// What a walk through directories has found.
struct Walk {
    place: RunPlace,
    /// The directories around the current one, without links.
    above: Vec<PathBuf>,
    directories: usize,
    found: Vec<TreeFile>,
}

/// The files of a directory, or why they cannot be read.
type FilesOrWhy = Result<Arc<[TreeFile]>, String>;

/// Reads the files below a workspace. No link leads outside, also if it is put there while they are read.
pub(super) struct TreeReader<'a> {
    root: &'a Path,
    files: WorkspaceFiles,
    directories: RefCell<HashMap<(PathBuf, RunPlace), FilesOrWhy>>,
    /// The files that were asked for, once each: hooks share them.
    known: RefCell<HashMap<PathBuf, Result<KnownFile, String>>>,
    /// Directories without links in their paths; none where nothing is.
    real_directories: RefCell<HashMap<PathBuf, Option<PathBuf>>>,
    /// The files that were read.
    read: RefCell<BTreeSet<PathBuf>>,
    /// They, and the directories that were searched, as they were before.
    versions: RefCell<BTreeMap<PathBuf, FileVersion>>,
}

impl<'a> TreeReader<'a> {
    pub(super) fn new(root: &'a Path) -> Self {
        Self {
            root,
            files: WorkspaceFiles::open(root).unwrap_or_else(|_| WorkspaceFiles::none(root)),
            directories: RefCell::default(),
            known: RefCell::default(),
            real_directories: RefCell::default(),
            read: RefCell::default(),
            versions: RefCell::default(),
        }
    }

    pub(super) fn root(&self) -> &'a Path {
        self.root
    }

    /// The files that were read so far.
    pub(super) fn into_read(self) -> BTreeSet<PathBuf> {
        self.read.into_inner()
    }

    /// The files that were read so far and the directories that were searched, with what they were before.
    pub(super) fn into_versions(self) -> BTreeMap<PathBuf, FileVersion> {
        self.versions.into_inner()
    }

    /// Notes that what is in a directory counts, or of one that is not there, what is in the one above it.
    pub(super) fn note_directory(&self, directory: &Path) {
        let nearest = directory.ancestors().find_map(|above| Some((above, FileVersion::at(above)?)));
        if let Some((directory, version)) = nearest {
            // What it was first: it may have changed while it was searched.
            self.versions.borrow_mut().entry(directory.to_owned()).or_insert(version);
        }
    }

    /// Opens a file of the workspace.
    pub(super) fn open(&self, path: &Path) -> Result<File, String> {
        self.files.file(path, LastLink::Followed)
    }

    /// One file of the workspace, as it was when it was first asked for.
    pub(super) fn file(&self, path: &Path) -> Result<TreeFile, String> {
        self.known_file(path).map(|known| known.file)
    }

    /// The first line of a script that says what runs it, from `#!` on.
    pub(super) fn interpreter_line(&self, path: &Path) -> Option<Arc<str>> {
        self.known_file(path).ok()?.interpreter_line
    }

    fn known_file(&self, path: &Path) -> Result<KnownFile, String> {
        if let Some(known) = self.known.borrow().get(path) {
            return known.clone();
        }
        let file = self.read_file(path);
        self.known.borrow_mut().insert(path.to_owned(), file.clone());
        file
    }

    fn read_file(&self, path: &Path) -> Result<KnownFile, String> {
        let shown = self.relative(path)?;
        let metadata = self.files.metadata(path).map_err(|why| format!("`{shown}` {why}"))?;
        self.read.borrow_mut().insert(path.to_owned());
        self.versions.borrow_mut().entry(path.to_owned()).or_insert_with(|| FileVersion::of(&metadata));
        let digest = digest_of(&metadata, || self.open(path)).map_err(|why| format!("`{shown}` {why}"))?;
        let executable = metadata.mode() & 0o111 != 0;
        let file = TreeFile { path: shown, executable, sha256: digest.sha256.to_string() };
        Ok(KnownFile { file, interpreter_line: digest.interpreter_line })
    }

    /// What is at a path as the kernel follows it: its path without links, and what it is. None if nothing is there.
    pub(super) fn real_path(&self, path: &Path) -> Option<(PathBuf, FileType)> {
        let follow = || {
            let real = path.canonicalize().ok()?;
            let kind = real.symlink_metadata().ok()?.file_type();
            Some((real, kind))
        };
        let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else { return follow() };
        // A path that ends with a slash leads to a directory only.
        if !path.as_os_str().as_bytes().ends_with(name.as_bytes()) {
            return follow();
        }
        let kind = path.symlink_metadata().ok()?.file_type();
        if kind.is_symlink() {
            return follow();
        }
        let mut directories = self.real_directories.borrow_mut();
        let real = directories
            .entry(directory.to_owned())
            .or_insert_with(|| directory.canonicalize().ok())
            .as_ref()?;
        Some((real.join(name), kind))
    }

    /// The files below a directory of the workspace that hooks run or read, without what hooks write.
    pub(super) fn directory(&self, directory: &Path, place: RunPlace) -> Result<Arc<[TreeFile]>, String> {
        let key = (directory.to_owned(), place);
        if let Some(known) = self.directories.borrow().get(&key) {
            return known.clone();
        }
        let mut walk = Walk { place, above: Vec::new(), directories: 0, found: Vec::new() };
        let result = self.walk(directory, &mut walk).map(|()| {
            walk.found.sort();
            Arc::from(walk.found)
        });
        self.directories.borrow_mut().insert(key, result.clone());
        result
    }

    fn walk(&self, directory: &Path, walk: &mut Walk) -> Result<(), String> {
        let shown = self.relative(directory)?;
        let unreadable = |error: io::Error| format!("`{shown}` {}", files::unreadable(error));
        walk.directories += 1;
        if walk.above.len() > DEEPEST || walk.directories > MOST_FILES {
            return Err(format!("`{shown}` has too many directories"));
        }
        walk.above.push(directory.canonicalize().map_err(unreadable)?);
        self.note_directory(directory);
        for path in self.entries(directory)? {
            let kind = path.symlink_metadata().map_err(unreadable)?.file_type();
            self.entry(&path, kind, walk)?;
            if walk.found.len() > MOST_FILES {
                return Err(format!("there are more than {MOST_FILES} files"));
            }
        }
        walk.above.pop();
        Ok(())
    }

    /// The paths in a directory of the workspace.
    fn entries(&self, directory: &Path) -> Result<Vec<PathBuf>, String> {
        let shown = self.relative(directory)?;
        let relative = directory.strip_prefix(self.root).unwrap_or(directory);
        let opened = self.files.directory(relative).transpose().unwrap_or(Err("does not exist".to_owned()));
        let mut found = Vec::new();
        opened
            .and_then(|opened| each_name(opened, |name| found.push(directory.join(name))))
            .map_err(|why| format!("`{shown}` {why}"))?;
        Ok(found)
    }

    /// Takes in an entry of a directory, also through links: an interpreter follows them. What a private copy lacks
    /// cannot be opened there; where hooks run in the workspace, it is refused.
    fn entry(&self, path: &Path, kind: FileType, walk: &mut Walk) -> Result<(), String> {
        let is_directory = kind.is_dir() || (kind.is_symlink() && path.is_dir());
        if is_unread(self.root, path, is_directory, walk.place) {
            return Ok(());
        }
        if kind.is_file() || (kind.is_symlink() && path.is_file()) {
            walk.found.push(self.file(path)?);
            return Ok(());
        }
        let why = match () {
            () if kind.is_dir() => return self.walk(path, walk),
            () if !is_directory => "is no regular file",
            () => match path.canonicalize() {
                Ok(real) if !real.starts_with(self.root) => "is a link that leads outside the workspace",
                Ok(real) if walk.above.iter().any(|above| above.starts_with(&real)) => {
                    "is a link to a directory above it"
                }
                Ok(_) => return self.walk(path, walk),
                Err(_) => "cannot be read",
            },
        };
        match walk.place {
            RunPlace::Copy => Ok(()),
            RunPlace::Workspace => {
                Err(format!("`{}` {why}, and scripts beside it could open it", self.relative(path)?))
            }
        }
    }

    /// The files in the directory of a script that its interpreter may import although no script names them: a module
    /// there takes the place of one of the system.
    pub(super) fn importable(&self, directory: &Path) -> Result<Vec<TreeFile>, String> {
        let mut found = Vec::new();
        self.note_directory(directory);
        for path in self.entries(directory)? {
            let is_package = || path.ends_with("__pycache__") || has_init(&path);
            if path.is_dir() && is_package() {
                found.extend(self.directory(&path, RunPlace::Workspace)?.iter().cloned());
            } else if path.is_file() && is_code(&path) {
                found.push(self.file(&path)?);
            }
        }
        Ok(found)
    }

    fn relative(&self, path: &Path) -> Result<String, String> {
        let relative = path.strip_prefix(self.root).unwrap_or(path);
        relative.to_str().map(str::to_owned).ok_or_else(|| format!("`{}` is not UTF-8", relative.display()))
    }
}

/// Whether a path is no part of what hooks run: a definition, which each hook has of its own, or something that hooks
/// write. Where hooks run in the workspace, what may be code is read wherever it is.
fn is_unread(root: &Path, path: &Path, is_directory: bool, place: RunPlace) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else { return false };
    let relative = path.strip_prefix(root).unwrap_or(path);
    let is_of_hooks = |part: &str| UNREAD_DIRECTORIES.contains(&part) && part != "__pycache__";
    let is_written = || UNREAD_ENDS.iter().any(|end| name.ends_with(end));
    match (place, is_directory) {
        (RunPlace::Copy, true) => UNREAD_DIRECTORIES.contains(&name),
        (RunPlace::Workspace, true) => name == ".git",
        (_, false) if is_definition(relative, name) => true,
        (RunPlace::Copy, false) => is_written() || is_case_file(relative, name),
        (RunPlace::Workspace, false) => {
            let mut parts = relative.iter().filter_map(|part| part.to_str());
            (is_written() || parts.any(is_of_hooks)) && !may_be_code(path)
        }
    }
}

fn is_definition(relative: &Path, name: &str) -> bool {
    [".yaml", ".yml"].iter().any(|end| name.ends_with(end))
        && relative.parent().is_some_and(|parent| {
            parent == Path::new(".openharness/hooks") || parent == Path::new(".openharness")
        })
}

/// Whether a file has cases for `hookyard test`, which no hook reads.
fn is_case_file(relative: &Path, name: &str) -> bool {
    let is_data = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
    is_data && relative.parent() == Some(Path::new(".openharness/tests"))
}

/// Whether a script could start or include a file: one with code, one that says nothing by its name, or a program.
fn may_be_code(path: &Path) -> bool {
    let is_program = || path.metadata().is_ok_and(|file| file.is_file() && file.mode() & 0o111 != 0);
    is_code(path) || path.extension().is_none() || is_program()
}

/// Whether an interpreter may import a file by its name alone.
fn is_code(path: &Path) -> bool {
    let end = path.extension().and_then(|end| end.to_str()).unwrap_or_default();
    CODE_ENDS.contains(&end) || path.ends_with("package.json")
}

fn has_init(directory: &Path) -> bool {
    let mut entries = directory.read_dir().into_iter().flatten().flatten();
    entries.any(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with("__init__.")))
}
