//! Reaps children that nobody waits for any more, so that no zombie stays: killed ones that could not be reaped at once, and
//! in the daemon the orphans that its hooks leave.
//!
//! The daemon adopts those orphans, as an init process does, so that whatever a hook has started stays a descendant of the
//! daemon. They are told from its own children by a registry of the latter, whose exit statuses others wait for.

#[cfg(all(feature = "cli", feature = "daemon"))]
use std::collections::BTreeSet;
use std::{
    collections::BTreeMap,
    io,
    process::{Child, ExitStatus},
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::Duration,
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};
#[cfg(all(feature = "cli", feature = "daemon"))]
use rustix::process::kill_process;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, WaitIdStatus, getpgid, test_kill_process_group, waitid,
};
#[cfg(all(feature = "cli", feature = "daemon"))]
use tokio::{task::JoinHandle, time::interval};

#[cfg(all(feature = "cli", feature = "daemon"))]
use crate::platform::adopt_orphans;
use crate::platform::{children, raw};

/// A killed process is mostly gone within a millisecond; one stuck in the kernel is polled ever more rarely.
const FIRST_POLL: Duration = Duration::from_millis(1);
const SLOWEST_POLL: Duration = Duration::from_millis(200);

static UNREAPED: Mutex<Unreaped> = Mutex::new(Unreaped { children: Vec::new(), has_reaper: false });

struct Unreaped {
    children: Vec<OwnChild>,
    /// A thread polls `children`.
    has_reaper: bool,
}

/// Returns how many killed processes have not been reaped yet: the gauge of terminating processes.
#[must_use]
pub fn unreaped() -> usize {
    UNREAPED.lock().children.len()
}

/// Reaps `child` in the background as soon as possible. It must have been sent SIGKILL.
///
/// By a thread of its own, alive only while there is such a child, rather than by a task: it also works while the runtime
/// shuts down, and unlike tokio's orphan queue it installs no SIGCHLD handler in the embedding process.
pub(super) fn later(child: OwnChild) {
    let mut unreaped = UNREAPED.lock();
    unreaped.children.push(child);
    if !unreaped.has_reaper {
        // Without a thread the children stay in the list, and the next call tries again.
        let thread = thread::Builder::new().name("hook-reaper".into()).spawn(reap_all);
        unreaped.has_reaper =
            thread.inspect_err(|error| tracing::warn!(%error, "no thread to reap hooks")).is_ok();
    }
}

fn reap_all() {
    let mut pause = FIRST_POLL;
    while reap_once() {
        thread::sleep(pause);
        pause = (pause * 2).min(SLOWEST_POLL);
    }
}

/// Reaps what can be reaped; returns whether any are left. The last poll and the end of the thread are one step under
/// the lock, or a child added in between would wait for the next one.
fn reap_once() -> bool {
    let mut unreaped = UNREAPED.lock();
    unreaped.children.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    unreaped.has_reaper = !unreaped.children.is_empty();
    unreaped.has_reaper
}

/// The ids of the children that this process has started and not reaped, with how often each is registered: the next child
/// can get the id of one that is reaped before that one is removed here.
type OwnIds = BTreeMap<i32, usize>;

/// Who starts a child holds it shared until the child is in it; who reaps orphans holds it exclusively.
static OWN_CHILDREN: RwLock<Mutex<OwnIds>> = RwLock::new(Mutex::new(OwnIds::new()));

/// Whether this process adopts orphans. If not, its children are not registered.
static IS_ADOPTING: AtomicBool = AtomicBool::new(false);

/// RAII guard: while a child is being started, no orphan is reaped, for it might be this child.
pub(super) struct ChildStart(Option<RwLockReadGuard<'static, Mutex<OwnIds>>>);

impl ChildStart {
    pub(super) fn begin() -> Self {
        Self(IS_ADOPTING.load(Ordering::Acquire).then(|| OWN_CHILDREN.read()))
    }

    /// Registers the child that was started.
    pub(super) fn finish(self, process: Child) -> OwnChild {
        let id = raw(Pid::from_child(&process));
        let registered = self.0.map(|own| {
            *own.lock().entry(id).or_default() += 1;
            RegisteredChild(id)
        });
        OwnChild { process, _registered: registered }
    }
}

/// A child that this process has started. Drop it once it is reaped.
#[derive(Debug)]
pub(super) struct OwnChild {
    pub(super) process: Child,
    _registered: Option<RegisteredChild>,
}

impl OwnChild {
    /// Reaps it if it has exited.
    pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.process.try_wait()
    }
}

/// RAII guard: the registration of a child.
#[derive(Debug)]
struct RegisteredChild(i32);

impl Drop for RegisteredChild {
    fn drop(&mut self) {
        let own = OWN_CHILDREN.read();
        let mut own = own.lock();
        match own.get_mut(&self.0) {
            Some(times) if *times > 1 => *times -= 1,
            _ => drop(own.remove(&self.0)),
        }
    }
}

