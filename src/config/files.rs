//! Bounded reads of regular files that cannot block on a FIFO or follow a symbolic link unasked.

use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
};

use crate::{
    model::{Diagnostic, Severity, io_reason},
    root_dir::OpenError,
};

/// The largest hook file, in bytes.
const LARGEST_FILE: u64 = 256 << 10;

/// How many symbolic links of a path are followed: as many as the kernel does.
const MOST_LINKS: usize = 40;

/// The bytes of files with hooks. Trust is checked against these, not against what another reading would find.
pub(super) type DefinitionFiles = HashMap<PathBuf, Arc<[u8]>>;

/// A file that was read.
#[derive(Debug)]
pub(super) struct FileBytes {
    pub(super) path: PathBuf,
    pub(super) bytes: Vec<u8>,
}

/// The message about a link where a file must be.
pub(super) const IS_A_LINK: &str = "is a symbolic link; put the file itself here";

/// The message about a link that leads outside.
pub(super) const LEADS_OUTSIDE: &str = "is a symbolic link that leads outside the workspace";

/// Reads a small regular file, also through symbolic links.
///
/// Returns a diagnostic if it is not one, or cannot be read.
pub(super) fn read_anywhere(path: PathBuf) -> Result<FileBytes, Box<Diagnostic>> {
    let file = open_regular(&path, SymlinkPolicy::Followed);
    with_bytes(path, file)
}

/// The bytes of a small file that was opened, or a diagnostic that says why it was not.
pub(super) fn with_bytes(path: PathBuf, file: Result<File, String>) -> Result<FileBytes, Box<Diagnostic>> {
    match file.and_then(|file| read_open(file, LARGEST_FILE)) {
        Ok(bytes) => Ok(FileBytes { path, bytes }),
        Err(why) => {
            let code = if why.contains("bytes") { "too-large" } else { "unreadable" };
            Err(Box::new(Diagnostic::of_file(Severity::Error, code, &path, format!("the file {why}"))))
        }
    }
}

/// Whether a path leads to a directory, or into it, on its way, links and all. What cannot be looked at is taken as it is
/// written: where a link of a user leads nowhere, it still is no link into a workspace.
pub(super) fn leads_through(path: &Path, directory: &Path) -> bool {
    let mut real = PathBuf::from("/");
    let mut links = 0;
    let mut pending = names_backwards(path);
    while let Some(name) = pending.pop() {
        if name == ".." {
            real.pop();
            continue;
        }
        let next = real.join(&name);
        match fs::read_link(&next) {
            Ok(target) if links < MOST_LINKS => {
                links += 1;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                pending.extend(names_backwards(&target));
            }
            _ => real = next,
        }
        if real.starts_with(directory) {
            return true;
        }
    }
    false
}

/// The names in a path, the last one first.
fn names_backwards(path: &Path) -> Vec<OsString> {
    let names = path.components().rev().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some(OsString::from("..")),
        _ => None,
    });
    names.collect()
}

/// What to say after the name of a file that was not opened below a directory.
pub(super) fn why(error: &OpenError) -> String {
    match error {
        OpenError::Special => "is not a regular file".to_owned(),
        OpenError::Failed(error) => format!("cannot be read: {}", io_reason(error)),
        other => other.to_string(),
    }
}

/// Whether a file may be named by a symbolic link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SymlinkPolicy {
    /// It may not: whoever can write here could have another file read.
    Refused,
    /// It may.
    Followed,
}

/// The bytes of a regular file that only its owner, who is this user or root, can read.
#[cfg(feature = "daemon")]
pub(crate) fn read_private(path: &Path, largest: u64) -> Result<Vec<u8>, String> {
    use std::os::unix::fs::MetadataExt;

    let file = open_regular(path, SymlinkPolicy::Followed)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("is open to others: its mode is {mode:04o}; run `chmod 600 {}`", path.display()));
    }
    if metadata.uid() != 0 && metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err("belongs to another user".to_owned());
    }
    read_open(file, largest)
}

/// Opens a regular file without waiting, as opening a FIFO would.
pub(super) fn open_regular(path: &Path, links: SymlinkPolicy) -> Result<File, String> {
    let usual = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let flags = if links == SymlinkPolicy::Refused { usual | OFlags::NOFOLLOW } else { usual };
    let file = match open(path, flags, Mode::empty()) {
        Ok(descriptor) => File::from(descriptor),
        Err(Errno::LOOP) if links == SymlinkPolicy::Refused => {
            return Err(IS_A_LINK.to_owned());
        }
        Err(error) => return Err(unreadable(error.into())),
    };
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.is_file() { Ok(file) } else { Err("is not a regular file".to_owned()) }
}

/// The bytes of an open file.
pub(super) fn read_open(file: File, largest: u64) -> Result<Vec<u8>, String> {
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.len() > largest {
        return Err(too_large(largest));
    }
    let mut bytes = Vec::new();
    file.take(largest + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    // The file may have grown since it was measured.
    if bytes.len() as u64 > largest { Err(too_large(largest)) } else { Ok(bytes) }
}

fn too_large(largest: u64) -> String {
    format!("is larger than the {largest} bytes allowed")
}

/// What to say after the name of a file or directory.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
pub(super) fn unreadable(error: io::Error) -> String {
    format!("cannot be read: {}", io_reason(&error))
}
