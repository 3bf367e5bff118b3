//! The Unix sockets: their paths and their permissions.
//!
//! It never replaces the socket of a running daemon, or a file that is not a socket of this user.

use std::{
    fs, io,
    os::{
        fd::AsFd,
        unix::{
            fs::{DirBuilderExt, FileTypeExt, MetadataExt, PermissionsExt},
            net::{UnixListener as StdUnixListener, UnixStream as StdUnixStream},
        },
    },
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
#[cfg(feature = "cli")]
use rustix::fs::{Access, access};
use rustix::{
    net::{SocketAddrUnix, connect, listen},
    process::geteuid,
};
use tokio::{
    net::UnixListener,
    time::{Instant, sleep},
};

use crate::platform::{LONGEST_SOCKET_PATH, peer_process, unix_socket};

/// The file name of the event socket in its default directory.
const FILE_NAME: &str = "hookyard.sock";

/// The most connections that wait in a socket that was handed over; the system has a limit of its own.
const BACKLOG: i32 = 4096;

/// How long a start waits for the descriptors of a daemon that was killed.
const MAX_RELEASE_TIME: Duration = Duration::from_millis(500);

/// How long it waits before it looks again.
const RELEASE_PAUSE: Duration = Duration::from_millis(20);

/// Why the Unix socket cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SocketError {
    /// Another daemon listens on it.
    #[error("another hookyard listens on {}; stop it first, or choose another path under `listen` in the settings", .0.display())]
    Taken(PathBuf),
    /// One path is to be that of two sockets.
    #[error("`{}` and `{}` are both {}; give each a path of its own", settings[0], settings[1], path.display())]
    Shared {
        /// The path.
        path: PathBuf,
        /// The settings that name it.
        settings: [&'static str; 2],
    },
    /// The path is taken by something other than a socket of this user.
    #[error("{} is {what}; remove it, or choose another path under `listen` in the settings", path.display())]
    Foreign {
        /// The path.
        path: PathBuf,
        /// What it is.
        what: &'static str,
    },
    /// The file of a socket that was handed over is gone, or is that of another socket.
    #[error(
        "no client can reach the socket that was handed over for {}: {why}; restart what opened it, the socket unit or \
         the running hookyard",
        path.display()
    )]
    Detached {
        /// The path.
        path: PathBuf,
        /// What became of the file.
        why: &'static str,
    },
    /// The path is too long for a socket.
    #[error("the path {} is longer than the {LONGEST_SOCKET_PATH} bytes of a socket's; choose a shorter one under `listen` in the settings", .0.display())]
    TooLong(PathBuf),
    /// Other users could replace the socket.
    #[error("the directory {} {why}; choose a directory of your own under `listen` in the settings", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A system call failed.
    #[error("cannot listen on {}: {}", path.display(), crate::model::io_reason(source))]
    System {
        /// The path.
        path: PathBuf,
        /// Its error.
        source: io::Error,
    },
}

/// The path of the event socket by default, for the daemon and its clients:
/// `$XDG_RUNTIME_DIR/hookyard.sock`, or else `/tmp/hookyard-UID/hookyard.sock`.
pub fn default_socket(environment: &dyn Fn(&str) -> Option<String>) -> PathBuf {
    let runtime = environment("XDG_RUNTIME_DIR").map(PathBuf::from).filter(|path| path.is_absolute());
    runtime.unwrap_or_else(own_directory).join(FILE_NAME)
}

/// The path of the control socket by default: beside the event socket, as `hookyard-control.sock` beside `hookyard.sock`.
pub fn default_control_socket(event_socket: &Path) -> PathBuf {
    let mut name = event_socket.file_stem().unwrap_or_default().to_owned();
    name.push("-control");
    let mut path = event_socket.with_file_name(name);
    if let Some(extension) = event_socket.extension() {
        path = path.with_added_extension(extension);
    }
    path
}

fn own_directory() -> PathBuf {
    PathBuf::from(format!("/tmp/hookyard-{}", geteuid().as_raw()))
}

/// The file of a listening socket.
#[derive(Debug, Clone)]
pub(super) struct SocketFile {
    path: Arc<Path>,
    /// Device and inode; none while another process is to remove the file, or once it is removed.
    identity: Arc<Mutex<Option<(u64, u64)>>>,
}

impl SocketFile {
    fn new(path: &Path, identity: Option<(u64, u64)>) -> Self {
        Self { path: path.into(), identity: Arc::new(Mutex::new(identity)) }
    }

    /// Removes the file in the end, whoever has made it.
    pub(super) fn own(&self) {
        *self.identity.lock() = self.found();
    }

    /// Leaves the file to another process.
    pub(super) fn leave(&self) {
        *self.identity.lock() = None;
    }

    /// Removes the file, unless the path has another one by now. Connections that wait in the listener stay.
    fn remove(&self) {
        let Some(identity) = self.identity.lock().take() else { return };
        if self.found() == Some(identity) {
            drop(fs::remove_file(&self.path));
        }
    }

