//! The sessions of a load: each has at most one event under way, as that of a host that waits for its answers.

use std::collections::VecDeque;

use parking_lot::Mutex;

/// The sessions that are free, in the order in which they became so.
#[derive(Debug)]
pub(super) struct SessionPool(Mutex<FreeSessions>);

#[derive(Debug)]
struct FreeSessions {
    free: VecDeque<u32>,
    /// How many events each session has had.
    turns: Vec<u32>,
}

/// A session with an event under way; free again when this is dropped.
#[derive(Debug)]
pub(super) struct SessionLease<'p> {
    pool: &'p SessionPool,
    pub(super) session: u32,
    /// Which event of the session it is, from 0.
    pub(super) turn: u32,
}

impl SessionPool {
    pub(super) fn new(sessions: u32) -> Self {
        let turns = vec![0; usize::try_from(sessions).unwrap_or(0)];
        Self(Mutex::new(FreeSessions { free: (0..sessions).collect(), turns }))
    }

    /// The session that has been free for the longest time. There is one, because there are no more senders than sessions.
    pub(super) fn lease(&self) -> SessionLease<'_> {
        let mut sessions = self.0.lock();
        let session = sessions.free.pop_front().unwrap_or_default();
        let turns = sessions.turns.get_mut(usize::try_from(session).unwrap_or(0));
        let turn = turns.map_or(0, |turns| std::mem::replace(turns, turns.wrapping_add(1)));
        SessionLease { pool: self, session, turn }
    }
}

impl Drop for SessionLease<'_> {
    fn drop(&mut self) {
        self.pool.0.lock().free.push_back(self.session);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_take_turns_and_never_have_two_events_at_once() {
        let pool = SessionPool::new(3);
        let (first, second) = (pool.lease(), pool.lease());
        assert_eq!([first.session, second.session], [0, 1]);
        drop(second);
        let third = pool.lease();
        let again = pool.lease();
        assert_eq!([(third.session, third.turn), (again.session, again.turn)], [(2, 0), (1, 1)]);
    }
}
