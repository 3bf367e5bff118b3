//! Files that are written only where there is none.

use std::{
    fs,
    io::{self, Write},
    path::Path,
};

/// Writes a file, and the directories above it.
///
/// Returns an error if there is one of its name.
pub(super) fn write_new(path: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::OpenOptions::new().write(true).create_new(true).open(path)?.write_all(text.as_bytes())
}
