//! What a policy may spend on one event. The interpreter asks a clock before each of its steps; the clock here counts how often
//! it was asked. Steps with what a policy has made itself may take long each, so that their time counts as well.

use std::{cell::Cell, num::NonZeroU32, sync::OnceLock, time::Duration};

use crate::{
    model::{Ended, Failure},
    rule::processor_time::ProcessorTime,
};
use regorus::utils::limits::{ExecutionTimerConfig, TimeSource, set_time_source};

/// The steps of one policy for one event: about 20 ms. Policies run in the way of their run.
const MOST_STEPS: u64 = 500_000;

/// What is said of a policy that takes more.
pub(super) const TOO_LONG: &str =
    "the policy takes too long: it multiplies large numbers, or goes over something large again and again";

/// How many bytes of an event make each step one dearer: a built-in may look through all of it.
const BYTES_PER_STEP: usize = 2 << 10;

/// How many bytes of a text are made in one step.
const MADE_BYTES_PER_STEP: usize = 64;

/// How many values are compared in one step.
const COMPARED_PER_STEP: usize = 8;

/// What a policy has spent on this thread.
#[derive(Clone, Copy)]
struct Spent {
    steps: u64,
    price: u64,
    exceeded: Option<Exceeded>,
    time: ProcessorTime,
}

/// What was not enough for a policy.
#[derive(Clone, Copy)]
enum Exceeded {
    Steps,
    Time,
}

thread_local! {
    static SPENT: Cell<Option<Spent>> = const { Cell::new(None) };
}

/// A clock that counts steps.
struct StepClock;

impl TimeSource for StepClock {
    fn now(&self) -> Option<Duration> {
        // Outside of an event, such as when policies are compiled, nothing is counted.
        let Some(mut spent) = SPENT.get() else { return Some(Duration::ZERO) };
        spent.spend(spent.price);
        spent.look_at_time();
        SPENT.set(Some(spent));
        // Far beyond the limit, whenever the interpreter looked first.
        Some(if spent.exceeded.is_some() { Duration::MAX } else { Duration::from_nanos(spent.steps) })
    }
}

impl Spent {
    fn spend(&mut self, steps: u64) {
        self.steps = self.steps.saturating_add(steps);
        if self.steps > MOST_STEPS {
            self.exceeded.get_or_insert(Exceeded::Steps);
        }
    }

    fn look_at_time(&mut self) {
        if self.time.is_over() {
            self.exceeded.get_or_insert(Exceeded::Time);
        }
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

/// While this is there, what is spent on this thread is counted.
pub(super) struct Counting(());

impl Drop for Counting {
    fn drop(&mut self) {
        SPENT.set(None);
    }
}

/// Begins to count for an event of this size, in bytes.
#[must_use]
pub(super) fn begin(size: usize) -> Counting {
    let price = u64::try_from(size / BYTES_PER_STEP).unwrap_or(MOST_STEPS).saturating_add(1);
    SPENT.set(Some(Spent { steps: 0, price, exceeded: None, time: ProcessorTime::begin() }));
    Counting(())
}

/// Spends what it takes to make a text of this length, in bytes.
pub(super) fn spend_on_text(bytes: usize) {
    spend(bytes / MADE_BYTES_PER_STEP);
}

/// Spends what it takes to compare so many values.
pub(super) fn spend_on_comparing(values: usize) {
    spend(values / COMPARED_PER_STEP);
}

fn spend(steps: usize) {
    if let Some(mut spent) = SPENT.get() {
        spent.spend(u64::try_from(steps).unwrap_or(MOST_STEPS));
        SPENT.set(Some(spent));
    }
}

/// Spends a step within one of the interpreter's, and looks at the time. Returns whether there are more.
pub(super) fn spend_step() -> bool {
    let Some(mut spent) = SPENT.get() else { return true };
    spent.spend(1);
    spent.look_at_time();
    SPENT.set(Some(spent));
    spent.exceeded.is_none()
}

/// Spends all steps: what is asked for would take too much.
pub(super) fn exhaust() {
    spend(usize::MAX);
}

/// What failed if the steps or the time were not enough.
pub(super) fn failure() -> Option<Failure> {
    let message = match SPENT.get()?.exceeded? {
        Exceeded::Steps => format!("the policy takes more than {MOST_STEPS} steps"),
        Exceeded::Time => TOO_LONG.to_owned(),
    };
    // Whoever writes the event can make it so long, so that this is no milder than another failure.
    Some(Failure::new(Ended::TimedOut, message).by_stricter_policy())
}

/// Whether the steps or the time were not enough.
pub(super) fn is_exceeded() -> bool {
    SPENT.get().is_some_and(|spent| spent.exceeded.is_some())
}
