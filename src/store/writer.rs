//! The thread that writes changes to disk, and its queue.

use std::{
    path::{Path, PathBuf},
    sync::{Arc, mpsc},
    thread::{self, JoinHandle},
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use tokio::{sync::oneshot, time::Instant};

use super::{
    DeliveryProgress, RunStore, StoreStatus, StoredRun, StoredRuns,
    database::{Database, Written},
    error::StoreError,
    outbox::{OutboxRow, OutboxStore, SettledRow},
    pending::{ChangeBatch, PendingChanges},
};
use crate::{
    model::RunKey,
    telemetry::{StoreFailure, StoreWriteMeter},
};

/// How long changes that nobody waits for are gathered before they are written.
const GATHER: Duration = Duration::from_millis(250);

/// How many changes that nobody waits for are written together. More would delay a halt that comes meanwhile.
const MOST_TOGETHER: usize = 2048;

/// How long closing waits for a disk that hangs.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The store in a directory.
#[derive(Debug)]
pub(crate) struct FileRunStore {
    queue: Arc<StoreQueue>,
    directory: PathBuf,
    restored: usize,
    former_gone: bool,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// What runs and the writer share.
#[derive(Debug, Default)]
struct StoreQueue {
    state: Mutex<QueueState>,
    wake: Condvar,
}

#[derive(Debug, Default)]
struct QueueState {
    pending: PendingChanges,
    /// Who waits for urgent changes.
    waiters: Vec<oneshot::Sender<()>>,
    /// How many runs are being written, and how many of them urgently.
    writing: (usize, usize),
    error: Option<String>,
    is_closing: bool,
}

impl FileRunStore {
    /// Opens the store in a directory, made if it is missing. Returns what it has. Blocks.
    pub(crate) fn open(directory: &Path) -> Result<(Self, StoredRuns), StoreError> {
        let (database, stored) = Database::open(directory)?;
        StoreFailure::expect_all();
        let queue = Arc::new(StoreQueue::default());
        let former_gone = database.is_former_gone;
        let writer = StoreWriter { database, queue: Arc::clone(&queue), meter: StoreWriteMeter::resolve() };
        let spawned = thread::Builder::new().name("store".to_owned()).spawn(move || writer.run());
        let thread = spawned.map_err(|error| StoreError::io(directory, &error))?;
        let (directory, restored) = (directory.to_owned(), stored.runs.len());
        Ok((Self { queue, directory, restored, former_gone, thread: Mutex::new(Some(thread)) }, stored))
    }
}

impl StoreQueue {
    /// Makes a change, and wakes the writer if there was none to make before or if somebody waits for it.
    fn change(&self, is_urgent: bool, change: impl FnOnce(&mut PendingChanges)) {
        let mut state = self.state.lock();
        let was_empty = state.pending.is_empty();
        change(&mut state.pending);
        drop(state);
        if was_empty || is_urgent {
            self.wake.notify_one();
        }
    }

    /// Makes a change of a row of the outbox that somebody waits for.
    fn change_awaited(
        &self,
        id: u64,
        change: impl FnOnce(&mut PendingChanges),
    ) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let mut state = self.state.lock();
        if state.is_closing {
            let (sender, receiver) = oneshot::channel();
            // The receiver is there.
            sender.send(Err("the store is closed".into())).ok();
            return receiver;
        }
        change(&mut state.pending);
        let receiver = state.pending.outbox.wait_for(id);
        drop(state);
        self.wake.notify_one();
        receiver
    }

    /// Waits for changes that are due. `is_full` says that the last batch left some.
    fn next_batch(&self, is_full: bool) -> Option<(ChangeBatch, Vec<oneshot::Sender<()>>)> {
        let mut state = self.state.lock();
        let is_due = |state: &QueueState| {
            !state.waiters.is_empty() || state.pending.outbox.is_awaited() || state.is_closing
        };
        while state.pending.is_empty() && !is_due(&state) {
            self.wake.wait(&mut state);
        }
        if !is_full {
            self.wake.wait_while_for(&mut state, |state| !is_due(state), GATHER);
        }
        if state.is_closing && state.pending.is_empty() && state.waiters.is_empty() {
            return None;
        }
        let batch = state.pending.take(MOST_TOGETHER);
        state.writing = (batch.urgent.len() + batch.later.len(), batch.urgent.len());
        Some((batch, std::mem::take(&mut state.waiters)))
    }

    /// Takes note of a batch that changed nothing. The disk is as good or bad as it was.
    fn pass_over(&self) {
        self.state.lock().writing = (0, 0);
    }

    /// Takes note of what became of a batch. Returns whether the state of the store changed with it, from failing to
    /// working or back.
    fn conclude(&self, batch: ChangeBatch, error: Option<String>) -> bool {
        let mut state = self.state.lock();
        state.writing = (0, 0);
        if error.is_some() {
            state.pending.put_back(batch);
        }
        let has_changed = state.error.is_some() != error.is_some();
        state.error = error;
        has_changed
    }
}

impl RunStore for FileRunStore {
    fn save(&self, key: &RunKey, run: StoredRun) {
        self.queue.change(false, |pending| pending.save(key.clone(), run, false));
    }

    fn save_now(&self, key: &RunKey, run: StoredRun) {
        self.queue.change(true, |pending| pending.save(key.clone(), run, true));
    }

    fn forget(&self, key: &RunKey) {
        self.queue.change(false, |pending| pending.forget(key.clone()));
    }

    fn end(&self, key: &RunKey) {
        self.queue.change(false, |pending| pending.end(key.clone()));
    }

    fn flushed(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        // Dropped by a closed store: the receiver is notified all the same.
        self.queue.state.lock().waiters.push(sender);
        self.queue.wake.notify_one();
        receiver
    }

    fn status(&self) -> StoreStatus {
        let state = self.queue.state.lock();
        let (writing, urgent) = state.writing;
        StoreStatus {
            directory: self.directory.clone(),
            restored: self.restored,
            former_gone: self.former_gone,
            unsaved: state.pending.runs() + writing,
            unsaved_halts: state.pending.urgent_runs() + urgent,
            error: state.error.clone(),
        }
    }

    fn close(&self) {
        let Some(thread) = self.thread.lock().take() else { return };
        self.queue.state.lock().is_closing = true;
        self.queue.wake.notify_one();
        let (done, ended) = mpsc::channel();
        // A disk that hangs must not keep the program from stopping.
        let waiting = thread::Builder::new().spawn(move || {
            drop(thread.join());
            // Fails only if nobody waits any more.
            done.send(()).ok();
        });
        if waiting.is_err() || ended.recv_timeout(CLOSE_TIMEOUT).is_err() {
            let runs = self.status().unsaved;
            let events = self.queue.state.lock().pending.outbox.changes.len();
            tracing::error!(
                runs,
                events,
                "the state of runs and lifecycle events was not written before the shutdown: the disk takes too long"
            );
        }
    }
}

impl OutboxStore for FileRunStore {
    fn add(&self, row: OutboxRow) {
        self.queue.change(false, |pending| pending.outbox.add(row));
    }

    fn add_now(&self, row: OutboxRow) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let id = row.id;
        self.queue.change_awaited(id, |pending| pending.outbox.add(row))
    }

    fn update(&self, id: u64, progress: &DeliveryProgress) {
        let progress = progress.encode();
        self.queue.change(false, |pending| pending.outbox.update(id, progress));
    }

    fn update_now(&self, id: u64, progress: &DeliveryProgress) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let progress = progress.encode();
        self.queue.change_awaited(id, |pending| pending.outbox.update(id, progress))
    }

    fn remove(&self, id: u64) {
        self.queue.change(false, |pending| pending.outbox.remove(id));
    }
}

