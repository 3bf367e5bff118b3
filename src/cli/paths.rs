//! Paths as people read them.

use std::{
    fs::File,
    io,
    os::unix::fs::FileTypeExt,
    path::{Component, Path, PathBuf},
};

use rustix::fs::{Mode, OFlags, fcntl_setfl, open};

use super::escape;
#[cfg(feature = "daemon")]
use super::exit::CliError;

/// Opens a file that the command line or the settings name, without waiting: a pipe that nobody writes to is empty.
///
/// Returns an error if it is neither a regular file nor a pipe: a device may have no end.
pub(super) fn open_input(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = File::from(open(path, flags, Mode::empty())?);
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    if !kind.is_file() && !kind.is_fifo() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is neither a regular file nor a pipe"));
    }
    // Where somebody writes to the pipe, it is read to its end.
    fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// A path for printing: relative to the current directory where that is shorter.
pub(super) fn display_path(path: &Path) -> String {
    let current = std::env::current_dir().and_then(|current| current.canonicalize());
    let shortest = current
        .ok()
        .and_then(|current| relative(path, &current))
        .filter(|relative| relative.as_os_str().len() < path.as_os_str().len());
    escape::path(shortest.as_deref().unwrap_or(path))
}

/// A path relative to a directory; `None` if it is relative already.
fn relative(path: &Path, directory: &Path) -> Option<PathBuf> {
    if !path.is_absolute() {
        return None;
    }
    let common = path.components().zip(directory.components()).take_while(|(a, b)| a == b).count();
    let up = directory.components().skip(common).map(|_| Component::ParentDir);
    let relative: PathBuf = up.chain(path.components().skip(common)).collect();
    Some(if relative.as_os_str().is_empty() { PathBuf::from(".") } else { relative })
}

/// A path as it can be typed in a shell.
pub(super) fn shell_quoted(path: &Path) -> String {
    let text = escape::path(path);
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+=:,@~".contains(c);
    if text.chars().all(is_plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// The absolute form of a path that is given on the command line.
#[cfg(feature = "daemon")]
pub(super) fn absolute(given: &Path) -> Result<PathBuf, CliError> {
    std::path::absolute(given).map_err(|error| {
        CliError::new(format!(
            "the path `{}` cannot be used: {}",
            escape::path(given),
            crate::model::io_reason(&error)
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_to_the_current_directory() {
        let relative_to = |path: &str, from: &str| relative(Path::new(path), Path::new(from)).unwrap();
        assert_eq!(relative_to("/a/b/c", "/a/b"), Path::new("c"));
        assert_eq!(relative_to("/a/b", "/a/b"), Path::new("."));
        assert_eq!(relative_to("/a/c", "/a/b"), Path::new("../c"));
        assert_eq!(relative_to("/x", "/a"), Path::new("../x"));
        assert_eq!(relative(Path::new("x"), Path::new("/a")), None);
    }

    #[test]
    fn paths_with_spaces_are_quoted_for_the_shell() {
        assert_eq!(shell_quoted(Path::new("a b's")), r"'a b'\''s'");
    }
}
