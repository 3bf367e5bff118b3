//! Puts new files into a workspace. Refuses to overwrite one, to follow a link out of the workspace, and to begin
//! where it could not end.

use std::{
    fs::{self, OpenOptions},
    io::{self, Write},
    os::unix::fs::OpenOptionsExt,
    path::{Path, PathBuf},
};

use super::super::{
    exit::Trouble,
    workspace::{reason, shown},
};

/// A file to be written.
#[derive(Debug)]
pub(super) struct File {
    /// From the workspace's root.
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) part: Part,
}

/// What a file is to the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// Read by programs.
    Own,
    /// Run by itself.
    Script,
    /// Used by several hooks: one that is there already is kept.
    Shared,
}

/// What became of a file.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) path: PathBuf,
    pub(super) fate: Fate,
}

/// Whether a file was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It was.
    Written,
    /// It was there already.
    Kept,
    /// One with another text was there already.
    KeptOther,
}

impl Fate {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Written => "wrote",
            Self::Kept | Self::KeptOther => "kept ",
        }
    }
}

/// Writes the files.
///
/// Returns an error, before anything is written, if one of them is there already or would lie elsewhere.
pub(super) fn write(root: &Path, files: &[File]) -> Result<Vec<Written>, Trouble> {
    for (place, file) in files.iter().enumerate() {
        let path = root.join(&file.path);
        let is_twice = files[..place].iter().any(|other| other.path == file.path);
        if is_twice || (file.part != Part::Shared && path.symlink_metadata().is_ok()) {
            return Err(exists(&path));
        }
        stays_inside(root, &path)?;
    }
    files.iter().map(|file| put(root, file)).collect()
}

fn exists(path: &Path) -> Trouble {
    let help = "choose another name, or remove the file";
    Trouble::with_help(format!("{} is there already, and is not overwritten", shown(path)), help)
}

/// Checks the part of a path that is there: what is below it is made new.
fn stays_inside(root: &Path, path: &Path) -> Result<(), Trouble> {
    let parent = path.ancestors().skip(1).find(|parent| parent.symlink_metadata().is_ok());
    match parent.map(Path::canonicalize) {
        Some(Ok(real)) if real.starts_with(root) && real.is_dir() => Ok(()),
        _ => {
            let help = "hooks are read from directories inside the workspace only";
            let place = shown(parent.unwrap_or(path));
            Err(Trouble::with_help(format!("{place} is no directory inside the workspace"), help))
        }
    }
}

fn put(root: &Path, file: &File) -> Result<Written, Trouble> {
    let path = root.join(&file.path);
    let fate = match create(&path, file) {
        Ok(()) => Fate::Written,
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && file.part == Part::Shared => {
            let is_same = fs::read_to_string(&path).is_ok_and(|text| text == file.text);
            if is_same { Fate::Kept } else { Fate::KeptOther }
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Err(exists(&path)),
        Err(error) => {
            return Err(Trouble::new(format!("{} cannot be written: {}", shown(&path), reason(&error))));
        }
    };
    Ok(Written { path, fate })
}

fn create(path: &Path, file: &File) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    let mode = if file.part == Part::Script { 0o777 } else { 0o666 };
    // A new file or none: a link that someone put there meanwhile is not followed.
    let mut new = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    new.write_all(file.text.as_bytes())
}
