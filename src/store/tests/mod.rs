//! A store on a disk that a test simulates: on a paused clock, and as slow, full or hung as the test says.

use std::{
    collections::{BTreeMap, HashMap},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock, Weak},
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, oneshot},
    time::{Instant, sleep, timeout},
};

use super::{
    DeliveryProgress, OutboxRow, OutboxStore, RunStore, StoreError, StoreStatus, StoredOutbox, StoredRun,
    StoredRuns, encode_event, event_record,
    outbox::{OutboxChange, SettledRow},
    pending::{ChangeBatch, PendingChanges, RunChange},
};
use crate::model::{Arrival, RunKey, WorkspaceId};

/// As in the writer of the real store.
const GATHER: Duration = Duration::from_millis(250);

/// How many changes that nobody waits for are written together.
const MOST_TOGETHER: usize = 2048;

/// How often a write looks whether a disk that hung works again.
const HUNG_PAUSE: Duration = Duration::from_millis(50);

/// What the disk does with a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DiskCondition {
    /// It takes so long.
    Works(Duration),
    /// It fails after so long.
    Full(Duration),
    /// It ends when the condition is another one.
    Hung,
}

/// What is on the disk. It outlives the stores that write to it.
#[derive(Debug)]
pub(crate) struct SimulatedDisk {
    content: Mutex<DiskContent>,
    condition: Mutex<DiskCondition>,
    /// How often it failed a write, or came to hang.
    troubles: Mutex<u64>,
    /// The store that was opened last. One is open at a time.
    user: Mutex<Weak<SimulatedStore>>,
}

#[derive(Debug, Default)]
struct DiskContent {
    runs: HashMap<RunKey, StoredRun>,
    ended: Vec<RunKey>,
    rows: BTreeMap<u64, DiskRow>,
    last_id: u64,
}

#[derive(Debug, Clone)]
struct DiskRow {
    workspace: WorkspaceId,
    event: Arc<str>,
    progress: String,
}

impl SimulatedDisk {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            content: Mutex::default(),
            condition: Mutex::new(DiskCondition::Works(Duration::ZERO)),
            troubles: Mutex::default(),
            user: Mutex::default(),
        })
    }

    pub(crate) fn set(&self, condition: DiskCondition) {
        *self.condition.lock() = condition;
        if !matches!(condition, DiskCondition::Works(_)) {
            *self.troubles.lock() += 1;
        }
    }

    /// How often it was in trouble, and whether it is.
    pub(crate) fn troubles(&self) -> (u64, bool) {
        (*self.troubles.lock(), !matches!(*self.condition.lock(), DiskCondition::Works(_)))
    }

    pub(crate) fn is_halted(&self, key: &RunKey) -> bool {
        self.content.lock().runs.get(key).is_some_and(|run| run.halt.is_some())
    }

    /// All that is on it, as the next process reads it.
    pub(crate) fn stored(&self) -> StoredRuns {
        let content = self.content.lock();
        let rows = content.rows.iter().map(|(id, row)| OutboxRow {
            id: *id,
            workspace: row.workspace.clone(),
            event: Arc::new(event_record::decode(&row.event).expect("it was encoded")),
            text: Arc::clone(&row.event),
            progress: DeliveryProgress::decode(&row.progress).expect("it was encoded"),
        });
        StoredRuns {
            runs: content.runs.iter().map(|(key, run)| (key.clone(), run.clone())).collect(),
            ended: content.ended.clone(),
            outbox: StoredOutbox { rows: rows.collect(), last_id: content.last_id },
        }
    }

    /// Has everything on it be so many hours older or, below zero, younger: what a wall clock that jumps makes of it.
    pub(crate) fn jump_clock(&self, hours: i64) {
        let shift = Duration::from_hours(hours.unsigned_abs());
        for row in self.content.lock().rows.values_mut() {
            let mut event = event_record::decode(&row.event).expect("it was encoded");
            event.arrival = event.arrival.map(|arrival| {
                let time = arrival.time();
                let shifted = if hours > 0 { time - shift } else { time + shift };
                Arrival::new(shifted, arrival.decision_id())
            });
            row.event = encode_event(&event).into();
        }
    }

    fn write(&self, batch: &ChangeBatch) {
        let mut content = self.content.lock();
        for (key, change) in batch.urgent.iter().chain(&batch.later) {
            match change {
                RunChange::Save(run) => drop(content.runs.insert(key.clone(), run.clone())),
                RunChange::Forget => drop(content.runs.remove(key)),
            }
        }
        content.ended.extend(batch.ended.iter().cloned());
        for (id, change) in &batch.outbox.changes {
            match change.clone() {
                OutboxChange::Add { workspace, event, progress } => {
                    content.rows.insert(*id, DiskRow { workspace, event, progress });
                    content.last_id = content.last_id.max(*id);
                }
                OutboxChange::Update(progress) => {
                    if let Some(row) = content.rows.get_mut(id) {
                        row.progress = progress;
                    }
                }
                OutboxChange::Remove => drop(content.rows.remove(id)),
            }
        }
    }
}

