//! When events are tried again, and when no more, on a paused clock.

use tokio::time::sleep;

use super::*;
use crate::model::{Ended, EventKind, HandlerKind, HookReport, Redactor, RunId, SessionId};

/// A store whose disk writes at once.
#[derive(Debug, Default)]
struct FastStore {
    rows: Mutex<Vec<(u64, u32)>>,
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

async fn accepted(outbox: &Arc<Outbox>, run: &str) -> CourseTicket {
    outbox.accept(&shop(), &event(run), false).unwrap().stored().await.unwrap().sent()
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
    assert_eq!(outbox.accept(&shop(), &event("one"), false).unwrap_err(), OutboxFull);
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
