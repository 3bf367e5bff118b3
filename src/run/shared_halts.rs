//! The directory of runs takes in what other daemons of a cluster do.

use std::{sync::atomic::Ordering, time::Duration};

use super::{directory::RunDirectory, halt::Halt};
use crate::{
    model::RunKey,
    store::{HaltListener, StoredHalt, StoredRun},
};

impl HaltListener for RunDirectory {
    fn halted(&self, key: &RunKey, halt: &StoredHalt) {
        // The record stays borrowed, so it is not forgotten before it is halted. However many there are, a halt is taken in.
        let Some(record) = self.find_or_make(key, usize::MAX) else { return };
        self.halt(&record, Halt::of_stored(halt.clone()));
        record.is_shared.store(true, Ordering::Release);
        record.is_halt_settled.store(true, Ordering::Release);
    }

    fn released(&self, key: &RunKey, is_over: bool) {
        // The record stays borrowed, so no actor starts without its state.
        let Some(record) = self.runs.get_mut(key) else { return };
        record.is_shared.store(false, Ordering::Release);
        if is_over && self.unhalt(&record) && record.is_stored.load(Ordering::Acquire) {
            // Nobody waits until it is stored.
            drop(self.merge(key, &record, StoredRun::default()));
        }
    }

    fn was_asked(&self, key: &RunKey, within: Duration) -> bool {
        let within = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
        self.find(key).is_some_and(|record| record.handle().is_some() || self.rested_for(&record) <= within)
    }

    fn all_halted(&self) -> Vec<(RunKey, StoredHalt)> {
        let halted = self.runs.iter();
        halted.filter_map(|entry| Some((entry.key().clone(), entry.value().halted()?.to_stored()))).collect()
    }
}
