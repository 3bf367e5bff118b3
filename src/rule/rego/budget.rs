//! The steps that a policy may take for one event. The interpreter asks a clock before each of its steps; the clock here counts
//! how often it was asked.

use std::{cell::Cell, num::NonZeroU32, sync::OnceLock, time::Duration};

use regorus::utils::limits::{ExecutionTimerConfig, TimeSource, set_time_source};

/// The steps of one policy for one event: about 20 ms. Policies run in the way of their run.
pub(super) const MOST_STEPS: u64 = 500_000;

/// How many bytes of an event make each step one dearer: a built-in may look through all of it.
const BYTES_PER_STEP: usize = 2 << 10;

/// How many bytes of a text are made in one step.
const MADE_BYTES_PER_STEP: usize = 64;

/// What a policy has spent on this thread.
#[derive(Clone, Copy)]
struct Spent {
    steps: u64,
    price: u64,
    is_exceeded: bool,
}

thread_local! {
    static SPENT: Cell<Spent> = const { Cell::new(Spent { steps: 0, price: 1, is_exceeded: false }) };
}

/// A clock that counts steps.
struct StepClock;

impl TimeSource for StepClock {
    fn now(&self) -> Option<Duration> {
        let mut spent = SPENT.get();
        spent.steps = spent.steps.saturating_add(spent.price);
        spent.is_exceeded |= spent.steps > MOST_STEPS;
        SPENT.set(spent);
        // Far beyond the limit, whenever the interpreter looked first.
        Some(if spent.is_exceeded { Duration::MAX } else { Duration::from_nanos(spent.steps) })
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

/// Begins to count for an event of this size, in bytes.
pub(super) fn begin(size: usize) {
    let price = u64::try_from(size / BYTES_PER_STEP).unwrap_or(MOST_STEPS).saturating_add(1);
    SPENT.set(Spent { steps: 0, price, is_exceeded: false });
}

/// Spends what it takes to make a text of this length, in bytes.
pub(super) fn spend_on_text(bytes: usize) {
    let spent = SPENT.get();
    let steps = spent.steps.saturating_add(u64::try_from(bytes / MADE_BYTES_PER_STEP).unwrap_or(MOST_STEPS));
    SPENT.set(Spent { steps, is_exceeded: spent.is_exceeded || steps > MOST_STEPS, ..spent });
}

/// Spends all steps: what is asked for would take too much.
pub(super) fn exhaust() {
    let spent = SPENT.get();
    SPENT.set(Spent { is_exceeded: true, ..spent });
}

/// Whether the steps were not enough.
pub(super) fn is_exceeded() -> bool {
    SPENT.get().is_exceeded
}
