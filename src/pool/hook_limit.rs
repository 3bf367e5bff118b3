//! Gates of hooks with a `max_concurrency`: whoever would be one too many waits here, before the pool, and so holds
//! none of the places that other hooks need. Owns who goes next and who is turned away; refuses to run anything.

use std::{
    collections::VecDeque,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::oneshot,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use super::job::{JobClass, ReplyPort};
use crate::{
    model::{Conclusion, Ended},
    registry::RegisteredHook,
    telemetry::{Meters, ShedReason, ShedStage},
};

/// How many may wait at a gate, and how long.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueLimits {
    pub(super) queue: usize,
    pub(super) deadline: Duration,
}

/// The gates of the hooks that have one. There are few such hooks, so they are searched one by one.
#[derive(Debug)]
pub(crate) struct HookLimits {
    entries: Mutex<Vec<Entry>>,
    meters: Arc<Meters>,
}

/// Belongs to one definition of one hook in one workspace.
#[derive(Debug)]
struct Entry {
    root: PathBuf,
    hook: Arc<RegisteredHook>,
    limit: Arc<HookLimit>,
}

/// Lets in so many invocations of one hook at once.
#[derive(Debug)]
pub(super) struct HookLimit {
    most: usize,
    line: Mutex<WaitQueue>,
    meters: Arc<Meters>,
}

/// Who is in, and who waits: interceptors before lifecycle hooks, each in order of arrival.
#[derive(Debug, Default)]
struct WaitQueue {
    inside: usize,
    interceptors: VecDeque<Waiter>,
    lifecycle: VecDeque<Waiter>,
}

/// Closed once nobody waits any more; dropped to turn away.
type Waiter = oneshot::Sender<Workspace>;

/// The right of one invocation to run. Dropping it lets the next one in.
#[derive(Debug)]
struct Workspace(Arc<HookLimit>);

impl HookLimits {
    /// No gates yet.
    pub(crate) fn new(meters: &Arc<Meters>) -> Self {
        Self { entries: Mutex::default(), meters: Arc::clone(meters) }
    }

    /// The gate of a hook; none for one that may run as often as its pool has places.
    pub(super) fn of(&self, root: &Path, hook: &Arc<RegisteredHook>) -> Option<Arc<HookLimit>> {
        let most = hook.hook.max_concurrency?.get();
        let mut entries = self.entries();
        let known = entries.iter().find(|entry| entry.root == root && is_same(&entry.hook, hook));
        if let Some(entry) = known {
            return Some(Arc::clone(&entry.limit));
        }
        let limit = Arc::new(HookLimit { most, line: Mutex::default(), meters: Arc::clone(&self.meters) });
        entries.push(Entry { root: root.to_owned(), hook: Arc::clone(hook), limit: Arc::clone(&limit) });
        Some(limit)
    }

    /// Gives up the gates of a workspace's hooks that are no longer there or no longer the same. Who waits at one
    /// still gets in.
    pub(crate) fn reloaded(&self, root: &Path, hooks: &[Arc<RegisteredHook>]) {
        self.entries().retain_mut(|entry| {
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

    fn entries(&self) -> MutexGuard<'_, Vec<Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether two are one definition of one hook.
fn is_same(one: &Arc<RegisteredHook>, other: &Arc<RegisteredHook>) -> bool {
    let (a, b) = (&one.hook, &other.hook);
    Arc::ptr_eq(one, other)
        || (a.name == b.name && a.max_concurrency == b.max_concurrency && a.handler == b.handler)
}

impl HookLimit {
    /// Has `go` run an invocation, now or when it is its turn, with what is left of its time to wait. The port that
    /// `go` gets keeps the place until it is used or dropped, however the invocation ends.
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
                    Conclusion::not_run(Ended::Cancelled, "nobody waits for the outcome any more")
                }
                () = sleep(limits.deadline) => {
                    self.shed(ShedReason::Deadline, "it waited too long for a place")
                }
            };
            reply.send(refused);
        });
    }

    /// A place, or where one will come from. If too many wait, one of them is turned away, as the pool's queue does:
    /// one that nobody waits for any more, or else a lifecycle hook, or else the interceptor that came last.
    fn enter(
        self: &Arc<Self>,
        class: JobClass,
        queue: usize,
    ) -> Result<Workspace, oneshot::Receiver<Workspace>> {
        let mut line = self.line();
        if line.inside < self.most {
            line.inside += 1;
            return Ok(Workspace(Arc::clone(self)));
        }
        let (waiter, turn) = oneshot::channel();
        match class {
            JobClass::Interceptor => line.interceptors.push_back(waiter),
            JobClass::Lifecycle => line.lifecycle.push_back(waiter),
        }
        if line.waiting() > queue {
            line.interceptors.retain(|waiter| !waiter.is_closed());
            line.lifecycle.retain(|waiter| !waiter.is_closed());
        }
        if line.waiting() > queue {
            drop(line.lifecycle.pop_front().or_else(|| line.interceptors.pop_back()));
        }
        Err(turn)
    }

    /// Hands a place that has become free to the next who still waits.
    fn release(self: &Arc<Self>) {
        let mut line = self.line();
        let Some(next) = line.next() else {
            line.inside -= 1;
            return;
        };
        drop(line);
        // Not under the lock: one that has left in this moment gives the place back, and so releases it again.
        drop(next.send(Workspace(Arc::clone(self))));
    }

    fn shed(&self, reason: ShedReason, why: &str) -> Conclusion {
        self.meters.shed(ShedStage::Pool, reason);
        Conclusion::not_run(
            Ended::Shed,
            format!("{why} of the hook's own (`max_concurrency: {}`)", self.most),
        )
    }

    fn line(&self) -> MutexGuard<'_, WaitQueue> {
        self.line.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl WaitQueue {
    fn waiting(&self) -> usize {
        self.interceptors.len() + self.lifecycle.len()
    }

    fn next(&mut self) -> Option<Waiter> {
        std::iter::from_fn(|| self.interceptors.pop_front().or_else(|| self.lifecycle.pop_front()))
            .find(|waiter| !waiter.is_closed())
    }
}

impl Workspace {
    /// A port that gives the place back before it passes the conclusion on: a host that has its answer finds the
    /// place free.
    fn until_concluded(self, reply: ReplyPort) -> ReplyPort {
        ReplyPort::new(move |conclusion| {
            drop(self);
            reply.send(conclusion);
        })
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        self.0.release();
    }
}
