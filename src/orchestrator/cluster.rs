//! Several daemons share the halts of runs.

use std::sync::Arc;

use super::handle::Orchestrator;
use crate::store::{
    ClusterError, ClusterOptions, ClusterStore, Freshness, HaltListener, RunStore, SharedHalts,
};

impl Orchestrator {
    /// Shares halts with the other daemons of a cluster from now on. The store of this one has to be open.
    ///
    /// Returns an error if that is impossible. A store that does not answer is none: it is tried again.
    pub(crate) async fn join_cluster(&self, options: ClusterOptions) -> Result<(), ClusterError> {
        let context = &self.0.context;
        let freshness = Arc::new(Freshness::new(options.stale_after, options.when_unsure));
        let listener = Arc::clone(&context.directory) as Arc<dyn HaltListener>;
        let shared = Arc::new(SharedHalts::open(options, Arc::clone(&freshness), listener).await?);
        // Set once: a daemon joins one cluster.
        drop(context.cluster.set(shared));
        drop(context.freshness.set(freshness));
        let own = context.directory.store();
        context.directory.set_store(own.map(|own| self.shared_store(own)));
        Ok(())
    }

    /// This store, and the one of the cluster, if there is a cluster.
    pub(super) fn shared_store(&self, own: Arc<dyn RunStore>) -> Arc<dyn RunStore> {
        match self.0.context.cluster.get() {
            Some(shared) => Arc::new(ClusterStore::new(own, Arc::clone(shared))),
            None => own,
        }
    }

    /// The halts that are shared, if there is a cluster.
    pub(crate) fn cluster(&self) -> Option<Arc<SharedHalts>> {
        self.0.context.cluster.get().cloned()
    }
}
