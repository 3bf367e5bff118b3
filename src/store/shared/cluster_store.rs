//! The store of a daemon of a cluster: its own, and the halts that all daemons share.

use std::{sync::Arc, time::Duration};

use tokio::sync::oneshot;

use super::halts::SharedHalts;
use crate::{
    model::RunKey,
    store::{RunStore, StoreStatus, StoredRun},
};

/// A store whose halts all daemons of the cluster know. The rest is this daemon's own.
#[derive(Debug)]
pub(crate) struct ClusterStore {
    own: Arc<dyn RunStore>,
    shared: Arc<SharedHalts>,
}

impl ClusterStore {
    pub(crate) fn new(own: Arc<dyn RunStore>, shared: Arc<SharedHalts>) -> Self {
        Self { own, shared }
    }
}

impl RunStore for ClusterStore {
    fn save(&self, key: &RunKey, run: StoredRun) {
        self.shared.note_run(key, &run);
        self.own.save(key, run);
    }

    fn save_now(&self, key: &RunKey, run: StoredRun) {
        self.shared.note_run(key, &run);
        self.own.save_now(key, run);
    }

    /// A halt is forgotten only here: other daemons may be asked about the run.
    fn forget(&self, key: &RunKey) {
        self.shared.note_run(key, &StoredRun::default());
        self.own.forget(key);
    }

    fn release(&self, key: &RunKey) {
        self.shared.note(key, None);
        self.own.release(key);
    }

    fn end(&self, key: &RunKey) {
        self.shared.note(key, None);
        self.end_elsewhere(key);
        self.own.end(key);
    }

    fn end_elsewhere(&self, key: &RunKey) {
        if let Some(claims) = self.shared.claims() {
            claims.end_elsewhere(key);
        }
    }

    fn leave(&self, key: &RunKey, is_over: bool) {
        if let Some(claims) = self.shared.claims() {
            claims.leave(key, is_over);
        }
    }

    fn flushed(&self) -> oneshot::Receiver<()> {
        both(self.own.flushed(), self.shared.flushed(None))
    }

    fn saved(&self, key: &RunKey) -> oneshot::Receiver<()> {
        both(self.own.saved(key), self.shared.known(key))
    }

    fn asks_others(&self) -> bool {
        self.shared.is_strict()
    }

    fn is_required(&self) -> bool {
        self.shared.refuses_when_unsure()
    }

    fn patience(&self) -> Duration {
        self.own.patience() + self.shared.longest_silence()
    }

    fn status(&self) -> StoreStatus {
        self.own.status()
    }

    fn close(&self) {
        self.shared.close();
        self.own.close();
    }
}

/// A receiver that is notified once both of these are.
fn both(own: oneshot::Receiver<()>, shared: oneshot::Receiver<()>) -> oneshot::Receiver<()> {
    let (sender, receiver) = oneshot::channel();
    tokio::spawn(async move {
        // An error means that a store is closed.
        drop(tokio::join!(own, shared));
        // A send fails only if whoever waited has given up.
        sender.send(()).ok();
    });
    receiver
}
