//! Makes room in the directory of runs, from time to time.

use std::{sync::atomic::Ordering, time::Duration};

use super::{context::RunContext, directory::RunDirectory, record::RunRecord};

/// Times of rest are told apart by their number of bits in milliseconds.
const AGES: usize = u64::BITS as usize + 1;

impl RunContext {
    /// Whether the answers that runs remember take nearly as much memory as they may.
    pub(crate) fn answers_are_full(&self) -> bool {
        self.answers.budget.used() > self.answers.budget.most() / 8 * 7
    }

    /// Forgets the runs without an actor of which nothing has been asked for so long. If there is little room for answers,
    /// forgets those of the runs that have rested longest. Walks over all records.
    pub(crate) fn tidy(&self, rest: Duration) {
        self.directory.forget_rested(rest);
        if self.answers_are_full() {
            let budget = &self.answers.budget;
            self.directory.forget_parked_answers(budget.used().saturating_sub(budget.most() / 4 * 3));
        }
    }
}

impl RunDirectory {
    /// Removes the runs without an actor of which nothing has been asked for so long.
    fn forget_rested(&self, rest: Duration) {
        let most = u64::try_from(rest.as_millis()).unwrap_or(u64::MAX);
        self.runs.retain(|key, record| {
            let is_needed = record.handle().is_some() || record.is_shared.load(Ordering::Acquire);
            let stays = is_needed || self.rested_for(record) < most;
            if !stays {
                self.forget_stored(key, record, false);
                self.removed(record);
            }
            stays
        });
    }

    /// Forgets answers of runs without an actor, about so many bytes, of those first that have rested longest.
    fn forget_parked_answers(&self, surplus: usize) {
        let mut bytes_by_age = [0; AGES];
        for record in &self.runs {
            bytes_by_age[self.age(&record)] += record.parked_bytes();
        }
        let mut found = 0;
        let enough = |age: &usize| {
            found += bytes_by_age[*age];
            found >= surplus
        };
        let youngest = (0..AGES).rev().find(enough).unwrap_or(0);
        for record in self.runs.iter().filter(|record| self.age(record) >= youngest) {
            record.shrink_parked(0);
        }
    }

    fn age(&self, record: &RunRecord) -> usize {
        (u64::BITS - self.rested_for(record).leading_zeros()) as usize
    }

    /// For how many milliseconds nothing has been asked of a run, if it has no actor.
    pub(super) fn rested_for(&self, record: &RunRecord) -> u64 {
        self.now().saturating_sub(record.rested.load(Ordering::Relaxed))
    }
}
