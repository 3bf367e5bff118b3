//! The claims of this daemon, and the state of their runs that the bucket does not have yet. Pure.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use crate::{
    model::RunKey,
    store::{Commitment, Moved, StoredRun},
};

/// What this daemon has claimed.
#[derive(Debug, Default)]
pub(super) struct ClaimTable {
    claims: HashMap<RunKey, OwnClaim>,
    /// What is to be written.
    uncommitted: HashSet<RunKey>,
    /// Who waits for what was being written as the claim was lost: by the run and the epoch.
    departing: HashMap<(RunKey, u64), Waiters>,
}

/// A claim of this daemon.
#[derive(Debug)]
struct OwnClaim {
    epoch: u64,
    /// The number of its message in the bucket.
    number: u64,
    /// When that was written.
    written: Instant,
    state: StoredRun,
    /// The directory of runs has the state that came with the claim.
    is_adopted: bool,
    /// Another daemon has the run, and the directory of runs is about to hear of it.
    is_lost: bool,
    /// The run is over, and with it what hooks have done in it.
    is_over: bool,
    /// How often it has changed, and up to which change the bucket has it.
    changes: u64,
    committed: u64,
    /// Up to which change it is being written.
    in_flight: Option<u64>,
    waiters: Waiters,
}

/// Those who wait, and for which change.
type Waiters = Vec<(u64, oneshot::Sender<Result<(), Moved>>)>;

/// What is to be written of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UncommittedState {
    pub(super) key: RunKey,
    pub(super) epoch: u64,
    /// The number of the message that it follows.
    pub(super) after: u64,
    /// Up to which change it is.
    pub(super) change: u64,
    /// None if the run is over.
    pub(super) state: Option<StoredRun>,
}

impl ClaimTable {
    /// The epoch of the claim on a run, if it goes on here, and what other daemons have left of it is known.
    pub(super) fn held(&self, key: &RunKey) -> Option<u64> {
        let claim = self.claims.get(key).filter(|claim| !claim.is_over && claim.is_adopted)?;
        Some(claim.epoch)
    }

