//! What the tasks that write and read the bucket share.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::Instant,
};

use super::{
    HaltListener,
    beats::{self, NodeBeat, NodeFacts},
    bucket::Bucket,
    claims::RunClaims,
    error::ClusterError,
    store_clock::StoreClock,
    table::{Aging, HaltTable, OwnQuestions},
};
use crate::{
    model::RunKey,
    store::{Freshness, freshness},
};

/// How many beats that were not read yet are remembered.
const MOST_BEATS: usize = 64;

/// How long a daemon is listed that is not heard of.
const LISTED: Duration = Duration::from_mins(5);

/// How long two daemons may have one name: as one replaces the other.
const SHARED_NAME: Duration = Duration::from_mins(1);

/// After how many beats old halts are looked for, at most, and how many there are in a second.
const BEATS_BETWEEN_SWEEPS: u64 = 60;
const BEATS_PER_SECOND: u64 = 2;

/// What the tasks share.
pub(super) struct ClusterCore {
    pub(super) bucket: Bucket,
    pub(super) listener: Arc<dyn HaltListener>,
    pub(super) table: Mutex<HaltTable>,
    /// What this daemon asks the others.
    pub(super) questions: Mutex<OwnQuestions>,
    /// The runs that this daemon has claimed, if it claims any.
    pub(super) claims: Option<Arc<RunClaims>>,
    /// The number of the last message that was read.
    pub(super) position: watch::Sender<u64>,
    /// When a message was read last that others were missing before: they were written over before they were read.
    missed_at: AtomicU64,
    /// Notified then.
    pub(super) missed: Notify,
    /// The bucket has confirmed a message under a number that was read before: it has lost messages.
    pub(super) is_rewound: AtomicBool,
    /// As far as the servers answer, they have one bucket.
    pub(super) are_one_store: AtomicBool,
    /// The table has another change that the bucket does not have.
    pub(super) changed: Notify,
    /// What the daemon is at, once it can say so.
    pub(super) facts: OnceLock<Box<dyn Fn() -> NodeFacts + Send + Sync>>,
    /// An operator has asked this process to stop.
    pub(super) drains: watch::Sender<bool>,
    /// How long the bucket keeps a message, in seconds.
    pub(super) kept: AtomicU64,
    pub(super) freshness: Arc<Freshness>,
    beats: Mutex<Beats>,
    /// Why the bucket cannot be read, while it cannot.
    pub(super) problem: Mutex<Option<String>>,
    pub(super) is_ready: watch::Sender<bool>,
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
    clock: StoreClock,
    /// Another daemon has this one's name.
    is_name_shared: bool,
    /// Another daemon promises something else.
    is_mixed: bool,
    /// A beat could not be read.
    has_unreadable: bool,
}

impl std::fmt::Debug for ClusterCore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterCore").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

impl ClusterCore {
    pub(super) fn new(bucket: Bucket, freshness: Arc<Freshness>, listener: Arc<dyn HaltListener>) -> Self {
        let is_strict = bucket.options().is_strict;
        let claims = is_strict.then(|| Arc::new(RunClaims::new(bucket.clone(), Arc::clone(&listener))));
        Self {
            bucket,
            listener,
            claims,
            position: watch::channel(0).0,
            missed_at: AtomicU64::new(freshness::now()),
            missed: Notify::new(),
            is_rewound: AtomicBool::new(false),
            are_one_store: AtomicBool::new(false),
            table: Mutex::default(),
            questions: Mutex::default(),
            changed: Notify::new(),
            facts: OnceLock::new(),
            drains: watch::channel(false).0,
            kept: AtomicU64::new(0),
            freshness,
            beats: Mutex::default(),
            problem: Mutex::default(),
            is_ready: watch::channel(false).0,
            leaves: AtomicBool::new(false),
        }
    }

    /// The daemons that were heard of, and how long ago.
    pub(super) fn nodes(&self) -> Vec<(NodeBeat, Duration)> {
        let beats = self.beats.lock();
        let heard = beats.nodes.values().map(|(beat, heard, _)| (beat.clone(), heard.elapsed()));
        let mut nodes: Vec<_> = heard.collect();
        nodes.sort_by(|(one, _), (other, _)| (&one.node, &one.instance).cmp(&(&other.node, &other.instance)));
        nodes
    }

