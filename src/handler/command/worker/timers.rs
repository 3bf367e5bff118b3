//! The timers of one worker: its hello, its pings while it is idle, its idle time and its age. Pure: the event loop
//! passes the time in.

use std::time::Duration;

use tokio::time::Instant;

use super::limits::WorkerTimeouts;
use crate::model::WorkerBounds;

/// When a worker did what.
#[derive(Debug)]
pub(super) struct WorkerTimers {
    timeouts: WorkerTimeouts,
    bounds: WorkerBounds,
    started: Instant,
    /// When it last got or answered an event, or answered a ping.
    last_alive: Instant,
    /// When it last got or answered an event.
    last_event: Instant,
    /// When it was sent the ping that it has not answered yet.
    pinged: Option<Instant>,
}

/// What is to be done with an idle worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IdleAction {
    Wait,
    /// It has been idle for a while: check that it still answers.
    Ping,
    /// It has been idle for too long, or is too old.
    Retire,
    /// It has not answered the ping in time.
    GiveUp,
}

impl WorkerTimers {
    pub(super) fn start(timeouts: WorkerTimeouts, bounds: WorkerBounds, now: Instant) -> Self {
        Self { timeouts, bounds, started: now, last_alive: now, last_event: now, pinged: None }
    }

    pub(super) fn age(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.started)
    }

    pub(super) fn is_too_old(&self, now: Instant) -> bool {
        self.bounds.max_age.is_some_and(|max| self.age(now) >= max)
    }

    /// The worker said hello.
    pub(super) fn on_hello(&mut self, now: Instant) {
        self.last_alive = now;
    }

    /// The worker got or answered an event.
    pub(super) fn on_event(&mut self, now: Instant) {
        self.last_alive = now;
        self.last_event = now;
    }

    /// The worker is sent a ping.
    pub(super) fn on_ping(&mut self, now: Instant) {
        self.pinged = Some(now);
    }

    /// The worker answered a ping. Returns false if there was none.
    pub(super) fn on_pong(&mut self, now: Instant) -> bool {
        let was_pinged = self.pinged.take().is_some();
        if was_pinged {
            self.last_alive = now;
        }
        was_pinged
    }

    /// The deadline of the hello. `None` if the clock cannot represent it.
    pub(super) fn hello_deadline(&self) -> Option<Instant> {
        self.started.checked_add(self.timeouts.hello)
    }

    /// When [`idle_action`](Self::idle_action) is to be asked next, if no event comes.
    pub(super) fn next_idle(&self) -> Option<Instant> {
        let ping_or_pong = match self.pinged {
            Some(pinged) => pinged.checked_add(self.timeouts.pong),
            None => self.last_alive.checked_add(self.timeouts.ping),
        };
        let idle = self.last_event.checked_add(self.bounds.max_idle);
        let age = self.bounds.max_age.and_then(|max| self.started.checked_add(max));
        [ping_or_pong, idle, age].into_iter().flatten().min()
    }

    /// What to do with a worker that has no event.
    pub(super) fn idle_action(&self, now: Instant) -> IdleAction {
        let since = |moment: Instant| now.saturating_duration_since(moment);
        match self.pinged {
            Some(pinged) if since(pinged) >= self.timeouts.pong => IdleAction::GiveUp,
            _ if since(self.last_event) >= self.bounds.max_idle || self.is_too_old(now) => IdleAction::Retire,
            None if since(self.last_alive) >= self.timeouts.ping => IdleAction::Ping,
            _ => IdleAction::Wait,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_idle_worker_is_pinged_given_up_or_retired() {
        let begin = Instant::now();
        let at = |seconds| begin + Duration::from_secs(seconds);
        let bounds = WorkerBounds { max_idle: Duration::from_mins(1), ..WorkerBounds::default() };
        let mut timers = WorkerTimers::start(WorkerTimeouts::default(), bounds, begin);
        assert_eq!(timers.next_idle(), Some(at(10)));
        assert_eq!(timers.idle_action(at(9)), IdleAction::Wait);
        assert_eq!(timers.idle_action(at(10)), IdleAction::Ping);
        timers.on_ping(at(10));
        assert_eq!(timers.idle_action(at(14)), IdleAction::Wait);
        assert_eq!(timers.idle_action(at(15)), IdleAction::GiveUp);
        assert!(timers.on_pong(at(15)) && !timers.on_pong(at(15)));
        assert_eq!(timers.next_idle(), Some(at(25)));
        assert_eq!(timers.idle_action(at(60)), IdleAction::Retire);
    }
}
