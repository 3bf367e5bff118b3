//! The threads that look links up. They are few, so that a disk that hangs holds a few of them and nothing else: not the threads
//! of the runtime, and not its end.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// The most threads. Looking up takes microseconds, unless a disk hangs.
const MOST_THREADS: usize = 8;

/// The most jobs that wait. More come only while all threads hang.
const LONGEST_QUEUE: usize = 256;

/// How long a thread without a job stays.
const IDLE: Duration = Duration::from_secs(10);

/// A job for a thread.
pub(super) trait CrewJob: Send {
    /// Whether nobody waits any more.
    fn is_late(&self) -> bool;
    /// Does it.
    fn run(self: Box<Self>);
}

static CREW: Crew = Crew {
    state: Mutex::new(CrewState { jobs: VecDeque::new(), threads: 0, idle: 0 }),
    wake: Condvar::new(),
};

struct Crew {
    state: Mutex<CrewState>,
    wake: Condvar,
}

struct CrewState {
    jobs: VecDeque<Box<dyn CrewJob>>,
    threads: usize,
    idle: usize,
}

impl Crew {
    fn state(&self) -> MutexGuard<'_, CrewState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gives a job to a thread. Returns whether it was taken: not if all threads hang.
pub(super) fn submit(job: Box<dyn CrewJob>) -> bool {
    let mut state = CREW.state();
    if state.jobs.len() == LONGEST_QUEUE {
        state.jobs.retain(|job| !job.is_late());
    }
    if state.jobs.len() == LONGEST_QUEUE {
        return false;
    }
    state.jobs.push_back(job);
    if state.idle < state.jobs.len() && state.threads < MOST_THREADS {
        let started = thread::Builder::new().name("links".into()).spawn(work);
        state.threads += usize::from(started.is_ok());
    }
    let has_threads = state.threads > 0;
    drop(state);
    CREW.wake.notify_one();
    has_threads
}

fn work() {
    while let Some(job) = next() {
        if !job.is_late() {
            // Who waits learns of a panic by getting no answer.
            drop(catch_unwind(AssertUnwindSafe(|| job.run())));
        }
    }
}

/// The next job; none if there was none for a while.
fn next() -> Option<Box<dyn CrewJob>> {
    let mut state = CREW.state();
    let mut is_over = false;
    loop {
        if let Some(job) = state.jobs.pop_front() {
            return Some(job);
        }
        if is_over {
            state.threads -= 1;
            return None;
        }
        state.idle += 1;
        let (woken, waited) = CREW.wake.wait_timeout(state, IDLE).unwrap_or_else(PoisonError::into_inner);
        state = woken;
        state.idle -= 1;
        is_over = waited.timed_out();
    }
}
