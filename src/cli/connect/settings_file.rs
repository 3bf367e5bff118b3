//! The settings file of an agent on disk: read, and replaced at once or not at all.

use std::{
    fs::{self, DirBuilder, File, Metadata},
    io::{self, Read, Write},
    os::{
        fd::AsFd,
        unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, fchown},
    },
    path::{Path, PathBuf},
};

use rustix::{
    fs::{AtFlags, CWD, Mode, OFlags, openat, renameat, unlinkat},
    process::geteuid,
};

use super::super::{escape, exit::CliError};
use crate::{model::io_reason, platform::open_without_links};

/// The largest settings file, in bytes.
const LARGEST_FILE: u64 = 4 << 20;

/// The mode of a file that did not exist.
const NEW_FILE_MODE: Mode = Mode::RUSR.union(Mode::WUSR);

/// A settings file as it was read.
#[derive(Debug)]
pub(in crate::cli) struct AgentSettingsFile {
    /// Its path without symbolic links.
    pub(in crate::cli) path: PathBuf,
    /// Its content; none if it does not exist.
    pub(in crate::cli) bytes: Option<Vec<u8>>,
}

impl AgentSettingsFile {
    /// Reads the file of this name. A link is followed to a place below `boundary`, and nowhere else.
    ///
    /// Returns an error if it cannot be read, or is not a file that may be replaced.
    pub(in crate::cli) fn read(named: &Path, boundary: &Path) -> Result<Self, CliError> {
        let path = real_path(named).map_err(|error| unreachable_file(named, &error))?;
        let boundary =
            boundary.canonicalize().map_err(|error| failed(boundary, "cannot be reached", &error))?;
        if !path.starts_with(&boundary) {
            let what = format!(
                "{} leads to {}, outside of {}",
                escape::path(named),
                escape::path(&path),
                escape::path(&boundary)
            );
            return Err(CliError::with_help(
                what,
                "what is elsewhere is not changed; put the file itself there",
            ));
        }
        let bytes = read_regular(CWD, &path, &path)?;
        Ok(Self { path, bytes })
    }

    /// Returns an error if [`AgentSettingsFile::replace`] would refuse to.
    pub(super) fn check_replaceable(&self) -> Result<(), CliError> {
        self.replaceable()?;
        self.check_unchanged()
    }

    /// Puts new content in the place of what was read. Owner and mode stay.
    ///
    /// Returns an error if that is not there any more, or the file cannot be written.
    pub(in crate::cli) fn replace(&self, bytes: &[u8]) -> Result<(), CliError> {
        let metadata = self.replaceable()?;
        let fault = |error: io::Error| failed(&self.path, "cannot be written", &error);
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(fault)?;
        let held = HeldDirectory::open(directory).map_err(fault)?;
        let new = self.temporary();
        let written = held.write_new(&new, bytes, metadata.as_ref()).map_err(fault);
        let published = written.and_then(|()| {
            fault_point("written");
            self.check_unchanged_in(&held)?;
            held.rename(&new, &self.path).map_err(fault)
        });
        if published.is_err() {
            drop(held.remove(&new));
        }
        published?;
        fault_point("published");
        held.0.sync_all().map_err(fault)
    }

    /// The uppermost directory that [`AgentSettingsFile::replace`] makes, or has made before.
    pub(super) fn made_directory(&self, before: Option<&Path>) -> Option<PathBuf> {
        let above = self.path.ancestors().skip(1);
        let missing = above.take_while(|directory| directory.symlink_metadata().is_err()).last();
        let made = before.into_iter().chain(missing).min_by_key(|directory| directory.as_os_str().len());
        made.map(Path::to_owned)
    }

    /// Removes the directories of the file up to the one that was made for it, as far as they are empty.
    pub(super) fn remove_directories(&self, made: &Path) {
        let mut above = self.path.ancestors().skip(1).take_while(|directory| directory.starts_with(made));
        // One that has other files stays, with those above it.
        above.try_for_each(fs::remove_dir).ok();
    }

    /// Removes the file.
    ///
    /// Returns an error if it is not there as it was read.
    pub(super) fn remove(&self) -> Result<(), CliError> {
        let fault = |error: io::Error| failed(&self.path, "cannot be removed", &error);
        let directory = self.path.parent().unwrap_or(Path::new("/"));
        let held = HeldDirectory::open(directory).map_err(fault)?;
        self.check_unchanged_in(&held)?;
        held.remove(&self.path).map_err(fault)
    }

    /// Removes what a process left that was killed while it wrote.
    pub(super) fn remove_leftover(&self) {
        fs::remove_file(self.temporary()).ok();
    }

    /// The metadata of the file, unless it must not be replaced.
    fn replaceable(&self) -> Result<Option<Metadata>, CliError> {
        let metadata = match self.path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(&self.path, "cannot be read", &error)),
            Ok(metadata) => metadata,
        };
        let user = geteuid();
        let (why, help) = match () {
            () if metadata.uid() != user.as_raw() && !user.is_root() => {
                ("belongs to another user", "connect the agent as that user")
            }
            () if metadata.mode() & 0o200 == 0 => {
                ("is read-only", "make it writable, or change it where it is made")
            }
            () if metadata.nlink() > 1 => {
                ("has another name (a hard link)", "replace one of the two by a copy")
            }
            () => return Ok(Some(metadata)),
        };
        Err(CliError::with_help(format!("{} {why}; it was not changed", escape::path(&self.path)), help))
    }

    /// Another program may have written the file since it was read.
    fn check_unchanged(&self) -> Result<(), CliError> {
        self.check_read(read_regular(CWD, &self.path, &self.path)?.as_deref())
    }

    /// The same in its directory.
    fn check_unchanged_in(&self, held: &HeldDirectory) -> Result<(), CliError> {
        self.check_read(read_regular(&held.0, name_of(&self.path), &self.path)?.as_deref())
    }

    fn check_read(&self, now: Option<&[u8]>) -> Result<(), CliError> {
        if now == self.bytes.as_deref() {
            return Ok(());
        }
        let what = format!(
            "{} was changed meanwhile by another program; nothing was written",
            escape::path(&self.path)
        );
        Err(CliError::with_help(what, "run the command again"))
    }

    fn temporary(&self) -> PathBuf {
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        self.path.with_file_name(format!(".{name}.hookyard-new"))
    }
}