    /// The other processes that were heard of within this time.
    pub(super) fn heard_within(&self, time: Duration) -> Vec<String> {
        let beats = self.beats.lock();
        let own = &self.bucket.options().instance;
        let heard = beats.nodes.iter().filter(|(_, (_, heard, _))| heard.elapsed() <= time);
        heard.map(|(instance, _)| instance.clone()).filter(|instance| instance != own).collect()
    }

    /// Messages were written over before they were read. What took their place is behind them, but before all that is written from
    /// now on: another beat shows that it was read.
    pub(super) fn has_missed(&self) {
        self.missed_at.store(freshness::now(), Ordering::Release);
        self.missed.notify_one();
    }

    pub(super) fn has_missed_within(&self, time: Duration) -> bool {
        let ago = freshness::now().saturating_sub(self.missed_at.load(Ordering::Acquire));
        Duration::from_millis(ago) <= time
    }

    /// A process has taken leave: it answers no more events.
    pub(super) fn hear_leave(&self, instance: &[u8]) {
        self.beats.lock().nodes.retain(|known, _| known.as_bytes() != instance);
    }

    /// Has the directory of runs agree with the table about a run. The directory may lock the run and ask the table, so the table
    /// is not locked meanwhile; if this daemon does something to the run at that moment, that counts.
    pub(super) fn agree(&self, key: &RunKey) {
        let mut halt = self.table.lock().halt_of(key);
        loop {
            match &halt {
                Some(halt) => self.listener.halted(key, halt),
                None => self.listener.released(key, true),
            }
            let now = self.table.lock().halt_of(key);
            if now.is_some() == halt.is_some() {
                return;
            }
            halt = now;
        }
    }

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

    /// A beat says nothing that can be read; reported once.
    pub(super) fn report_unreadable_beat(&self, key: &str) {
        if !std::mem::replace(&mut self.beats.lock().has_unreadable, true) {
            tracing::error!(
                key,
                "a message about a node in the store of the cluster is passed over: it is damaged or too long"
            );
        }
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
        let is_mixed = beat.is_strict != self.bucket.options().is_strict;
        if is_mixed && !std::mem::replace(&mut beats.is_mixed, true) {
            tracing::error!(
                node = beat.node,
                "`cluster.halts` is `strict` on some nodes and `watch` on others: nothing strict is promised"
            );
        }
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
        let ahead = sent.and_then(|at| beats.clock.hear(written, at));
        drop(beats);
        if let Some(ahead) = ahead {
            self.clock_was_set_forward(ahead);
        }
        // One of before the connection was lost is not known any more.
        if let Some(at) = sent.filter(|at| *at > self.missed_at.load(Ordering::Acquire)) {
            self.is_up_to_date(at);
        }
        // Several times in the second half of the time that a halt is kept.
        let beats_kept = self.bucket.kept_for().as_secs().saturating_mul(BEATS_PER_SECOND);
        if number.is_multiple_of((beats_kept / 8).clamp(1, BEATS_BETWEEN_SWEEPS)) {
            self.sweep(written);
        }
    }

    /// The servers' clock was set forward: they take for old what is not.
    fn clock_was_set_forward(&self, seconds: i64) {
        tracing::error!(
            seconds,
            "the clock of a server of the cluster's store was set forward, and its servers drop halts by it: synchronise their \
             clocks; the halts known here stay, and are written again"
        );
        self.table.lock().set_forward(seconds);
        self.changed.notify_one();
        if let Some(claims) = &self.claims {
            claims.renew_old(Duration::ZERO);
        }
    }

    fn is_up_to_date(&self, at: u64) {
        // Nothing is read of another store, whatever is known of this one.
        if !self.are_one_store.load(Ordering::Acquire) {
            return;
        }
        // Before events are answered: the others may not know them.
        if !*self.is_ready.borrow() {
            self.tell_own_halts();
        }
        self.freshness.heard(at);
        self.is_ready.send_replace(true);
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
        if let Some(claims) = &self.claims {
            claims.renew_old(kept / 2);
        }
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