impl Drop for FileRunStore {
    fn drop(&mut self) {
        self.queue.state.lock().is_closing = true;
        self.queue.wake.notify_one();
    }
}

/// The writer's side.
#[derive(Debug)]
struct StoreWriter {
    database: Database,
    queue: Arc<StoreQueue>,
    meter: StoreWriteMeter,
}

impl StoreWriter {
    fn run(mut self) {
        let mut is_full = false;
        while let Some((batch, waiters)) = self.queue.next_batch(is_full) {
            is_full = batch.later.len() == MOST_TOGETHER;
            let written = self.write(batch);
            // Whoever waits goes on either way: a halt that cannot be stored is still a halt.
            for waiter in waiters {
                // A send fails only if whoever waited has given up.
                waiter.send(()).ok();
            }
            if !written && self.queue.state.lock().is_closing {
                let state = self.queue.state.lock();
                let (runs, events) = (state.pending.runs(), state.pending.outbox.changes.len());
                tracing::error!(
                    runs,
                    events,
                    "the state of runs is lost, and lifecycle events may be delivered again: it could not be written \
                     before the shutdown"
                );
                return;
            }
            is_full &= written;
        }
    }

    /// Writes a batch. Returns whether it is on disk.
    fn write(&mut self, batch: ChangeBatch) -> bool {
        if batch.is_empty() {
            return true;
        }
        let started = Instant::now();
        let result = self.database.write(&batch);
        let mut batch = batch;
        let error = result.as_ref().err().map(ToString::to_string);
        let settled = batch.outbox.settle(error.as_deref());
        self.meter.wrote(started.elapsed());
        if let Err(error) = &result {
            StoreFailure::of(error.is_full()).emit();
        }
        let has_changed = match &result {
            Ok(Written::Nothing) => {
                self.queue.pass_over();
                false
            }
            _ => self.queue.conclude(batch, error),
        };
        settled.into_iter().for_each(SettledRow::notify);
        match &result {
            Err(error) if has_changed => {
                tracing::error!(%error, "the state of runs cannot be written; a restart would forget what is halted now");
            }
            Ok(_) if has_changed => tracing::warn!("the state of runs can be written again"),
            _ => {}
        }
        result.is_ok()
    }
}
