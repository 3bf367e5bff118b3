//! Loads the hooks of a bundle without taking it: its files are unpacked in a directory that is removed again.

use std::{
    env, fs,
    os::unix::fs::DirBuilderExt,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    super::Settings,
    disk,
    hooks::{BundleHooks, HookPurpose, load_bundle_hooks},
};
use crate::{
    bundle::{BundleRejection, RejectionKind, VerifiedBundle},
    model::io_reason,
};

/// A directory for this process alone.
struct ScratchDirectory(PathBuf);

impl ScratchDirectory {
    fn make() -> std::io::Result<Self> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let mut last = std::io::ErrorKind::AlreadyExists.into();
        for _ in 0..100 {
            let number = NUMBER.fetch_add(1, Ordering::Relaxed);
            let path = env::temp_dir().join(format!("hookyard-bundle-{}-{number}", std::process::id()));
            match fs::DirBuilder::new().mode(0o700).create(&path) {
                Ok(()) => return path.canonicalize().map(Self),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Drop for ScratchDirectory {
    fn drop(&mut self) {
        disk::remove(&self.0).ok();
    }
}

/// Loads the hooks of a bundle as far as that goes without the secrets and models of the machines that will run them.
///
/// Returns an error if one of them cannot be loaded.
pub(crate) fn check_bundle(
    bundle: &VerifiedBundle,
    settings: &Settings,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<BundleHooks, BundleRejection> {
    let failed = |error: std::io::Error| {
        let message =
            format!("it cannot be unpacked in {}: {}", env::temp_dir().display(), io_reason(&error));
        BundleRejection::new(RejectionKind::Storage, message)
    };
    let scratch = ScratchDirectory::make().map_err(failed)?;
    let files = scratch.0.join("files");
    disk::unpack(&files, &bundle.files).map_err(failed)?;
    let mut found = load_bundle_hooks(
        &Arc::new(bundle.clone()),
        &files,
        settings,
        environment,
        &|_| true,
        HookPurpose::Checked,
    )?;
    for diagnostic in &mut found.diagnostics {
        if let Ok(relative) = diagnostic.file.strip_prefix(&files) {
            diagnostic.file = relative.to_owned();
        }
    }
    Ok(found)
}
