//! Private copies of the files that hooks run, named by the digest of their content.

use std::{
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use rustix::process::geteuid;

use super::{
    record::{TreeFile, TrustRecord},
    store::TrustStore,
    tree::digest_of,
};

/// Where the private copy of a record's files is.
pub(super) fn path_of(store: &TrustStore, record: &TrustRecord) -> PathBuf {
    store.copies().join(record.tree_digest())
}

/// Whether the copy has every file as it was agreed to. Returns what is wrong.
pub(super) fn verify(copy: &Path, tree: &[TreeFile]) -> Result<(), String> {
    for file in tree {
        let path = copy.join(&file.path);
        let shown = &file.path;
        let metadata =
            path.symlink_metadata().map_err(|_| format!("`{shown}` is not in its private copy"))?;
        let is_private = metadata.is_file()
            && metadata.uid() == geteuid().as_raw()
            && metadata.mode() & 0o022 == 0
            && (metadata.mode() & 0o111 != 0) == file.executable;
        if !is_private || *digest_of(&path, &metadata)? != *file.sha256 {
            return Err(format!("`{shown}` was changed in its private copy"));
        }
    }
    Ok(())
}
