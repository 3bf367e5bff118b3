//! When a workspace whose files change is read again: not while they still change, and not too late either. Pure.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::model::WorkspaceId;

/// How long nothing must change. An editor that empties a file before it writes it, or puts another in its place, is
/// done within a few milliseconds, and `git checkout` leaves no longer pause between two files; for somebody who
/// waits for a rule to count, it is still at once.
const QUIET_PERIOD: Duration = Duration::from_millis(150);

/// How long a change waits at most. Something may write without a pause; its last change but one is read then, and a
/// guard that is mended does not wait for it.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// The workspaces whose files change.
#[derive(Debug, Default)]
pub(super) struct Debouncer(HashMap<WorkspaceId, Burst>);

/// From the first change to the last.
#[derive(Debug, Clone, Copy)]
struct Burst {
    first: Instant,
    last: Instant,
}

impl Burst {
    fn end(self) -> Instant {
        (self.last + QUIET_PERIOD).min(self.first + MAX_DELAY)
    }
}

impl Debouncer {
    /// Something of a workspace has changed.
    pub(super) fn touch(&mut self, id: &WorkspaceId, now: Instant) {
        match self.0.get_mut(id) {
            Some(span) => span.last = now,
            None => drop(self.0.insert(id.clone(), Burst { first: now, last: now })),
        }
    }

    /// When the next workspace is to be read.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().map(|span| span.end()).min()
    }

    /// Takes the workspaces that are to be read now, those that have waited longest first.
    pub(super) fn take_due(&mut self, now: Instant) -> Vec<WorkspaceId> {
        let mut due: Vec<_> = self.0.extract_if(|_, span| span.end() <= now).collect();
        due.sort_by_key(|(_, span)| span.first);
        due.into_iter().map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> WorkspaceId {
        WorkspaceId::new(text).unwrap()
    }

    fn after(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn changes_close_together_are_one() {
        let (mut debouncer, start) = (Debouncer::default(), Instant::now());
        for at in [0, 100, 200] {
            debouncer.touch(&id("a"), after(start, at));
        }
        assert_eq!(debouncer.next(), Some(after(start, 350)));
        assert!(debouncer.take_due(after(start, 349)).is_empty());
        assert_eq!(debouncer.take_due(after(start, 350)), [id("a")]);
        assert_eq!(debouncer.next(), None);
    }

    #[test]
    fn changes_without_an_end_are_read_every_second() {
        let (mut debouncer, start) = (Debouncer::default(), Instant::now());
        let mut read = 0;
        for at in (0..10_000).step_by(10) {
            debouncer.touch(&id("a"), after(start, at));
            read += debouncer.take_due(after(start, at)).len();
        }
        assert_eq!(read, 9);
    }

    #[test]
    fn one_workspace_does_not_hold_up_another() {
        let (mut debouncer, start) = (Debouncer::default(), Instant::now());
        debouncer.touch(&id("quiet"), start);
        for at in (0..150).step_by(10) {
            debouncer.touch(&id("busy"), after(start, at));
        }
        assert_eq!(debouncer.take_due(after(start, 150)), [id("quiet")]);
    }
}
