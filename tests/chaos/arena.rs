//! What hosts and disturbances share: the sockets, what is being done to the daemon, and what was found wrong.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    path::PathBuf,
    sync::{
        Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use hookyard::daemon::Client;
use serde_json::Value;

use crate::{
    reference::Tool,
    support::{daemon::Daemon, wait::LONGEST_WAIT},
};

/// How many faults are kept.
const MOST_FAULTS: usize = 50;

/// How long after the daemon lacked descriptors a process may still fail for it.
const AFTER_STARVATION: Duration = Duration::from_secs(3);

/// The same for a worker, which may take long to start, and has the limit that held then for all its life.
const WORKER_AFTER_STARVATION: Duration = Duration::from_secs(20);

/// What hosts and disturbances share.
pub(crate) struct Arena {
    socket: PathBuf,
    control_socket: PathBuf,
    /// Odd while the daemon is being killed.
    kills: AtomicU64,
    /// Odd while hooks may fail for lack of descriptors.
    starvations: AtomicU64,
    /// When it last had its descriptors back.
    fed: Mutex<Option<Instant>>,
    is_over: AtomicBool,
    turn: RwLock<()>,
    begun: Instant,
    faults: Mutex<Vec<String>>,
    counts: Mutex<BTreeMap<&'static str, u64>>,
}

/// A moment, to ask later what was done to the daemon since.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    kills: u64,
    starvations: u64,
    at: Instant,
}

/// Ends the other threads when the one that has it fails.
pub(crate) struct EndOnPanic<'a>(&'a Arena);

impl Drop for EndOnPanic<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            self.0.finish();
        }
    }
}

impl Arena {
    pub(crate) fn new(daemon: &Daemon) -> Self {
        Self {
            socket: daemon.socket().to_owned(),
            control_socket: daemon.control_socket(),
            kills: AtomicU64::new(0),
            starvations: AtomicU64::new(0),
            fed: Mutex::default(),
            is_over: AtomicBool::new(false),
            turn: RwLock::default(),
            begun: Instant::now(),
            faults: Mutex::default(),
            counts: Mutex::default(),
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(&self.socket).timeout(LONGEST_WAIT)
    }

    pub(crate) fn control(&self) -> Client {
        Client::new(&self.control_socket).timeout(LONGEST_WAIT)
    }

    pub(crate) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    /// Has hosts stop after the event that they are at.
    pub(crate) fn finish(&self) {
        self.is_over.store(true, Ordering::Relaxed);
    }

    pub(crate) fn end_on_panic(&self) -> EndOnPanic<'_> {
        EndOnPanic(self)
    }

    /// The turn of a host, for one event.
    pub(crate) fn turn(&self) -> RwLockReadGuard<'_, ()> {
        self.turn.read().unwrap()
    }

    /// Keeps hosts from sending events.
    pub(crate) fn pause(&self) -> RwLockWriteGuard<'_, ()> {
        self.turn.write().unwrap()
    }

    pub(crate) fn now(&self) -> Moment {
        Moment {
            kills: self.kills.load(Ordering::SeqCst),
            starvations: self.starvations.load(Ordering::SeqCst),
            at: Instant::now(),
        }
    }

    /// Whether the daemon was being killed at some time since.
    pub(crate) fn was_killed(&self, since: Moment) -> bool {
        let now = self.now();
        since.kills != now.kills || now.kills % 2 == 1
    }

    /// Whether it lacked descriptors at some time since, or shortly before.
    pub(crate) fn was_starved(&self, since: Moment, tool: Tool) -> bool {
        let after = if tool == Tool::Work { WORKER_AFTER_STARVATION } else { AFTER_STARVATION };
        let now = self.now();
        let was_before = self.fed.lock().unwrap().is_some_and(|fed| fed + after > since.at);
        was_before || since.starvations != now.starvations || now.starvations % 2 == 1
    }

    /// Does what kills the daemon.
    pub(crate) fn killing(&self, kill: impl FnOnce()) {
        self.kills.fetch_add(1, Ordering::SeqCst);
        kill();
        self.kills.fetch_add(1, Ordering::SeqCst);
    }

    /// Does what takes its descriptors away, and gives them back.
    pub(crate) fn starving(&self, starve: impl FnOnce()) {
        self.starvations.fetch_add(1, Ordering::SeqCst);
        starve();
        *self.fed.lock().unwrap() = Some(Instant::now());
        self.starvations.fetch_add(1, Ordering::SeqCst);
    }

    pub(crate) fn count(&self, what: &'static str) {
        *self.counts.lock().unwrap().entry(what).or_default() += 1;
    }

    /// Keeps what was found wrong.
    pub(crate) fn report(&self, faults: impl IntoIterator<Item = String>) {
        let mut known = self.faults.lock().unwrap();
        for fault in faults {
            if known.len() < MOST_FAULTS {
                known.push(format!("{:>9} ms {fault}", self.begun.elapsed().as_millis()));
            }
        }
    }

    pub(crate) fn summary(&self) -> String {
        let mut text = String::new();
        for (what, count) in &*self.counts.lock().unwrap() {
            writeln!(text, "{count:>9} {what}").unwrap();
        }
        text
    }

    /// Waits until every halt is on disk. Returns whether the daemon lived on since then without a kill.
    pub(crate) fn halts_are_stored(&self, since: Moment) -> bool {
        let deadline = Instant::now() + LONGEST_WAIT;
        while !self.was_killed(since) && Instant::now() < deadline {
            let status: Option<Value> = self.control().ask("GET", "/v1/status", None).ok();
            if status.is_some_and(|status| status["data"]["unsaved_halts"] == 0) {
                // A status of the daemon that came after a kill says nothing.
                return !self.was_killed(since);
            }
            thread::sleep(Duration::from_millis(20));
        }
        false
    }

    pub(crate) fn assert_nothing_wrong(&self, seed: u64, history: &str) {
        let faults = self.faults.lock().unwrap();
        assert!(
            faults.is_empty(),
            "{} with the seed {seed}:\n{}\n{history}",
            if faults.len() == MOST_FAULTS { "many faults" } else { "faults" },
            faults.join("\n")
        );
        let answered = self.counts.lock().unwrap().get("right answers").copied();
        assert!(answered > Some(0), "no event was answered");
    }
}
