//! Limits of hooks with a `max_concurrency`. Surplus invocations wait here, before the pool, and so hold no permit that
//! other hooks need.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::{
    job::{JobClass, ReplyPort},
    wait_queue::WaitQueue,
};
use crate::{
    model::{Conclusion, Ended},
    registry::RegisteredHook,
    telemetry::{Meters, ShedReason, ShedStage},
};

/// How many invocations may wait, and how long each.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueLimits {
    pub(super) queue: usize,
    pub(super) deadline: Duration,
}

/// The limits of all hooks that have one. There are few such hooks, so they are searched one by one.
#[derive(Debug)]
pub(crate) struct HookLimits {
    entries: Mutex<Vec<Entry>>,
    meters: Arc<Meters>,
}

/// The limit of one definition of one hook in one workspace.
#[derive(Debug)]
struct Entry {
    root: PathBuf,
    hook: Arc<RegisteredHook>,
    limit: Arc<HookLimit>,
}

/// The limit of one hook: how many of its invocations hold a permit at once.
#[derive(Debug)]
pub(super) struct HookLimit {
    most: usize,
    state: Mutex<LimitState>,
    meters: Arc<Meters>,
}

/// The permits that are out, and who waits for one.
#[derive(Debug, Default)]
struct LimitState {
    permits: usize,
    waiting: WaitQueue<Waiter>,
}

/// Closed once nobody waits any more; dropped to shed.
type Waiter = oneshot::Sender<Permit>;

/// RAII guard: the permit of one invocation to run. Dropping it passes it to the next.
#[derive(Debug)]
struct Permit(Arc<HookLimit>);

impl HookLimits {
    /// No limits yet.
    pub(crate) fn new(meters: &Arc<Meters>) -> Self {
        Self { entries: Mutex::default(), meters: Arc::clone(meters) }
    }

    /// The limit of a hook; none for one that only its pool limits.
    pub(super) fn of(&self, root: &Path, hook: &Arc<RegisteredHook>) -> Option<Arc<HookLimit>> {
        let most = hook.hook.max_concurrency?.get();
        let mut entries = self.entries.lock();
        let known = entries.iter().find(|entry| entry.root == root && is_same(&entry.hook, hook));
        if let Some(entry) = known {
            return Some(Arc::clone(&entry.limit));
        }
        let limit = Arc::new(HookLimit { most, state: Mutex::default(), meters: Arc::clone(&self.meters) });
        entries.push(Entry { root: root.to_owned(), hook: Arc::clone(hook), limit: Arc::clone(&limit) });
        Some(limit)
    }

    /// Removes the limits of a workspace's hooks that are gone or changed. Invocations that wait at one still run.
    pub(crate) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.entries.lock().retain_mut(|entry| {
            if entry.root != root {
                return true;
            }
            let now = hooks.iter().find(|known| known.hook.enabled && is_same(known, &entry.hook));
            now.is_some_and(|now| {
                entry.hook = Arc::clone(now);
                true
            })
        });
    }
}

/// Whether two are one definition of one hook.
fn is_same(one: &Arc<RegisteredHook>, other: &Arc<RegisteredHook>) -> bool {
    let (a, b) = (&one.hook, &other.hook);
    Arc::ptr_eq(one, other)
        || (a.name == b.name && a.max_concurrency == b.max_concurrency && a.handler == b.handler)
}

impl HookLimit {
    /// Calls `go` with the time that is left to wait, now or when a permit is free. The port that `go` gets holds the
    /// permit until it is used or dropped, however the invocation ends.
    pub(super) fn pass(
        self: Arc<Self>,
        class: JobClass,
        cancel: CancellationToken,
        limits: QueueLimits,
        reply: ReplyPort,
        go: impl FnOnce(ReplyPort, Duration) + Send + 'static,
    ) {
        let turn = match self.enter(class, limits.queue) {
            Ok(place) => return go(place.until_concluded(reply), limits.deadline),
            Err(turn) => turn,
        };
        let begun = Instant::now();
        tokio::spawn(async move {
            let refused = tokio::select! {
                biased;
                place = turn => match place {
                    Ok(place) => {
                        let left = limits.deadline.saturating_sub(begun.elapsed());
                        return go(place.until_concluded(reply), left);
                    }
                    Err(_) => self.shed(ShedReason::Full, "too many others wait for a place"),
                },
                () = cancel.cancelled() => {
                    Conclusion::cancelled()
                }
                () = sleep(limits.deadline) => {
                    self.shed(ShedReason::Deadline, "it waited too long for a place")
                }
            };
            reply.send(refused);
        });
    }

    /// A permit, or the receiver of one. If too many wait, one of them is shed, as [`WaitQueue::shed`] chooses.
    fn enter(self: &Arc<Self>, class: JobClass, queue: usize) -> Result<Permit, oneshot::Receiver<Permit>> {
        let mut state = self.state.lock();
        if state.permits < self.most {
            state.permits += 1;
            return Ok(Permit(Arc::clone(self)));
        }
        let (waiter, turn) = oneshot::channel();
        state.waiting.push(class, waiter);
        if state.waiting.len() > queue {
            drop(state.waiting.shed(Waiter::is_closed));
        }
        Err(turn)
    }

    /// Passes a free permit to the next that still waits.
    fn release(self: &Arc<Self>) {
        let mut state = self.state.lock();
        let Some(next) = state.next() else {
            state.permits -= 1;
            return;
        };
        drop(state);
        // Not under the lock: a receiver that is dropped at this moment drops the permit, which releases it again.
        drop(next.send(Permit(Arc::clone(self))));
    }

    fn shed(&self, reason: ShedReason, why: &str) -> Conclusion {
        self.meters.shed(ShedStage::Pool, reason);
        Conclusion::not_run(
            Ended::Shed,
            format!("{why} of the hook's own (`max_concurrency: {}`)", self.most),
        )
    }
}

impl LimitState {
    /// The next that still waits.
    fn next(&mut self) -> Option<Waiter> {
        while let Some(waiter) = self.waiting.pop() {
            if !waiter.is_closed() {
                return Some(waiter);
            }
        }
        None
    }
}

impl Permit {
    /// A port that drops the permit before it passes the conclusion on, so that a host that has its answer finds the
    /// permit free.
    fn until_concluded(self, reply: ReplyPort) -> ReplyPort {
        ReplyPort::new(move |conclusion| {
            drop(self);
            reply.send(conclusion);
        })
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.0.release();
    }
}
