//! The Unix socket: where it is, who may be at its path, and who may connect. Refuses to take the place of a running
//! daemon, and of anything that is not its own.

use std::{
    fs, io,
    os::unix::{
        fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
        net::UnixStream as StdUnixStream,
    },
    path::{Path, PathBuf},
};

use rustix::process::geteuid;
use tokio::net::{UnixListener, unix::UCred};

/// The name of the socket in a directory for such things.
const NAME: &str = "hookyard.sock";

/// The longest path, in bytes: the system has 108 with the byte that ends it. One more, and nobody could connect.
const LONGEST: usize = 107;

/// Why there is no socket to listen on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Another daemon listens there.
    #[error("another hookyard listens on {}; stop it first, or choose another `listen.socket`", .0.display())]
    Taken(PathBuf),
    /// What is at the path is not a socket of this user.
    #[error("{} is {what}; remove it, or choose another `listen.socket`", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The system takes no path of this length.
    #[error("the path {} is longer than the {LONGEST} bytes of a socket's; choose a shorter `listen.socket`", .0.display())]
    TooLong(PathBuf),
    /// Others could put a socket of theirs in its place.
    #[error("the directory {} {why}; choose a `listen.socket` in a directory of your own", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The system refused.
    #[error("cannot listen on {}: {source}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
}

/// Where a daemon listens that was told no other place, and where its clients look for it:
/// `$XDG_RUNTIME_DIR/hookyard.sock`, or else `/tmp/hookyard-UID/hookyard.sock`.
pub fn default_socket(environment: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let runtime = environment("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    runtime.unwrap_or_else(own_directory).join(NAME)
}

fn own_directory() -> PathBuf {
    PathBuf::from(format!("/tmp/hookyard-{}", geteuid().as_raw()))
}

/// A socket that is listened on. Removed from its path when dropped, unless something else is there by then.
#[derive(Debug)]
pub(super) struct Socket {
    path: PathBuf,
    /// Device and inode, by which it is known again.
    identity: (u64, u64),
}

impl Socket {
    /// Sees to it that there is a directory that nobody else writes to.
    pub(super) fn prepare(path: &Path) -> Result<(), SocketError> {
        if path.as_os_str().len() > LONGEST {
            return Err(SocketError::TooLong(path.to_owned()));
        }
        let directory = directory(path);
        if directory == own_directory() {
            make_own(directory)?;
        }
        check_directory(directory)
    }

    /// Listens at a path that has been prepared. What a dead daemon left there is replaced.
    pub(super) fn listen(path: &Path) -> Result<(Self, UnixListener), SocketError> {
        check_place(path)?;
        let directory = directory(path);
        let system = |source| SocketError::System { path: path.to_owned(), source };
        // Made under another name and closed to others before it is at the path: nobody connects in between.
        let unfinished = directory.join(format!(".hookyard-{}.sock", std::process::id()));
        drop(fs::remove_file(&unfinished));
        let listener = UnixListener::bind(&unfinished).map_err(system)?;
        let finish = || {
            fs::set_permissions(&unfinished, fs::Permissions::from_mode(0o600))?;
            fs::rename(&unfinished, path)?;
            fs::symlink_metadata(path)
        };
        let metadata = finish().map_err(|error| {
            drop(fs::remove_file(&unfinished));
            system(error)
        })?;
        Ok((Self { path: path.to_owned(), identity: (metadata.dev(), metadata.ino()) }, listener))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let mine = |metadata: &fs::Metadata| (metadata.dev(), metadata.ino()) == self.identity;
        if fs::symlink_metadata(&self.path).is_ok_and(|metadata| mine(&metadata)) {
            drop(fs::remove_file(&self.path));
        }
    }
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

/// Whether a peer may speak: the daemon's own user, and root, who could take its place anyway.
pub(super) fn admits(peer: UCred) -> bool {
    peer.uid() == geteuid().as_raw() || peer.uid() == 0
}

fn make_own(directory: &Path) -> Result<(), SocketError> {
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let why = format!("cannot be made: {error}");
            Err(SocketError::Directory { path: directory.to_owned(), why })
        }
        _ => Ok(()),
    }
}

fn check_directory(directory: &Path) -> Result<(), SocketError> {
    let wrong = |why: &str| Err(SocketError::Directory { path: directory.to_owned(), why: why.to_owned() });
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) => return wrong(&format!("cannot be used: {error}")),
    };
    let is_own = directory == own_directory();
    let is_link = fs::symlink_metadata(directory).is_ok_and(|metadata| metadata.is_symlink());
    let owner = metadata.uid();
    if !metadata.is_dir() || (is_own && is_link) {
        return wrong("is not a directory");
    }
    if owner != geteuid().as_raw() && (is_own || owner != 0) {
        return wrong("belongs to another user");
    }
    // In a sticky directory, others can add files and not take away mine.
    let (writable, sticky) = (metadata.mode() & 0o022 != 0, metadata.mode() & 0o1000 != 0);
    if writable && !sticky { wrong("can be written by others") } else { Ok(()) }
}

/// Refuses what is at the path, unless it is nothing or what a dead daemon of this user left.
fn check_place(path: &Path) -> Result<(), SocketError> {
    let foreign = |what| Err(SocketError::Foreign { path: path.to_owned(), what });
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(source) => return Err(SocketError::System { path: path.to_owned(), source }),
    };
    let kind = metadata.file_type();
    if kind.is_symlink() {
        return foreign("a symbolic link");
    }
    if !kind.is_socket() {
        return foreign("not a socket");
    }
    if metadata.uid() != geteuid().as_raw() {
        return foreign("a socket of another user");
    }
    match StdUnixStream::connect(path) {
        Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => Ok(()),
        // One that is full answers so, and is alive.
        _ => Err(SocketError::Taken(path.to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_is_in_the_directory_for_such_things() {
        let with = |value: &'static str| default_socket(&move |_| Some(value.to_owned()));
        assert_eq!(with("/run/user/7"), Path::new("/run/user/7/hookyard.sock"));
        let own = own_directory().join(NAME);
        assert_eq!(with("relative"), own);
        assert_eq!(default_socket(&|_| None), own);
    }
}
