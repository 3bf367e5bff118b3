//! The time by which a bundle counts: that of the machine, which does not go back while the daemon runs.

use std::time::{Duration, SystemTime};

use parking_lot::Mutex;
use tokio::time::Instant;

/// How far the clocks of a server and of this machine may differ for the one to bear the other out.
const AGREEMENT: Duration = Duration::from_hours(24);

/// A clock that nobody sets back.
#[derive(Debug)]
pub(super) struct BundleClock(Mutex<ClockBase>);

/// A moment, and the time that it was.
#[derive(Debug, Clone, Copy)]
struct ClockBase {
    at: Instant,
    time: SystemTime,
}

impl BundleClock {
    pub(super) fn start() -> Self {
        Self(Mutex::new(ClockBase { at: Instant::now(), time: SystemTime::now() }))
    }

    pub(super) fn now(&self) -> SystemTime {
        let mut base = self.0.lock();
        let (at, machine) = (Instant::now(), SystemTime::now());
        let time = base.time_at(at, machine);
        *base = ClockBase { at, time };
        time
    }

    /// Takes the machine's clock where the time of a server bears it out: after it was wrong for a while, what it said then
    /// counts no more. The later one of the two counts, so that a clock that was set back by less than a day revives nothing.
    /// A server alone cannot say what time it is, as it could keep an old bundle alive.
    ///
    /// Returns whether it did.
    pub(super) fn confirm(&self, server: Option<SystemTime>) -> bool {
        let machine = SystemTime::now();
        let Some(server) = server.filter(|server| difference(machine, *server) <= AGREEMENT) else {
            return false;
        };
        *self.0.lock() = ClockBase { at: Instant::now(), time: machine.max(server) };
        true
    }
}

fn difference(one: SystemTime, other: SystemTime) -> Duration {
    one.duration_since(other).or_else(|_| other.duration_since(one)).unwrap_or_default()
}

impl ClockBase {
    /// The later one of the machine's clock, and of the time that has passed: the one stands still where it is set back, the
    /// other while the machine sleeps.
    fn time_at(&self, at: Instant, machine: SystemTime) -> SystemTime {
        (self.time + at.saturating_duration_since(self.at)).max(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_goes_on_where_the_clock_is_set_back_and_while_the_machine_sleeps() {
        let (at, time) = (Instant::now(), SystemTime::UNIX_EPOCH + Duration::from_hours(1000));
        let hours = Duration::from_hours;
        let base = ClockBase { at, time };
        assert_eq!(base.time_at(at + hours(2), time + hours(2)), time + hours(2));
        assert_eq!(base.time_at(at + hours(2), time - hours(24)), time + hours(2), "it was set back");
        assert_eq!(base.time_at(at, time + hours(8)), time + hours(8), "the machine slept");
    }

    #[test]
    fn a_server_bears_the_clock_out_within_a_day_and_never_moves_it() {
        let clock = BundleClock::start();
        let ahead = SystemTime::now() + Duration::from_hours(1000);
        clock.0.lock().time = ahead;
        assert!(!clock.confirm(None));
        assert!(!clock.confirm(Some(ahead)), "the machine says something else by now");
        assert!(clock.now() >= ahead);
        assert!(clock.confirm(Some(SystemTime::now() - Duration::from_hours(23))));
        assert!(difference(clock.now(), SystemTime::now()) < Duration::from_mins(1));
        // The machine's clock is late, or was set back.
        let server = SystemTime::now() + Duration::from_hours(23);
        assert!(clock.confirm(Some(server)));
        assert!(difference(clock.now(), server) < Duration::from_mins(1), "the later one counts");
    }
}
