//! Writes new files into a workspace. No file is overwritten, and no link is followed out of the workspace.

use super::super::paths::{display_path, open_input};
use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::super::exit::CliError;

/// A file to be written.
#[derive(Debug)]
pub(super) struct NewFile {
    /// From the workspace's root.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) part: FileRole,
}

/// What a file is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileRole {
    /// Configuration or text that the hook reads.
    Config,
    /// A program.
    Script,
    /// Used by several hooks: an existing one is kept.
    Shared,
}

/// A file, and whether it was written.
#[derive(Debug)]
pub(super) struct FileResult {
    pub(super) path: PathBuf,
    pub(super) status: FileStatus,
}

/// Whether a file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FileStatus {
    /// It was written.
    Written,
    /// It existed already.
    Kept,
    /// One with another text existed already.
    KeptDifferent,
}

impl FileStatus {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Written => "wrote",
            Self::Kept | Self::KeptDifferent => "kept ",
        }
    }
}

/// Writes the files.
///
/// Returns an error, before anything is written, if one of them exists or would be outside the workspace.
pub(super) fn write(root: &Path, files: &[NewFile]) -> Result<Vec<FileResult>, CliError> {
    for (index, file) in files.iter().enumerate() {
        let path = root.join(&file.path);
        let is_twice = files[..index].iter().any(|other| other.path == file.path);
        if is_twice || (file.part != FileRole::Shared && path.symlink_metadata().is_ok()) {
            return Err(exists(&path));
        }
        stays_inside(root, &path)?;
    }
    files.iter().map(|file| put(root, file)).collect()
}

fn exists(path: &Path) -> CliError {
    let help = "choose another name, or remove the file";
    CliError::with_help(format!("{} already exists; it is not overwritten", display_path(path)), help)
}

/// Checks the part of a path that exists. What is below it is created.
fn stays_inside(root: &Path, path: &Path) -> Result<(), CliError> {
    let parent = path.ancestors().skip(1).find(|parent| parent.symlink_metadata().is_ok());
    match parent.map(Path::canonicalize) {
        Some(Ok(real)) if real.starts_with(root) && real.is_dir() => Ok(()),
        _ => {
            let help = "hooks are read from directories inside the workspace only";
            let place = display_path(parent.unwrap_or(path));
            Err(CliError::with_help(format!("{place} is not a directory inside the workspace"), help))
        }
    }
}

fn put(root: &Path, file: &NewFile) -> Result<FileResult, CliError> {
    let path = root.join(&file.path);
    let status = match create(&path, file) {
        Ok(()) => FileStatus::Written,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && file.part == FileRole::Shared => {
            let is_same = open_input(&path).and_then(io::read_to_string).is_ok_and(|text| text == file.text);
            if is_same { FileStatus::Kept } else { FileStatus::KeptDifferent }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(&path)),
        Err(error) => {
            return Err(CliError::new(format!(
                "{} cannot be written: {}",
                display_path(&path),
                crate::model::io_reason(&error)
            )));
        }
    };
    Ok(FileResult { path, status })
}

fn create(path: &Path, file: &NewFile) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mode = if file.part == FileRole::Script { 0o777 } else { 0o666 };
    // `create_new` fails if anyone has put a file or a link there meanwhile.
    let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    new.write_all(file.text.as_bytes())
}
