//! What an orchestrator keeps on disk: the store of the state of runs, opened, given to another process, and asked how it
//! is; and the records of the last good rules.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{error::StartError, handle::Orchestrator};
use crate::{
    config::{LastGoodError, LastGoodStore},
    store::{StoreError, StoreStatus},
    supervisor::SupervisorMessage,
};

impl Orchestrator {
    /// Opens all that is kept in a directory.
    pub(super) async fn open_data(&self, data: PathBuf) -> Result<(), StartError> {
        self.open_store(data.clone()).await?;
        Ok(self.open_last_good(&data)?)
    }

    /// Opens the store in a directory and takes over what it has. What was kept in memory until now stays; halts among it
    /// are stored.
    pub(crate) async fn open_store(&self, data: PathBuf) -> Result<(), StoreError> {
        let directory = Arc::clone(&self.0.context.directory);
        let opened = tokio::task::spawn_blocking(move || directory.open_store(&data)).await;
        // It ends without a result only if it panicked, which nothing in it does.
        let restored = opened.expect("the store opens or says why not")?;
        // A send fails only if the orchestrator is shutting down, and then nothing is forgotten any more.
        drop(self.0.supervisor.cast(SupervisorMessage::Restored(restored)));
        Ok(())
    }

    /// Opens the records of the last good rules in a directory. Workspaces that are loaded from now on use them.
    ///
    /// Returns an error if they cannot be kept there.
    pub(crate) fn open_last_good(&self, data: &Path) -> Result<(), LastGoodError> {
        // Set once: a second call would find the same directory.
        drop(self.0.last_good.set(LastGoodStore::open(data)?));
        Ok(())
    }

    /// Writes what is left and closes the store, so that another process may open it. This one goes on in memory.
    #[cfg_attr(not(test), expect(dead_code, reason = "for a daemon that takes over from this one"))]
    pub(crate) async fn release_store(&self) {
        let directory = Arc::clone(&self.0.context.directory);
        // Fails only while the runtime shuts down, when nobody waits for the result.
        drop(tokio::task::spawn_blocking(move || directory.release_store()).await);
    }

    /// How the store is, if there is one.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "the daemon shows it"))]
    pub(crate) fn store_status(&self) -> Option<StoreStatus> {
        self.0.context.directory.store().map(|store| store.status())
    }
}