    /// The directory of runs has the state that came with a claim.
    pub(super) fn adopted(&mut self, key: &RunKey, epoch: u64) {
        if let Some(claim) = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch) {
            claim.is_adopted = true;
        }
    }

    /// Whether a run has ended here of which the bucket does not know that yet.
    pub(super) fn is_ending(&self, key: &RunKey) -> bool {
        self.claims.get(key).is_some_and(|claim| claim.is_over)
    }

    /// The bucket has a claim, under this number.
    pub(super) fn taken(&mut self, key: &RunKey, epoch: u64, number: u64, state: StoredRun) {
        self.drop_claim(key);
        let claim = OwnClaim {
            epoch,
            number,
            written: Instant::now(),
            state,
            is_adopted: false,
            is_lost: false,
            is_over: false,
            changes: 0,
            committed: 0,
            in_flight: None,
            waiters: Vec::new(),
        };
        self.claims.insert(key.clone(), claim);
    }

    /// Notes the state of a run. Returns whether the bucket has to be told.
    pub(super) fn note(&mut self, key: &RunKey, state: StoredRun) -> bool {
        let state = StoredRun { halt: None, ..state };
        // What comes before it is adopted must not take away what other daemons have left.
        let is_known = |claim: &&mut OwnClaim| claim.is_adopted || state.includes(&claim.state);
        let Some(claim) = self.claims.get_mut(key).filter(|claim| !claim.is_over).filter(is_known) else {
            return false;
        };
        if claim.state == state {
            return false;
        }
        claim.state = state;
        self.change(key);
        true
    }

    /// Has the messages written again that are this old.
    pub(super) fn renew_old(&mut self, age: Duration) {
        let old = self.claims.iter().filter(|(_, claim)| claim.written.elapsed() >= age);
        let old: Vec<RunKey> = old.map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.change(key);
        }
    }

    /// This daemon forgets a run, or the run is over. Returns whether the bucket has to be told.
    pub(super) fn leave(&mut self, key: &RunKey, is_over: bool) -> bool {
        if !is_over {
            self.drop_claim(key);
            return false;
        }
        let Some(claim) = self.claims.get_mut(key) else { return false };
        claim.is_over = true;
        self.change(key);
        true
    }

    fn change(&mut self, key: &RunKey) {
        if let Some(claim) = self.claims.get_mut(key) {
            claim.changes += 1;
            self.uncommitted.insert(key.clone());
        }
    }

    /// Another daemon has claimed a run, or ended it, in place of this claim. Returns whether that is news. Until
    /// [`ClaimTable::lost`] is called, the run cannot be claimed anew.
    pub(super) fn is_news(&mut self, key: &RunKey, epoch: u64) -> bool {
        let claim = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch);
        claim.is_some_and(|claim| !std::mem::replace(&mut claim.is_lost, true))
    }

    /// The directory of runs knows that a claim is lost.
    pub(super) fn lost(&mut self, key: &RunKey, epoch: u64) {
        let Some(claim) = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch) else { return };
        // The other daemon may have read it: what becomes of it is not known yet.
        if let Some(in_flight) = claim.in_flight {
            let waiters = claim.waiters.extract_if(.., |(last, _)| *last <= in_flight).collect();
            self.departing.insert((key.clone(), epoch), waiters);
        }
        self.drop_claim(key);
    }

    /// All claims, with their epochs.
    pub(super) fn all(&self) -> Vec<(RunKey, u64)> {
        self.claims.iter().map(|(key, claim)| (key.clone(), claim.epoch)).collect()
    }

    fn drop_claim(&mut self, key: &RunKey) {
        self.uncommitted.remove(key);
        let Some(claim) = self.claims.remove(key) else { return };
        for (_, waiter) in claim.waiters {
            // A send fails only if whoever waited has given up.
            waiter.send(if claim.is_over { Ok(()) } else { Err(Moved) }).ok();
        }
    }

    /// What is to be written, but for runs of which something is being written; at most so much.
    pub(super) fn uncommitted(&mut self, under_way: &HashSet<RunKey>, most: usize) -> Vec<UncommittedState> {
        let waiting = self.uncommitted.iter().filter(|key| !under_way.contains(*key)).take(most);
        let claims = &mut self.claims;
        let change = |key: &RunKey| {
            let claim = claims.get_mut(key)?;
            claim.in_flight = Some(claim.changes);
            Some(UncommittedState {
                key: key.clone(),
                epoch: claim.epoch,
                after: claim.number,
                change: claim.changes,
                state: (!claim.is_over).then(|| claim.state.clone()),
            })
        };
        waiting.filter_map(change).collect()
    }

    /// The bucket has a change, under this number.
    pub(super) fn committed(&mut self, change: &UncommittedState, number: u64) {
        let Some(claim) = self.claims.get_mut(&change.key).filter(|claim| claim.epoch == change.epoch) else {
            return self.depart(change, Ok(()));
        };
        claim.in_flight = None;
        (claim.number, claim.committed, claim.written) = (number, change.change, Instant::now());
        let is_done = claim.committed == claim.changes;
        for (_, waiter) in claim.waiters.extract_if(.., |(last, _)| *last <= change.change) {
            // A send fails only if whoever waited has given up.
            waiter.send(Ok(())).ok();
        }
        if is_done {
            self.uncommitted.remove(&change.key);
        }
        if is_done && change.state.is_none() {
            self.claims.remove(&change.key);
        }
    }

    /// The bucket does not have a change, as far as is known.
    pub(super) fn failed(&mut self, change: &UncommittedState) {
        match self.claims.get_mut(&change.key).filter(|claim| claim.epoch == change.epoch) {
            Some(claim) => claim.in_flight = None,
            None => self.depart(change, Err(Moved)),
        }
    }

    fn depart(&mut self, change: &UncommittedState, result: Result<(), Moved>) {
        let waiters = self.departing.remove(&(change.key.clone(), change.epoch));
        for (_, waiter) in waiters.into_iter().flatten() {
            // A send fails only if whoever waited has given up.
            waiter.send(result).ok();
        }
    }

    /// The last message of a claim has this number: it was written and not confirmed.
    pub(super) fn found(&mut self, key: &RunKey, epoch: u64, number: u64) {
        if let Some(claim) = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch) {
            claim.number = claim.number.max(number);
        }
    }

    /// What to wait for until the bucket has what an event has changed that began under the claim with this epoch; none if it
    /// has everything.
    ///
    /// Returns an error if that claim is lost.
    pub(super) fn commitment(&mut self, key: &RunKey, epoch: u64) -> Result<Option<Commitment>, Moved> {
        let claim = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch && !claim.is_lost);
        let claim = claim.ok_or(Moved)?;
        if claim.committed == claim.changes {
            return Ok(None);
        }
        let (sender, receiver) = oneshot::channel();
        claim.waiters.push((claim.changes, sender));
        Ok(Some(receiver))
    }

    /// The epoch and the number of a claim.
    pub(super) fn place_of(&self, key: &RunKey) -> Option<(u64, u64)> {
        self.claims.get(key).map(|claim| (claim.epoch, claim.number))
    }
}
