//! The directory of runs as a store has it.

use std::{path::PathBuf, sync::Arc};

use super::directory::RunDirectory;
use crate::{
    model::RunKey,
    store::{FileRunStore, StoreError},
};

impl RunDirectory {
    /// The directory of runs whose state is kept in this directory of files, if there is one, and the runs that it had.
    pub(crate) async fn open(data: Option<PathBuf>) -> Result<(Self, Vec<RunKey>), StoreError> {
        let Some(data) = data else { return Ok((Self::new(None), Vec::new())) };
        let open = move || {
            let (store, stored) = FileRunStore::open(&data)?;
            let directory = Self::new(Some(Arc::new(store)));
            let restored = directory.restore(stored);
            Ok((directory, restored))
        };
        // It ends without a result only if it panicked, which nothing in it does.
        tokio::task::spawn_blocking(open).await.expect("the store opens or says why not")
    }
}
