//! Runs one load after the other, shows how each goes on, and measures the generator itself.

use std::{sync::Arc, time::Duration};

use super::{
    super::screen::Screen,
    load::{LoadGenerator, LoadResult, LoadSubject},
    progress::LoadProgress,
    report::OverheadReport,
    scenario::LoadPlan,
    tally::SharedTally,
    target::TargetGone,
};

/// How long the load on nothing is at most.
const LONGEST_OVERHEAD: Duration = Duration::from_secs(1);

/// What is not counted of it.
const OVERHEAD_WARM_UP: Duration = Duration::from_millis(200);

/// Runs loads.
#[derive(Debug)]
pub(super) struct LoadRunner<'s> {
    pub(super) generator: LoadGenerator,
    pub(super) screen: &'s Screen,
}

impl LoadRunner<'_> {
    /// Runs a load; `what` says on a terminal which it is.
    ///
    /// Returns an error if its target cannot be reached.
    pub(super) async fn run(
        &self,
        subject: &LoadSubject,
        plan: &LoadPlan,
        what: &str,
    ) -> Result<LoadResult, TargetGone> {
        let tally = Arc::new(SharedTally::new(usize::try_from(plan.rounds).unwrap_or(1)));
        let progress = LoadProgress::show(&tally, plan.measured_to(), what, self.screen);
        let result = self.generator.run(subject, plan, tally).await;
        drop(progress);
        result
    }

    /// Whether somebody wants it to end.
    pub(super) fn is_interrupted(&self) -> bool {
        self.generator.interrupt.is_cancelled()
    }

    /// The same load on nothing, for a short time; nothing if there is no time for it any more.
    pub(super) async fn overhead(&self, subject: &LoadSubject, plan: &LoadPlan) -> Option<OverheadReport> {
        if self.is_interrupted() {
            return None;
        }
        let target = Arc::new(subject.target.null());
        let subject = LoadSubject { target, events: Arc::clone(&subject.events) };
        let plan = LoadPlan {
            ramp: Duration::ZERO,
            warm_up: plan.warm_up.min(OVERHEAD_WARM_UP),
            duration: plan.duration.min(LONGEST_OVERHEAD),
            rounds: 1,
            ..plan.clone()
        };
        let result = self.run(&subject, &plan, "against nothing").await.ok()?;
        OverheadReport::of(&result)
    }
}
