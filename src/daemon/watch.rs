//! Notices that hook files have changed, and has them read again. Refuses to read one itself.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Notify;

use super::shared::Shared;

/// How the watching goes.
#[derive(Debug, Default)]
pub(super) struct WatchState {
    again: Notify,
    word: Mutex<&'static str>,
}

impl WatchState {
    /// Has the workspaces looked through for files to watch: some came or went.
    pub(super) fn look_again(&self) {
        self.again.notify_one();
    }

    pub(super) fn word(&self) -> &'static str {
        *self.word.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Watches until it is dropped.
pub(super) async fn watch(shared: Arc<Shared>) {
    shared.watch.again.notified().await;
}
