//! Writes the files of a bundle below a directory of its own, for this user alone, and compares them with what was signed.

use std::{
    collections::BTreeSet,
    fs::{self, DirBuilder, File, Permissions},
    io::{self, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use crate::bundle::BundleFile;

/// What nobody writes to, and only this user reads.
const FILE: u32 = 0o400;

/// The same for a program.
const PROGRAM: u32 = 0o500;

/// A directory that nobody adds a file to.
const DIRECTORY: u32 = 0o500;

/// The most names that are looked at in one directory tree.
const MOST_ENTRIES: usize = 20_000;

/// Writes the files into a directory that is not there yet, and syncs them.
pub(super) fn unpack(directory: &Path, files: &[BundleFile]) -> io::Result<()> {
    DirBuilder::new().mode(0o700).create(directory)?;
    let mut directories = BTreeSet::from([directory.to_owned()]);
    for file in files {
        let path = directory.join(file.path.as_str());
        if let Some(above) = path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(above)?;
            directories.extend(above.ancestors().take_while(|above| *above != directory).map(Path::to_owned));
        }
        let mode = if file.is_executable { PROGRAM } else { FILE };
        write_new(&path, &file.bytes, mode)?;
    }
    for directory in directories.iter().rev() {
        File::open(directory)?.sync_all()?;
        fs::set_permissions(directory, Permissions::from_mode(DIRECTORY))?;
    }
    Ok(())
}

/// Writes a file that is not there yet, and syncs it.
pub(super) fn write_new(path: &Path, bytes: &[u8], mode: u32) -> io::Result<()> {
    let mut file = File::options().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Returns what is different from these files below a directory.
pub(super) fn compare(directory: &Path, files: &[BundleFile]) -> Result<(), String> {
    // A link would lead to where nobody looks for what is added.
    if !directory.symlink_metadata().is_ok_and(|found| found.is_dir()) {
        return Err(format!("{} is gone, or is no directory", directory.display()));
    }
    let mut expected: BTreeSet<PathBuf> = BTreeSet::new();
    for file in files {
        let path = directory.join(file.path.as_str());
        let found = path.symlink_metadata().map_err(|_| format!("`{}` is gone", file.path))?;
        let is_same = found.is_file()
            && found.len() == file.bytes.len() as u64
            && (found.permissions().mode() & 0o100 != 0) == file.is_executable
            && fs::read(&path).is_ok_and(|bytes| bytes == file.bytes);
        if !is_same {
            return Err(format!("`{}` was changed", file.path));
        }
        expected.extend(path.ancestors().take_while(|above| *above != directory).map(Path::to_owned));
    }
    let mut pending = vec![directory.to_owned()];
    let mut seen = 0;
    while let Some(directory) = pending.pop() {
        let unreadable = |error: io::Error| format!("{} cannot be read: {error}", directory.display());
        for entry in fs::read_dir(&directory).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            seen += 1;
            if !expected.contains(&entry.path()) || seen > MOST_ENTRIES {
                return Err(format!("{} is none of its files", entry.path().display()));
            }
            let kind = entry.file_type().map_err(unreadable)?;
            if kind.is_symlink() {
                return Err(format!("{} is a link", entry.path().display()));
            }
            if kind.is_dir() {
                pending.push(entry.path());
            }
        }
    }
    Ok(())
}

/// Puts the files in the place of what is at a path, which may be anything. Whoever looks meanwhile may find nothing, and
/// never a part of them.
pub(super) fn replace(directory: &Path, files: &[BundleFile]) -> io::Result<()> {
    let beside = |ending: &str| {
        let mut name = directory.file_name().unwrap_or_default().to_owned();
        name.push(ending);
        directory.with_file_name(name)
    };
    let (new, old) = (beside(".new"), beside(".old"));
    for left in [&new, &old] {
        remove_any(left)?;
    }
    unpack(&new, files)?;
    if directory.symlink_metadata().is_ok() {
        fs::rename(directory, &old)?;
    }
    fs::rename(&new, directory)?;
    if let Some(above) = directory.parent() {
        File::open(above)?.sync_all()?;
    }
    remove_any(&old)
}

/// Removes what is at a path, if anything is.
fn remove_any(path: &Path) -> io::Result<()> {
    match path.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
        Ok(found) if found.is_dir() => remove(path),
        Ok(_) => fs::remove_file(path),
    }
}

/// Removes a directory with all that is in it, which nobody may write to.
pub(super) fn remove(directory: &Path) -> io::Result<()> {
    make_writable(directory, 0)?;
    fs::remove_dir_all(directory)
}

fn make_writable(directory: &Path, depth: usize) -> io::Result<()> {
    fs::set_permissions(directory, Permissions::from_mode(0o700))?;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        // Deeper than a bundle can be, somebody else has made it.
        if depth < 32 && entry.file_type()?.is_dir() {
            make_writable(&entry.path(), depth + 1)?;
        }
    }
    Ok(())
}
