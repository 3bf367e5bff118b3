//! A target for tests that answers after a time of their own, or not while it is stalled, by the clock of tokio.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::{Instant, sleep, sleep_until};

use super::super::{
    answer::{AnswerResult, BenchAnswer},
    events::BenchEvent,
    target::TargetGone,
};
use crate::model::Verdict;

/// What it does from when on, in order.
#[derive(Debug, Clone)]
pub(in super::super) struct ScriptedTarget {
    begun: Instant,
    /// How long an answer takes.
    service: Duration,
    /// When it does nothing, since it was made.
    stall: Option<(Duration, Duration)>,
    /// After how many events it is gone.
    dies_after: Option<u64>,
    sent: Arc<AtomicU64>,
}

impl ScriptedTarget {
    pub(in super::super) fn new(service: Duration) -> Self {
        Self { begun: Instant::now(), service, stall: None, dies_after: None, sent: Arc::default() }
    }

    /// It does nothing from then to then, since it was made.
    pub(in super::super) fn stall(self, from: Duration, to: Duration) -> Self {
        Self { stall: Some((from, to)), ..self }
    }

    /// It is gone after so many events.
    pub(in super::super) fn dies_after(self, events: u64) -> Self {
        Self { dies_after: Some(events), ..self }
    }

    pub(in super::super) async fn send(&self, _: &BenchEvent) -> Result<BenchAnswer, TargetGone> {
        let number = self.sent.fetch_add(1, Ordering::Relaxed);
        if self.dies_after.is_some_and(|last| number >= last) {
            return Err(TargetGone("it died".to_owned()));
        }
        if let Some((from, to)) = self.stall
            && (from..to).contains(&self.begun.elapsed())
        {
            sleep_until(self.begun + to).await;
        }
        sleep(self.service).await;
        Ok(BenchAnswer::of(AnswerResult::Outcome(Some(Verdict::Proceed))))
    }
}
