//! Owns the killed children that could not be reaped at once, and sees to it that no zombie stays.
//! Refuses to signal anybody. Talks to: `group`, which hands children over; telemetry reads the count.
//!
//! A thread of its own, alive only while something is dying, rather than a task: it also works while the runtime
//! shuts down, and unlike tokio's orphan queue it installs no SIGCHLD handler in the embedding process.

use std::process::Child;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// A killed process is mostly gone within a millisecond; one stuck in the kernel is asked ever more rarely.
const FIRST_LOOK: Duration = Duration::from_millis(1);
const RAREST_LOOK: Duration = Duration::from_millis(200);

static MORTUARY: Mutex<Mortuary> = Mutex::new(Mortuary { dying: Vec::new(), attended: false });

struct Mortuary {
    dying: Vec<Child>,
    /// Whether a thread looks after `dying`.
    attended: bool,
}

/// Returns how many killed processes have not been reaped yet: the gauge of terminating processes.
#[must_use]
pub fn dying() -> usize {
    mortuary().dying.len()
}

/// Reaps `child` as soon as it can be reaped, without the caller. It must have been sent SIGKILL.
pub(super) fn later(child: Child) {
    let mut mortuary = mortuary();
    mortuary.dying.push(child);
    if !mortuary.attended {
        // Without a thread the children stay listed, and the next one to come tries again.
        let thread = thread::Builder::new().name("hook-reaper".into()).spawn(attend);
        mortuary.attended =
            thread.inspect_err(|error| tracing::warn!(%error, "no thread to reap hooks")).is_ok();
    }
}

fn attend() {
    let mut pause = FIRST_LOOK;
    while still_dying() {
        thread::sleep(pause);
        pause = (pause * 2).min(RAREST_LOOK);
    }
}

/// Reaps whom it can. The last look and the end of the thread are one step under the lock, or a child
/// handed over in between would wait for the next one.
fn still_dying() -> bool {
    let mut mortuary = mortuary();
    mortuary.dying.retain_mut(|child| matches!(child.try_wait(), Ok(None)));
    mortuary.attended = !mortuary.dying.is_empty();
    mortuary.attended
}

fn mortuary() -> MutexGuard<'static, Mortuary> {
    MORTUARY.lock().unwrap_or_else(PoisonError::into_inner)
}
