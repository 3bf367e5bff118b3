//! Where the changes of runs and of the outbox go while another daemon takes over: to that daemon, or back into the store
//! if it does not.

use std::{collections::HashMap, path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    model::RunKey,
    store::{DeliveryProgress, OutboxChange, OutboxRow, OutboxStore, RunStore, StoreStatus, StoredRun},
};

/// How long closing waits for the successor.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A change of a run or of the outbox, or a question whether all before it are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReportedChange {
    Save(RunKey, StoredRun),
    Forget(RunKey),
    End(RunKey),
    /// A change of an event in the outbox.
    Event(u64, OutboxChange),
    /// The number of the question.
    Flush(u64),
}

/// Sends changes of runs to the daemon that takes over.
#[derive(Debug)]
pub(super) struct SuccessorStore {
    state: Mutex<SuccessorStoreState>,
    /// The directory of the store that the successor opens.
    directory: PathBuf,
}

#[derive(Debug)]
struct SuccessorStoreState {
    target: ChangeTarget,
    /// Who waits until their changes are stored, by the number of their question.
    waiters: Vec<(u64, oneshot::Sender<()>)>,
    last_question: u64,
    /// The last question that the successor has answered.
    acknowledged: u64,
}

/// Where changes go.
#[derive(Debug)]
enum ChangeTarget {
    /// To the successor. What may not be on its disk is kept as well: everything until it accepts connections, then the
    /// halts that it has not acknowledged.
    Successor { changes: mpsc::UnboundedSender<ReportedChange>, kept: Vec<ReportedChange>, has_begun: bool },
    /// To a store of this daemon, because the successor did not begin, or has ended.
    Store(Arc<dyn RunStore>),
    /// Nowhere: they are in memory only.
    Memory,
}

impl SuccessorStore {
    /// A store that sends its changes to the receiver. The successor opens the store in the directory.
    pub(super) fn new(directory: PathBuf) -> (Arc<Self>, mpsc::UnboundedReceiver<ReportedChange>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        let target = ChangeTarget::Successor { changes, kept: Vec::new(), has_begun: false };
        let state = SuccessorStoreState { target, waiters: Vec::new(), last_question: 0, acknowledged: 0 };
        (Arc::new(Self { state: Mutex::new(state), directory }), receiver)
    }

    /// Sends a change to the successor that is not kept here.
    pub(super) fn report(&self, change: ReportedChange) {
        if let ChangeTarget::Successor { changes, .. } = &self.state.lock().target {
            // Fails only if the handover has ended, which says so itself.
            _ = changes.send(change);
        }
    }

    /// The successor accepts connections: only the halts that may not be on its disk are needed here. It changes the
    /// same runs, so nothing else may be written over what it has stored.
    pub(super) fn conclude(&self) {
        let mut state = self.state.lock();
        let acknowledged = state.acknowledged;
        if let ChangeTarget::Successor { kept, has_begun, .. } = &mut state.target {
            *has_begun = true;
            drop_stored(kept, acknowledged);
            kept.retain(|change| change.is_halt() || matches!(change, ReportedChange::Flush(_)));
        }
    }

    /// The successor has stored everything before a question.
    pub(super) fn acknowledge(&self, question: u64) {
        let mut state = self.state.lock();
        let waiters = std::mem::take(&mut state.waiters);
        let (stored, waiting) = waiters.into_iter().partition(|(number, _)| *number <= question);
        state.waiters = waiting;
        state.acknowledged = question;
        if let ChangeTarget::Successor { kept, has_begun: true, .. } = &mut state.target {
            drop_stored(kept, question);
        }
        drop(state);
        notify(stored);
    }