/// Whether a group has members that run, or that were killed just now, once its leader is reaped. Orphans in it that had
/// ended by themselves are reaped. Without adoption nobody can tell: they wait for another process to reap them.
pub(super) fn has_survivors(group: Pid) -> bool {
    if !IS_ADOPTING.load(Ordering::Acquire) {
        return true;
    }
    let mut own = OWN_CHILDREN.write();
    let members = orphans(own.get_mut()).into_iter().filter(|pid| getpgid(Some(*pid)) == Ok(group));
    let ended: Vec<WaitIdStatus> = members.filter_map(reap).collect();
    let is_killed = |status: &WaitIdStatus| status.terminating_signal() == Some(Signal::KILL.as_raw());
    ended.iter().any(is_killed) || test_kill_process_group(group).is_ok()
}

/// The children of this process that it has not started.
fn orphans(own: &OwnIds) -> Vec<Pid> {
    children().into_iter().filter(|pid| !own.contains_key(&raw(*pid))).collect()
}

/// Reaps an orphan if it has ended.
fn reap(orphan: Pid) -> Option<WaitIdStatus> {
    waitid(WaitId::Pid(orphan), WaitIdOptions::EXITED | WaitIdOptions::NOHANG).ok().flatten()
}

/// How often orphans that have ended are reaped.
#[cfg(all(feature = "cli", feature = "daemon"))]
const REAP_INTERVAL: Duration = Duration::from_millis(250);

/// How often what is left is killed when adoption ends: each round finds the children of those that the last one killed.
#[cfg(all(feature = "cli", feature = "daemon"))]
const MAX_ROUNDS: usize = 200;

/// Between two rounds.
#[cfg(all(feature = "cli", feature = "daemon"))]
const ROUND_PAUSE: Duration = Duration::from_millis(5);

/// RAII guard: this process adopts what its hooks leave. Dropping it kills all that it has adopted, and blocks its thread for
/// up to little more than a second.
#[cfg(all(feature = "cli", feature = "daemon"))]
#[derive(Debug)]
pub(crate) struct Adoption {
    /// The children of the program that became this one.
    inherited: BTreeSet<i32>,
    reaper: JoinHandle<()>,
}

#[cfg(all(feature = "cli", feature = "daemon"))]
impl Adoption {
    /// Begins it. Call it in a runtime, before the first hook, and in a program that starts no children of its own: it would
    /// not get their exit statuses.
    ///
    /// Returns nothing where the system cannot do it.
    pub(crate) fn begin() -> Option<Self> {
        if let Err(error) = adopt_orphans() {
            tracing::warn!(%error, "what hooks leave cannot be adopted; a hook that hides its origin has control");
            return None;
        }
        let inherited = children().into_iter().map(raw).collect();
        IS_ADOPTING.store(true, Ordering::Release);
        Some(Self { inherited, reaper: tokio::spawn(reap_orphans()) })
    }

    /// Kills what was adopted and is left. Returns what that was; nothing if it was there already.
    fn kill(&self, own: &OwnIds) -> Vec<i32> {
        let mut left = orphans(own);
        left.retain(|pid| !self.inherited.contains(&raw(*pid)));
        // It cannot be reaped in between, so its id is not another's. Processes of other users cannot be killed.
        left.retain(|pid| kill_process(*pid, Signal::KILL).is_ok() && reap(*pid).is_none());
        left.into_iter().map(raw).collect()
    }
}

#[cfg(all(feature = "cli", feature = "daemon"))]
impl Drop for Adoption {
    fn drop(&mut self) {
        self.reaper.abort();
        let mut killed = BTreeSet::new();
        let mut empty_rounds = 0;
        for _ in 0..MAX_ROUNDS {
            let left = self.kill(OWN_CHILDREN.write().get_mut());
            empty_rounds = if left.is_empty() { empty_rounds + 1 } else { 0 };
            killed.extend(left);
            // A list can miss one, and what was reaped may have had children.
            if empty_rounds == 3 {
                break;
            }
            thread::sleep(ROUND_PAUSE);
        }
        IS_ADOPTING.store(false, Ordering::Release);
        if !killed.is_empty() {
            tracing::warn!(processes = killed.len(), "ended processes that hooks had left");
        }
    }
}

/// Reaps orphans that have ended, again and again.
#[cfg(all(feature = "cli", feature = "daemon"))]
async fn reap_orphans() {
    let mut ticks = interval(REAP_INTERVAL);
    loop {
        ticks.tick().await;
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        // Most of the time nothing has ended, and this is all that is done.
        if !matches!(waitid(WaitId::All, options), Ok(Some(_))) {
            continue;
        }
        // Who starts hooks waits only if there is an orphan.
        let is_any = !orphans(&OWN_CHILDREN.read().lock()).is_empty();
        if is_any {
            let mut own = OWN_CHILDREN.write();
            for orphan in orphans(own.get_mut()) {
                let _ = reap(orphan);
            }
        }
    }
}