/// A process of a simulation. It may be killed while others go on: nothing that it does afterwards has an effect.
#[derive(Debug, Default)]
pub(crate) struct SimulatedProcess {
    died: OnceLock<Instant>,
}

impl SimulatedProcess {
    pub(crate) fn kill(&self) {
        self.died.get_or_init(Instant::now);
    }

    pub(crate) fn died(&self) -> Option<Instant> {
        self.died.get().copied()
    }
}

/// The disk on which a process opens its store.
#[derive(Debug)]
pub(crate) struct SimulatedMount {
    pub(crate) disk: Arc<SimulatedDisk>,
    pub(crate) process: Arc<SimulatedProcess>,
}

impl SimulatedMount {
    /// Opens the store, with a task that writes, unless another process has it open.
    pub(crate) fn open(&self, directory: &Path) -> Result<(Arc<SimulatedStore>, StoredRuns), StoreError> {
        let mut user = self.disk.user.lock();
        if user.upgrade().is_some_and(|store| store.is_open()) {
            return Err(StoreError::InUse { path: directory.to_owned() });
        }
        let store = Arc::new(SimulatedStore {
            disk: Arc::clone(&self.disk),
            process: Arc::clone(&self.process),
            directory: directory.to_owned(),
            state: Mutex::default(),
            wake: Notify::new(),
        });
        *user = Arc::downgrade(&store);
        drop(user);
        tokio::spawn(write_all(Arc::clone(&store)));
        Ok((store, self.disk.stored()))
    }
}

/// A store that writes to a simulated disk.
#[derive(Debug)]
pub(crate) struct SimulatedStore {
    disk: Arc<SimulatedDisk>,
    process: Arc<SimulatedProcess>,
    directory: PathBuf,
    state: Mutex<SimulatedQueue>,
    wake: Notify,
}

#[derive(Debug, Default)]
struct SimulatedQueue {
    pending: PendingChanges,
    waiters: Vec<oneshot::Sender<()>>,
    in_hand: Option<(ChangeBatch, Vec<oneshot::Sender<()>>)>,
    is_closed: bool,
}

impl SimulatedStore {
    /// Whether it still writes. After the end of its process it does not, and tells nobody.
    fn is_open(&self) -> bool {
        !self.is_killed() && !self.state.lock().is_closed
    }

    fn is_killed(&self) -> bool {
        self.process.died().is_some()
    }

    fn change(&self, change: impl FnOnce(&mut PendingChanges)) {
        let mut state = self.state.lock();
        if !state.is_closed {
            change(&mut state.pending);
            self.wake.notify_one();
        }
    }

