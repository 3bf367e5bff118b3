//! The halts of a cluster, from the side of one daemon.

use std::{
    sync::{Arc, atomic::Ordering},
    thread,
    time::Duration,
};

use tokio::{
    runtime::Handle,
    sync::oneshot,
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    ClusterOptions, HaltListener,
    beats::{self, NodeBeat, NodeFacts},
    bucket::Bucket,
    claims::{self, RunClaims},
    core::ClusterCore,
    error::ClusterError,
    knowledge,
    publisher::publish,
    servers, watcher,
};
use crate::{
    model::RunKey,
    store::{Freshness, StoredHalt, StoredRun, WhenUnsure},
    telemetry::HaltPut,
};

/// How long the store may take to be connected to, before that goes on in the background.
const CONNECT_PATIENCE: Duration = Duration::from_millis(1500);

/// How long a start waits for the halts in the store.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How long a shutdown waits until the bucket has what this daemon has to say.
const CLOSE_PATIENCE: Duration = Duration::from_secs(3);

/// How much longer than a silent daemon a halt waits that all have to know.
const STRICT_PATIENCE: Duration = Duration::from_secs(1);

/// How long a node that ends tries to say so.
const LEAVE_PATIENCE: Duration = Duration::from_millis(700);

/// Halts that the daemons of a cluster share.
#[derive(Debug)]
pub(crate) struct SharedHalts {
    core: Arc<ClusterCore>,
    /// The store could be used when it was connected to.
    is_up: bool,
    /// They end with it.
    _tasks: JoinSet<()>,
}

/// How the store of a cluster is, as this daemon sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SharedStatus {
    pub(crate) is_fresh: bool,
    /// How long ago the store was heard of.
    pub(crate) heard: Option<Duration>,
    pub(crate) halts: usize,
    pub(crate) unstored: usize,
    /// The daemons that were heard of, and how long ago.
    pub(crate) nodes: Vec<(NodeBeat, Duration)>,
    pub(crate) problem: Option<String>,
}

impl SharedHalts {
    /// Connects to the store. If it does not answer at once, that goes on in the background.
    ///
    /// Returns an error if halts cannot be shared this way whatever comes.
    pub(crate) async fn open(
        options: ClusterOptions,
        freshness: Arc<Freshness>,
        listener: Arc<dyn HaltListener>,
    ) -> Result<Self, ClusterError> {
        HaltPut::expect();
        let bucket = Bucket::connect(options).await?;
        let is_up = match timeout(CONNECT_PATIENCE, bucket.opened()).await {
            Ok(opened) => opened.map(|()| true)?,
            Err(_) => false,
        };
        if is_up {
            bucket.check_servers().await?;
        }
        let core = Arc::new(ClusterCore::new(bucket, freshness, listener));
        core.are_one_store.store(is_up, Ordering::Release);
        let mut tasks = JoinSet::new();
        tasks.spawn(servers::watch(Arc::clone(&core)));
        tasks.spawn(watcher::watch(Arc::clone(&core)));
        tasks.spawn(watcher::beat(Arc::clone(&core)));
        tasks.spawn(publish(Arc::clone(&core)));
        if let Some(claims) = &core.claims {
            tasks.spawn(knowledge::answer(Arc::clone(&core)));
            tasks.spawn(claims::publish(Arc::clone(claims)));
        }
        Ok(Self { core, is_up, _tasks: tasks })
    }

    /// Whether the store could be used when it was connected to.
    pub(crate) fn was_up(&self) -> bool {
        self.is_up
    }

    /// Waits until all halts of the cluster are known, for a while.
    pub(crate) async fn ready(&self) {
        let mut ready = self.core.is_ready.subscribe();
        if timeout(START_PATIENCE, ready.wait_for(|is_ready| *is_ready)).await.is_err() {
            tracing::error!(
                "this daemon starts without knowing the halts of its cluster: the store does not answer"
            );
        }
    }

