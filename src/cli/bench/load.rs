//! Puts a load on a target: senders, each with a door of its own, in a closed or an open loop.

use std::{
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    arrivals::{ArrivalClock, ArrivalQueue},
    events::EventSource,
    scenario::{LoadMode, LoadPlan},
    schedule::ArrivalSchedule,
    tally::{CountedEvent, LoadTally, SharedTally, StartTime},
    target::{BenchTarget, Door, TargetGone, TargetUsage},
};

/// What is due at the end may still be sent so long.
const GRACE: Duration = Duration::from_millis(100);

/// How long events that are under way may take after an interruption.
const INTERRUPTED_GRACE: Duration = Duration::from_secs(1);

/// Between the moment at which everything is ready and the first event.
const LEAD: Duration = Duration::from_millis(5);

/// Who sends what.
#[derive(Debug, Clone)]
pub(super) struct LoadSubject {
    pub(super) target: Arc<BenchTarget>,
    pub(super) events: Arc<EventSource>,
}

/// How a load ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LoadEnd {
    /// As planned.
    Complete,
    /// By a signal.
    Interrupted,
    /// No more events could be sent, for this reason.
    TargetGone(String),
}

/// What was measured.
#[derive(Debug)]
pub(super) struct LoadResult {
    pub(super) tally: LoadTally,
    /// How long was measured.
    pub(super) measured: Duration,
    pub(super) end: LoadEnd,
    /// What the target used while it was measured.
    pub(super) before: TargetUsage,
    pub(super) after: TargetUsage,
}

/// Puts loads on targets, and stops when it is interrupted.
#[derive(Debug)]
pub(super) struct LoadGenerator {
    pub(super) clock: ArrivalClock,
    pub(super) interrupt: CancellationToken,
}

/// What the senders of one load share.
#[derive(Debug)]
struct LoadState {
    subject: LoadSubject,
    plan: LoadPlan,
    begun: Instant,
    tally: Arc<SharedTally>,
    /// Of an open loop.
    arrivals: Option<Arc<ArrivalQueue>>,
    /// Nothing more is sent.
    stop: CancellationToken,
    gone: OnceLock<TargetGone>,
}

/// When an event should have been sent, and when it was.
#[derive(Debug, Clone, Copy)]
struct SendTimes {
    due: Instant,
    sent: Instant,
    start: StartTime,
}

impl LoadResult {
    /// This load and another of the same target after it, as one whose rounds are those of both.
    pub(super) fn followed_by(mut self, next: Self) -> Self {
        self.tally.append(&next.tally);
        // What was used in between is not of the loads.
        let cpu = pause(self.after.cpu, next.before.cpu);
        let hooks_cpu = pause(self.after.hooks_cpu, next.before.hooks_cpu);
        let later = |before: Option<Duration>, pause: Option<Duration>| Some(before? + pause?);
        let before = TargetUsage {
            cpu: later(self.before.cpu, cpu),
            hooks_cpu: later(self.before.hooks_cpu, hooks_cpu),
            ..self.before
        };
        let measured = self.measured + next.measured;
        Self { tally: self.tally, measured, end: next.end, before, after: next.after }
    }
}

/// What was used between two loads.
fn pause(before: Option<Duration>, after: Option<Duration>) -> Option<Duration> {
    Some(after?.saturating_sub(before?))
}

impl LoadGenerator {
    /// Puts a load on a target as planned, and counts into `tally`.
    ///
    /// Returns an error if the target cannot be reached at all.
    pub(super) async fn run(
        &self,
        subject: &LoadSubject,
        plan: &LoadPlan,
        tally: Arc<SharedTally>,
    ) -> Result<LoadResult, TargetGone> {
        let mut doors = Vec::new();
        for _ in 0..plan.senders() {
            doors.push(subject.target.open().await?);
        }
        let begun = Instant::now() + LEAD;
        let arrivals = match plan.mode {
            LoadMode::Closed { .. } => None,
            LoadMode::Open { rate, arrivals, .. } => {
                let schedule = ArrivalSchedule::new(arrivals, rate, plan.ramp, plan.measured_to(), plan.seed);
                let queue = Arc::new(ArrivalQueue::new(begun, schedule, doors.len()));
                queue
                    .start(self.clock)
                    .map_err(|error| TargetGone(format!("there is no thread: {error}")))?;
                Some(queue)
            }
        };
        let state = Arc::new(LoadState {
            subject: subject.clone(),
            plan: plan.clone(),
            begun,
            tally,
            arrivals,
            stop: CancellationToken::new(),
            gone: OnceLock::new(),
        });
        let mut senders = JoinSet::new();
        for (number, door) in doors.into_iter().enumerate() {
            senders.spawn(Arc::clone(&state).run_sender(number, door));
        }
        Ok(self.watch(&state, senders).await)
    }

