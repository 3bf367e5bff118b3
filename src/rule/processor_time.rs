//! The processor time of what is evaluated for one event.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What one hook may take for one event: far more than all its steps do, unless they are with something large. A build without
/// optimisation takes ten times as long.
const MOST_TIME: Duration = Duration::from_millis(if cfg!(debug_assertions) { 2_500 } else { 250 });

/// The time of this thread since it was looked at first.
#[derive(Clone, Copy)]
pub(super) struct ProcessorTime {
    /// Before this, it cannot have been too long.
    next_look: Duration,
    first: Option<Duration>,
}

impl ProcessorTime {
    /// From now on.
    pub(super) fn begin() -> Self {
        Self { next_look: read(ClockId::Monotonic) + MOST_TIME, first: None }
    }

    /// Whether it is too long. Time that passes is no less than that of the processor, which takes longer to ask for.
    pub(super) fn is_over(&mut self) -> bool {
        let now = read(ClockId::Monotonic);
        if now < self.next_look {
            return false;
        }
        let time = read(ClockId::ThreadCPUTime);
        let taken = time.saturating_sub(*self.first.get_or_insert(time));
        match MOST_TIME.checked_sub(taken) {
            Some(left) => {
                self.next_look = now + left;
                false
            }
            None => true,
        }
    }
}

fn read(clock: ClockId) -> Duration {
    clock_gettime(clock).try_into().unwrap_or_default()
}