    /// Has beats say what the daemon is at.
    pub(crate) fn describe_by(&self, facts: impl Fn() -> NodeFacts + Send + Sync + 'static) {
        // Set once.
        drop(self.core.facts.set(Box::new(facts)));
    }

    /// Returns once an operator has asked this process to stop.
    pub(crate) async fn drain_requested(&self) {
        let mut drains = self.core.drains.subscribe();
        // The sender lives as long as `self`.
        drains.wait_for(|drains| *drains).await.ok();
    }

    /// Notes the halt of a run, or that it has none.
    pub(super) fn note(&self, key: &RunKey, halt: Option<&StoredHalt>) {
        if self.core.table.lock().note(key, halt) {
            self.core.changed.notify_one();
        }
    }

    /// Notes the state of a run. That it has no halt says nothing: see [`SharedHalts::note`].
    pub(super) fn note_run(&self, key: &RunKey, run: &StoredRun) {
        if run.halt.is_some() {
            self.note(key, run.halt.as_ref());
        }
        if let Some(claims) = self.claims() {
            claims.note(key, run.clone());
        }
    }

    /// The runs that this daemon has claimed, if it claims any.
    pub(crate) fn claims(&self) -> Option<&Arc<RunClaims>> {
        self.core.claims.as_ref()
    }

    /// A receiver that is notified once the bucket has what it lacks now of a run, or of all.
    pub(super) fn flushed(&self, key: Option<&RunKey>) -> oneshot::Receiver<()> {
        self.core.table.lock().flushed(key)
    }

    /// A receiver that is notified once the halt of a run may be answered: the bucket has it, and if promises are strict, the
    /// other daemons know it.
    pub(super) fn known(&self, key: &RunKey) -> oneshot::Receiver<()> {
        if self.is_strict() { knowledge::known(&self.core, key) } else { self.flushed(Some(key)) }
    }

    pub(super) fn is_strict(&self) -> bool {
        self.core.bucket.options().is_strict
    }

    /// How long a halt waits for a daemon that says nothing.
    pub(super) fn longest_silence(&self) -> Duration {
        let options = self.core.bucket.options();
        if options.is_strict { options.stale_after + STRICT_PATIENCE } else { Duration::ZERO }
    }

    /// Waits until the bucket has what this daemon has to say, and takes leave. Blocks.
    pub(super) fn close(&self) {
        self.say_all();
        let node = &self.core.bucket.options().node;
        let key = format!("node.{}", beats::token_of(node));
        let instance = self.core.bucket.options().instance.clone().into_bytes();
        let leave = timeout(LEAVE_PATIENCE, self.core.bucket.end(&key, instance));
        // Beats of a process that is about to end would say that it is there.
        self.core.leaves.store(true, Ordering::Release);
        // Whoever is not told notices that nothing is heard of this node.
        drop(Handle::current().block_on(leave));
    }

    /// Waits until the bucket has what this daemon has to say. Blocks.
    fn say_all(&self) {
        let started = Instant::now();
        loop {
            let (_, unstored) = self.counts();
            if unstored == 0 {
                return;
            }
            if started.elapsed() > CLOSE_PATIENCE {
                tracing::error!(
                    halts = unstored,
                    "halts are not in the store of the cluster: other daemons do not know them"
                );
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    pub(super) fn refuses_when_unsure(&self) -> bool {
        self.core.bucket.options().when_unsure == WhenUnsure::Refuse
    }

    /// Whether all halts of the cluster are known.
    pub(crate) fn is_fresh(&self) -> bool {
        self.core.freshness.is_fresh()
    }

    /// How many halts are known, and how many changes the bucket does not have.
    pub(crate) fn counts(&self) -> (usize, usize) {
        self.core.table.lock().counts()
    }

    pub(crate) fn status(&self) -> SharedStatus {
        let core = &self.core;
        let (halts, unstored) = self.counts();
        SharedStatus {
            is_fresh: self.is_fresh(),
            heard: core.freshness.age(),
            halts,
            unstored,
            nodes: core.nodes(),
            problem: core.problem.lock().clone(),
        }
    }
}
