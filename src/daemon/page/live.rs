//! Adds up what hooks do while somebody watches, and sends it to all who do, once a second. While nobody does, nothing is
//! counted.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::watch,
    time::{Instant, MissedTickBehavior, interval},
};
use tokio_util::sync::CancellationToken;

use super::live_view::{LiveCounts, Occupancy};
use crate::Orchestrator;

/// How often the page gets news.
const PERIOD: Duration = Duration::from_secs(1);

/// How long it is counted on when nobody watches: who loads the page again sees the same numbers.
const LINGER: Duration = Duration::from_mins(10);

/// What hooks do, for all who watch.
#[derive(Debug, Default)]
pub(in crate::daemon) struct LiveActivity(Mutex<Option<watch::Sender<Arc<str>>>>);

impl LiveActivity {
    /// The views from now on, as JSON. The first one may be empty.
    pub(in crate::daemon) fn watch(
        self: &Arc<Self>,
        orchestrator: &Orchestrator,
        closing: &CancellationToken,
    ) -> watch::Receiver<Arc<str>> {
        let mut current = self.0.lock();
        if let Some(sender) = &*current {
            return sender.subscribe();
        }
        let (sender, receiver) = watch::channel(Arc::from(""));
        *current = Some(sender.clone());
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
        let mut notices = orchestrator.subscribe();
        let mut counts = LiveCounts::default();
        let mut ticks = interval(PERIOD);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let start = Instant::now();
        let mut watched = start;
        loop {
            tokio::select! {
                biased;
                _ = ticks.tick() => {
                    if sender.receiver_count() > 0 {
                        watched = Instant::now();
                        let view = counts.view(start.elapsed(), occupancy(&orchestrator));
                        sender.send_replace(serde_json::to_string(&view).unwrap_or_default().into());
                    } else if watched.elapsed() > LINGER && self.end(&sender) {
                        return;
                    }
                }
                notice = notices.next() => match notice {
                    Some(Ok(notice)) => counts.take(&notice, start.elapsed()),
                    Some(Err(lost)) => counts.lose(lost.count),
                    None => return,
                },
            }
        }
    }

    /// Forgets the counts, unless somebody watches after all.
    fn end(&self, sender: &watch::Sender<Arc<str>>) -> bool {
        let mut current = self.0.lock();
        let is_unwatched = sender.receiver_count() == 0;
        if is_unwatched {
            *current = None;
        }
        is_unwatched
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
