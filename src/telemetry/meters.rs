//! Metrics of an orchestrator, its pools and its processes, with their handles resolved once. Gauges are sums over all
//! orchestrators of the process.

use std::{
    fmt,
    sync::{Arc, OnceLock},
    time::Duration,
};

use metrics::{Counter, Gauge, Histogram};
use parking_lot::Mutex;

use super::{
    labels::{HookState, ProcessExit, ProcessLeak, RunGaugeState, ShedReason, ShedStage},
    names,
};
use crate::model::{DialectName, EventKind, HandlerKind, Verdict};

/// The version of this crate.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit it was built from, if the build names it in `HOOKYARD_COMMIT`.
const COMMIT: &str = match option_env!("HOOKYARD_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

/// Every combination of where and why work is shed.
const SHEDDING: [(ShedStage, ShedReason); 7] = [
    (ShedStage::Admission, ShedReason::Full),
    (ShedStage::Admission, ShedReason::Shutdown),
    (ShedStage::Run, ShedReason::Full),
    (ShedStage::Run, ShedReason::Deadline),
    (ShedStage::Pool, ShedReason::Full),
    (ShedStage::Pool, ShedReason::Deadline),
    (ShedStage::Pool, ShedReason::Shutdown),
];

/// The metric handles of one orchestrator.
pub(crate) struct Meters {
    events: Vec<EventMeters>,
    shed: [[OnceLock<Counter>; ShedReason::ALL.len()]; ShedStage::ALL.len()],
    pub(crate) processes: Arc<ProcessMeters>,
    runs: [Share; RunGaugeState::ALL.len()],
    sessions: Share,
    hooks: Vec<[OnceLock<Share>; HookState::ALL.len()]>,
    required_missing: Share,
    /// Broken files whose rules are kept, denied and unknown.
    broken_files: [Share; 3],
    /// Runs with a state that is not on disk: halted ones, and others.
    unsaved_runs: OnceLock<[Share; 2]>,
    #[cfg(feature = "cluster")]
    cluster_halts: OnceLock<[Share; 2]>,
    outbox: OnceLock<OutboxShares>,
}

/// The metric handles of the outbox.
struct OutboxShares {
    records: [Share; 3],
    oldest: Gauge,
}

/// The metric handles of one kind of event.
struct EventMeters {
    kind: EventKind,
    waited: [OnceLock<Histogram>; Verdict::ALL.len()],
    overhead: OnceLock<Histogram>,
}

impl Meters {
    /// The handles of an orchestrator.
    pub(crate) fn resolve() -> Arc<Self> {
        names::describe();
        names::BUILD_INFO.gauge([VERSION, COMMIT]).set(1.0);
        for actor in ["run", "pool"] {
            names::ACTOR_RESTARTS.counter([actor]).increment(0);
        }
        for actor in ["run", "command", "http", "prompt", "agent", "native"] {
            names::PANICS.counter([actor]).increment(0);
        }
        names::LATE_REPLIES.counter([]).increment(0);
        names::LABEL_OVERFLOW.counter([]).increment(0);
        let events = EventKind::ALL.iter().map(|kind| EventMeters {
            kind: *kind,
            waited: Default::default(),
            overhead: OnceLock::new(),
        });
        let meters = Self {
            events: events.collect(),
            shed: Default::default(),
            processes: Arc::new(ProcessMeters::resolve()),
            runs: RunGaugeState::ALL.map(|state| Share::of(names::RUNS.gauge([state.as_str()]))),
            sessions: Share::of(names::SESSIONS.gauge([RunGaugeState::Active.as_str()])),
            hooks: DialectName::ALL.iter().map(|_| Default::default()).collect(),
            required_missing: Share::of(names::REQUIRED_HOOKS_MISSING.gauge([])),
            broken_files: ["kept", "denied", "unknown"]
                .map(|rules| Share::of(names::BROKEN_FILES.gauge([rules]))),
            unsaved_runs: OnceLock::new(),
            #[cfg(feature = "cluster")]
            cluster_halts: OnceLock::new(),
            outbox: OnceLock::new(),
        };
        for (at, reason) in SHEDDING {
            meters.shed_counter(at, reason);
        }
        Arc::new(meters)
    }

    /// Has the series of events of a kind, at zero: those of the verdicts that are usual.
    pub(crate) fn expect(&self, kind: EventKind) {
        let event = &self.events[kind as usize];
        event.overhead();
        event.waited(Verdict::Proceed);
        if kind.is_interceptor() {
            event.waited(Verdict::Block);
        }
    }

    /// Records how long a host waited for the outcome of an event.
    pub(crate) fn answered(&self, kind: EventKind, verdict: Verdict, waited: Duration) {
        self.events[kind as usize].waited(verdict).record(waited);
    }

    /// Records how much of that was not spent in hooks.
    pub(crate) fn spent(&self, kind: EventKind, overhead: Duration) {
        self.events[kind as usize].overhead().record(overhead);
    }

    /// Sets how many runs have a state that is not on disk, and how many of them are halted.
    pub(crate) fn set_unsaved_runs(&self, halted: usize, all: usize) {
        let shares = || ["halted", "other"].map(|state| Share::of(names::STORE_UNSAVED.gauge([state])));
        let [of_halted, of_others] = self.unsaved_runs.get_or_init(shares);
        of_halted.set(halted);
        of_others.set(all.saturating_sub(halted));
    }

    /// Sets whether all halts of the cluster are known, how many those are, and how many the store does not have.
    #[cfg(feature = "cluster")]
    pub(crate) fn set_cluster(&self, is_fresh: bool, halts: usize, unstored: usize) {
        names::CLUSTER_FRESH.gauge([]).set(f64::from(u8::from(is_fresh)));
        let shares = || ["stored", "unstored"].map(|state| Share::of(names::CLUSTER_HALTS.gauge([state])));
        let [of_stored, of_unstored] = self.cluster_halts.get_or_init(shares);
        of_stored.set(halts.saturating_sub(unstored));
        of_unstored.set(unstored);
    }

    /// Sets how many events the outbox has in each state, and how old the oldest is that is to be delivered.
    #[cfg_attr(not(feature = "store"), expect(dead_code, reason = "there is no store in this build"))]
    pub(crate) fn set_outbox(&self, counts: [(&'static str, usize); 3], oldest: Duration) {
        let shares = || OutboxShares {
            records: counts.map(|(state, _)| Share::of(names::OUTBOX_RECORDS.gauge([state]))),
            oldest: names::OUTBOX_OLDEST.gauge([]),
        };
        let shares = self.outbox.get_or_init(shares);
        for (share, (_, count)) in shares.records.iter().zip(counts) {
            share.set(count);
        }
        shares.oldest.set(oldest.as_secs_f64());
    }

    /// Counts work that was shed.
    pub(crate) fn shed(&self, at: ShedStage, reason: ShedReason) {
        self.shed_counter(at, reason).increment(1);
    }

    fn shed_counter(&self, at: ShedStage, reason: ShedReason) -> &Counter {
        self.shed[at as usize][reason as usize]
            .get_or_init(|| names::SHED.counter([at.as_str(), reason.as_str()]))
    }

    /// Sets how many runs are in a state.
    pub(crate) fn set_runs(&self, state: RunGaugeState, count: usize) {
        self.runs[state as usize].set(count);
    }

    /// Sets how many sessions have a run with an actor.
    pub(crate) fn set_sessions(&self, count: usize) {
        self.sessions.set(count);
    }

    /// Sets how many required hooks are not in force.
    pub(crate) fn set_required_missing(&self, count: usize) {
        self.required_missing.set(count);
    }

    /// Sets how many files are broken: those whose last good rules are kept in force, those whose events are denied, and
    /// those whose rules are unknown.
    pub(crate) fn set_broken_files(&self, kept: usize, denied: usize, unknown: usize) {
        for (share, count) in self.broken_files.iter().zip([kept, denied, unknown]) {
            share.set(count);
        }
    }

    /// Sets how many hooks of a dialect are in each state. A dialect that never had any has no series.
    pub(crate) fn set_hooks(&self, dialect: DialectName, count: impl Fn(HookState) -> usize) {
        let shares = &self.hooks[dialect as usize];
        let counts = HookState::ALL.map(count);
        if counts.iter().all(|count| *count == 0) && shares[0].get().is_none() {
            return;
        }
        for ((share, state), count) in shares.iter().zip(HookState::ALL).zip(counts) {
            let labels = [dialect.as_str(), state.as_str()];
            share.get_or_init(|| Share::of(names::HOOKS_LOADED.gauge(labels))).set(count);
        }
    }
}

impl fmt::Debug for Meters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meters").finish_non_exhaustive()
    }
}

impl EventMeters {
    fn waited(&self, verdict: Verdict) -> &Histogram {
        self.waited[verdict as usize]
            .get_or_init(|| names::EVENT_DURATION.histogram([self.kind.as_str(), verdict.as_str()]))
    }

    fn overhead(&self) -> &Histogram {
        self.overhead.get_or_init(|| names::OVERHEAD.histogram([self.kind.as_str()]))
    }
}

/// The metric handles of processes.
pub(crate) struct ProcessMeters {
    spawn: Histogram,
    running: Gauge,
    terminating: Gauge,
    exits: [Counter; ProcessExit::ALL.len()],
    leaks: [Counter; ProcessLeak::ALL.len()],
}

impl ProcessMeters {
    pub(crate) fn resolve() -> Self {
        Self {
            spawn: names::SPAWN_DURATION.histogram([]),
            running: names::PROCESSES.gauge(["running"]),
            terminating: names::PROCESSES.gauge(["terminating"]),
            exits: ProcessExit::ALL.map(|exit| names::PROCESS_EXITS.counter([exit.as_str()])),
            leaks: ProcessLeak::ALL.map(|leak| names::PROCESS_LEAKS.counter([leak.as_str()])),
        }
    }

    /// Records how long it took to start a process.
    pub(crate) fn spawned(&self, took: Duration) {
        self.spawn.record(took);
    }

    /// Counts a process that does its work, for as long as the value lives.
    pub(crate) fn running(&self) -> ProcessRunning {
        self.running.increment(1.0);
        ProcessRunning(self.running.clone())
    }

    /// Sets how many processes are killed and not gone yet. That is known of the whole process, not of one
    /// orchestrator.
    pub(crate) fn set_terminating(&self, count: usize) {
        self.terminating.set(float(count));
    }

    /// Counts the end of a process.
    pub(crate) fn exited(&self, exit: ProcessExit) {
        self.exits[exit as usize].increment(1);
    }

    /// Counts what a process left behind.
    pub(crate) fn leaked(&self, leak: ProcessLeak) {
        self.leaks[leak as usize].increment(1);
    }
}

impl fmt::Debug for ProcessMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProcessMeters").finish_non_exhaustive()
    }
}