    fn found(&self) -> Option<(u64, u64)> {
        fs::symlink_metadata(&self.path).ok().map(|metadata| (metadata.dev(), metadata.ino()))
    }
}

/// A listening socket. Dropping it removes the file, unless the path has another one by then.
#[derive(Debug)]
pub(super) struct Socket {
    pub(super) file: SocketFile,
}

impl Socket {
    /// Checks that the directory exists and only this user can write to it. Creates the default one.
    pub(super) fn prepare(path: &Path) -> Result<(), SocketError> {
        check_length(path)?;
        let directory = directory(path);
        if directory == own_directory() {
            make_own(directory)?;
        }
        check_directory(directory)
    }

    /// Listens at a path that has been prepared. Replaces what a dead daemon left there.
    pub(super) fn listen(path: &Path) -> Result<(Self, UnixListener), SocketError> {
        check_path(path)?;
        let directory = directory(path);
        let system = |source| SocketError::System { path: path.to_owned(), source };
        // Bound under another name and restricted before it gets its path: nobody else can connect in between.
        let unfinished = directory.join(format!(".hookyard-{}.sock", std::process::id()));
        drop(fs::remove_file(&unfinished));
        let listener = UnixListener::bind(&unfinished).map_err(system)?;
        let metadata = publish(&unfinished, path).map_err(|error| {
            drop(fs::remove_file(&unfinished));
            system(error)
        })?;
        let identity = Some((metadata.dev(), metadata.ino()));
        Ok((Self { file: SocketFile::new(path, identity) }, listener))
    }

    /// Checks that a daemon could listen at a path, and leaves nothing there. Creates no directory.
    #[cfg(feature = "cli")]
    pub(super) fn check(path: &Path) -> Result<(), SocketError> {
        Self::check_with(path, &own_directory())
    }

    /// The same. `own` is the default directory, which a start creates.
    #[cfg(feature = "cli")]
    fn check_with(path: &Path, own: &Path) -> Result<(), SocketError> {
        check_length(path)?;
        let directory = directory(path);
        let is_absent = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
        if directory == own && fs::symlink_metadata(own).is_err_and(is_absent) {
            return check_creatable(own);
        }
        check_directory(directory)?;
        check_path(path)?;
        let unfinished = directory.join(format!(".hookyard-{}.sock", std::process::id()));
        drop(fs::remove_file(&unfinished));
        let bound = StdUnixListener::bind(&unfinished);
        drop(fs::remove_file(&unfinished));
        bound.map(drop).map_err(|source| SocketError::System { path: path.to_owned(), source })
    }

    /// The process that listens at a path.
    #[cfg(feature = "cli")]
    pub(super) fn listener_pid(path: &Path) -> Option<i32> {
        let stream = StdUnixStream::connect(path).ok()?;
        peer_process(&stream).ok()
    }

    /// Takes a listener that another process has opened, and checks its file. The file is not removed.
    pub(super) fn adopt(path: &Path, listener: StdUnixListener) -> Result<(Self, UnixListener), SocketError> {
        let system = |source| SocketError::System { path: path.to_owned(), source };
        let detached = |why| SocketError::Detached { path: path.to_owned(), why };
        let metadata = fs::symlink_metadata(path).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => detached("its file was removed"),
            _ => system(error),
        })?;
        let foreign = |what| Err(SocketError::Foreign { path: path.to_owned(), what });
        match () {
            () if !metadata.file_type().is_socket() => return foreign("not a socket"),
            () if metadata.uid() != geteuid().as_raw() && metadata.uid() != 0 => {
                return foreign("a socket of another user");
            }
            () if metadata.mode() & 0o077 != 0 => {
                return foreign("a socket that can be opened by other users");
            }
            () => {}
        }
        listen_again(&listener).map_err(|error| system(error.into()))?;
        if !leads_to_this_process(path).map_err(|error| system(error.into()))? {
            return Err(detached("its file was replaced by another one"));
        }
        listener.set_nonblocking(true).map_err(system)?;
        let listener = UnixListener::from_std(listener).map_err(system)?;
        Ok((Self { file: SocketFile::new(path, None) }, listener))
    }

    /// Removes the file, unless another process is to do so.
    pub(super) fn remove(&self) {
        self.file.remove();
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.remove();
    }
}

/// Has clients see that it is this process which answers: they see the last that has listened.
pub(super) fn listen_again(listener: impl AsFd) -> rustix::io::Result<()> {
    listen(listener, BACKLOG)
}

