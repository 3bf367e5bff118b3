//! The store of a daemon of a cluster: its own, and the halts that all daemons share.

use std::sync::Arc;

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
        if let Some(halt) = &run.halt {
            self.shared.note(key, Some(halt));
        }
        self.own.save(key, run);
    }

    fn save_now(&self, key: &RunKey, run: StoredRun) {
        if let Some(halt) = &run.halt {
            self.shared.note(key, Some(halt));
        }
        self.own.save_now(key, run);
    }

    /// Only here: other daemons may be asked about the run.
    fn forget(&self, key: &RunKey) {
        self.own.forget(key);
    }

    fn release(&self, key: &RunKey) {
        self.shared.note(key, None);
        self.own.release(key);
    }

    fn end(&self, key: &RunKey) {
        self.shared.note(key, None);
        self.own.end(key);
    }

    fn flushed(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let (own, shared) = (self.own.flushed(), self.shared.flushed());
        tokio::spawn(async move {
            // An error means that a store is closed.
            drop(tokio::join!(own, shared));
            // A send fails only if whoever waited has given up.
            sender.send(()).ok();
        });
        receiver
    }

    fn is_required(&self) -> bool {
        self.shared.refuses_when_unsure()
    }

    fn status(&self) -> StoreStatus {
        self.own.status()
    }

    fn close(&self) {
        self.shared.close();
        self.own.close();
    }
}
