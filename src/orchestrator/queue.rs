//! The queue of a cluster: a node puts lifecycle events into it that nobody waits for, and a worker gives those to their hooks that
//! it takes out.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::{sync::OwnedSemaphorePermit, time::timeout};

use super::{
    cluster::leaves_traces,
    error::DispatchError,
    handle::{Inner, Orchestrator},
};
use crate::{
    model::{Event, Outcome, RunKey},
    registry::{Plan, Snapshot},
    run::{DueEvent, EventSender, NotAccepted, Outbox, next_decision_id},
    store::{ClusterError, LifecycleQueue, NotPut, QueueOptions, QueueWorker, QueuedEvent},
    telemetry::{QueuePut, QueueReplaced},
};

/// How long the store may take when a node starts. Then events wait in its outbox.
const CONNECT_PATIENCE: Duration = Duration::from_millis(1500);

/// Between two attempts.
const PAUSE: Duration = Duration::from_millis(500);
const OPEN_PAUSE: Duration = Duration::from_millis(50);

/// Connects to the queue. A store that does not answer is tried again. Returns whether it does.
///
/// Returns an error if the queue can never be used.
async fn connected(options: QueueOptions) -> Result<(LifecycleQueue, bool), ClusterError> {
    let queue = LifecycleQueue::connect(options).await?;
    let opened = async {
        loop {
            match queue.open().await {
                Err(error) if !error.is_lasting() => tokio::time::sleep(OPEN_PAUSE).await,
                opened => return opened,
            }
        }
    };
    match timeout(CONNECT_PATIENCE, opened).await {
        Ok(opened) => opened.map(|()| (queue, true)),
        Err(_) => Ok((queue, false)),
    }
}

impl Orchestrator {
    /// Puts lifecycle events that nobody waits for into the queue of a cluster from now on.
    ///
    /// Returns an error if that is impossible.
    pub(crate) async fn queue_lifecycle(&self, options: QueueOptions) -> Result<(), ClusterError> {
        QueuePut::expect_all();
        QueueReplaced::expect();
        let queue = Arc::new(connected(options).await?.0);
        tokio::spawn(LifecycleQueue::watch(Arc::clone(&queue)));
        // Set once: a daemon has one queue.
        drop(self.0.context.ends.queue.set(queue));
        Ok(())
    }

    /// How many milliseconds ago this node has found that what waited in the queue was lost, if it has.
    pub(crate) fn queue_lost_ms(&self) -> Option<u64> {
        self.0.context.ends.queue.get()?.lost_ms()
    }

    /// Gives events of the queue of a cluster to their hooks from now on. The store of this process has to be open, and nothing
    /// may wait in its outbox. Returns whether the store answers.
    ///
    /// Returns an error if that is impossible.
    pub(crate) async fn work(&self, options: QueueOptions) -> Result<bool, ClusterError> {
        QueueReplaced::expect();
        let at_once = options.at_once;
        let (queue, is_up) = connected(options).await?;
        let context = &self.0.context;
        context.close_outbox();
        let worker = QueueWorker::start(queue, |held| {
            let outbox = Outbox::of_queue(held, at_once);
            context.outbox.store(Some(Arc::clone(&outbox)));
            outbox
        });
        self.start_courier();
        // Set once: a daemon has one queue.
        drop(context.ends.worker.set(worker));
        Ok(is_up)
    }
}

impl Inner {
    /// Whether an event goes into the queue: nobody waits for it, and what its hooks do counts for no other event of its run,
    /// which workers do not know.
    pub(super) fn is_queued(&self, event: &Event, plan: &Plan) -> bool {
        self.context.ends.queue.get().is_some() && !leaves_traces(event, plan)
    }

    /// Takes an event in that goes into the queue: it is on disk when it is answered.
    pub(super) async fn put_aside(
        &self,
        sender: EventSender,
        snapshot: &Snapshot,
        key: &RunKey,
        event: Event,
        plan: &Plan,
    ) -> Result<Outcome, DispatchError> {
        let _permit = self.admit(sender, true)?;
        let event = Arc::new(event);
        let not_open = || DispatchError::NotStored("the store is closed".into());
        let outbox = self.context.outbox.load_full().ok_or_else(not_open)?;
        let accepted = outbox.accept_for_queue(snapshot.workspace(), &event, plan.required()).await;
        accepted.map_err(|why| match why {
            NotAccepted::Refused(refusal) => self.refused_by_outbox(refusal),
            NotAccepted::NotStored(why) => DispatchError::NotStored(why),
        })?;
        if event.ends_run()
            && let Some(acknowledged) = self.context.directory.end_unplanned(key)
        {
            // Not acknowledged only if the actor has died, and the run with it.
            acknowledged.await.ok();
        }
        let decision = event.arrival.map_or_else(next_decision_id, |arrival| arrival.decision_id());
        Ok(Outcome::proceed(decision, event.kind, snapshot.version()))
    }

    /// Puts an event of the outbox into the queue. Returns it if there is none, or if the queue takes no event of its size.
    pub(super) fn forward(
        &self,
        outbox: &Arc<Outbox>,
        due: DueEvent,
        place: OwnedSemaphorePermit,
    ) -> Option<(DueEvent, OwnedSemaphorePermit)> {
        let Some(queue) = self.context.ends.queue.get() else { return Some((due, place)) };
        // One that may be in the queue already is a repetition.
        let delivery = due.progress.deliveries.saturating_add(u32::from(!due.is_unsent)).max(1);
        let queued = QueuedEvent {
            workspace: due.workspace.clone(),
            event: Arc::clone(&due.event),
            delivery,
            done: due.progress.done.clone(),
            required: due.progress.required.clone(),
        };
        if let Some(size) = queue.too_large(&queued) {
            warn_of_size(size);
            return Some((due, place));
        }
        let (queue, outbox) = (Arc::clone(queue), Arc::clone(outbox));
        tokio::spawn(async move {
            let _place = place;
            put(&queue, &outbox, &due, &queued).await;
        });
        None
    }
}

async fn put(queue: &LifecycleQueue, outbox: &Outbox, due: &DueEvent, queued: &QueuedEvent) {
    static HAS_FAILED: AtomicBool = AtomicBool::new(false);
    match queue.put(queued).await {
        Ok(is_repeated) => {
            if is_repeated { QueuePut::Repeated } else { QueuePut::Stored }.emit();
            if HAS_FAILED.swap(false, Ordering::Relaxed) {
                tracing::warn!("the queue of the cluster takes events again");
            }
            outbox.forwarded(due.id);
        }
        Err(why) => {
            QueuePut::Failed.emit();
            if !HAS_FAILED.swap(true, Ordering::Relaxed) {
                let why = why.why();
                tracing::error!(why, "events stay in the outbox until the queue of the cluster takes them");
            }
            let is_unsent = due.is_unsent && matches!(why, NotPut::NotSent(_));
            outbox.not_forwarded(due.id, is_unsent, PAUSE);
        }
    }
}

fn warn_of_size(size: usize) {
    static IS_KNOWN: AtomicBool = AtomicBool::new(false);
    if !IS_KNOWN.swap(true, Ordering::Relaxed) {
        tracing::warn!(
            size,
            "the queue of the cluster takes no event of this size, whose hooks run here: raise `max_payload` of its servers"
        );
    }
}