/// A process is doing its work, for as long as this value lives.
pub(crate) struct ProcessRunning(Gauge);

impl Drop for ProcessRunning {
    fn drop(&mut self) {
        self.0.decrement(1.0);
    }
}

/// The metric handles of one pool.
pub(crate) struct PoolMeters {
    pool: &'static str,
    /// Of interceptors, and of all others.
    waits: OnceLock<(Histogram, Histogram)>,
    used: Share,
    limit: Share,
    depth: Share,
    /// None for a queue without a limit.
    queue_limit: Option<Share>,
}

/// How much of a pool is in use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PoolOccupancy {
    /// How many hooks run.
    pub(crate) used: usize,
    /// How many may.
    pub(crate) limit: usize,
    /// How many invocations wait.
    pub(crate) depth: usize,
    /// How many may.
    pub(crate) queue_limit: Option<usize>,
}

impl PoolMeters {
    /// The handles of a pool with such bounds.
    pub(crate) fn resolve(kind: HandlerKind, bounds: PoolOccupancy) -> Self {
        let pool = kind.as_str();
        let slots = |state| Share::of(names::POOL_SLOTS.gauge([pool, state]));
        let meters = Self {
            pool,
            waits: OnceLock::new(),
            used: slots("used"),
            limit: slots("limit"),
            depth: Share::of(names::QUEUE_DEPTH.gauge([pool])),
            queue_limit: bounds.queue_limit.map(|_| Share::of(names::QUEUE_LIMIT.gauge([pool]))),
        };
        meters.set(bounds);
        meters
    }