/// Whether clients that connect to a path come to a socket on which this process was the last to listen. So does one whose
/// queue is full, and one of root that this user may not open, as far as can be told.
fn leads_to_this_process(path: &Path) -> rustix::io::Result<bool> {
    let stream = unix_socket()?;
    match connect(&stream, &SocketAddrUnix::new(path)?) {
        Ok(()) => {
            let peer = peer_process(&StdUnixStream::from(stream));
            Ok(peer.is_ok_and(|pid| u32::try_from(pid) == Ok(std::process::id())))
        }
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::ACCESS) => Ok(true),
        Err(rustix::io::Errno::CONNREFUSED | rustix::io::Errno::NOENT) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Restricts a bound socket to this user and moves it to its path.
fn publish(unfinished: &Path, path: &Path) -> io::Result<fs::Metadata> {
    fs::set_permissions(unfinished, fs::Permissions::from_mode(0o600))?;
    fs::rename(unfinished, path)?;
    fs::symlink_metadata(path)
}

fn directory(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new("/"))
}

fn check_length(path: &Path) -> Result<(), SocketError> {
    let is_short = path.as_os_str().len() <= LONGEST_SOCKET_PATH;
    is_short.then_some(()).ok_or_else(|| SocketError::TooLong(path.to_owned()))
}

/// Returns an error unless this user can create a directory.
#[cfg(feature = "cli")]
fn check_creatable(directory: &Path) -> Result<(), SocketError> {
    let parent = directory.parent().unwrap_or(Path::new("/"));
    access(parent, Access::WRITE_OK | Access::EXEC_OK).map_err(|error| {
        let why = format!("cannot be created: {}", crate::model::io_reason(&error.into()));
        SocketError::Directory { path: directory.to_owned(), why }
    })
}

fn make_own(directory: &Path) -> Result<(), SocketError> {
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            let why = format!("cannot be created: {}", crate::model::io_reason(&error));
            Err(SocketError::Directory { path: directory.to_owned(), why })
        }
        _ => Ok(()),
    }
}

fn check_directory(directory: &Path) -> Result<(), SocketError> {
    let wrong = |why: &str| Err(SocketError::Directory { path: directory.to_owned(), why: why.to_owned() });
    let metadata = match fs::metadata(directory) {
        Ok(metadata) => metadata,
        Err(error) => return wrong(&format!("cannot be used: {}", crate::model::io_reason(&error))),
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
    // In a sticky directory others can add files, but not remove the socket.
    let writable = metadata.mode() & 0o022 != 0;
    let sticky = metadata.mode() & 0o1000 != 0;
    if writable && !sticky { wrong("can be written by others") } else { Ok(()) }
}

/// Returns an error unless the path is free or has the socket of a dead daemon of this user.
fn check_path(path: &Path) -> Result<(), SocketError> {
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
    if has_listener(path) { Err(SocketError::Taken(path.to_owned())) } else { Ok(()) }
}

/// Whether a process listens at a path.
pub(crate) fn has_listener(path: &Path) -> bool {
    match StdUnixStream::connect(path) {
        Ok(_) => true,
        Err(error) => {
            // Other errors, such as a full backlog, come from a live daemon.
            error.kind() != io::ErrorKind::ConnectionRefused && error.kind() != io::ErrorKind::NotFound
        }
    }
}

/// Waits a moment for a socket without a daemon: a process that a killed one was about to start has its descriptors until
/// it runs its program.
pub(super) async fn wait_for_release(path: &Path) {
    let begun = Instant::now();
    let is_own =
        |metadata: fs::Metadata| metadata.file_type().is_socket() && metadata.uid() == geteuid().as_raw();
    if !fs::symlink_metadata(path).is_ok_and(is_own) {
        return;
    }
    while has_listener(path) && begun.elapsed() < MAX_RELEASE_TIME {
        sleep(RELEASE_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_control_socket_is_beside_the_event_socket() {
        for (event, control) in [
            ("/run/user/7/hookyard.sock", "/run/user/7/hookyard-control.sock"),
            ("/x/a.b.sock", "/x/a.b-control.sock"),
            ("/x/s", "/x/s-control"),
            ("/x/.s", "/x/.s-control"),
        ] {
            assert_eq!(default_control_socket(Path::new(event)), Path::new(control));
        }
    }

    #[cfg(feature = "cli")]
    #[test]
    fn a_check_creates_no_directory() {
        let place = tempfile::tempdir().unwrap();
        let own = place.path().join("own");
        Socket::check_with(&own.join(FILE_NAME), &own).unwrap();
        assert!(!own.exists());
        let below_a_file = place.path().join("file/own");
        fs::write(place.path().join("file"), "").unwrap();
        let error = Socket::check_with(&below_a_file.join(FILE_NAME), &below_a_file).unwrap_err();
        assert!(matches!(error, SocketError::Directory { .. }), "{error}");
        fs::create_dir(&own).unwrap();
        Socket::check_with(&own.join(FILE_NAME), &own).unwrap();
        assert_eq!(fs::read_dir(&own).unwrap().count(), 0);
    }

    #[test]
    fn the_default_is_in_the_directory_for_such_things() {
        let with = |value: &'static str| default_socket(&move |_| Some(value.to_owned()));
        assert_eq!(with("/run/user/7"), Path::new("/run/user/7/hookyard.sock"));
        let own = own_directory().join(FILE_NAME);
        assert_eq!(with("relative"), own);
        assert_eq!(default_socket(&|_| None), own);
    }
}
