//! Adds up what hooks do while somebody watches, and sends it to all who do, once a second. While nobody does, nothing is
//! counted. Events only say that they have ended: they are counted many at a time, off their way.

use std::{
    mem::take,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Notify, watch},
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::live_view::{LiveCounts, Occupancy, WatchedEvent};
use crate::{FinishedEvent, Orchestrator, OutcomeObserver};

/// How often the page gets news.
const PERIOD: Duration = Duration::from_secs(1);

/// How long it is counted on when nobody watches: who loads the page again sees the same numbers.
const LINGER: Duration = Duration::from_mins(10);

/// How many events are counted at a time, at least, unless a period ends before.
const BATCH: usize = 128;

/// How many may wait to be counted.
const MOST_WAITING: usize = 128 * BATCH;

/// What hooks do, for all who watch.
#[derive(Debug, Default)]
pub(in crate::daemon) struct LiveActivity {
    views: Mutex<Option<watch::Sender<Arc<str>>>>,
    is_counting: AtomicBool,
    ended: Mutex<WatchedEvents>,
    /// There is a batch.
    batch: Notify,
}

/// Events that have ended and are not counted.
#[derive(Debug, Default)]
struct WatchedEvents {
    waiting: Vec<WatchedEvent>,
    /// How many invocations and outcomes were too many.
    lost: u64,
}

impl LiveActivity {
    /// The views from now on, as JSON. The first one may be empty.
    pub(in crate::daemon) fn watch(
        self: &Arc<Self>,
        orchestrator: &Orchestrator,
        closing: &CancellationToken,
    ) -> watch::Receiver<Arc<str>> {
        let mut current = self.views.lock();
        if let Some(sender) = &*current {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(Arc::from(""));
        *current = Some(sender.clone());
        *self.ended.lock() = WatchedEvents::default();
        self.is_counting.store(true, Ordering::Relaxed);
        let (activity, orchestrator, closing) = (Arc::clone(self), orchestrator.clone(), closing.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = closing.cancelled() => {}
                () = activity.count(orchestrator, sender) => {}
            }
        });
        receiver
    }

    async fn count(&self, orchestrator: Orchestrator, sender: watch::Sender<Arc<str>>) {
        let mut counts = LiveCounts::default();
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let start = Instant::now();
        let mut watched = start;
        loop {
            let is_tick = tokio::select! {
                biased;
                _ = ticks.tick() => true,
                () = self.batch.notified() => false,
            };
            let WatchedEvents { waiting, lost } = take(&mut *self.ended.lock());
            counts.lose(lost);
            let now = start.elapsed();
            for event in waiting {
                counts.take(&event, now);
            }
            if !is_tick {
                continue;
            }
            if sender.receiver_count() > 0 {
                watched = Instant::now();
                let view = counts.view(start.elapsed(), occupancy(&orchestrator));
                sender.send_replace(serde_json::to_string(&view).unwrap_or_default().into());
            } else if watched.elapsed() > LINGER && self.end(&sender) {
                return;
            }
        }
    }

    /// Forgets the counts, unless somebody watches after all.
    fn end(&self, sender: &watch::Sender<Arc<str>>) -> bool {
        let mut current = self.views.lock();
        let is_unwatched = sender.receiver_count() == 0;
        if is_unwatched {
            *current = None;
            self.is_counting.store(false, Ordering::Relaxed);
        }
        is_unwatched
    }

    fn take(&self, FinishedEvent { run, outcome, .. }: FinishedEvent, is_answered: bool) {
        if !self.is_counting.load(Ordering::Relaxed) {
            return;
        }
        let mut ended = self.ended.lock();
        if ended.waiting.len() == MOST_WAITING {
            ended.lost += outcome.hooks.len() as u64 + u64::from(is_answered);
            return;
        }
        ended.waiting.push(WatchedEvent { run, outcome, is_answered });
        if ended.waiting.len() == BATCH {
            self.batch.notify_one();
        }
    }
}

impl OutcomeObserver for LiveActivity {
    fn event_finished(&self, finished: FinishedEvent) {
        self.take(finished, true);
    }

    fn background_hooks_finished(&self, finished: FinishedEvent) {
        self.take(finished, false);
    }

    fn event_abandoned(&self, finished: FinishedEvent) {
        self.take(finished, false);
    }
}

fn occupancy(orchestrator: &Orchestrator) -> Occupancy {
    let runs = orchestrator.run_count();
    Occupancy {
        pools: orchestrator.pool_occupancies(),
        workers: orchestrator.hook_workers(),
        events_in_flight: orchestrator.in_flight(),
        runs: runs.known,
        active_runs: runs.active,
    }
}