    /// The successor did not begin, or has ended: changes go to this store from now on, and so do those that were kept.
    pub(super) fn give_back(&self, store: Option<Arc<dyn RunStore>>) {
        let mut state = self.state.lock();
        let target = store.clone().map_or(ChangeTarget::Memory, ChangeTarget::Store);
        let former = std::mem::replace(&mut state.target, target);
        let waiters = std::mem::take(&mut state.waiters);
        let ChangeTarget::Successor { kept, has_begun, .. } = former else { return notify(waiters) };
        let Some(store) = store else {
            drop(state);
            // A daemon that goes on remembers them.
            if has_begun {
                kept.iter().for_each(report_forgotten);
            }
            return notify(waiters);
        };
        for change in kept {
            apply(&*store, change);
        }
        let flushed = store.flushed();
        drop(state);
        tokio::spawn(async move {
            // An error means that the store is closed.
            _ = flushed.await;
            notify(waiters);
        });
    }

    fn change(&self, change: ReportedChange) {
        match &mut self.state.lock().target {
            ChangeTarget::Successor { changes, kept, has_begun } => {
                if !*has_begun || change.is_halt() {
                    kept.push(change.clone());
                }
                // Fails only if the handover has ended, which says so itself.
                _ = changes.send(change);
            }
            ChangeTarget::Store(store) => apply(&**store, change),
            ChangeTarget::Memory => report_forgotten(&change),
        }
    }
}

impl ReportedChange {
    fn is_halt(&self) -> bool {
        matches!(self, Self::Save(_, run) if run.halt.is_some())
    }
}

/// Removes what the successor had stored when it answered this question.
fn drop_stored(kept: &mut Vec<ReportedChange>, question: u64) {
    let is_answered =
        |change: &ReportedChange| matches!(change, ReportedChange::Flush(number) if *number <= question);
    if let Some(last) = kept.iter().rposition(is_answered) {
        kept.drain(..=last);
    }
}

/// Reports a halt that nobody stores.
fn report_forgotten(change: &ReportedChange) {
    if let ReportedChange::Save(key, _) = change
        && change.is_halt()
    {
        let (workspace, run) = (&key.workspace, &key.run);
        tracing::error!(%workspace, %run, "this run is halted in memory only: the halt is forgotten when this daemon ends");
    }
}

fn apply(store: &dyn RunStore, change: ReportedChange) {
    match change {
        // What was sent may have been answered.
        ReportedChange::Save(key, run) if run.halt.is_some() => store.save_now(&key, run),
        ReportedChange::Save(key, run) => store.save(&key, run),
        ReportedChange::Forget(key) => store.forget(&key),
        ReportedChange::End(key) => store.end(&key),
        // The outbox brings its store up to date itself.
        ReportedChange::Event(..) | ReportedChange::Flush(_) => {}
    }
}

fn notify(waiters: Vec<(u64, oneshot::Sender<()>)>) {
    for (_, waiter) in waiters {
        // A send fails only if whoever waited has given up.
        waiter.send(()).ok();
    }
}

impl RunStore for SuccessorStore {
    fn save(&self, key: &RunKey, run: StoredRun) {
        self.change(ReportedChange::Save(key.clone(), run));
    }

    fn save_now(&self, key: &RunKey, run: StoredRun) {
        self.change(ReportedChange::Save(key.clone(), run));
    }

    fn forget(&self, key: &RunKey) {
        self.change(ReportedChange::Forget(key.clone()));
    }

    fn end(&self, key: &RunKey) {
        self.change(ReportedChange::End(key.clone()));
    }

    fn flushed(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state.lock();
        state.last_question += 1;
        let number = state.last_question;
        match &mut state.target {
            ChangeTarget::Successor { changes, kept, .. } => {
                kept.push(ReportedChange::Flush(number));
                _ = changes.send(ReportedChange::Flush(number));
                state.waiters.push((number, sender));
            }
            ChangeTarget::Store(store) => return store.flushed(),
            // The receiver is notified by the end of its sender.
            ChangeTarget::Memory => {}
        }
        receiver
    }

    fn status(&self) -> StoreStatus {
        let state = self.state.lock();
        if let ChangeTarget::Store(store) = &state.target {
            return store.status();
        }
        let unsaved = state.waiters.len();
        let directory = self.directory.clone();
        StoreStatus {
            directory,
            restored: 0,
            former_gone: false,
            unsaved,
            unsaved_halts: unsaved,
            error: None,
        }
    }

