//! A halt is answered once it is on disk: to the event that caused it, and to every other.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::{sync::oneshot, time::Instant};

use super::*;
use crate::{
    model::{EventId, Outcome},
    store::{RunStore, StoreStatus, StoredRun},
};
#[cfg(feature = "daemon")]
use crate::{
    orchestrator::SuccessorStores,
    run::Courier,
    store::{DeliveryProgress, OutboxRow, OutboxStore},
};

/// A store whose disk writes when the test says so.
#[derive(Debug, Default)]
struct SlowStore {
    calls: Mutex<Vec<String>>,
    waiters: Mutex<Vec<oneshot::Sender<()>>>,
    asks_others: bool,
}

impl SlowStore {
    fn note(&self, what: &str, key: &RunKey, run: Option<&StoredRun>) {
        let halted = run.is_some_and(|run| run.halt.is_some());
        self.calls.lock().push(format!("{what} {}{}", key.run, if halted { " halted" } else { "" }));
    }

    fn write(&self) {
        for waiter in std::mem::take(&mut *self.waiters.lock()) {
            waiter.send(()).ok();
        }
    }
}

impl RunStore for SlowStore {
    fn save(&self, key: &RunKey, run: StoredRun) {
        self.note("save", key, Some(&run));
    }

    fn save_now(&self, key: &RunKey, run: StoredRun) {
        self.note("save now", key, Some(&run));
    }

    fn forget(&self, key: &RunKey) {
        self.note("forget", key, None);
    }

    fn end(&self, key: &RunKey) {
        self.note("end", key, None);
    }

    fn flushed(&self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiters.lock().push(sender);
        receiver
    }

    fn asks_others(&self) -> bool {
        self.asks_others
    }

    fn status(&self) -> StoreStatus {
        let directory = "/nowhere".into();
        StoreStatus { directory, restored: 0, former_gone: false, unsaved: 0, unsaved_halts: 0, error: None }
    }

    fn close(&self) {
        self.write();
    }
}

async fn halting_orchestrator(store: &Arc<SlowStore>) -> Orchestrator {
    let halting =
        NativeHook::inline("halting", [EventKind::BeforeToolDispatch], |_| Ok(Reply::halt("enough")));
    let store: Arc<dyn RunStore> = Arc::clone(store) as _;
    let orchestrator = Orchestrator::builder().native_hook(halting).start().await.unwrap();
    assert!(orchestrator.0.context.directory.set_store(Some(store)).is_none());
    orchestrator
}

type Answer = tokio::task::JoinHandle<Result<Outcome, DispatchError>>;

fn send(orchestrator: &Orchestrator, event: Event) -> Answer {
    let orchestrator = orchestrator.clone();
    tokio::spawn(async move { orchestrator.dispatch(event).await })
}

async fn verdict(answer: Answer) -> Verdict {
    answer.await.unwrap().unwrap().verdict
}

#[tokio::test(start_paused = true)]
async fn nobody_hears_of_a_halt_before_it_is_on_disk() {
    let store = Arc::default();
    let orchestrator = halting_orchestrator(&store).await;
    let mut event = tool("run");
    event.id = EventId::new("first").ok();
    let repeated = event.clone();
    let mut answers = vec![send(&orchestrator, event)];
    sleep(Duration::from_millis(100)).await;
    // The halted run, and the event that is sent again.
    answers.push(send(&orchestrator, tool("run")));
    answers.push(send(&orchestrator, repeated));
    sleep(Duration::from_millis(100)).await;
    assert!(answers.iter().all(|answer| !answer.is_finished()), "answered before it was on disk");
    let other = orchestrator.dispatch(Event::new(
        EventKind::RunCompleted,
        SessionId::new("session").unwrap(),
        RunId::new("other").unwrap(),
    ));
    assert_eq!(other.await.unwrap().verdict, Verdict::Proceed, "other runs do not wait");
    store.write();
    for answer in answers {
        assert_eq!(verdict(answer).await, Verdict::Halt);
    }
    assert_eq!(*store.calls.lock(), ["save now run halted"]);
    // From now on nothing waits.
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Halt);
}

