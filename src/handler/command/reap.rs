//! Reaps killed children that could not be reaped at once, so that no zombie stays.
//!
//! A thread of its own, alive only while there is such a child, rather than a task: it also works while the runtime
//! shuts down, and unlike tokio's orphan queue it installs no SIGCHLD handler in the embedding process.

use std::{process::Child, thread, time::Duration};

use parking_lot::Mutex;

/// A killed process is mostly gone within a millisecond; one stuck in the kernel is polled ever more rarely.
const FIRST_POLL: Duration = Duration::from_millis(1);
const SLOWEST_POLL: Duration = Duration::from_millis(200);

static UNREAPED: Mutex<Unreaped> = Mutex::new(Unreaped { children: Vec::new(), has_reaper: false });

struct Unreaped {
    children: Vec<Child>,
    /// A thread polls `children`.
    has_reaper: bool,
}

/// Returns how many killed processes have not been reaped yet: the gauge of terminating processes.
#[must_use]
pub fn unreaped() -> usize {
    UNREAPED.lock().children.len()
}

/// Reaps `child` in the background as soon as possible. It must have been sent SIGKILL.
pub(super) fn later(child: Child) {
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
