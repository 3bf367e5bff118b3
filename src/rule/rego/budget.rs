//! The steps that a policy may take for one event, and the time. The interpreter asks a clock before each of its steps; the
//! clock here counts how often it was asked.

use std::{cell::Cell, num::NonZeroU32, sync::OnceLock, time::Duration};

use regorus::utils::limits::{ExecutionTimerConfig, TimeSource, set_time_source};
use tokio::time::Instant;

/// The steps of one policy for one event: about 20 ms. Policies run in the way of their run.
pub(super) const MOST_STEPS: u64 = 500_000;

/// The longest that a policy takes. Steps are no measure where a built-in looks through a very long text.
pub(super) const LONGEST: Duration = Duration::from_millis(500);

/// After how many steps the time is looked at.
const STEPS_PER_LOOK: u64 = 64;

/// Events from this size on, in bytes, may take long in a single step.
const LARGE: usize = 64 << 10;

/// What is left to a policy on this thread.
#[derive(Clone, Copy)]
struct Spent {
    steps: u64,
    per_look: u64,
    deadline: Option<Instant>,
    exceeded: Option<Exceeded>,
}

/// What a policy took too much of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exceeded {
    Steps,
    Time,
}

thread_local! {
    static SPENT: Cell<Spent> =
        const { Cell::new(Spent { steps: 0, per_look: STEPS_PER_LOOK, deadline: None, exceeded: None }) };
}

/// A clock that counts steps.
struct StepClock;

impl TimeSource for StepClock {
    fn now(&self) -> Option<Duration> {
        let mut spent = SPENT.get();
        spent.steps += 1;
        if spent.steps > MOST_STEPS {
            spent.exceeded.get_or_insert(Exceeded::Steps);
        } else if spent.steps.is_multiple_of(spent.per_look)
            && spent.deadline.is_some_and(|deadline| Instant::now() > deadline)
        {
            spent.exceeded.get_or_insert(Exceeded::Time);
        }
        SPENT.set(spent);
        // Far beyond the limit, whenever the interpreter looked first.
        Some(spent.exceeded.map_or(Duration::from_nanos(spent.steps), |_| Duration::MAX))
    }
}

static STEP_CLOCK: StepClock = StepClock;

/// Has the interpreter ask this clock. Returns whether it does: another part of the program may have set one before.
pub(super) fn is_installed() -> bool {
    static IS_INSTALLED: OnceLock<bool> = OnceLock::new();
    *IS_INSTALLED.get_or_init(|| set_time_source(&STEP_CLOCK).is_ok())
}

/// The limit as the interpreter takes it: a step is a nanosecond of the clock.
pub(super) fn limit() -> ExecutionTimerConfig {
    ExecutionTimerConfig { limit: Duration::from_nanos(2 * MOST_STEPS), check_interval: NonZeroU32::MIN }
}

/// Begins to count for an event of this size.
pub(super) fn begin(size: usize) {
    let per_look = if size < LARGE { STEPS_PER_LOOK } else { 1 };
    let deadline = Instant::now().checked_add(LONGEST);
    SPENT.set(Spent { steps: 0, per_look, deadline, exceeded: None });
}

/// Spends all steps: what is asked for would take too much.
pub(super) fn exhaust() {
    let spent = SPENT.get();
    SPENT.set(Spent { exceeded: Some(Exceeded::Steps), ..spent });
}

/// What was exceeded since the beginning.
pub(super) fn exceeded() -> Option<Exceeded> {
    SPENT.get().exceeded
}