    fn close(&self) {
        if let ChangeTarget::Store(store) = &self.state.lock().target {
            return store.close();
        }
        let flushed = self.flushed();
        // A successor that hangs must not keep this daemon from stopping.
        let waited = Handle::try_current().map(|runtime| runtime.block_on(timeout(CLOSE_TIMEOUT, flushed)));
        if !matches!(waited, Ok(Ok(_))) {
            tracing::error!(
                "the daemon that has taken over does not answer; it may not know the latest state of runs"
            );
        }
    }
}

/// Sends changes of the outbox to the daemon that takes over, among those of runs.
#[derive(Debug)]
pub(super) struct SuccessorOutbox {
    store: Arc<SuccessorStore>,
    /// Who waits until a row is on disk. None once nobody writes any more.
    waiters: Mutex<Option<RowWaiters>>,
}

/// By the ids of their rows.
type RowWaiters = HashMap<u64, oneshot::Sender<Result<(), Arc<str>>>>;

impl SuccessorOutbox {
    pub(super) fn new(store: Arc<SuccessorStore>) -> Arc<Self> {
        Arc::new(Self { store, waiters: Mutex::new(Some(RowWaiters::new())) })
    }

    /// The successor has written a row, or could not.
    pub(super) fn settle(&self, id: u64, error: Option<String>) {
        let waiter = self.waiters.lock().as_mut().and_then(|waiters| waiters.remove(&id));
        if let Some(waiter) = waiter {
            // A send fails only if whoever waited has given up.
            waiter.send(error.map_or(Ok(()), |error| Err(error.into()))).ok();
        }
    }

    /// The successor writes nothing any more. Events that wait for it are refused.
    pub(super) fn abandon(&self) {
        *self.waiters.lock() = None;
    }

    fn report(&self, id: u64, change: OutboxChange) {
        self.store.report(ReportedChange::Event(id, change));
    }
}

impl OutboxStore for SuccessorOutbox {
    fn add(&self, row: OutboxRow) {
        self.report(row.id, OutboxChange::added(row));
    }

