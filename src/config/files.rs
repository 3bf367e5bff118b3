//! Bounded reads of regular files that cannot block on a FIFO or follow a symbolic link unasked.

#[cfg(feature = "daemon")]
use std::os::unix::fs::MetadataExt;
use std::{
    collections::HashMap,
    ffi::OsString,
    fs::{self, File},
    io::{self, Read},
    os::fd::OwnedFd,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "daemon")]
use rustix::process::geteuid;
use rustix::{
    fs::{Mode, OFlags, open},
    io::Errno,
};

use super::shortage;
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
    follow(path, |place, link| link.is_none() && place.starts_with(directory))
}

/// Whether a directory, which need not exist yet, is inside another one, by its name or through links.
pub(super) fn is_inside(directory: &Path, other: &Path) -> bool {
    let real = directory.ancestors().find_map(|above| {
        let rest = directory.strip_prefix(above).ok()?;
        Some(above.canonicalize().ok()?.join(rest))
    });
    directory.starts_with(other) || real.is_some_and(|real| real.starts_with(other))
}

/// A known directory in whose place there is a link.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ReplacedDirectory {
    pub(crate) directory: PathBuf,
    /// The link, which may be in the place of a directory above it.
    pub(crate) link: PathBuf,
}

/// The innermost known directory that a path leads into by its name only, because a link is in its place.
pub(crate) fn replaced_directory(path: &Path, is_known: &dyn Fn(&Path) -> bool) -> Option<ReplacedDirectory> {
    let mut found = None;
    follow(path, |place, ahead| {
        let Some(ahead) = ahead else { return false };
        let plain = ahead.iter().rev().take_while(|name| *name != "..");
        let spelled: PathBuf =
            [place.as_os_str()].into_iter().chain(plain.map(OsString::as_os_str)).collect();
        let mut replaced = spelled.ancestors().take_while(|directory| directory.starts_with(place));
        let known = replaced.find(|directory| is_known(directory));
        found = known.map(|known| ReplacedDirectory { directory: known.to_owned(), link: place.to_owned() });
        found.is_some()
    });
    found
}

/// Follows a path name by name, until `is_found` says so of a place on its way. Of a link, it also gets the names after
/// it, the last one first. Returns whether it did.
fn follow(path: &Path, mut is_found: impl FnMut(&Path, Option<&[OsString]>) -> bool) -> bool {
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
                if is_found(&next, Some(&pending)) {
                    return true;
                }
                links += 1;
                if target.is_absolute() {
                    real = PathBuf::from("/");
                }
                pending.extend(names_backwards(&target));
            }
            _ => {
                if is_found(&next, None) {
                    return true;
                }
                real = next;
            }
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
        OpenError::Failed(error) => format!("cannot be read: {}", reason(error)),
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
    let file = open_regular(path, SymlinkPolicy::Followed)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(format!("is open to others: its mode is {mode:04o}; run `chmod 600 {}`", path.display()));
    }
    if metadata.uid() != 0 && metadata.uid() != geteuid().as_raw() {
        return Err("belongs to another user".to_owned());
    }
    read_open(file, largest)
}

/// The largest token file, in bytes.
#[cfg(feature = "daemon")]
const LARGEST_TOKEN_FILE: u64 = 4096;

/// A token that is sent to a server: the one line of a file that only its owner can read.
///
/// Returns what to say after the name of the file if it has none.
#[cfg(feature = "daemon")]
pub(crate) fn read_sent_token(path: &Path) -> Result<String, String> {
    let text = String::from_utf8(read_private(path, LARGEST_TOKEN_FILE)?).unwrap_or_default();
    let token = text.trim();
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("has no token: it needs one line of printable ASCII characters".to_owned());
    }
    Ok(token.to_owned())
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

/// Opens a directory to list it.
pub(super) fn open_directory(path: &Path) -> Result<OwnedFd, String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::NOTDIR => "is not a directory".to_owned(),
        other => unreadable(other.into()),
    })
}

/// The directories in a directory, in order; none if it is missing.
pub(super) fn directories_in(directory: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        listed => listed.map_err(unreadable)?,
    };
    let mut found: Vec<_> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    Ok(found)
}

/// The bytes of an open file.
pub(super) fn read_open(mut file: File, largest: u64) -> Result<Vec<u8>, String> {
    let metadata = file.metadata().map_err(unreadable)?;
    if metadata.len() > largest {
        return Err(too_large(largest));
    }
    let size = usize::try_from(metadata.len()).unwrap_or_default();
    let mut bytes = vec![0; size + 1];
    let first = file.read(&mut bytes).map_err(unreadable)?;
    bytes.truncate(first);
    // Fewer bytes than there was room for, and as many as the file has: this was its end.
    if first != size {
        file.take(largest + 1 - first as u64).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    // The file may have grown since it was measured.
    if bytes.len() as u64 > largest { Err(too_large(largest)) } else { Ok(bytes) }
}

fn too_large(largest: u64) -> String {
    format!("is larger than the {largest} bytes allowed")
}

/// What to say after the name of a file or directory.
#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
pub(super) fn unreadable(error: io::Error) -> String {
    format!("cannot be read: {}", reason(&error))
}

/// Why something cannot be read, to follow a colon.
pub(super) fn reason(error: &io::Error) -> String {
    shortage::note(error);
    io_reason(error)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_directory_in_whose_place_there_is_a_link_is_found_by_its_name() {
        let here = tempfile::tempdir().unwrap();
        let here = here.path().canonicalize().unwrap();
        fs::create_dir_all(here.join("real/shop/src")).unwrap();
        for (target, link) in [
            ("real", "above"),
            ("real/shop", "shop"),
            ("above/shop", "twice"),
            ("nowhere", "gone"),
            ("self", "self"),
        ] {
            symlink(target, here.join(link)).unwrap();
        }
        // The path, the known directory, and where the link is.
        for (path, known, link) in [
            ("shop", "shop", Some("shop")),
            ("shop/src/not/there", "shop", Some("shop")),
            ("above/shop/src", "above/shop", Some("above")),
            ("real/../above/shop/src", "above/shop", Some("above")),
            ("twice/src", "above/shop", Some("above")),
            ("gone/src", "gone", Some("gone")),
            ("self", "self", Some("self")),
            // It is as it was, or the link is inside.
            ("real/shop/src", "real/shop", None),
            ("shop/src", "real/shop", None),
            ("shop/src", "", None),
            ("above/../shop", "above/shop", None),
        ] {
            let (known, link) = (here.join(known), link.map(|link| here.join(link)));
            let found = replaced_directory(&here.join(path), &|directory| directory == known);
            let expected = link.map(|link| ReplacedDirectory { directory: known.clone(), link });
            assert_eq!(found, expected, "{path}");
        }
    }
}
