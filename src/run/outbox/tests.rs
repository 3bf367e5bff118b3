//! When events are tried again, and when no more, on a paused clock.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::{sync::oneshot, time::sleep};

use super::*;
use crate::model::{Ended, EventKind, HandlerKind, HookReport, Redactor, RunId, SessionId};

/// Says that a row is on disk.
type WriteSender = oneshot::Sender<Result<(), Arc<str>>>;

/// A store whose disk writes at once.
#[derive(Debug, Default)]
struct FastStore {
    rows: Mutex<Vec<(u64, u32)>>,
    /// Whether nobody hears of what is written at once.
    hangs: AtomicBool,
    unheard: Mutex<Vec<WriteSender>>,
}

impl FastStore {
    fn written(&self, id: u64, tries: u32) -> oneshot::Receiver<Result<(), Arc<str>>> {
        let mut rows = self.rows.lock();
        rows.retain(|(known, _)| *known != id);
        rows.push((id, tries));
        let (sender, receiver) = oneshot::channel();
        sender.send(Ok(())).unwrap();
        receiver
    }
}

impl OutboxStore for FastStore {
    fn add(&self, row: OutboxRow) {
        drop(self.written(row.id, row.progress.tries));
    }

    fn add_now(&self, row: OutboxRow) -> oneshot::Receiver<Result<(), Arc<str>>> {
        self.written(row.id, row.progress.tries)
    }

    fn update(&self, id: u64, progress: &DeliveryProgress) {
        drop(self.written(id, progress.tries));
    }

    fn update_now(&self, id: u64, progress: &DeliveryProgress) -> oneshot::Receiver<Result<(), Arc<str>>> {
        if self.hangs.load(Ordering::SeqCst) {
            let (sender, receiver) = oneshot::channel();
            self.unheard.lock().push(sender);
            return receiver;
        }
        self.written(id, progress.tries)
    }

    fn remove(&self, id: u64) {
        self.rows.lock().retain(|(known, _)| *known != id);
    }
}

fn outbox(dead: usize) -> (Arc<Outbox>, Arc<FastStore>) {
    let store = Arc::new(FastStore::default());
    let limits = OutboxLimits { size: 1000, dead, dead_size: 1000 };
    (Outbox::new(Arc::clone(&store) as Arc<dyn OutboxStore>, limits, StoredOutbox::default()), store)
}

fn event(run: &str) -> Arc<Event> {
    let session = SessionId::new("s").unwrap();
    Arc::new(Event::new(EventKind::RunCompleted, session, RunId::new(run).unwrap()))
}

fn shop() -> WorkspaceId {
    WorkspaceId::new("shop").unwrap()
}

fn workspace() -> Workspace {
    Workspace::new(shop(), "/srv/shop")
}

async fn accepted(outbox: &Arc<Outbox>, run: &str) -> CourseTicket {
    outbox.accept(&workspace(), &event(run), Vec::new(), false).unwrap().stored().await.unwrap().sent()
}

/// A hook of the event ended so.
fn ended(ticket: CourseTicket, how: Ended) {
    let report = HookReport::new(HookName::new("note").unwrap(), HandlerKind::Http, how);
    ticket.report(&[report], &Redactor::default(), false);
}

async fn again(outbox: &Arc<Outbox>) -> CourseTicket {
    let place = outbox.place().await.unwrap();
    let due = outbox.next().await.unwrap();
    outbox.begin(&due, place).await.unwrap().1.sent()
}