/// The directory of a settings file, held open: what takes its place meanwhile, such as a link to another one, is not
/// written to.
struct HeldDirectory(File);

impl HeldDirectory {
    /// Returns an error if a link is in its place, or in that of one above it.
    fn open(directory: &Path) -> io::Result<Self> {
        let held = open_without_links(directory)?;
        held.map(|held| Self(held.into()))
            .ok_or_else(|| io::Error::other("its directory was moved or replaced meanwhile"))
    }

    /// Writes a new file with the owner and mode of the former one.
    fn write_new(&self, path: &Path, bytes: &[u8], former: Option<&Metadata>) -> io::Result<()> {
        drop(self.remove(path));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let mut file = File::from(openat(&self.0, name_of(path), flags, NEW_FILE_MODE)?);
        file.write_all(bytes)?;
        if let Some(former) = former {
            let made = file.metadata()?;
            if (made.uid(), made.gid()) != (former.uid(), former.gid()) {
                fchown(&file, Some(former.uid()), Some(former.gid()))?;
            }
            file.set_permissions(fs::Permissions::from_mode(former.mode() & 0o7777))?;
        }
        file.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Ok(renameat(&self.0, name_of(from), &self.0, name_of(to))?)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        Ok(unlinkat(&self.0, name_of(path), AtFlags::empty())?)
    }
}

/// The name of a file in its directory.
fn name_of(path: &Path) -> &Path {
    Path::new(path.file_name().unwrap_or_default())
}

/// A path without symbolic links; of a file that does not exist, with those of what is above it resolved.
fn real_path(named: &Path) -> io::Result<PathBuf> {
    match named.canonicalize() {
        Err(error) if error.kind() == io::ErrorKind::NotFound && named.symlink_metadata().is_err() => {
            let name = named.file_name().ok_or(error)?;
            let parent = named.parent().unwrap_or(Path::new("/"));
            Ok(real_path(parent)?.join(name))
        }
        real => real,
    }
}

/// The content of a regular file, by its path from a directory; `None` if there is nothing.
fn read_regular(directory: impl AsFd, path: &Path, named: &Path) -> Result<Option<Vec<u8>>, CliError> {
    let fault = |error: io::Error| failed(named, "cannot be read", &error);
    // Opening a pipe does not wait for its other end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match openat(directory, path, flags, Mode::empty()).map_err(io::Error::from) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => File::from(opened.map_err(fault)?),
    };
    if !file.metadata().map_err(fault)?.is_file() {
        let what = format!("{} is not a regular file", escape::path(named));
        return Err(CliError::with_help(what, "move it away, and run the command again"));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST_FILE + 1).read_to_end(&mut bytes).map_err(fault)?;
    if bytes.len() as u64 > LARGEST_FILE {
        let what = format!("{} is larger than the {LARGEST_FILE} bytes allowed", escape::path(named));
        return Err(CliError::with_help(what, "shorten it, and run the command again"));
    }
    Ok(Some(bytes))
}

/// A file whose place cannot be told: a link on the way may lead nowhere.
fn unreachable_file(named: &Path, error: &io::Error) -> CliError {
    let broken = named.ancestors().find(|path| path.is_symlink() && !path.exists());
    let Some((link, target)) = broken.and_then(|link| Some((link, fs::read_link(link).ok()?))) else {
        return failed(named, "cannot be reached", error);
    };
    let what = format!(
        "{} is a link to {}, which cannot be reached: {}; nothing was changed",
        escape::path(link),
        escape::path(&target),
        io_reason(error)
    );
    CliError::with_help(what, "make what it leads to, or remove the link, and run the command again")
}

/// What the system refused to do with a file, and what a person can do about it.
fn failed(path: &Path, what: &str, error: &io::Error) -> CliError {
    let there = path.ancestors().find(|path| path.symlink_metadata().is_ok()).unwrap_or(path);
    let name = escape::path(there);
    let first = match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("give your account the right to read and write {name}")
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            format!("a directory is needed in the place of {name}")
        }
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on its disk".to_owned(),
        _ => format!("look at {name}"),
    };
    let what = format!("{} {what}: {}", escape::path(path), io_reason(error));
    CliError::with_help(what, format!("{first}, and run the command again"))
}

/// Ends the process here if a test asks for it, as if it were killed, or waits for the end of a pipe.
pub(super) fn fault_point(name: &str) {
    #[cfg(debug_assertions)]
    {
        let is_wanted = |variable| std::env::var(variable).is_ok_and(|wanted| wanted == name);
        if is_wanted("HOOKYARD_TEST_ABORT") {
            std::process::abort();
        }
        if is_wanted("HOOKYARD_TEST_PAUSE")
            && let Some(pipe) = std::env::var_os("HOOKYARD_TEST_PAUSE_AT")
        {
            fs::read(pipe).ok();
        }
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
}
