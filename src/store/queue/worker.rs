//! A worker: takes events out of the queue, says that it is at work on them, and what became of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_nats::jetstream::{
    AckKind, Message,
    consumer::{Consumer, pull},
};
use futures_util::StreamExt;
use parking_lot::Mutex;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, interval, sleep, timeout},
};

use super::{
    EventIntake,
    damage::damage_of,
    held::{Ending, Given, HeldMessage, HeldMessages, Origin},
    message::{Death, QueuedEvent},
    roll_call,
    streams::LifecycleQueue,
};
use crate::{
    store::{RecordError, shared::ClusterError},
    telemetry::QueuedEnded,
};

/// How often an event is taken out of the queue. More means that workers die of it.
const MOST_TAKEN: u32 = 10;

/// After how long the queue gives a message to another worker that this one cannot read, and a later one may.
const LATER: Duration = Duration::from_secs(30);

/// How long the queue is asked for events at a time.
const PULL: Duration = Duration::from_secs(2);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(250);

/// How long the queue is told what became of an event. Then another worker may get it.
const LONGEST_ENDING: Duration = Duration::from_mins(2);

/// How long a worker asks for no events after its connection was lost: a server that was killed has forgotten whom it gave events
/// to, and others first say what has become of theirs.
const RETURN_PAUSE: Duration = Duration::from_millis(1500);

/// For how long a worker may not have asked for events and still know that the consumer is the same. Others that did ask make another
/// one after a pause.
const UNASKED: Duration = Duration::from_millis(100);

/// How long a server may take to confirm an acknowledgement. One that was killed never does.
const ACK_PATIENCE: Duration = Duration::from_millis(500);

/// How long a worker that ends waits until the queue knows what it has done.
const CLOSE_PATIENCE: Duration = Duration::from_secs(5);

/// Takes events out of the queue.
pub(crate) struct QueueWorker {
    queue: Arc<LifecycleQueue>,
    held: Arc<HeldMessages>,
    /// What takes further events, and what says that this one is at work. They end with it.
    pulls: Mutex<JoinSet<()>>,
    _tasks: Mutex<JoinSet<()>>,
}

impl std::fmt::Debug for QueueWorker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueWorker").field("held", &self.held.len()).finish_non_exhaustive()
    }
}

/// What the tasks of a worker share.
#[derive(Clone)]
struct WorkerCore {
    queue: Arc<LifecycleQueue>,
    held: Arc<HeldMessages>,
    intake: Arc<dyn EventIntake>,
    /// The last message that may have been given out before the connection was lost last, by a server that has forgotten it.
    forgotten: Arc<AtomicU64>,
}

impl QueueWorker {
    /// Takes events from now on. `intake` makes what gives them to their hooks.
    pub(crate) fn start<I: EventIntake + 'static>(
        queue: LifecycleQueue,
        intake: impl FnOnce(Arc<HeldMessages>) -> Arc<I>,
    ) -> Self {
        QueuedEnded::expect_all();
        let (held, ended) = HeldMessages::new();
        let (queue, held) = (Arc::new(queue), Arc::new(held));
        let intake = intake(Arc::clone(&held)) as Arc<dyn EventIntake>;
        let core = WorkerCore {
            queue: Arc::clone(&queue),
            held: Arc::clone(&held),
            intake,
            forgotten: Arc::default(),
        };
        let (mut pulls, mut tasks) = (JoinSet::new(), JoinSet::new());
        pulls.spawn(core.clone().pull());
        tasks.spawn(core.clone().say_at_work());
        tasks.spawn(roll_call::answer(Arc::clone(&queue), Arc::clone(&held)));
        tasks.spawn(roll_call::look_for_namesakes(Arc::clone(&queue)));
        tasks.spawn(LifecycleQueue::watch(Arc::clone(&queue)));
        tasks.spawn(core.end_all(ended));
        Self { queue, held, pulls: Mutex::new(pulls), _tasks: Mutex::new(tasks) }
    }

    #[cfg(all(test, feature = "cli"))]
    pub(super) fn losses(&self) -> u64 {
        self.queue.seen().losses()
    }

    /// Takes no further events.
    pub(crate) fn stop_pulling(&self) {
        self.held.take_no_more();
        self.pulls.lock().abort_all();
    }

    /// Waits until the queue knows what has become of the events that have ended, and gives the others back to it.
    pub(crate) async fn close(&self) {
        self.stop_pulling();
        let begun = Instant::now();
        while self.held.are_ending() && begun.elapsed() < CLOSE_PATIENCE {
            sleep(Duration::from_millis(5)).await;
        }
        let left = self.held.ackers();
        for acker in &left {
            // One that cannot be given back is given out again after a while.
            drop(timeout(PAUSE, acker.ack_with(AckKind::Nak(None))).await);
            QueuedEnded::Returned.emit();
        }
        if !left.is_empty() {
            tracing::info!(events = left.len(), "events are given back to the queue");
        }
        drop(timeout(CLOSE_PATIENCE, self.queue.client().flush()).await);
    }
}