    /// Waits for the end of a load, and looks at what its target uses.
    async fn watch(&self, state: &LoadState, mut senders: JoinSet<()>) -> LoadResult {
        let plan = &state.plan;
        let target = &state.subject.target;
        let from = state.begun + plan.measured_from();
        let to = state.begun + plan.measured_to();
        let mut interrupted = !self.wait_until(from, state).await;
        let before = target.usage().await;
        interrupted = interrupted || !self.wait_until(to, state).await;
        let ended = Instant::now().min(to);
        let after = target.usage().await;
        if !interrupted && state.arrivals.is_some() {
            sleep_until(to + GRACE).await;
        }
        state.end();
        let grace = if interrupted { INTERRUPTED_GRACE } else { plan.timeout + GRACE };
        let finished = timeout(grace, async { while senders.join_next().await.is_some() {} });
        if tokio::select! { done = finished => done, () = self.interrupted(interrupted) => Ok(()) }.is_err() {
            senders.shutdown().await;
        }
        let mut tally = state.tally.total();
        state.add_left_over(ended, &mut tally);
        let end = match state.gone.get() {
            Some(gone) => LoadEnd::TargetGone(gone.to_string()),
            None if self.interrupt.is_cancelled() => LoadEnd::Interrupted,
            None => LoadEnd::Complete,
        };
        LoadResult { tally, measured: ended.saturating_duration_since(from), end, before, after }
    }

    /// Waits for a moment. Returns whether it came before an interruption.
    async fn wait_until(&self, moment: Instant, state: &LoadState) -> bool {
        tokio::select! {
            () = sleep_until(moment) => true,
            () = state.stop.cancelled() => false,
            () = self.interrupt.cancelled() => false,
        }
    }

    /// Waits for an interruption, unless there was one: then the events under way have their time.
    async fn interrupted(&self, already: bool) {
        if already {
            std::future::pending::<()>().await;
        } else {
            self.interrupt.cancelled().await;
        }
    }
}

impl LoadState {
    /// Sends nothing more.
    fn end(&self) {
        self.stop.cancel();
        if let Some(arrivals) = &self.arrivals {
            arrivals.close();
        }
    }

    async fn run_sender(self: Arc<Self>, number: usize, mut door: Door) {
        match &self.arrivals {
            Some(arrivals) => self.send_arrivals(arrivals, number, &mut door).await,
            None => self.send_in_turn(number, &mut door).await,
        }
    }

    /// An open loop: each event is sent when it is due, or as soon after it as a sender is free.
    async fn send_arrivals(&self, arrivals: &ArrivalQueue, number: usize, door: &mut Door) {
        loop {
            let ready = Instant::now();
            let Some(due) = arrivals.take().await else { return };
            let (due, sent) = (self.begun + due, Instant::now());
            let start = if ready > due {
                StartTime::Waited
            } else {
                StartTime::Late(sent.saturating_duration_since(due))
            };
            if !self.send(number, door, SendTimes { due, sent, start }).await {
                return;
            }
        }
    }

    /// A closed loop: the next event is sent when the one before it is answered.
    async fn send_in_turn(&self, number: usize, door: &mut Door) {
        let share = f64::from(u32::try_from(number).unwrap_or(0)) / f64::from(self.plan.senders());
        sleep_until(self.begun + self.plan.ramp.mul_f64(share)).await;
        let end = self.begun + self.plan.measured_to();
        while !self.stop.is_cancelled() {
            let sent = Instant::now();
            if sent >= end
                || !self.send(number, door, SendTimes { due: sent, sent, start: StartTime::Undue }).await
            {
                return;
            }
            // A target that answers without ever waiting would keep its thread from everything else.
            tokio::task::coop::consume_budget().await;
        }
    }

    /// Sends one event and counts its answer. Returns whether more can be sent.
    async fn send(&self, number: usize, door: &mut Door, times: SendTimes) -> bool {
        let (event, _lease) = self.subject.events.next_event();
        let answer = match door.send(&event, self.plan.timeout).await {
            Ok(answer) => answer,
            Err(gone) => {
                // Those that find it gone later have nothing to add.
                drop(self.gone.set(gone));
                self.end();
                return false;
            }
        };
        let done = Instant::now();
        let since_start = times.due.saturating_duration_since(self.begun);
        if let Some(round) = self.plan.round_of(since_start) {
            let latency = done.saturating_duration_since(times.due);
            let service = done.saturating_duration_since(times.sent);
            let counted =
                CountedEvent { kind: event.kind, round, latency, service, answer, start: times.start };
            self.tally.add(number, &counted);
        }
        true
    }

    /// Counts what was due until the end and was never sent.
    fn add_left_over(&self, ended: Instant, tally: &mut LoadTally) {
        let Some(arrivals) = &self.arrivals else { return };
        let now = Instant::now();
        for due in arrivals.left_over(ended.saturating_duration_since(self.begun)) {
            if let Some(round) = self.plan.round_of(due) {
                tally.add_unsent(round, now.saturating_duration_since(self.begun + due));
            }
        }
    }
}