    fn change_awaited(
        &self,
        id: u64,
        change: impl FnOnce(&mut PendingChanges),
    ) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let mut state = self.state.lock();
        if state.is_closed {
            let (sender, receiver) = oneshot::channel();
            sender.send(Err("the store is closed".into())).expect("the receiver is there");
            return receiver;
        }
        change(&mut state.pending);
        self.wake.notify_one();
        state.pending.outbox.wait_for(id)
    }

    fn has_changes(&self) -> bool {
        let state = self.state.lock();
        !state.pending.is_empty() || !state.waiters.is_empty()
    }

    fn is_due(&self) -> bool {
        let state = self.state.lock();
        !state.waiters.is_empty() || state.pending.outbox.is_awaited() || state.is_closed
    }

    /// Takes a batch, and says what becomes of it when the disk has.
    async fn write_batch(&self) {
        {
            let mut state = self.state.lock();
            let batch = state.pending.take(MOST_TOGETHER);
            let waiters = std::mem::take(&mut state.waiters);
            state.in_hand = Some((batch, waiters));
        }
        let (latency, works) = loop {
            match *self.disk.condition.lock() {
                DiskCondition::Works(latency) => break (latency, true),
                DiskCondition::Full(latency) => break (latency, false),
                DiskCondition::Hung => {}
            }
            sleep(HUNG_PAUSE).await;
            if !self.is_open() {
                return;
            }
        };
        sleep(latency).await;
        self.conclude(works);
    }

    fn conclude(&self, works: bool) {
        if self.is_killed() {
            return;
        }
        let mut state = self.state.lock();
        let Some((mut batch, waiters)) = state.in_hand.take() else { return };
        if works {
            self.disk.write(&batch);
        } else {
            *self.disk.troubles.lock() += 1;
        }
        let settled = batch.outbox.settle((!works).then_some("the disk is full"));
        if !works {
            state.pending.put_back(batch);
        }
        drop(state);
        settled.into_iter().for_each(SettledRow::notify);
        for waiter in waiters {
            waiter.send(()).ok();
        }
    }
}

async fn write_all(store: Arc<SimulatedStore>) {
    while store.is_open() {
        let woken = store.wake.notified();
        if !store.has_changes() {
            woken.await;
            continue;
        }
        drop(woken);
        let due = async {
            while !store.is_due() {
                store.wake.notified().await;
            }
        };
        // What nobody waits for is gathered.
        timeout(GATHER, due).await.ok();
        if !store.is_open() {
            return;
        }
        store.write_batch().await;
    }
}

impl RunStore for SimulatedStore {
    fn save(&self, key: &RunKey, run: StoredRun) {
        self.change(|pending| pending.save(key.clone(), run, false));
    }

    fn save_now(&self, key: &RunKey, run: StoredRun) {
        self.change(|pending| pending.save(key.clone(), run, true));
    }

    fn forget(&self, key: &RunKey) {
        self.change(|pending| pending.forget(key.clone()));
    }

    fn end(&self, key: &RunKey) {
        self.change(|pending| pending.end(key.clone()));
    }

    fn flushed(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        if !state.is_closed {
            state.waiters.push(sender);
            self.wake.notify_one();
        }
        receiver
    }

    fn status(&self) -> StoreStatus {
        let unsaved = self.state.lock().pending.runs();
        let unsaved_halts = self.state.lock().pending.urgent_runs();
        let directory = self.directory.clone();
        StoreStatus { directory, restored: 0, former_gone: false, unsaved, unsaved_halts, error: None }
    }

    fn close(&self) {
        let (_, is_troubled) = self.disk.troubles();
        self.conclude(!is_troubled);
        let mut state = self.state.lock();
        if state.is_closed {
            return;
        }
        state.is_closed = true;
        let batch = state.pending.take(usize::MAX);
        state.in_hand = Some((batch, std::mem::take(&mut state.waiters)));
        drop(state);
        self.conclude(!is_troubled);
        self.wake.notify_one();
    }
}

impl OutboxStore for SimulatedStore {
    fn add(&self, row: OutboxRow) {
        self.change(|pending| pending.outbox.add(row));
    }

    fn add_now(&self, row: OutboxRow) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let id = row.id;
        self.change_awaited(id, |pending| pending.outbox.add(row))
    }

    fn update(&self, id: u64, progress: &DeliveryProgress) {
        let progress = progress.encode();
        self.change(|pending| pending.outbox.update(id, progress));
    }

    fn update_now(&self, id: u64, progress: &DeliveryProgress) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let progress = progress.encode();
        self.change_awaited(id, |pending| pending.outbox.update(id, progress))
    }

    fn remove(&self, id: u64) {
        self.change(|pending| pending.outbox.remove(id));
    }
}
