//! The halts of a cluster, from the side of one daemon.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{Notify, oneshot, watch},
    task::JoinSet,
    time::{Instant, timeout},
};

use super::{
    ClusterOptions, HaltListener,
    beats::{self, NodeBeat, NodeFacts},
    bucket::Bucket,
    error::ClusterError,
    publisher::publish,
    table::{Aging, HaltTable},
    watcher,
};
use crate::{
    model::RunKey,
    store::{Freshness, StoredHalt, WhenUnsure},
    telemetry::HaltPut,
};

/// How long the store may take to be connected to, before that goes on in the background.
const CONNECT_PATIENCE: Duration = Duration::from_millis(1500);

/// How long a start waits for the halts in the store.
const START_PATIENCE: Duration = Duration::from_secs(10);

/// How long a shutdown waits until the bucket has what this daemon has to say.
const CLOSE_PATIENCE: Duration = Duration::from_secs(3);

/// How long a node that ends tries to say so.
const LEAVE_PATIENCE: Duration = Duration::from_millis(700);

/// How many beats that were not read yet are remembered.
const MOST_BEATS: usize = 64;

/// How long a daemon is listed that is not heard of.
const LISTED: Duration = Duration::from_mins(5);

/// How long two daemons may have one name: as one replaces the other.
const SHARED_NAME: Duration = Duration::from_mins(1);

/// After how many beats old halts are looked for.
const BEATS_BETWEEN_SWEEPS: u64 = 60;

/// Halts that the daemons of a cluster share.
#[derive(Debug)]
pub(crate) struct SharedHalts {
    core: Arc<ClusterCore>,
    /// The store could be used when it was connected to.
    is_up: bool,
    /// They end with it.
    _tasks: JoinSet<()>,
}

/// What the tasks share.
pub(super) struct ClusterCore {
    pub(super) bucket: Bucket,
    pub(super) listener: Arc<dyn HaltListener>,
    pub(super) table: Mutex<HaltTable>,
    /// The table has another change that the bucket does not have.
    pub(super) changed: Notify,
    /// What the daemon is at, once it can say so.
    facts: OnceLock<Box<dyn Fn() -> NodeFacts + Send + Sync>>,
    /// An operator has asked this process to stop.
    drains: watch::Sender<bool>,
    /// How long the bucket keeps a message, in seconds.
    pub(super) kept: AtomicU64,
    pub(super) freshness: Arc<Freshness>,
    beats: Mutex<Beats>,
    /// Why the bucket cannot be read, while it cannot.
    problem: Mutex<Option<String>>,
    is_ready: watch::Sender<bool>,
    /// This node ends.
    pub(super) leaves: AtomicBool,
}

