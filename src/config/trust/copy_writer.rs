//! Makes and removes the private copies of the files that hooks run.

use std::{
    fs::{self, File},
    io::{self, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
};

use super::{
    super::{
        digests::{LARGEST_FILE, sha256},
        files::{self, SymlinkPolicy},
        state_directory::StateDirectory,
        workspace_files::WorkspaceFiles,
    },
    record::{TreeFile, TrustRecord},
    store::{TrustError, TrustStore, verify_copy},
};
use crate::root_dir::LastLink;

/// Makes the private copy of a record's files, unless it is there already.
///
/// Returns an error if a file of the workspace is no longer what the record says.
pub(super) fn make(store: &TrustStore, record: &TrustRecord) -> Result<(), TrustError> {
    let target = store.copy_of(record);
    if verify_copy(&target, &record.tree).is_ok() {
        return Ok(());
    }
    StateDirectory(&store.copies()).make()?;
    let fault = |error: io::Error| {
        TrustError::new(&target, error.to_string(), "check its permissions and the space on its disk")
    };
    let new = target.with_extension(format!("new-{}", std::process::id()));
    remove(&new).map_err(fault)?;
    StateDirectory(&new).make()?;
    for file in record.tree.iter() {
        let bytes = current(record, file).map_err(|why| {
            let source = Path::new(&record.root).join(&file.path);
            TrustError::new(&source, why, "run `hookyard trust` again")
        })?;
        write(&new.join(&file.path), &bytes, file.executable).map_err(fault)?;
    }
    seal(&new).map_err(fault)?;
    // What is there is damaged, or it would have been used.
    remove(&target).map_err(fault)?;
    fs::rename(&new, &target).map_err(fault)
}

/// The bytes of a file of the workspace, as the record says.
///
/// Returns why there are none, as when the file is another one by now.
pub(super) fn current(record: &TrustRecord, file: &TreeFile) -> Result<Vec<u8>, String> {
    let root = Path::new(&record.root);
    let workspace = WorkspaceFiles::open(root).map_err(files::unreadable)?;
    let opened = workspace.file(&root.join(&file.path), LastLink::Followed)?;
    let bytes = files::read_open(opened, LARGEST_FILE)?;
    if sha256(&bytes) == *file.sha256 {
        Ok(bytes)
    } else {
        Err("the file has changed since it was shown".to_owned())
    }
}

/// The text of a file in the copy of a record, to be compared with what is there now.
pub(super) fn text(store: &TrustStore, record: &TrustRecord, path: &str) -> Option<String> {
    let copied = files::open_regular(&store.copy_of(record).join(path), SymlinkPolicy::Refused).ok()?;
    String::from_utf8(files::read_open(copied, LARGEST_FILE).ok()?).ok()
}

/// Removes the copies that no record needs any more.
pub(super) fn remove_unused(store: &TrustStore, records: &[TrustRecord]) {
    let needed: Vec<PathBuf> = records.iter().map(|record| store.copy_of(record)).collect();
    for entry in store.copies().read_dir().into_iter().flatten().flatten() {
        if !needed.contains(&entry.path()) {
            // A copy that stays takes space and nothing else.
            remove(&entry.path()).ok();
        }
    }
}

fn write(path: &Path, bytes: &[u8], executable: bool) -> io::Result<()> {
    if let Some(directory) = path.parent() {
        fs::DirBuilder::new().recursive(true).create(directory)?;
    }
    let mode = if executable { 0o500 } else { 0o400 };
    let mut file = File::options().create_new(true).write(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Makes the directories of a copy read-only, so that a script does not write beside itself by accident.
fn seal(directory: &Path) -> io::Result<()> {
    for entry in directory.read_dir()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            seal(&entry.path())?;
        }
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o500))
}

fn remove(directory: &Path) -> io::Result<()> {
    match unseal(directory).and_then(|()| fs::remove_dir_all(directory)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn unseal(directory: &Path) -> io::Result<()> {
    if !directory.symlink_metadata()?.is_dir() {
        return Ok(());
    }
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    for entry in directory.read_dir()? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            unseal(&entry.path())?;
        }
    }
    Ok(())
}