impl WorkerCore {
    async fn pull(self) {
        let mut has_failed = false;
        loop {
            let pulled = self.pull_from_consumer(&mut has_failed).await;
            let Err(error) = pulled;
            if !std::mem::replace(&mut has_failed, true) {
                tracing::error!(%error, "no events of the queue come until the store of the cluster answers");
            }
            sleep(PAUSE).await;
        }
    }

    async fn pull_from_consumer(
        &self,
        has_failed: &mut bool,
    ) -> Result<std::convert::Infallible, ClusterError> {
        self.queue.open().await?;
        let mut consumer = self.queue.consumer().await?;
        let has_failed_before = std::mem::take(has_failed);
        if has_failed_before {
            tracing::warn!("events of the queue come again");
        }
        // A start of this worker is none of a server, as far as is known.
        let mut known = self.may_forget(&consumer);
        if has_failed_before {
            self.return_to_queue().await?;
        }
        let mut asked = Instant::now();
        loop {
            let free = self.free().await;
            if asked.elapsed() > UNASKED {
                consumer = self.queue.consumer().await?;
            }
            let now = self.may_forget(&consumer);
            if std::mem::replace(&mut known, now) != now {
                self.return_to_queue().await?;
            }
            self.pull_some(&consumer, free).await?;
            asked = Instant::now();
        }
    }

    /// What is another after the queue may have forgotten what it has given out: the connection, what is known to be lost, and when the
    /// consumer was made.
    fn may_forget(&self, consumer: &Consumer<pull::Config>) -> (u64, u64, i128) {
        let made = consumer.cached_info().created.unix_timestamp_nanos();
        (self.queue.connections(), self.queue.seen().losses(), made)
    }

    /// What is in the queue may have been given out before.
    async fn return_to_queue(&self) -> Result<(), ClusterError> {
        sleep(RETURN_PAUSE).await;
        let last = self.queue.queue_stream().await?.cached_info().state.last_sequence;
        self.forgotten.fetch_max(last, Ordering::Relaxed);
        Ok(())
    }

    /// Waits until there is room for events. Returns for how many.
    async fn free(&self) -> usize {
        loop {
            let fewer = self.held.fewer.notified();
            let mut fewer = std::pin::pin!(fewer);
            fewer.as_mut().enable();
            let free = self.queue.options().at_once.saturating_sub(self.held.len());
            if free > 0 {
                return free;
            }
            fewer.await;
        }
    }

    async fn pull_some(&self, consumer: &Consumer<pull::Config>, free: usize) -> Result<(), ClusterError> {
        let unreachable = |error: &dyn std::fmt::Display| ClusterError::Unreachable(error.to_string());
        let batch = consumer.batch().max_messages(free).expires(PULL).messages();
        let mut messages = batch.await.map_err(|error| unreachable(&error))?;
        while let Some(message) = messages.next().await {
            self.take(message.map_err(|error| unreachable(&error))?).await;
        }
        Ok(())
    }

