//! Delays the reload of a workspace until its files stop changing, up to a limit. Pure.

use std::{collections::HashMap, time::Duration};

use tokio::time::Instant;

use crate::model::WorkspaceId;

/// How long nothing must change. Editors that truncate or replace a file are done within a few milliseconds, and `git
/// checkout` pauses no longer between two files; a person who waits for a new rule does not notice the delay.
const QUIET_PERIOD: Duration = Duration::from_millis(150);

/// How long a change waits at most, so that a file that is written without a pause does not delay the reload of a guard
/// that was fixed.
const MAX_DELAY: Duration = Duration::from_secs(1);

/// The workspaces with changes that wait.
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
    /// Records a change of a workspace.
    pub(super) fn touch(&mut self, id: &WorkspaceId, now: Instant) {
        match self.0.get_mut(id) {
            Some(span) => span.last = now,
            None => drop(self.0.insert(id.clone(), Burst { first: now, last: now })),
        }
    }

    /// When the next workspace is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().map(|span| span.end()).min()
    }

    /// Takes the workspaces that are due, those that have waited longest first.
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
    fn changes_within_the_quiet_period_are_one() {
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
    fn endless_changes_are_due_every_second() {
        let (mut debouncer, start) = (Debouncer::default(), Instant::now());
        let mut read = 0;
        for at in (0..10_000).step_by(10) {
            debouncer.touch(&id("a"), after(start, at));
            read += debouncer.take_due(after(start, at)).len();
        }
        assert_eq!(read, 9);
    }

    #[test]
    fn one_workspace_does_not_delay_another() {
        let (mut debouncer, start) = (Debouncer::default(), Instant::now());
        debouncer.touch(&id("quiet"), start);
        for at in (0..150).step_by(10) {
            debouncer.touch(&id("busy"), after(start, at));
        }
        assert_eq!(debouncer.take_due(after(start, 150)), [id("quiet")]);
    }
}
