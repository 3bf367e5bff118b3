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
#[cfg(feature = "daemon")]
use crate::{
    model::RunKey,
    store::{RunStore, StoredRun},
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

    /// Sends all changes to the store of another process from now on, and closes this one's, so that the other may open it.
    /// Returns its directory. Without a store, all that is known of runs is sent.
    #[cfg(feature = "daemon")]
    pub(crate) async fn hand_store_over(&self, successor: Arc<dyn RunStore>) -> Option<PathBuf> {
        let directory = Arc::clone(&self.0.context.directory);
        let handed_over = tokio::task::spawn_blocking(move || match directory.hand_store_over(successor) {
            None => Err(directory.save_all()),
            Some(data) => Ok(data),
        });
        // It ends without a result only while the runtime shuts down.
        match handed_over.await.ok()? {
            Ok(data) => Some(data),
            Err(saved) => {
                // An error means that an actor has ended, which has stored its state before.
                futures_util::future::join_all(saved).await;
                None
            }
        }
    }

    /// Opens the store again that was handed over, and takes over what it has. Changes go to it once
    /// [`Orchestrator::set_store`] is called.
    #[cfg(feature = "daemon")]
    pub(crate) async fn reopen_store(&self, data: PathBuf) -> Result<Arc<dyn RunStore>, StoreError> {
        let directory = Arc::clone(&self.0.context.directory);
        let opened = tokio::task::spawn_blocking(move || directory.reopen_store(&data)).await;
        let (store, restored) = opened.expect("the store opens or says why not")?;
        drop(self.0.supervisor.cast(SupervisorMessage::Restored(restored)));
        Ok(store)
    }

    /// Sends changes to this store from now on, or to none.
    #[cfg(feature = "daemon")]
    pub(crate) fn set_store(&self, store: Option<Arc<dyn RunStore>>) {
        self.0.context.directory.set_store(store);
    }

    /// Takes over the state of a run that another daemon has changed. Returns once the store has it in hand.
    #[cfg(feature = "daemon")]
    pub(crate) async fn adopt_run(&self, key: RunKey, run: StoredRun) {
        let (is_new, saved) = self.0.context.directory.adopt(&key, run);
        if is_new {
            drop(self.0.supervisor.cast(SupervisorMessage::Restored(vec![key])));
        }
        if let Some(saved) = saved {
            // An error means that the run's actor has ended, and with it what it knew.
            drop(saved.await);
        }
    }

    /// Forgets a run that another daemon has forgotten, unless it goes on here.
    #[cfg(feature = "daemon")]
    pub(crate) fn adopt_forgotten(&self, key: &RunKey) {
        self.0.context.directory.adopt_forgotten(key);
    }

    /// Ends a run that has ended in another daemon, unless it goes on here.
    #[cfg(feature = "daemon")]
    pub(crate) fn adopt_ended(&self, key: &RunKey) {
        self.0.context.directory.end(key);
    }

    /// Returns once everything that had to be stored at once is stored, or cannot be.
    #[cfg(feature = "daemon")]
    pub(crate) async fn store_flushed(&self) {
        if let Some(store) = self.0.context.directory.store() {
            // An error means that the store is closed.
            drop(store.flushed().await);
        }
    }

    /// How the store is, if there is one.
    #[cfg_attr(not(feature = "daemon"), expect(dead_code, reason = "the daemon shows it"))]
    pub(crate) fn store_status(&self) -> Option<StoreStatus> {
        self.0.context.directory.store().map(|store| store.status())
    }
}
