//! Whether the files of a bundle are still what was signed, right before a program of it is started.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use parking_lot::Mutex;

use super::{
    super::digests::{FileVersion, RECENT},
    disk,
};
use crate::{bundle::VerifiedBundle, model::StartCondition};

/// The unpacked files of a bundle, as they were signed.
#[derive(Debug)]
pub(super) struct BundleCondition {
    bundle: Arc<VerifiedBundle>,
    files: PathBuf,
    /// All files and the directories above them.
    places: Vec<PathBuf>,
    /// The versions of the files and directories when they were compared last, if all had been left alone for a while.
    compared: Mutex<Option<Vec<FileVersion>>>,
}

impl BundleCondition {
    pub(super) fn new(bundle: Arc<VerifiedBundle>, files: PathBuf) -> Self {
        let mut places = vec![files.clone()];
        for file in &bundle.files {
            let path = files.join(file.path.as_str());
            places.extend(path.ancestors().take_while(|above| *above != files).map(Path::to_owned));
        }
        places.sort();
        places.dedup();
        Self { bundle, files, places, compared: Mutex::new(None) }
    }

    /// The versions of all places; nothing if one is gone.
    fn versions(&self) -> Option<Vec<FileVersion>> {
        self.places.iter().map(|place| FileVersion::at(place)).collect()
    }

    /// Returns what is different from what was signed. Files that have not changed since they were compared are not read.
    pub(super) fn compare(&self) -> Result<(), String> {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = self.versions();
        if now.is_some() && *self.compared.lock() == now {
            return Ok(());
        }
        disk::compare(&self.files, &self.bundle.files)?;
        *self.compared.lock() = now.filter(|versions| are_settled(versions, began));
        Ok(())
    }
}

impl StartCondition for BundleCondition {
    fn agreement(&self) -> &str {
        self.bundle.manifest.name.as_str()
    }

    fn check(&self) -> Result<(), String> {
        self.compare().map_err(|why| {
            format!("{why} since the bundle was verified, in {}; run `hookyard reload`", self.files.display())
        })
    }
}

/// Whether all had been left alone for a while, so that each change shows in their times.
fn are_settled(versions: &[FileVersion], began: Duration) -> bool {
    let before = began.saturating_sub(RECENT);
    versions.iter().all(|version| version.changed() < before)
}