/// The beats of this daemon that are on their way, and the daemons that were heard of.
#[derive(Debug, Default)]
struct Beats {
    /// The number of each, and when it was sent.
    sent: VecDeque<(u64, u64)>,
    /// By the instance: the last beat, when it was heard, and when the first one was.
    nodes: HashMap<String, (NodeBeat, Instant, Instant)>,
    /// Another daemon has this one's name.
    is_name_shared: bool,
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

impl std::fmt::Debug for ClusterCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterCore").field("bucket", &self.bucket).finish_non_exhaustive()
    }
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
        let core = Arc::new(ClusterCore {
            bucket,
            listener,
            table: Mutex::default(),
            changed: Notify::new(),
            facts: OnceLock::new(),
            drains: watch::channel(false).0,
            kept: AtomicU64::new(0),
            freshness,
            beats: Mutex::default(),
            problem: Mutex::default(),
            is_ready: watch::channel(false).0,
            leaves: AtomicBool::new(false),
        });
        let mut tasks = JoinSet::new();
        tasks.spawn(watcher::watch(Arc::clone(&core)));
        tasks.spawn(watcher::beat(Arc::clone(&core)));
        tasks.spawn(publish(Arc::clone(&core)));
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

    /// A receiver that is notified once the bucket has all that it lacks now.
    pub(super) fn flushed(&self) -> oneshot::Receiver<()> {
        self.core.table.lock().flushed()
    }

    /// Waits until the bucket has what this daemon has to say, and takes leave. Blocks.
    pub(super) fn close(&self) {
        self.say_all();
        let node = &self.core.bucket.options().node;
        let key = format!("node.{}", beats::token_of(node));
        let leave = timeout(LEAVE_PATIENCE, self.core.bucket.put(&key, Vec::new(), true));
        // Beats of a process that is about to end would say that it is there.
        self.core.leaves.store(true, Ordering::Release);
        // Whoever is not told notices that nothing is heard of this node.
        drop(Handle::current().block_on(leave));
    }

    /// Waits until the bucket has what this daemon has to say. Blocks.
    fn say_all(&self) {
        let started = Instant::now();
        loop {
            let (_, unstored) = self.core.table.lock().counts();
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

    pub(crate) fn status(&self) -> SharedStatus {
        let core = &self.core;
        let (halts, unstored) = core.table.lock().counts();
        let beats = core.beats.lock();
        let mut nodes: Vec<_> =
            beats.nodes.values().map(|(beat, heard, _)| (beat.clone(), heard.elapsed())).collect();
        nodes.sort_by(|(one, _), (other, _)| (&one.node, &one.instance).cmp(&(&other.node, &other.instance)));
        SharedStatus {
            is_fresh: core.freshness.is_fresh(),
            heard: core.freshness.age(),
            halts,
            unstored,
            nodes,
            problem: core.problem.lock().clone(),
        }
    }
}

impl ClusterCore {
    pub(super) fn facts(&self) -> NodeFacts {
        self.facts.get().map(|facts| facts()).unwrap_or_default()
    }

    /// Takes in that an operator wants a process of a node to stop.
    pub(super) fn hear_drain(&self, key: &str, instance: &[u8]) {
        let own = self.bucket.options();
        let is_own = key.strip_prefix("drain.") == Some(&*beats::token_of(&own.node));
        if is_own && instance == own.instance.as_bytes() {
            self.drains.send_replace(true);
        }
    }

    /// The bucket cannot be read; reported once until it can.
    pub(super) fn report_problem(&self, error: &ClusterError) {
        let mut problem = self.problem.lock();
        if problem.is_none() {
            tracing::error!(%error, "halts of other daemons are not known here until the store of the cluster answers");
        }
        *problem = Some(error.to_string());
    }

    /// A beat of this daemon is on its way.
    pub(super) fn sends_beat(&self, number: u64, at: u64) {
        let mut beats = self.beats.lock();
        if beats.sent.len() == MOST_BEATS {
            beats.sent.pop_front();
        }
        beats.sent.push_back((number, at));
    }

    /// Takes in a beat, written at this time of the servers' clock. One of this daemon shows that all before it was read.
    pub(super) fn hear_beat(&self, beat: NodeBeat, written: i64) {
        let is_own = beat.instance == self.bucket.options().instance;
        let number = beat.number;
        let mut beats = self.beats.lock();
        let now = Instant::now();
        beats.nodes.retain(|_, (_, heard, _)| heard.elapsed() < LISTED);
        let name_is_shared = !is_own && beat.node == self.bucket.options().node;
        let known = beats.nodes.entry(beat.instance.clone()).or_insert_with(|| (beat.clone(), now, now));
        (known.0, known.1) = (beat, now);
        if name_is_shared
            && known.2.elapsed() > SHARED_NAME
            && !std::mem::replace(&mut beats.is_name_shared, true)
        {
            let node = &self.bucket.options().node;
            tracing::error!(%node, "another daemon of the cluster has the same name; give each its own `node`");
        }
        if !is_own {
            return;
        }
        let sent = beats.sent.iter().find(|(sent, _)| *sent == number).map(|(_, at)| *at);
        beats.sent.retain(|(sent, _)| *sent > number);
        drop(beats);
        // One of before the connection was lost is not known any more.
        if let Some(at) = sent {
            self.is_up_to_date(at);
        }
        if number.is_multiple_of(BEATS_BETWEEN_SWEEPS) {
            self.sweep(written);
        }
    }

    fn is_up_to_date(&self, at: u64) {
        self.freshness.heard(at);
        if !self.is_ready.send_replace(true) {
            self.tell_own_halts();
        }
        if self.problem.lock().take().is_some() {
            tracing::warn!("the store of the cluster answers again");
        }
    }

    /// Halts of this daemon that the bucket does not have, and that are not over, are put there.
    fn tell_own_halts(&self) {
        let halted = self.listener.all_halted();
        let mut table = self.table.lock();
        let told = halted.iter().filter(|(key, halt)| table.note(key, Some(halt))).count();
        drop(table);
        if told > 0 {
            tracing::info!(halts = told, "halts are put into the store of the cluster that it did not have");
            self.changed.notify_one();
        }
    }

    /// Has halts written again that somebody asks for, before the bucket forgets them.
    fn sweep(&self, now: i64) {
        // A bucket that another node has made may keep them longer.
        let kept = Duration::from_secs(self.kept.load(Ordering::Relaxed)).max(self.bucket.kept_for());
        let aging = self.table.lock().aging(now, kept);
        for aging in aging {
            match aging {
                Aging::Old(key) if self.listener.was_asked(&key, kept / 2) => {
                    self.table.lock().renew(&key);
                    self.changed.notify_one();
                }
                Aging::Old(_) => {}
                Aging::Gone(key) => self.listener.released(&key, false),
            }
        }
    }
}
