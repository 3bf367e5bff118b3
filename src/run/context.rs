//! What the actors of all runs of an orchestrator share.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use arc_swap::ArcSwapOption;
use tokio::sync::broadcast;

use super::{
    answer_budget::AnswerLimits, directory::RunDirectory, message::Notice, notify::OutcomeObserver,
    outbox::Outbox,
};
#[cfg(all(test, feature = "daemon"))]
use crate::store::tests::SimulatedMount;
#[cfg(feature = "cluster")]
use crate::store::{LifecycleQueue, QueueWorker, SharedHalts};
use crate::{pool::HandlerPools, store::Freshness, telemetry::Meters};

/// The ends of the queue of a cluster. None in a process outside of a cluster.
#[derive(Debug, Default)]
pub(crate) struct QueueEnds {
    /// Where lifecycle events go that nobody waits for. Set once, on a node.
    #[cfg(feature = "cluster")]
    pub(crate) queue: OnceLock<Arc<LifecycleQueue>>,
    /// What takes events out of it. Set once, on a worker.
    #[cfg(feature = "cluster")]
    pub(crate) worker: OnceLock<QueueWorker>,
}

/// What the actors of all runs share.
#[derive(Debug)]
pub(crate) struct RunContext {
    pub(crate) directory: Arc<RunDirectory>,
    pub(crate) pools: HandlerPools,
    pub(crate) notices: broadcast::Sender<Notice>,
    /// Called with every outcome.
    pub(crate) observers: Vec<Arc<dyn OutcomeObserver>>,
    /// How many interceptor events of one run are in flight at once.
    pub(crate) interceptor_concurrency: usize,
    /// How long an interceptor event may wait for its turn.
    pub(crate) pending_deadline: Duration,
    /// How many outcomes are kept for repeated events.
    pub(crate) answers: AnswerLimits,
    /// How often in a row hooks may keep an agent from stopping that does nothing in between.
    pub(crate) stop_blocks: u8,
    pub(crate) meters: Arc<Meters>,
    /// Keeps lifecycle events until their hooks have ended, if there is a store.
    pub(crate) outbox: ArcSwapOption<Outbox>,
    /// Whether halts of other daemons are known, if there is a cluster. Set once.
    pub(crate) freshness: OnceLock<Arc<Freshness>>,
    /// The halts that the daemons of a cluster share, if there is one. Set once.
    #[cfg(feature = "cluster")]
    pub(crate) cluster: OnceLock<Arc<SharedHalts>>,
    /// The ends of the queue of a cluster that this process has.
    #[cfg_attr(not(feature = "cluster"), allow(dead_code, reason = "there is no cluster in this build"))]
    pub(crate) ends: QueueEnds,
    /// The disk on which stores are opened in a simulation.
    #[cfg(all(test, feature = "daemon"))]
    pub(crate) simulated_disk: OnceLock<SimulatedMount>,
}

impl RunContext {
    /// Delivers no event again any more. What is in the outbox stays for the next start.
    pub(crate) fn close_outbox(&self) {
        if let Some(outbox) = self.outbox.load_full() {
            outbox.close();
        }
    }
}