    fn add_now(&self, row: OutboxRow) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let (sender, receiver) = oneshot::channel();
        // Without waiters the sender is dropped, which refuses the event.
        if let Some(waiters) = self.waiters.lock().as_mut() {
            waiters.insert(row.id, sender);
            self.report(row.id, OutboxChange::added(row));
        }
        receiver
    }

    fn update(&self, id: u64, progress: &DeliveryProgress) {
        self.report(id, OutboxChange::Update(progress.encode()));
    }

    fn update_now(&self, id: u64, progress: &DeliveryProgress) -> oneshot::Receiver<Result<(), Arc<str>>> {
        self.update(id, progress);
        // Its sender is gone, which notifies it: a delivery that has begun does not wait for another daemon.
        oneshot::channel().1
    }

    fn remove(&self, id: u64) {
        self.report(id, OutboxChange::Remove);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        daemon::handover::wire::ChangedEvent,
        model::{Event, EventKind, RunId, SessionId, WorkspaceId},
        store::StoredHalt,
    };

    fn key(run: &str) -> RunKey {
        RunKey { workspace: WorkspaceId::new("shop").unwrap(), run: RunId::new(run).unwrap() }
    }

    fn halted() -> StoredRun {
        let halt = StoredHalt { reason: Some("budget spent".into()), by: None };
        StoredRun { halt: Some(halt), ..StoredRun::default() }
    }

    #[tokio::test]
    async fn a_halt_waits_until_the_successor_has_stored_it() {
        let (store, mut changes) = SuccessorStore::new("/data".into());
        store.save_now(&key("a"), halted());
        let mut first = store.flushed();
        let mut second = store.flushed();
        assert_eq!(changes.recv().await, Some(ReportedChange::Save(key("a"), halted())));
        assert_eq!(changes.recv().await, Some(ReportedChange::Flush(1)));
        store.acknowledge(1);
        assert!(first.try_recv().is_ok());
        assert!(second.try_recv().is_err(), "it asked later");
        store.acknowledge(2);
        assert!(second.try_recv().is_ok());
    }

    #[tokio::test]
    async fn what_a_successor_did_not_keep_goes_back_to_the_store() {
        let (store, receiver) = SuccessorStore::new("/data".into());
        store.save_now(&key("a"), halted());
        store.end(&key("b"));
        let waits = store.flushed();
        drop(receiver);
        // A store that records what it gets.
        let (own, mut kept) = SuccessorStore::new("/data".into());
        store.give_back(Some(own.clone()));
        store.forget(&key("c"));
        assert_eq!(kept.recv().await, Some(ReportedChange::Save(key("a"), halted())));
        assert_eq!(kept.recv().await, Some(ReportedChange::End(key("b"))));
        assert_eq!(kept.recv().await, Some(ReportedChange::Flush(1)));
        assert_eq!(kept.recv().await, Some(ReportedChange::Forget(key("c"))));
        own.acknowledge(1);
        waits.await.unwrap();
    }

    #[tokio::test]
    async fn only_halts_that_a_successor_may_not_have_stored_come_back_from_it() {
        let (store, _changes) = SuccessorStore::new("/data".into());
        store.save_now(&key("early"), halted());
        drop(store.flushed());
        store.acknowledge(1);
        store.save(&key("turn"), StoredRun::default());
        store.save_now(&key("handover"), halted());
        store.conclude();
        store.save_now(&key("stored"), halted());
        drop(store.flushed());
        store.acknowledge(2);
        store.end(&key("ended"));
        store.save_now(&key("late"), halted());
        let waits = store.flushed();
        let (own, mut kept) = SuccessorStore::new("/data".into());
        store.give_back(Some(own.clone()));
        assert_eq!(kept.recv().await, Some(ReportedChange::Save(key("late"), halted())));
        assert_eq!(kept.recv().await, Some(ReportedChange::Flush(1)));
        own.acknowledge(1);
        waits.await.unwrap();
    }

    #[tokio::test]
    async fn nobody_waits_for_a_successor_that_is_gone() {
        let (store, _changes) = SuccessorStore::new("/data".into());
        let waits = store.flushed();
        store.give_back(None);
        waits.await.unwrap();
        assert!(store.flushed().await.is_err());
    }

    fn row(id: u64) -> OutboxRow {
        let (session, run) = (SessionId::new("s").unwrap(), RunId::new("r").unwrap());
        let event = Arc::new(Event::new(EventKind::RunFailed, session, run));
        let workspace = WorkspaceId::new("shop").unwrap();
        let text = crate::store::encode_event(&event).into();
        OutboxRow { id, workspace, event, text, progress: DeliveryProgress::first() }
    }

    #[tokio::test]
    async fn an_event_is_accepted_once_the_successor_has_it_on_disk() {
        let (store, mut reported) = SuccessorStore::new("/data".into());
        let outbox = SuccessorOutbox::new(store);
        let [mut stored, mut full, left] = [1, 2, 3].map(|id| outbox.add_now(row(id)));
        let Some(ReportedChange::Event(1, change)) = reported.recv().await else { panic!("no event") };
        assert_eq!(ChangedEvent::of(&change).into_change(), Some(OutboxChange::added(row(1))));
        outbox.settle(2, Some("the disk is full".into()));
        assert_eq!(full.try_recv(), Ok(Err("the disk is full".into())));
        assert!(stored.try_recv().is_err(), "nothing is known of it");
        outbox.settle(1, None);
        assert_eq!(stored.try_recv(), Ok(Ok(())));
        outbox.abandon();
        assert!(left.await.is_err());
        assert!(outbox.add_now(row(4)).await.is_err(), "nobody writes it");
    }
}
