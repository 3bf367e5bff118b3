//! The changes that are not on disk yet. There is at most one for each run, the latest, so their number is bounded by
//! that of the runs however long the disk takes.

use std::collections::{HashMap, VecDeque};

use super::{ENDED_REMEMBERED, outbox::OutboxChanges, record::StoredRun};
use crate::model::RunKey;

/// What becomes of what is kept of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum RunChange {
    /// It is replaced.
    Save(StoredRun),
    /// It is removed.
    Forget,
}

/// Changes that are written together.
#[derive(Debug, Default)]
pub(super) struct ChangeBatch {
    /// Changes that somebody waits for.
    pub(super) urgent: Vec<(RunKey, RunChange)>,
    pub(super) later: Vec<(RunKey, RunChange)>,
    /// Runs that have ended, oldest first.
    pub(super) ended: Vec<RunKey>,
    pub(super) outbox: OutboxChanges,
}

impl ChangeBatch {
    pub(super) fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.later.is_empty() && self.ended.is_empty() && self.outbox.is_empty()
    }
}

/// The changes that are not on disk yet.
#[derive(Debug, Default)]
pub(super) struct PendingChanges {
    urgent: HashMap<RunKey, RunChange>,
    later: HashMap<RunKey, RunChange>,
    ended: VecDeque<RunKey>,
    pub(super) outbox: OutboxChanges,
}

impl PendingChanges {
    /// Replaces what is kept of a run. A run with an urgent change stays urgent.
    pub(super) fn save(&mut self, key: RunKey, run: StoredRun, is_urgent: bool) {
        if is_urgent {
            self.later.remove(&key);
            self.urgent.insert(key, RunChange::Save(run));
        } else {
            self.change(key, RunChange::Save(run));
        }
    }

    /// Removes what is kept of a run.
    pub(super) fn forget(&mut self, key: RunKey) {
        self.change(key, RunChange::Forget);
    }

    /// Remembers that a run has ended.
    pub(super) fn end(&mut self, key: RunKey) {
        self.ended.push_back(key);
        if self.ended.len() > ENDED_REMEMBERED {
            self.ended.pop_front();
        }
    }

    fn change(&mut self, key: RunKey, change: RunChange) {
        let changes = if self.urgent.contains_key(&key) { &mut self.urgent } else { &mut self.later };
        changes.insert(key, change);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.urgent.is_empty() && self.later.is_empty() && self.ended.is_empty() && self.outbox.is_empty()
    }

    /// How many runs have a change.
    pub(super) fn runs(&self) -> usize {
        self.urgent.len() + self.later.len()
    }

    /// How many of them have one that somebody waits for, or waited for in vain.
    pub(super) fn urgent_runs(&self) -> usize {
        self.urgent.len()
    }

    /// Takes all urgent changes, and others up to `most`.
    pub(super) fn take(&mut self, most: usize) -> ChangeBatch {
        let urgent: Vec<_> = self.urgent.drain().collect();
        let keys: Vec<RunKey> = self.later.keys().take(most).cloned().collect();
        let later = keys.into_iter().filter_map(|key| self.later.remove_entry(&key)).collect();
        ChangeBatch { urgent, later, ended: self.ended.drain(..).collect(), outbox: self.outbox.take() }
    }

    /// Takes back changes that could not be written. Changes that came meanwhile are newer.
    pub(super) fn put_back(&mut self, batch: ChangeBatch) {
        self.outbox.put_back(batch.outbox);
        for (key, change) in batch.urgent {
            // The newer change takes over the urgency of the older one.
            let change = self.later.remove(&key).unwrap_or(change);
            self.urgent.entry(key).or_insert(change);
        }
        for (key, change) in batch.later {
            if !self.urgent.contains_key(&key) {
                self.later.entry(key).or_insert(change);
            }
        }
        for key in batch.ended.into_iter().rev() {
            if self.ended.len() < ENDED_REMEMBERED {
                self.ended.push_front(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;
    use crate::model::{RunId, WorkspaceId};

    fn key(run: u8) -> RunKey {
        RunKey { workspace: WorkspaceId::new("shop").unwrap(), run: RunId::new(run.to_string()).unwrap() }
    }

    fn run(stops: u8) -> StoredRun {
        StoredRun { stops_blocked: stops, ..StoredRun::default() }
    }

    #[derive(Debug, Clone)]
    enum Step {
        Save(u8, u8, bool),
        Forget(u8),
        /// A batch is taken, up to so many, and is written or not after the next steps.
        Take(usize),
        Written,
        Failed,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => (0..6_u8, 1..9_u8, any::<bool>()).prop_map(|(run, stops, urgent)| Step::Save(run, stops, urgent)),
            2 => (0..6_u8).prop_map(Step::Forget),
            2 => (0..4_usize).prop_map(Step::Take),
            1 => Just(Step::Written),
            1 => Just(Step::Failed),
        ]
    }

    /// The disk, as far as runs go.
    fn apply(disk: &mut BTreeMap<RunKey, StoredRun>, batch: ChangeBatch) {
        for (key, change) in batch.urgent.into_iter().chain(batch.later) {
            match change {
                RunChange::Save(run) => drop(disk.insert(key, run)),
                RunChange::Forget => drop(disk.remove(&key)),
            }
        }
    }

    proptest! {
        #[test]
        fn the_disk_gets_the_latest_state_of_each_run(steps in prop::collection::vec(step(), 0..60)) {
            let mut pending = PendingChanges::default();
            let mut wanted: BTreeMap<RunKey, StoredRun> = BTreeMap::new();
            let mut disk = BTreeMap::new();
            let mut in_hand: Option<ChangeBatch> = None;
            for step in steps {
                match step {
                    Step::Save(number, stops, urgent) => {
                        pending.save(key(number), run(stops), urgent);
                        wanted.insert(key(number), run(stops));
                    }
                    Step::Forget(number) => {
                        pending.forget(key(number));
                        wanted.remove(&key(number));
                    }
                    Step::Take(most) if in_hand.is_none() => {
                        in_hand = Some(pending.take(most));
                        prop_assert_eq!(pending.urgent_runs(), 0, "a batch has all that somebody waits for");
                    }
                    Step::Take(_) => {}
                    Step::Written => apply(&mut disk, in_hand.take().unwrap_or_default()),
                    Step::Failed => pending.put_back(in_hand.take().unwrap_or_default()),
                }
                prop_assert!(pending.runs() <= 6);
            }
            pending.put_back(in_hand.take().unwrap_or_default());
            while !pending.is_empty() {
                apply(&mut disk, pending.take(1));
            }
            prop_assert_eq!(disk, wanted);
        }
    }

    #[test]
    fn ended_runs_keep_their_order_and_have_a_bound() {
        let mut pending = PendingChanges::default();
        for number in 0..3 {
            pending.end(key(number));
        }
        let failed = pending.take(0);
        pending.end(key(3));
        pending.put_back(failed);
        assert_eq!(pending.take(0).ended, [key(0), key(1), key(2), key(3)]);
        for _ in 0..=ENDED_REMEMBERED {
            pending.end(key(9));
        }
        assert_eq!(pending.take(0).ended.len(), ENDED_REMEMBERED);
    }
}
