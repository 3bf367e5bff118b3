//! Several daemons share the halts of runs.

use std::sync::Arc;

use super::{
    error::{DispatchError, Overload},
    handle::{Inner, Orchestrator},
};
use crate::{
    model::{Event, EventKind, Frequency, Handler, RunKey},
    registry::Plan,
    run::TooManyRuns,
    store::{ClusterError, ClusterOptions, ClusterStore, Freshness, HaltListener, RunStore, SharedHalts},
};

/// How often a run is claimed that another daemon claims at the same time.
const MOST_CLAIMS: u32 = 3;

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

impl Inner {
    /// Claims a run for this daemon, if the event may leave something behind that holds on all daemons. Returns the epoch of the
    /// claim then.
    ///
    /// Returns an error if another daemon goes on with it, or the store does not answer.
    pub(super) async fn claim(
        &self,
        key: &RunKey,
        event: &Event,
        plan: &Plan,
    ) -> Result<Option<u64>, DispatchError> {
        let claims = self.context.cluster.get().and_then(|shared| shared.claims());
        let Some(claims) = claims.filter(|_| leaves_traces(event, plan)) else { return Ok(None) };
        for _ in 0..MOST_CLAIMS {
            if let Some(epoch) = claims.held(key) {
                return Ok(Some(epoch));
            }
            let claimed = claims.claim(key).await.map_err(|_| DispatchError::RunMoved)?;
            let Some(mut claimed) = claimed else { continue };
            let state = std::mem::take(&mut claimed.state);
            let most = self.settings.limits.runs.get();
            let adopted = self.context.directory.claimed(key, state, claimed.is_known, most);
            let adopted = adopted.map_err(|TooManyRuns| DispatchError::Overloaded(Overload::Runs))?;
            if let Some(adopted) = adopted {
                // An error means that the actor has died, and what it knew is lost.
                adopted.await.map_err(|_| DispatchError::RunLost)?;
            }
            claimed.adopted(key);
        }
        claims.held(key).map(Some).ok_or(DispatchError::RunMoved)
    }

    /// Ends what hooks have done in a run that is not known here, on all daemons. Returns whether there was something.
    pub(super) async fn end_elsewhere(&self, key: &RunKey) -> bool {
        match self.context.cluster.get().and_then(|shared| shared.claims()) {
            Some(claims) => claims.end_now(key).await,
            None => false,
        }
    }
}

/// Whether hooks may leave something behind in the run that counts for its next events.
pub(super) fn leaves_traces(event: &Event, plan: &Plan) -> bool {
    let does = |step: &crate::registry::RegisteredHook| match &step.hook.handler {
        _ if step.hook.execution.frequency == Frequency::OncePerRun => true,
        Handler::Rule(rule) => rule.may_count(),
        _ => false,
    };
    event.kind == EventKind::AgentStopping || plan.steps().iter().any(|step| does(step))
}
