//! Checks whose daemon a Unix socket leads to, before a client sends anything.
//!
//! A server is trusted if it runs as the client's user or as root, or if root has provided the directory of its socket,
//! as systemd does with `/run/hookyard`.

use std::{
    fs, io,
    os::unix::{fs::MetadataExt, net::UnixStream},
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use crate::platform::peer_user;

/// Names of users by their ids.
const PASSWD: &str = "/etc/passwd";

/// The bits with which others than the owner can write.
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// The bit that keeps others from replacing files in a directory that they can write to.
const STICKY: u32 = 0o1000;

/// Why a socket is not trusted, or cannot be checked.
#[derive(Debug, thiserror::Error)]
pub(super) enum ServerIdentityError {
    #[error("{0}")]
    Untrusted(String),
    #[error(transparent)]
    System(#[from] io::Error),
}

/// A user other than the client's own and root who may serve a socket, because root has provided its directory.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProvidedUser(Option<u32>);

impl ProvidedUser {
    fn is_trusted(self, uid: u32) -> bool {
        uid == geteuid().as_raw() || uid == 0 || Some(uid) == self.0
    }
}

/// The owner of a file and its mode.
#[derive(Debug, Clone, Copy)]
struct Owner {
    uid: u32,
    mode: u32,
}

impl Owner {
    fn of(path: &Path) -> io::Result<Self> {
        let metadata = fs::symlink_metadata(path)?;
        Ok(Self { uid: metadata.uid(), mode: metadata.mode() })
    }

    /// Whether root alone decides about what is in the directory.
    fn is_of_root(self) -> bool {
        self.uid == 0 && self.mode & WRITABLE_BY_OTHERS == 0
    }
}

/// Checks the owner of a socket and its directory.
///
/// Returns an error if another user could have put the socket there.
pub(super) fn check_path(socket: &Path) -> Result<ProvidedUser, ServerIdentityError> {
    let socket = socket.canonicalize()?;
    let directories: Vec<_> = socket.ancestors().skip(1).map(Path::to_owned).collect();
    let provided = ProvidedUser(provided_user(&socket, &directories)?);
    let Some(directory) = directories.first() else { return Ok(provided) };
    let Owner { uid, mode } = Owner::of(directory)?;
    if !provided.is_trusted(uid) {
        return untrusted(format!("is in a directory of {}", user(uid)));
    }
    if mode & WRITABLE_BY_OTHERS != 0 && mode & STICKY == 0 {
        return untrusted("is in a directory that others can write to".to_owned());
    }
    let owner = Owner::of(&socket)?.uid;
    if !provided.is_trusted(owner) {
        return untrusted(format!("belongs to {}", user(owner)));
    }
    Ok(provided)
}

/// Checks the user of the process that listens.
///
/// Returns an error if it is another user's.
pub(super) fn check_process(stream: &UnixStream, provided: ProvidedUser) -> Result<(), ServerIdentityError> {
    let uid = peer_user(stream)?;
    if provided.is_trusted(uid) {
        return Ok(());
    }
    untrusted(format!("is served by {}, not by you or root", user(uid)))
}

/// The user for whom root has provided the socket or its directory, if root alone decides about all directories above.
fn provided_user(socket: &Path, directories: &[PathBuf]) -> io::Result<Option<u32>> {
    let Some((directory, above)) = directories.split_first() else { return Ok(None) };
    for path in above {
        if !Owner::of(path)?.is_of_root() {
            return Ok(None);
        }
    }
    let directory = Owner::of(directory)?;
    let user = if directory.is_of_root() { Owner::of(socket)?.uid } else { directory.uid };
    Ok(Some(user))
}

fn untrusted<T>(why: String) -> Result<T, ServerIdentityError> {
    Err(ServerIdentityError::Untrusted(why))
}

/// A user, by name if `/etc/passwd` has it.
fn user(uid: u32) -> String {
    let users = fs::read_to_string(PASSWD).unwrap_or_default();
    match name_of(uid, &users) {
        Some(name) => format!("the user {name:?} (uid {uid})"),
        None => format!("the user with uid {uid}"),
    }
}

fn name_of(uid: u32, users: &str) -> Option<&str> {
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let id = fields.nth(1)?;
        (id.parse() == Ok(uid)).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_the_name_of_the_list() {
        let users = "root:x:0:0:root:/root:/bin/sh\nbroken\nnobody:x:65534:65534::/:/bin/false\n";
        assert_eq!(name_of(65_534, users), Some("nobody"));
        assert_eq!((name_of(0, users), name_of(7, users)), (Some("root"), None));
    }

    #[test]
    fn root_decides_about_directories_that_only_root_can_write_to() {
        let is_of_root = |uid, mode| Owner { uid, mode }.is_of_root();
        assert!(is_of_root(0, 0o755) && is_of_root(0, 0o700));
        assert!(!is_of_root(0, 0o1777) && !is_of_root(0, 0o775) && !is_of_root(1, 0o700));
    }
}
