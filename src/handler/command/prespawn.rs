//! Mode `prespawn`: processes that are started before their event and wait at their stdin. Owns how many there are
//! and which may still be used; refuses to use one twice.

use std::{
    collections::VecDeque,
    num::NonZeroUsize,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::oneshot, time::timeout};

use super::{
    files::Files,
    process::{Program, Waiting},
    standing::Ready,
};
use crate::model::CommandHandler;

/// After so many spares in a row that did not wait for their event, none is started until the next reload: such a
/// script acts before it reads, and each spare would be one more act.
const MOST_SPOILED: usize = 3;

/// How long an event that is worked on puts off the start of the next spare: two interpreters that start and work
/// at the same time take the processor from each other, and the event is the one that somebody waits for.
const LONGEST_DELAY: Duration = Duration::from_millis(50);

/// The spare processes of one hook. Dropping them kills them.
#[derive(Debug)]
pub(super) struct Spares {
    program: Program,
    handler: CommandHandler,
    wanted: NonZeroUsize,
    stock: Mutex<Stock>,
}

#[derive(Debug, Default)]
struct Stock {
    waiting: VecDeque<Spare>,
    /// How many are being started.
    starting: usize,
    /// How many in a row did not wait.
    spoiled: usize,
    stopped: bool,
}

/// An event is worked on. Dropping it has the missing spares started.
#[derive(Debug)]
pub(super) struct Busy(#[expect(dead_code, reason = "it is dropped, never used")] oneshot::Sender<()>);

/// A process, and the files of its command when it was started.
#[derive(Debug)]
struct Spare {
    process: Waiting,
    files: Files,
}

impl Spares {
    pub(super) fn new(program: Program, handler: &CommandHandler, wanted: NonZeroUsize) -> Self {
        Self { program, handler: handler.clone(), wanted, stock: Mutex::default() }
    }

    /// A process that waits for an event, if there is one. Others take its place in the background, once the event
    /// is done or takes long.
    pub(super) fn take(self: &Arc<Self>) -> (Option<Waiting>, Busy) {
        let files = Files::of(&self.handler);
        let found = self.find(&files);
        let missing = Arc::downgrade(self);
        let (busy, done) = oneshot::channel();
        tokio::spawn(async move {
            // It is never sent anything; either way the time has come.
            drop(timeout(LONGEST_DELAY, done).await);
            if let Some(spares) = missing.upgrade() {
                spares.refill(&files);
            }
        });
        (found, Busy(busy))
    }

    /// The oldest spare that can be used; those before it are dropped, and so killed.
    fn find(&self, files: &Files) -> Option<Waiting> {
        let mut stock = self.stock();
        while let Some(spare) = stock.waiting.pop_front() {
            if spare.files != *files {
                continue;
            }
            if spare.process.is_quiet() {
                stock.spoiled = 0;
                return Some(spare.process);
            }
            stock.spoiled += 1;
            if stock.spoiled == MOST_SPOILED {
                tracing::warn!(command = %self.handler.line, "spares do not wait for their stdin; none is started any more");
            }
        }
        None
    }

    fn refill(&self, files: &Files) {
        while self.begins() {
            // Not under the lock: an event that finds no spare need not wait for one.
            let started = Waiting::start(&self.program);
            let mut stock = self.stock();
            stock.starting -= 1;
            match started {
                Ok(process) if !stock.stopped => {
                    stock.waiting.push_back(Spare { process, files: files.clone() });
                }
                Ok(_) => return,
                Err(error) => {
                    tracing::debug!(%error, "a spare process could not be started");
                    return;
                }
            }
        }
    }

    /// Whether one more is to be started; it is then counted as such.
    fn begins(&self) -> bool {
        let mut stock = self.stock();
        let enough = stock.waiting.len() + stock.starting >= self.wanted.get();
        if enough || stock.stopped || stock.spoiled >= MOST_SPOILED {
            return false;
        }
        stock.starting += 1;
        true
    }

    fn stock(&self) -> MutexGuard<'_, Stock> {
        self.stock.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ready for Spares {
    fn is_spent(&self) -> bool {
        self.stock().spoiled >= MOST_SPOILED
    }

    fn stop(&self) {
        let mut stock = self.stock();
        stock.stopped = true;
        stock.waiting.clear();
    }
}