    /// Has the series of waits, at zero.
    pub(crate) fn expect(&self) {
        self.waits();
    }

    /// Records how long an invocation waited for its permit.
    pub(crate) fn waited(&self, is_interceptor: bool, wait: Duration) {
        let (interceptor, lifecycle) = self.waits();
        if is_interceptor { interceptor } else { lifecycle }.record(wait);
    }

    /// Sets how full the pool is.
    pub(crate) fn set(&self, now: PoolOccupancy) {
        self.used.set(now.used);
        self.limit.set(now.limit);
        self.depth.set(now.depth);
        if let (Some(share), Some(limit)) = (&self.queue_limit, now.queue_limit) {
            share.set(limit);
        }
    }

    fn waits(&self) -> &(Histogram, Histogram) {
        let of = |class| names::QUEUE_WAIT.histogram([self.pool, class]);
        self.waits.get_or_init(|| (of("interceptor"), of("lifecycle")))
    }
}

impl fmt::Debug for PoolMeters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PoolMeters").field("pool", &self.pool).finish_non_exhaustive()
    }
}

/// One orchestrator's share of a gauge, which is the sum of all shares. Dropping it subtracts it.
struct Share {
    gauge: Gauge,
    own: Mutex<f64>,
}

impl Share {
    fn of(gauge: Gauge) -> Self {
        gauge.increment(0.0);
        Self { gauge, own: Mutex::new(0.0) }
    }

    fn set(&self, count: usize) {
        let mut own = self.own.lock();
        let now = float(count);
        self.gauge.increment(now - *own);
        *own = now;
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.gauge.decrement(*self.own.lock());
    }
}

/// A count as gauges have it; greater counts read as four thousand million.
pub(super) fn float(count: usize) -> f64 {
    u32::try_from(count).unwrap_or(u32::MAX).into()
}