#[tokio::test(start_paused = true)]
async fn what_fails_five_times_is_a_dead_letter() {
    let (outbox, store) = outbox(10);
    ended(accepted(&outbox, "one").await, Ended::TimedOut);
    for pause in [1, 4, 16, 64] {
        let begun = Instant::now();
        let ticket = again(&outbox).await;
        assert_eq!(begun.elapsed().as_secs(), pause);
        ended(ticket, Ended::Failed);
    }
    let counts = outbox.counts();
    assert_eq!((counts.under_way, counts.waiting, counts.dead, counts.oldest), (0, 0, 1, None));
    assert_eq!(*store.rows.lock(), [(1, 5)]);
    assert_eq!(outbox.retry(&[1, 2]), [1]);
    ended(again(&outbox).await, Ended::Completed);
    assert!(store.rows.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_delivery_without_a_place_counts_as_no_try() {
    let (outbox, store) = outbox(10);
    ended(accepted(&outbox, "one").await, Ended::Shed);
    for pause in [1, 4, 16, 64, 64, 64, 64] {
        let begun = Instant::now();
        assert_eq!(*store.rows.lock(), [(1, 0)]);
        let ticket = again(&outbox).await;
        assert_eq!(begun.elapsed().as_secs(), pause);
        assert_eq!(*store.rows.lock(), [(1, 1)], "while it is under way: the process may end");
        ended(ticket, Ended::Shed);
    }
    assert!(progress(&outbox).error.unwrap().contains("hook `note`"));
    for tries in 1..5 {
        ended(again(&outbox).await, Ended::Failed);
        assert_eq!(progress(&outbox).tries, tries);
    }
    ended(again(&outbox).await, Ended::Failed);
    assert_eq!(outbox.counts().dead, 1);
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_fails_beside_one_without_a_place_counts_as_a_try() {
    let (outbox, _) = outbox(10);
    let report = |name, how| HookReport::new(HookName::new(name).unwrap(), HandlerKind::Http, how);
    for order in [[Ended::Shed, Ended::Failed], [Ended::Failed, Ended::Shed]] {
        let ticket = accepted(&outbox, "one").await;
        let reports: Vec<_> =
            ["a", "b"].into_iter().zip(order).map(|(name, how)| report(name, how)).collect();
        ticket.report(&reports, &Redactor::default(), false);
        assert_eq!(progress(&outbox).tries, 1);
        ended(again(&outbox).await, Ended::Completed);
    }
    let ticket = accepted(&outbox, "one").await;
    let other = ticket.for_course();
    ended(ticket, Ended::Shed);
    drop(other);
    assert_eq!(progress(&outbox).tries, 1, "the other course was interrupted");
}

#[tokio::test(start_paused = true)]
async fn a_missing_required_hook_fails_like_any_other() {
    let (outbox, store) = outbox(10);
    drop(accepted(&outbox, "one").await);
    let guard = HookName::new("guard").unwrap();
    for _ in 0..4 {
        let ticket = again(&outbox).await;
        ticket.miss(guard.clone(), "it is not in force");
        ended(ticket, Ended::Completed);
    }
    let letter = progress(&outbox);
    assert_eq!(letter.dead.map(|dead| dead.reason), Some(DeadLetterReason::Tries));
    assert_eq!(letter.error.as_deref(), Some("it is not in force"));
    assert_eq!((&*letter.done, &*letter.unfinished), (&[HookName::new("note").unwrap()][..], &[guard][..]));
    outbox.retry(&[1]);
    for _ in 0..5 {
        let place = outbox.place().await.unwrap();
        let due = outbox.next().await.unwrap();
        outbox.undeliverable(&due, "it is still missing");
        drop(place);
    }
    let letter = progress(&outbox);
    assert_eq!((letter.dead.is_some(), letter.error.as_deref()), (true, Some("it is still missing")));
    assert_eq!(store.rows.lock().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_succeed_is_not_tried_again() {
    let (outbox, store) = outbox(10);
    for how in [Ended::InvalidOutput, Ended::OutputTooLarge, Ended::Untrusted, Ended::Completed] {
        ended(accepted(&outbox, "one").await, how);
        assert!(store.rows.lock().is_empty(), "{how}");
    }
    accepted(&outbox, "one").await.cancel();
    assert!(store.rows.lock().is_empty(), "nobody wants it");
    drop(accepted(&outbox, "two").await);
    assert_eq!(outbox.counts().waiting, 1, "its course was interrupted");
    outbox.close();
    drop(accepted(&outbox, "three").await);
    assert_eq!(outbox.counts().waiting, 1, "what a shutdown interrupts stays for the next start");
    assert_eq!(store.rows.lock().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn there_is_room_for_so_much_and_no_more() {
    let (outbox, store) = outbox(1);
    let size = encode_event(&event("one")).len();
    let mut tickets = Vec::new();
    for _ in 0..1000 / size {
        tickets.push(accepted(&outbox, "one").await);
    }
    assert_eq!(
        outbox.accept(&workspace(), &event("one"), Vec::new(), false).unwrap_err(),
        OutboxRefusal::Full
    );
    tickets.into_iter().for_each(CourseTicket::cancel);
    for run in ["one", "two"] {
        ended(accepted(&outbox, run).await, Ended::Failed);
        let place = outbox.place().await.unwrap();
        let due = outbox.next().await.unwrap();
        drop(place);
        outbox.no_workspace(due.id);
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(outbox.counts().dead, 1, "the older one was dropped");
    assert_eq!(store.rows.lock().len(), 1);
}

/// The outbox as the next start has it after the process was killed.
fn killed(store: &FastStore, progress: DeliveryProgress) -> Arc<Outbox> {
    let (event, next) = (event("one"), Arc::new(FastStore::default()));
    next.rows.lock().clone_from(&store.rows.lock());
    let text = encode_event(&event).into();
    let rows = vec![OutboxRow { id: 1, workspace: shop(), event, text, progress }];
    let limits = OutboxLimits { size: 1000, dead: 10, dead_size: 1000 };
    Outbox::new(next, limits, StoredOutbox { rows, last_id: 1 })
}

fn progress(outbox: &Outbox) -> DeliveryProgress {
    outbox.list(1, |_| true).0[0].1.progress.clone()
}

#[tokio::test(start_paused = true)]
async fn an_event_whose_hook_is_not_trusted_any_more_is_a_dead_letter() {
    let (outbox, store) = outbox(10);
    drop(accepted(&outbox, "one").await);
    ended(again(&outbox).await, Ended::Untrusted);
    let letter = progress(&outbox);
    assert_eq!(letter.dead.map(|dead| dead.reason), Some(DeadLetterReason::Untrusted));
    assert!(letter.error.unwrap().contains("hook `note`"));
    assert_eq!(store.rows.lock().len(), 1);
    assert_eq!(outbox.retry(&[1, 1, 1]), [1]);
    ended(again(&outbox).await, Ended::Completed);
    assert!(store.rows.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_ends_the_process_five_times_is_a_dead_letter() {
    let (mut outbox, store) = outbox(10);
    std::mem::forget(accepted(&outbox, "one").await);
    for _ in 0..4 {
        outbox = killed(&store, progress(&outbox));
        std::mem::forget(again(&outbox).await);
    }
    assert_eq!(progress(&outbox).tries, 5);
    let outbox = killed(&store, progress(&outbox));
    let place = outbox.place().await.unwrap();
    let due = outbox.next().await.unwrap();
    assert!(outbox.begin(&due, place).await.is_none());
    let letter = progress(&outbox);
    assert_eq!(letter.dead.map(|dead| dead.reason), Some(DeadLetterReason::Interrupted));
    assert_eq!((letter.tries, letter.deliveries), (5, 5));
    assert_eq!(outbox.discard(&[1, 1]), [1]);
}

#[tokio::test(start_paused = true)]
async fn orderly_stops_use_up_no_tries() {
    let (mut outbox, store) = outbox(10);
    let mut ticket = accepted(&outbox, "one").await;
    for delivery in 1..10 {
        outbox.close();
        drop(ticket);
        let known = progress(&outbox);
        assert_eq!((known.tries, known.deliveries), (0, delivery));
        outbox = killed(&store, known);
        ticket = again(&outbox).await;
    }
    ended(ticket, Ended::Failed);
    assert_eq!(outbox.counts().waiting, 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_is_taken_back_while_its_delivery_is_written_goes_to_no_hook() {
    let (outbox, store) = outbox(10);
    for retire in ["cancelled", "removed"] {
        drop(accepted(&outbox, "one").await);
        let place = outbox.place().await.unwrap();
        let due = outbox.next().await.unwrap();
        store.hangs.store(true, Ordering::SeqCst);
        let courier = Arc::clone(&outbox);
        let begun = tokio::spawn(async move { courier.begin(&due, place).await.is_some() });
        sleep(Duration::from_millis(1)).await;
        assert_eq!(progress(&outbox).deliveries, 2, "it is being written that it begins");
        match retire {
            "cancelled" => assert_eq!(outbox.cancel(|_| true), 1),
            _ => outbox.workspace_removed(&shop()),
        }
        assert!(!begun.await.unwrap(), "{retire}");
        store.hangs.store(false, Ordering::SeqCst);
    }
    let counts = outbox.counts();
    assert_eq!((counts.under_way, counts.waiting, counts.dead), (0, 0, 1));
    assert_eq!(store.rows.lock().len(), 1, "the dead letter");
    // An event that has reached its run is the actor's to cancel.
    outbox.discard(&outbox.dead_letters());
    drop(accepted(&outbox, "two").await);
    let ticket = again(&outbox).await;
    assert_eq!(outbox.cancel(|_| true), 0);
    ticket.cancel();
    assert!(store.rows.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_hook_that_had_its_turn_for_an_event_may_run_again_until_it_has_ended() {
    let (outbox, store) = outbox(10);
    let note = HookName::new("note").unwrap();
    let ticket = accepted(&outbox, "one").await;
    ticket.begun(vec![note.clone()]);
    std::mem::forget(ticket);
    let outbox = killed(&store, progress(&outbox));
    let ticket = again(&outbox).await;
    assert_eq!(ticket.unfinished(), [note]);
    let report = |name, how| HookReport::new(HookName::new(name).unwrap(), HandlerKind::Http, how);
    let reports = [report("note", Ended::Completed), report("other", Ended::Failed)];
    ticket.report(&reports, &Redactor::default(), false);
    assert_eq!(again(&outbox).await.unfinished(), [HookName::new("other").unwrap()]);
}

#[cfg(feature = "daemon")]
mod handed_over {
    use super::*;
    use crate::store::OutboxChange;

    fn row(id: u64, run: &str) -> OutboxRow {
        let event = event(run);
        let text = encode_event(&event).into();
        OutboxRow { id, workspace: shop(), event, text, progress: DeliveryProgress::first() }
    }

    fn limits() -> OutboxLimits {
        OutboxLimits { size: 100_000, dead: 10, dead_size: 1000 }
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_predecessor_delivers_is_held_until_it_has_ended() {
        let stored = StoredOutbox { rows: vec![row(1, "a"), row(2, "b"), row(3, "c")], last_id: 3 };
        let outbox = Outbox::held(Arc::new(FastStore::default()), limits(), stored);
        let is_nothing_due = async || timeout(Duration::from_hours(1), outbox.next()).await.is_err();
        assert!(is_nothing_due().await);
        assert_eq!(outbox.counts().under_way, 3);
        assert!(outbox.retry(&[1]).is_empty() && outbox.discard(&[1]).is_empty());
        let added = outbox.adopt(4, OutboxChange::added(row(4, "d"))).unwrap().unwrap();
        assert_eq!(added.await, Ok(Ok(())));
        let taken = outbox.adopt(4, OutboxChange::added(row(4, "e"))).unwrap().unwrap();
        assert!(taken.await.unwrap().is_err(), "its id is taken");
        assert!(outbox.adopt(1, OutboxChange::Remove).unwrap().is_none());
        let dead = DeadLetter { reason: DeadLetterReason::Tries, at: SystemTime::now() };
        let progress = DeliveryProgress { dead: Some(dead), tries: 5, ..DeliveryProgress::first() };
        outbox.adopt(2, OutboxChange::Update(progress.encode())).unwrap();
        assert!(outbox.adopt(3, OutboxChange::Update("{}".to_owned())).is_err());
        outbox.leave_ids();
        let own = outbox.accept(&workspace(), &event("own"), Vec::new(), false).unwrap();
        assert!(is_nothing_due().await);
        outbox.release();
        let mut due = vec![outbox.next().await.unwrap().id, outbox.next().await.unwrap().id];
        due.sort_unstable();
        assert_eq!(due, [3, 4], "each once");
        assert_eq!((outbox.counts().dead, outbox.counts().waiting), (1, 0));
        let ids: Vec<u64> = outbox.list(10, |_| true).0.into_iter().map(|(id, _)| id).collect();
        assert_eq!(ids, [2, 3, 4, 5 + (1 << 16)]);
        drop(own);
    }

    #[tokio::test(start_paused = true)]
    async fn what_a_successor_did_not_keep_is_delivered_by_its_predecessor() {
        let (outbox, _) = outbox(10);
        let store = |of: &FastStore| of.rows.lock().iter().map(|(id, _)| *id).collect::<Vec<_>>();
        let ended = outbox.accept(&workspace(), &event("a"), Vec::new(), false).unwrap();
        let under_way = outbox.accept(&workspace(), &event("b"), Vec::new(), false).unwrap();
        let successor = Arc::new(FastStore::default());
        outbox.hand_over(Arc::clone(&successor) as Arc<dyn OutboxStore>);
        let late = outbox.accept(&workspace(), &event("c"), Vec::new(), false).unwrap();
        ended.stored().await.unwrap().cancel();
        assert_eq!(store(&successor), [3], "it has the change");
        assert!(outbox.next().await.is_none(), "the successor delivers again");
        // The successor has accepted one itself.
        let rows = vec![row(1, "a"), row(2, "b"), row(1 << 20, "d")];
        let again = Arc::new(FastStore::default());
        outbox.take_back(Arc::clone(&again) as Arc<dyn OutboxStore>, StoredOutbox { rows, last_id: 1 << 20 });
        assert_eq!(store(&again), [2, 3], "brought up to date");
        assert_eq!(outbox.next().await.unwrap().id, 1 << 20);
        drop((under_way, late));
    }
}
