//! Which files are hook files, and their bytes. Refuses everything that is no small regular file of the
//! workspace, and never waits for a file or shows what is in a refused one.

use std::{
    collections::BTreeSet,
    ffi::{OsStr, OsString},
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
};

use super::levels;
use crate::model::{Diagnostic, Severity};

/// Where hook files are, below a workspace.
pub const HOOK_FILES: &str = ".openharness/hooks/*.yaml";

/// Where a workspace keeps what concerns hooks.
pub(super) const HOME: &str = ".openharness";

/// The largest hook file, in bytes.
const LARGEST_FILE: u64 = 256 << 10;

/// How many hook files a workspace may have.
const MOST_FILES: usize = 512;

/// A file that was read.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// The nearest directory with hook files of any dialect: the given one, or one of those above it; without symbolic
/// links. What a home directory has for its user does not make it a workspace.
pub fn nearest_workspace(start: &Path, home: Option<&Path>) -> Option<PathBuf> {
    let start = start.canonicalize().ok()?;
    let home = home.and_then(|home| home.canonicalize().ok());
    let is_workspace = |directory: &&Path| {
        directory.join(HOME).is_dir()
            || (home.as_deref() != Some(*directory) && levels::has_settings(directory))
    };
    start.ancestors().find(is_workspace).map(Path::to_path_buf)
}

/// The paths of a workspace's hook files, in byte order of their names. `root` has no symbolic links.
pub(super) fn hook_files(root: &Path) -> (Vec<PathBuf>, Vec<Diagnostic>) {
    let mut diagnostics = Vec::new();
    let directory = root.join(HOME).join("hooks");
    let names = match directory_inside(root, &directory) {
        Ok(Some(real)) => names(&real),
        Ok(None) => return (Vec::new(), diagnostics),
        Err(why) => Err(why),
    };
    let (names, total) = names.unwrap_or_else(|why| {
        diagnostics.push(Diagnostic::of_file(
            Severity::Error,
            "unreadable",
            &directory,
            format!("the directory {why}"),
        ));
        (BTreeSet::new(), 0)
    });
    if total > MOST_FILES {
        let message = format!("{total} hook files; only the first {MOST_FILES} by name are loaded");
        let diagnostic = Diagnostic::of_file(Severity::Error, "too-many-files", &directory, message);
        diagnostics.push(diagnostic.help("remove files, or join hooks that do the same"));
    }
    (names.into_iter().map(|name| directory.join(name)).collect(), diagnostics)
}

/// The directory without symbolic links, `None` if it is not there, or why it may not be read.
pub(super) fn directory_inside(root: &Path, directory: &Path) -> Result<Option<PathBuf>, String> {
    match directory.canonicalize() {
        Ok(real) if !real.starts_with(root) => {
            Err("is a symbolic link that leads outside the workspace".to_owned())
        }
        Ok(real) if !real.is_dir() => Err("is not a directory".to_owned()),
        Ok(real) => Ok(Some(real)),
        Err(_) if directory.symlink_metadata().is_err() => Ok(None),
        Err(e) => Err(format!("cannot be read: {}", e.kind())),
    }
}

/// The names of hook files, only as many as are loaded, and how many there are.
fn names(directory: &Path) -> Result<(BTreeSet<OsString>, usize), String> {
    let unreadable = |e: std::io::Error| format!("cannot be read: {}", e.kind());
    let mut names = BTreeSet::new();
    let mut total = 0;
    for entry in directory.read_dir().map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        if is_hook_file(&name) {
            total += 1;
            names.insert(name);
            if names.len() > MOST_FILES {
                names.pop_last();
            }
        }
    }
    Ok((names, total))
}

/// Hidden files are none: editors keep locks and copies under such names.
pub(super) fn is_hook_file(name: &OsStr) -> bool {
    let bytes = name.as_bytes();
    !bytes.starts_with(b".") && (bytes.ends_with(b".yaml") || bytes.ends_with(b".yml"))
}

/// Reads a small regular file.
///
/// Returns a diagnostic if it is none or cannot be read.
pub(super) fn read(path: PathBuf) -> Result<Found, Box<Diagnostic>> {
    read_as(path, Links::Refused)
}

/// The same, for a file that may be a symbolic link.
pub(super) fn read_as(path: PathBuf, links: Links) -> Result<Found, Box<Diagnostic>> {
    match open_regular(&path, links).and_then(|file| read_open(file, LARGEST_FILE)) {
        Ok(bytes) => Ok(Found { path, bytes }),
        Err(why) => {
            let code = if why.contains("bytes") { "too-large" } else { "unreadable" };
            Err(Box::new(Diagnostic::of_file(Severity::Error, code, &path, format!("the file {why}"))))
        }
    }
}

/// Whether a file may be named by a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Links {
    /// It may not: whoever can write here could have another file read.
    Refused,
    /// It may.
    Followed,
}

/// The bytes of a regular file that is no symbolic link.
pub(super) fn read_regular(path: &Path, largest: u64) -> Result<Vec<u8>, String> {
    read_open(open_regular(path, Links::Refused)?, largest)
}

/// The bytes of a regular file that only its owner, who is this user or root, can read.
#[cfg(feature = "daemon")]
pub(crate) fn read_private(path: &Path, largest: u64) -> Result<Vec<u8>, String> {
    use std::os::unix::fs::MetadataExt;

    let file = open_regular(path, Links::Followed)?;
    let metadata = file.metadata().map_err(|e| format!("cannot be read: {}", e.kind()))?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("is open to others: its mode is {mode:04o}; run `chmod 600 {}`", path.display()));
    }
    if metadata.uid() != 0 && metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user".to_owned());
    }
    read_open(file, largest)
}

/// Opens a regular file, and never waits for it.
pub(super) fn open_regular(path: &Path, links: Links) -> Result<File, String> {
    let usual = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let flags = if links == Links::Refused { usual | OFlags::NOFOLLOW } else { usual };
    let file = match open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::LOOP) if links == Links::Refused => {
            return Err("is a symbolic link; put the file itself here".to_owned());
        }
        Err(e) => return Err(format!("cannot be read: {}", std::io::Error::from(e).kind())),
    };
    let metadata = file.metadata().map_err(|e| format!("cannot be read: {}", e.kind()))?;
    if metadata.is_file() { Ok(file) } else { Err("is not a regular file".to_owned()) }
}

/// The bytes of an open file.
pub(super) fn read_open(file: File, largest: u64) -> Result<Vec<u8>, String> {
    let metadata = file.metadata().map_err(|e| format!("cannot be read: {}", e.kind()))?;
    let too_large = || format!("is larger than the {largest} bytes allowed");
    if metadata.len() > largest {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes).map_err(|e| format!("cannot be read: {}", e.kind()))?;
    // The file may have grown since it was measured.
    if bytes.len() as u64 > largest { Err(too_large()) } else { Ok(bytes) }
}
