//! Threads on which policies are evaluated. No step of the interpreter can be interrupted: who waits for one that takes too long
//! goes on without it, and the thread ends when it does.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SendError, Sender, channel, sync_channel},
    },
    thread,
    time::Duration,
};

use parking_lot::Mutex;

use super::graph::STACK;

/// How long an event waits: far longer than a policy may take, also on a machine that is busy.
const LONGEST_WAIT: Duration =
    Duration::from_secs(if cfg!(debug_assertions) && !cfg!(test) { 20 } else { 2 });

/// How long a thread without work stays.
const LONGEST_IDLE: Duration = Duration::from_secs(10);

/// Why there is no result.
#[derive(Debug)]
pub(super) enum Unevaluated {
    /// It takes too long, and goes on.
    Late,
    /// One before takes too long, and goes on.
    Busy,
    Panicked,
    NoThread(io::Error),
}

/// Evaluates what belongs together, as long as nothing of it is late.
#[derive(Debug, Default)]
pub(super) struct Evaluator {
    /// How many evaluations go on that nobody waits for any more.
    late: Arc<AtomicUsize>,
}

impl Evaluator {
    pub(super) fn run<T: Send + 'static>(
        &self,
        evaluate: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Unevaluated> {
        if self.late.load(Ordering::Relaxed) > 0 {
            return Err(Unevaluated::Busy);
        }
        let (sender, receiver) = sync_channel(1);
        let turn = PolicyTurn { late: Arc::clone(&self.late), is_over: Arc::default() };
        let is_over = Arc::clone(&turn.is_over);
        let job = Box::new(move || {
            let _turn = turn;
            // Nobody hears it if it is late.
            _ = sender.send(evaluate());
        });
        hand_over(job).map_err(Unevaluated::NoThread)?;
        receiver.recv_timeout(LONGEST_WAIT).or_else(|error| match error {
            RecvTimeoutError::Disconnected => Err(Unevaluated::Panicked),
            RecvTimeoutError::Timeout => {
                self.late.fetch_add(1, Ordering::Relaxed);
                if is_over.swap(true, Ordering::AcqRel) {
                    self.late.fetch_sub(1, Ordering::Relaxed);
                }
                receiver.try_recv().map_err(|_| Unevaluated::Late)
            }
        })
    }
}

/// One evaluation. It is over when it ends, or when nobody waits any more; the second of the two counts.
struct PolicyTurn {
    late: Arc<AtomicUsize>,
    is_over: Arc<AtomicBool>,
}

impl Drop for PolicyTurn {
    fn drop(&mut self) {
        if self.is_over.swap(true, Ordering::AcqRel) {
            self.late.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread without work.
struct IdleThread {
    id: u64,
    jobs: Sender<Job>,
}

static IDLE: Mutex<Vec<IdleThread>> = Mutex::new(Vec::new());

/// Has a thread do something, a new one if all have work.
fn hand_over(mut job: Job) -> io::Result<()> {
    static STARTED: AtomicU64 = AtomicU64::new(0);
    loop {
        let Some(idle) = IDLE.lock().pop() else { break };
        match idle.jobs.send(job) {
            Ok(()) => return Ok(()),
            Err(SendError(unsent)) => job = unsent,
        }
    }
    let id = STARTED.fetch_add(1, Ordering::Relaxed);
    let work = move || work_on(job, id);
    thread::Builder::new().name("rego".into()).stack_size(STACK).spawn(work).map(drop)
}

/// Does one job after the other, until there was none for a while.
fn work_on(first: Job, id: u64) {
    let (sender, jobs) = channel();
    let mut job = first;
    loop {
        job();
        IDLE.lock().push(IdleThread { id, jobs: sender.clone() });
        let Some(next) = next_job(&jobs, id) else { return };
        job = next;
    }
}

fn next_job(jobs: &Receiver<Job>, id: u64) -> Option<Job> {
    if let Ok(job) = jobs.recv_timeout(LONGEST_IDLE) {
        return Some(job);
    }
    let mut idle = IDLE.lock();
    let mine = idle.iter().position(|thread| thread.id == id);
    if let Some(mine) = mine {
        idle.remove(mine);
        return None;
    }
    drop(idle);
    // Somebody took it from there, to send a job.
    jobs.recv().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_waits_for_what_is_late_and_nothing_else_begins_until_it_ends() {
        let evaluator = Evaluator::default();
        let (end, ended) = channel::<()>();
        let late = evaluator.run(move || ended.recv());
        assert!(matches!(late, Err(Unevaluated::Late)), "{late:?}");
        assert!(matches!(evaluator.run(|| 1), Err(Unevaluated::Busy)));
        // Another hook goes on.
        assert_eq!(Evaluator::default().run(|| 1).unwrap(), 1);
        end.send(()).unwrap();
        while evaluator.late.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        assert_eq!(evaluator.run(|| 2).unwrap(), 2);
    }

    #[test]
    fn a_panic_ends_one_evaluation() {
        let evaluator = Evaluator::default();
        let panicked = evaluator.run(|| assert!(std::env::args().count() == 0, "on purpose"));
        assert!(matches!(panicked, Err(Unevaluated::Panicked)), "{panicked:?}");
        assert_eq!(evaluator.run(|| 3).unwrap(), 3);
    }
}
