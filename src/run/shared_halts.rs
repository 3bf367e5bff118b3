//! The directory of runs takes in what other daemons of a cluster do, and what they have left of a run that goes on here.

use std::{sync::atomic::Ordering, time::Duration};

use tokio::sync::oneshot;

use super::{directory::RunDirectory, halt::Halt, message::RunMessage};
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
        // Held until then: a store that is set at this moment has all halts asked about that are known.
        let store = self.store.read();
        let asks_others = store.as_ref().is_some_and(|store| store.asks_others());
        record.is_halt_settled.store(!asks_others, Ordering::Release);
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

    fn is_halted(&self, key: &RunKey) -> bool {
        self.find(key).is_some_and(|record| record.halted().is_some())
    }

    fn moved(&self, key: &RunKey) {
        // The record stays borrowed, so no actor starts with this state.
        let Some(record) = self.runs.get_mut(key) else { return };
        self.keep_idle(&record, false);
        if let Some(lease) = record.handle().and_then(|handle| handle.lease(u32::MAX).ok()) {
            let actor = lease.actor().clone();
            // Fails only if the actor has just died, and its state with it.
            drop(actor.cast(RunMessage::Moved(lease)));
            return;
        }
        let mut run_state = record.unpark();
        run_state.forget();
        record.park(run_state);
    }
}

/// As many runs are known as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooManyRuns;

impl RunDirectory {
    /// Takes over what other daemons have left of a run that this one has claimed, in place of what was known of it here or
    /// beside it. Returns a receiver that is notified once
    /// its actor has it, if it has one.
    ///
    /// Returns an error if the run is new here, and there are as many as may be.
    pub(crate) fn claimed(
        &self,
        key: &RunKey,
        run: StoredRun,
        replaces: bool,
        most: usize,
    ) -> Result<Option<oneshot::Receiver<()>>, TooManyRuns> {
        if replaces {
            self.moved(key);
        }
        // The record stays borrowed, so no actor starts without this state.
        let record = self.find_or_make(key, most).ok_or(TooManyRuns)?;
        let was_stored = record.is_stored.swap(true, Ordering::AcqRel);
        let is_new = !run.is_empty() || was_stored && !replaces;
        Ok(if is_new { self.merge(key, &record, run) } else { None })
    }
}