    async fn take(&self, message: Message) {
        let Ok(info) = message.info() else { return };
        let id = info.stream_sequence;
        let taken = u32::try_from(info.delivered).unwrap_or(u32::MAX);
        let put_at = info.published.unix_timestamp_nanos();
        let origin = Origin { put_at, losses: self.queue.seen().losses() };
        let payload = message.payload.clone();
        let (_, acker) = message.split();
        let held = HeldMessage::new(acker, payload.clone(), taken, (origin, self.queue.connections()));
        match self.held.hold(id, held.clone()) {
            Given::New => {}
            Given::Held => return,
            Given::Ended => {
                // What is not confirmed is given out again.
                self.acknowledge(id, &held).await;
                return;
            }
            Given::NumberAgain => {
                self.queue.given_again().await;
                held.give_back(PAUSE).await;
                return;
            }
            Given::Later => {
                held.give_back(LATER).await;
                return;
            }
        }
        // One that a server has given out for the first time, as it says, but may have given out before it was killed.
        let is_repeated = taken == 1 && id <= self.forgotten.load(Ordering::Relaxed);
        let taken_before = taken.saturating_add(u32::from(is_repeated));
        if taken > MOST_TAKEN {
            let error = "the worker that had it died, each time".to_owned();
            return self.bury(id, Death { reason: "interrupted", error: Some(error), taken });
        }
        match QueuedEvent::decode(&payload, id, taken_before) {
            Ok(row) => self.intake.take_in(row),
            Err(error @ RecordError::Version(_)) if taken < MOST_TAKEN => {
                tracing::warn!(id, %error, "an event of the queue is left to a later hookyard");
                if let Some(held) = self.held.get(id) {
                    held.give_back(LATER).await;
                }
                QueuedEnded::Returned.emit();
                self.held.release(id);
            }
            Err(error @ RecordError::Version(_)) => {
                self.bury(id, Death { reason: "newer", error: Some(error.to_string()), taken });
            }
            Err(RecordError::Damaged) => {
                self.bury(id, Death { reason: "unreadable", error: Some(damage_of(&payload)), taken });
            }
        }
    }

    fn bury(&self, id: u64, death: Death) {
        tracing::warn!(id, reason = death.reason, "a message of the queue is a dead letter");
        self.held.end(id, Ending::Dead(death));
    }

    /// Says that this worker is at work, so that no other one gets its events.
    async fn say_at_work(self) {
        let mut ticks = interval((self.queue.options().silence / 4).max(PAUSE));
        loop {
            ticks.tick().await;
            for acker in self.held.ackers() {
                // Another worker may get an event of which that cannot be said.
                acker.ack_with(AckKind::Progress).await.ok();
            }
        }
    }

    async fn end_all(self, mut ended: mpsc::UnboundedReceiver<(u64, Ending)>) {
        let mut endings = JoinSet::new();
        loop {
            tokio::select! {
                next = ended.recv() => {
                    let Some((id, ending)) = next else { return };
                    endings.spawn(self.clone().end(id, ending));
                }
                Some(_) = endings.join_next() => {}
            }
        }
    }

    /// Tells the queue how a message has ended.
    async fn end(self, id: u64, ending: Ending) {
        let begun = Instant::now();
        let mut is_buried = ending == Ending::Done;
        let mut is_told = false;
        while begun.elapsed() < LONGEST_ENDING
            && let Some(held) = self.held.get(id)
        {
            if let (Ending::Dead(death), false) = (&ending, is_buried) {
                match self.queue.bury(id, &held.payload, death).await {
                    Ok(_) => is_buried = true,
                    Err(why) if !std::mem::replace(&mut is_told, true) => {
                        tracing::warn!(
                            id,
                            why = why.why(),
                            "a dead letter cannot be put away, and is tried again"
                        );
                    }
                    Err(_) => {}
                }
            }
            if is_buried && self.acknowledge(id, &held).await {
                self.held.ended(id, held.origin);
                let ended =
                    if ending == Ending::Done { QueuedEnded::Acknowledged } else { QueuedEnded::Dead };
                ended.emit();
                break;
            }
            sleep(PAUSE).await;
        }
        self.held.release(id);
        self.intake.settled(id);
    }

    /// Takes a message out of the queue that has ended. Returns whether the queue confirms it.
    async fn acknowledge(&self, id: u64, held: &HeldMessage) -> bool {
        // A server that was killed may not know whom it has given the message to, and confirm an acknowledgement without effect.
        if held.connection == self.queue.connections() && self.is_of_queue(held) && acknowledged(held).await {
            return true;
        }
        self.queue.remove(id, held.origin.put_at).await
            || (self.is_of_queue(held) && acknowledged(held).await)
    }

    /// Whether a message has its number in the queue for sure: one of a former queue is acknowledged as the one that has it now.
    fn is_of_queue(&self, held: &HeldMessage) -> bool {
        held.origin.losses == self.queue.seen().losses()
    }
}

async fn acknowledged(held: &HeldMessage) -> bool {
    matches!(timeout(ACK_PATIENCE, held.acker.double_ack()).await, Ok(Ok(())))
}
