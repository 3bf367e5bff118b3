//! Where the changes of runs go while another daemon takes over: to that daemon, or back into the store if it does not.

use std::{path::PathBuf, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    runtime::Handle,
    sync::{mpsc, oneshot},
    time::timeout,
};

use crate::{
    model::RunKey,
    store::{RunStore, StoreStatus, StoredRun},
};

/// How long closing waits for the successor.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// A change of a run, or a question whether all before it are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReportedChange {
    Save(RunKey, StoredRun),
    Forget(RunKey),
    End(RunKey),
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
}

/// Where changes go.
#[derive(Debug)]
enum ChangeTarget {
    /// To the successor. Until it accepts connections, they are kept as well.
    Successor { changes: mpsc::UnboundedSender<ReportedChange>, kept: Option<Vec<ReportedChange>> },
    /// To the store of this daemon, because the successor did not begin.
    Store(Arc<dyn RunStore>),
    /// Nowhere: they are in memory only.
    Memory,
}

impl SuccessorStore {
    /// A store that sends its changes to the receiver. The successor opens the store in the directory.
    pub(super) fn new(directory: PathBuf) -> (Arc<Self>, mpsc::UnboundedReceiver<ReportedChange>) {
        let (changes, receiver) = mpsc::unbounded_channel();
        let target = ChangeTarget::Successor { changes, kept: Some(Vec::new()) };
        let state = SuccessorStoreState { target, waiters: Vec::new(), last_question: 0 };
        (Arc::new(Self { state: Mutex::new(state), directory }), receiver)
    }

    /// The successor accepts connections: no change is needed here any more.
    pub(super) fn conclude(&self) {
        if let ChangeTarget::Successor { kept, .. } = &mut self.state.lock().target {
            *kept = None;
        }
    }

    /// The successor has stored everything before a question.
    pub(super) fn acknowledge(&self, question: u64) {
        let mut state = self.state.lock();
        let waiters = std::mem::take(&mut state.waiters);
        let (stored, waiting) = waiters.into_iter().partition(|(number, _)| *number <= question);
        state.waiters = waiting;
        drop(state);
        notify(stored);
    }

    /// The successor did not begin: changes go to this store from now on, and so do those that were sent.
    pub(super) fn give_back(&self, store: Option<Arc<dyn RunStore>>) {
        let mut state = self.state.lock();
        let target = store.clone().map_or(ChangeTarget::Memory, ChangeTarget::Store);
        let former = std::mem::replace(&mut state.target, target);
        let waiters = std::mem::take(&mut state.waiters);
        let Some(store) = store else {
            drop(state);
            return notify(waiters);
        };
        if let ChangeTarget::Successor { kept: Some(kept), .. } = former {
            for change in kept {
                apply(&*store, change);
            }
        }
        let flushed = store.flushed();
        drop(state);
        tokio::spawn(async move {
            // An error means that the store is closed.
            _ = flushed.await;
            notify(waiters);
        });
    }

    /// The successor has ended before this daemon: nobody takes changes any more.
    pub(super) fn abandon(&self) {
        self.give_back(None);
    }

    fn change(&self, change: ReportedChange) {
        match &mut self.state.lock().target {
            ChangeTarget::Successor { changes, kept } => {
                if let Some(kept) = kept {
                    kept.push(change.clone());
                }
                // Fails only if the handover has ended, which says so itself.
                _ = changes.send(change);
            }
            ChangeTarget::Store(store) => apply(&**store, change),
            ChangeTarget::Memory => {}
        }
    }
}

fn apply(store: &dyn RunStore, change: ReportedChange) {
    match change {
        // What was sent may have been answered.
        ReportedChange::Save(key, run) if run.halt.is_some() => store.save_now(&key, run),
        ReportedChange::Save(key, run) => store.save(&key, run),
        ReportedChange::Forget(key) => store.forget(&key),
        ReportedChange::End(key) => store.end(&key),
        ReportedChange::Flush(_) => {}
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
        match &state.target {
            ChangeTarget::Successor { changes, .. } => {
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
        StoreStatus { directory, restored: 0, unsaved, unsaved_halts: unsaved, error: None }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{RunId, WorkspaceId},
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
    async fn nobody_waits_for_a_successor_that_is_gone() {
        let (store, _changes) = SuccessorStore::new("/data".into());
        let waits = store.flushed();
        store.abandon();
        waits.await.unwrap();
        assert!(store.flushed().await.is_err());
    }
}
