//! The directory of runs takes over what a store has.

use std::{path::Path, sync::Arc};

use super::directory::RunDirectory;
use crate::{
    model::RunKey,
    store::{FileRunStore, StoreError},
};

impl RunDirectory {
    /// Opens the store in a directory of files, takes over what it has, and sends all changes to it from now on. Returns
    /// the runs that were not known. Blocks.
    pub(crate) fn open_store(&self, data: &Path) -> Result<Vec<RunKey>, StoreError> {
        let (store, stored) = FileRunStore::open(data)?;
        let restored = self.restore(stored);
        self.set_store(Some(Arc::new(store)));
        self.save_halts();
        Ok(restored)
    }

    /// Writes what is left and gives the store to whoever opens it next. What follows is in memory only. Blocks.
    pub(crate) fn release_store(&self) {
        if let Some(store) = self.set_store(None) {
            store.close();
        }
    }
}