#[cfg(feature = "cluster")]
#[tokio::test(start_paused = true)]
async fn a_halt_that_was_heard_of_or_restored_is_answered_once_the_others_were_asked() {
    use crate::store::{HaltListener, StoredHalt};

    let before = Arc::new(SlowStore::default());
    let orchestrator = halting_orchestrator(&before).await;
    let directory = &orchestrator.0.context.directory;
    let halted = |run: &str| {
        let workspace = orchestrator.snapshot(None).unwrap().workspace().id.clone();
        let key = RunKey { workspace, run: RunId::new(run).unwrap() };
        HaltListener::halted(&**directory, &key, &StoredHalt { reason: Some("elsewhere".into()), by: None });
    };
    halted("restored");
    assert_eq!(
        orchestrator.dispatch(tool("restored")).await.unwrap().verdict,
        Verdict::Halt,
        "nobody is asked"
    );
    let store = Arc::new(SlowStore { asks_others: true, ..SlowStore::default() });
    directory.set_store(Some(Arc::clone(&store) as _));
    halted("heard");
    let answers = [send(&orchestrator, tool("restored")), send(&orchestrator, tool("heard"))];
    sleep(Duration::from_millis(100)).await;
    assert!(answers.iter().all(|answer| !answer.is_finished()), "answered before the others know it");
    store.write();
    for answer in answers {
        assert_eq!(verdict(answer).await, Verdict::Halt);
    }
    assert_eq!(orchestrator.dispatch(tool("heard")).await.unwrap().verdict, Verdict::Halt, "asked once");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_delays_a_halt_and_takes_it_not_away() {
    let store = Arc::default();
    let orchestrator = halting_orchestrator(&store).await;
    let sent = Instant::now();
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Halt);
    assert_eq!(sent.elapsed().as_secs(), 2);
    let sent = Instant::now();
    assert_eq!(orchestrator.dispatch(tool("run")).await.unwrap().verdict, Verdict::Halt);
    assert_eq!(sent.elapsed().as_secs(), 0, "only the first answers wait");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_ends_or_is_forgotten_leaves_the_store() {
    let store = Arc::default();
    let orchestrator = halting_orchestrator(&store).await;
    let answer = send(&orchestrator, tool("run"));
    sleep(Duration::from_millis(100)).await;
    store.write();
    assert_eq!(verdict(answer).await, Verdict::Halt);
    orchestrator.cancel_run(None, &RunId::new("run").unwrap()).await;
    let answer = send(&orchestrator, tool("again"));
    sleep(Duration::from_millis(100)).await;
    store.write();
    assert_eq!(verdict(answer).await, Verdict::Halt);
    sleep(Duration::from_hours(2)).await;
    assert_eq!(
        *store.calls.lock(),
        ["save now run halted", "forget run", "end run", "save now again halted", "forget again"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_shutdown_writes_what_is_left() {
    let store = Arc::default();
    let orchestrator = halting_orchestrator(&store).await;
    let answer = send(&orchestrator, tool("run"));
    sleep(Duration::from_millis(100)).await;
    orchestrator.shutdown(Duration::ZERO).await;
    assert_eq!(verdict(answer).await, Verdict::Halt);
}

/// A disk that writes nothing.
#[cfg(feature = "daemon")]
#[derive(Debug)]
struct NoDisk;

#[cfg(feature = "daemon")]
impl OutboxStore for NoDisk {
    fn add(&self, _row: OutboxRow) {}

    fn add_now(&self, _row: OutboxRow) -> oneshot::Receiver<Result<(), Arc<str>>> {
        oneshot::channel().1
    }

    fn update(&self, _id: u64, _progress: &DeliveryProgress) {}

    fn update_now(&self, _id: u64, _progress: &DeliveryProgress) -> oneshot::Receiver<Result<(), Arc<str>>> {
        oneshot::channel().1
    }

    fn remove(&self, _id: u64) {}
}

#[cfg(feature = "daemon")]
#[tokio::test]
async fn a_store_passes_from_one_orchestrator_to_another() {
    let data = tempfile::tempdir().unwrap();
    let halting =
        || NativeHook::inline("halting", [EventKind::BeforeToolDispatch], |_| Ok(Reply::halt("enough")));
    let first = Orchestrator::builder().native_hook(halting()).data(data.path()).start().await.unwrap();
    assert_eq!(first.dispatch(tool("stored")).await.unwrap().verdict, Verdict::Halt);
    let second = Orchestrator::builder().native_hook(halting()).start().await.unwrap();
    assert_eq!(second.dispatch(tool("in-memory")).await.unwrap().verdict, Verdict::Halt);
    assert!(second.open_store(data.path().to_owned(), Courier::Own).await.is_err(), "the first one has it");
    let successor = SuccessorStores { runs: Arc::<SlowStore>::default(), outbox: Arc::new(NoDisk) };
    let handed_over = first.hand_store_over(successor, true).await;
    assert_eq!(handed_over.as_deref(), Some(data.path()));
    assert_eq!(first.dispatch(tool("stored")).await.unwrap().verdict, Verdict::Halt);
    second.open_store(data.path().to_owned(), Courier::Own).await.unwrap();
    let halted = |orchestrator: &Orchestrator, run: &str| {
        let workspace = orchestrator.snapshot(None).unwrap().workspace().id.clone();
        orchestrator.0.context.directory.halted(&workspace, &RunId::new(run).unwrap()).is_some()
    };
    assert!(halted(&second, "stored") && halted(&second, "in-memory"));
    second.shutdown(Duration::ZERO).await;
    let third = Orchestrator::builder().native_hook(halting()).data(data.path()).start().await.unwrap();
    assert!(halted(&third, "stored") && halted(&third, "in-memory"));
}
