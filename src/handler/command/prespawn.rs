//! Mode `prespawn`: processes that are started before their event and wait for their stdin. Each is used once.

use std::{collections::VecDeque, num::NonZeroUsize, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::timeout};

use super::{
    command_files::CommandFiles,
    process::{IdleProcess, Program},
    warm_pool::WarmProcesses,
};
use crate::model::CommandHandler;

/// After so many spares in a row that did not wait for their input, none is started until the next reload: such a
/// script acts before it reads, and each spare would act once more.
const MAX_SPOILED: usize = 3;

/// How long an event in flight delays the start of the next spare: an interpreter that starts takes the processor from
/// the one that works on the event, and only the event is waited for.
const MAX_REFILL_DELAY: Duration = Duration::from_millis(50);

/// The spare processes of one hook. Dropping the pool kills them.
#[derive(Debug)]
pub(super) struct SparePool {
    program: Program,
    handler: CommandHandler,
    wanted: NonZeroUsize,
    state: Mutex<SpareState>,
}

#[derive(Debug, Default)]
struct SpareState {
    waiting: VecDeque<Spare>,
    /// How many are being started.
    starting: usize,
    /// How many in a row did not wait for their input.
    spoiled: usize,
    stopped: bool,
}

/// An event is in flight. Dropping the guard starts the missing spares.
#[derive(Debug)]
pub(super) struct RefillGuard(#[expect(dead_code, reason = "it is dropped, never used")] oneshot::Sender<()>);

/// A waiting process, and the files of its command when it was started.
#[derive(Debug)]
struct Spare {
    process: IdleProcess,
    files: CommandFiles,
}

impl SparePool {
    pub(super) fn new(program: Program, handler: &CommandHandler, wanted: NonZeroUsize) -> Self {
        Self { program, handler: handler.clone(), wanted, state: Mutex::default() }
    }

    /// Takes a waiting process, if there is one. It is replaced in the background, once the event is done or has taken
    /// [`MAX_REFILL_DELAY`].
    pub(super) fn take(self: &Arc<Self>) -> (Option<IdleProcess>, RefillGuard) {
        let files = CommandFiles::of(&self.handler);
        let found = self.find(&files);
        // Weak, so that a pool that was given up meanwhile is not refilled.
        let pool = Arc::downgrade(self);
        let (busy, done) = oneshot::channel();
        tokio::spawn(async move {
            // Nothing is ever sent: the guard was dropped, or the delay is over.
            drop(timeout(MAX_REFILL_DELAY, done).await);
            if let Some(pool) = pool.upgrade() {
                pool.refill(&files);
            }
        });
        (found, RefillGuard(busy))
    }

    /// Whether the next spare waits, and has written nothing.
    #[cfg(all(feature = "cli", feature = "daemon"))]
    pub(super) fn has_quiet_spare(&self) -> bool {
        self.state.lock().waiting.front().is_some_and(|spare| spare.process.is_quiet())
    }

    /// The oldest usable spare; those before it are dropped, and so killed.
    fn find(&self, files: &CommandFiles) -> Option<IdleProcess> {
        let mut state = self.state.lock();
        while let Some(spare) = state.waiting.pop_front() {
            if spare.files != *files {
                // It was started from an older version of the script.
                continue;
            }
            if spare.process.is_quiet() {
                state.spoiled = 0;
                return Some(spare.process);
            }
            state.spoiled += 1;
            if state.spoiled == MAX_SPOILED {
                tracing::warn!(command = %self.handler.line, "spares do not wait for their stdin; none is started any more");
            }
        }
        None
    }

    fn refill(&self, files: &CommandFiles) {
        while self.reserve_start() {
            // Without the lock: an event that finds no spare does not wait for the start of one.
            let started = IdleProcess::start(&self.program);
            let mut state = self.state.lock();
            state.starting -= 1;
            match started {
                Ok(process) if !state.stopped => {
                    state.waiting.push_back(Spare { process, files: files.clone() });
                }
                Ok(_) => return,
                Err(error) => {
                    tracing::debug!(%error, "a spare process could not be started");
                    return;
                }
            }
        }
    }

    /// Counts one more spare as being started. Returns false if none is needed.
    fn reserve_start(&self) -> bool {
        let mut state = self.state.lock();
        let enough = state.waiting.len() + state.starting >= self.wanted.get();
        if enough || state.stopped || state.spoiled >= MAX_SPOILED {
            return false;
        }
        state.starting += 1;
        true
    }
}

impl WarmProcesses for SparePool {
    fn is_spent(&self) -> bool {
        self.state.lock().spoiled >= MAX_SPOILED
    }

    fn stop(&self) {
        let mut state = self.state.lock();
        state.stopped = true;
        state.waiting.clear();
    }
}
