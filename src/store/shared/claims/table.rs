//! The claims of this daemon, and the state of their runs that the bucket does not have yet. Pure.

use std::{
    collections::{HashMap, HashSet},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

use super::message::ClaimMessage;
use crate::{
    model::RunKey,
    store::{Commitment, Moved, StoredRun},
};

/// What this daemon has claimed. `W` is told what becomes of a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::shared) struct ClaimTable<W = Waiter> {
    claims: HashMap<RunKey, OwnClaim<W>>,
    /// The runs of which a claim is being written, and the number of the last message that was heard meanwhile of others.
    claiming: HashMap<RunKey, u64>,
    /// What is to be written.
    uncommitted: HashSet<RunKey>,
    /// Who waits for what was being written as the claim was lost: by the run and the epoch.
    departing: HashMap<(RunKey, u64), Waiters<W>>,
}

/// A claim of this daemon.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnClaim<W> {
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
    waiters: Waiters<W>,
}

/// Somebody who waits for a change.
pub(super) type Waiter = oneshot::Sender<Result<(), Moved>>;

/// Those who wait, and for which change.
type Waiters<W> = Vec<(u64, W)>;

/// Those who wait no more, and what became of their changes.
#[derive(Debug)]
#[must_use]
pub(in crate::store::shared) struct Settled<W>(pub(in crate::store::shared) Vec<(W, Result<(), Moved>)>);

impl<W> Settled<W> {
    fn of(waiters: Waiters<W>, result: Result<(), Moved>) -> Self {
        Self(waiters.into_iter().map(|(_, waiter)| (waiter, result)).collect())
    }
}

impl Settled<Waiter> {
    pub(super) fn tell(self) {
        for (waiter, result) in self.0 {
            // A send fails only if whoever waited has given up.
            waiter.send(result).ok();
        }
    }
}

/// Who goes on with a run whose claim is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store::shared) enum Taken {
    Here,
    /// Another daemon has claimed it since.
    Over,
}

/// What is to be written of a claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store::shared) struct UncommittedState {
    pub(in crate::store::shared) key: RunKey,
    pub(in crate::store::shared) epoch: u64,
    /// The number of the message that it follows.
    pub(in crate::store::shared) after: u64,
    /// Up to which change it is.
    pub(in crate::store::shared) change: u64,
    /// None if the run is over.
    pub(in crate::store::shared) state: Option<StoredRun>,
}

impl<W> Default for ClaimTable<W> {
    fn default() -> Self {
        Self {
            claims: HashMap::new(),
            claiming: HashMap::new(),
            uncommitted: HashSet::new(),
            departing: HashMap::new(),
        }
    }
}

impl<W> ClaimTable<W> {
    /// The epoch of the claim on a run, if it goes on here, and what other daemons have left of it is known.
    pub(in crate::store::shared) fn held(&self, key: &RunKey) -> Option<u64> {
        let claim = self.claims.get(key).filter(|claim| !claim.is_over && claim.is_adopted)?;
        Some(claim.epoch)
    }

    /// The directory of runs has the state that came with a claim.
    pub(in crate::store::shared) fn adopted(&mut self, key: &RunKey, epoch: u64) {
        if let Some(claim) = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch) {
            claim.is_adopted = true;
        }
    }

    /// Whether a run has ended here of which the bucket does not know that yet.
    pub(in crate::store::shared) fn is_ending(&self, key: &RunKey) -> bool {
        self.claims.get(key).is_some_and(|claim| claim.is_over)
    }

    /// A claim of a run is about to be written.
    pub(in crate::store::shared) fn begins(&mut self, key: &RunKey) {
        self.claiming.insert(key.clone(), 0);
    }

    /// No claim of a run is being written any more.
    pub(in crate::store::shared) fn ends(&mut self, key: &RunKey) {
        self.claiming.remove(key);
    }

    /// The bucket has a claim, under this number, since this time. Returns whether it was heard already that another daemon has
    /// taken the run over: then there is no claim.
    pub(in crate::store::shared) fn taken(
        &mut self,
        claim: &ClaimMessage,
        number: u64,
        now: Instant,
    ) -> (Settled<W>, Taken) {
        let key = &claim.key;
        let settled = self.drop_claim(key);
        if self.claiming.get(key).is_some_and(|heard| *heard > number) {
            return (settled, Taken::Over);
        }
        let claim = OwnClaim {
            epoch: claim.epoch,
            number,
            written: now,
            state: claim.state.clone(),
            is_adopted: false,
            is_lost: false,
            is_over: false,
            changes: 0,
            committed: 0,
            in_flight: None,
            waiters: Vec::new(),
        };
        self.claims.insert(key.clone(), claim);
        (settled, Taken::Here)
    }

    /// Notes the state of a run. Returns whether the bucket has to be told.
    pub(in crate::store::shared) fn note(&mut self, key: &RunKey, state: StoredRun) -> bool {
        let state = StoredRun { halt: None, ..state };
        // What comes before it is adopted must not take away what other daemons have left.
        let is_known = |claim: &&mut OwnClaim<W>| claim.is_adopted || state.includes(&claim.state);
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
    pub(in crate::store::shared) fn renew_old(&mut self, age: Duration, now: Instant) {
        let old = self.claims.iter().filter(|(_, claim)| now.duration_since(claim.written) >= age);
        let old: Vec<RunKey> = old.map(|(key, _)| key.clone()).collect();
        for key in &old {
            self.change(key);
        }
    }

    /// This daemon forgets a run.
    pub(in crate::store::shared) fn forget(&mut self, key: &RunKey) -> Settled<W> {
        self.drop_claim(key)
    }

    /// A run is over. Returns whether the bucket has to be told.
    pub(in crate::store::shared) fn end(&mut self, key: &RunKey) -> bool {
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
    pub(in crate::store::shared) fn is_news(&mut self, key: &RunKey, epoch: u64) -> bool {
        let claim = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch);
        claim.is_some_and(|claim| !std::mem::replace(&mut claim.is_lost, true))
    }

    /// Another daemon has written a message of a run, under this number. Returns the claim that is lost by that, if one is.
    pub(in crate::store::shared) fn hear_of_another(&mut self, key: &RunKey, number: u64) -> Option<u64> {
        if let Some(heard) = self.claiming.get_mut(key) {
            *heard = number.max(*heard);
        }
        self.claims.get(key).filter(|claim| claim.number < number).map(|claim| claim.epoch)
    }

    /// Whether a message of another daemon about this run matters here.
    pub(in crate::store::shared) fn concerns(&self, key: &RunKey, number: u64) -> bool {
        self.claiming.contains_key(key) || self.claims.get(key).is_some_and(|claim| claim.number < number)
    }

    /// The directory of runs knows that a claim is lost.
    pub(in crate::store::shared) fn lost(&mut self, key: &RunKey, epoch: u64) -> Settled<W> {
        let Some(claim) = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch) else {
            return Settled(Vec::new());
        };
        // The other daemon may have read it: what becomes of it is not known yet.
        if let Some(in_flight) = claim.in_flight {
            let waiters = claim.waiters.extract_if(.., |(last, _)| *last <= in_flight).collect();
            self.departing.insert((key.clone(), epoch), waiters);
        }
        // Also if the run was about to end here: the other one goes on with it, and has to hear of the end.
        claim.is_over = false;
        self.drop_claim(key)
    }

    /// All claims, with their epochs.
    pub(in crate::store::shared) fn all(&self) -> Vec<(RunKey, u64)> {
        self.claims.iter().map(|(key, claim)| (key.clone(), claim.epoch)).collect()
    }

    fn drop_claim(&mut self, key: &RunKey) -> Settled<W> {
        self.uncommitted.remove(key);
        let Some(claim) = self.claims.remove(key) else { return Settled(Vec::new()) };
        Settled::of(claim.waiters, if claim.is_over { Ok(()) } else { Err(Moved) })
    }

    /// What is to be written, but for runs of which something is being written; at most so much.
    pub(in crate::store::shared) fn uncommitted(
        &mut self,
        under_way: &HashSet<RunKey>,
        most: usize,
    ) -> Vec<UncommittedState> {
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

    /// The bucket has a change, under this number, since this time.
    pub(in crate::store::shared) fn committed(
        &mut self,
        change: &UncommittedState,
        number: u64,
        now: Instant,
    ) -> Settled<W> {
        let Some(claim) = self.claims.get_mut(&change.key).filter(|claim| claim.epoch == change.epoch) else {
            return self.depart(change, Ok(()));
        };
        claim.in_flight = None;
        (claim.number, claim.committed, claim.written) = (number, change.change, now);
        let is_done = claim.committed == claim.changes;
        let told = claim.waiters.extract_if(.., |(last, _)| *last <= change.change).collect();
        if is_done {
            self.uncommitted.remove(&change.key);
        }
        if is_done && change.state.is_none() {
            self.claims.remove(&change.key);
        }
        Settled::of(told, Ok(()))
    }

    /// The bucket does not have a change, as far as is known.
    pub(in crate::store::shared) fn failed(&mut self, change: &UncommittedState) -> Settled<W> {
        match self.claims.get_mut(&change.key).filter(|claim| claim.epoch == change.epoch) {
            Some(claim) => {
                claim.in_flight = None;
                Settled(Vec::new())
            }
            None => self.depart(change, Err(Moved)),
        }
    }

    fn depart(&mut self, change: &UncommittedState, result: Result<(), Moved>) -> Settled<W> {
        let waiters = self.departing.remove(&(change.key.clone(), change.epoch));
        Settled::of(waiters.unwrap_or_default(), result)
    }

    /// The last message of a claim has this number: it was written and not confirmed.
    pub(in crate::store::shared) fn found(&mut self, key: &RunKey, epoch: u64, number: u64) {
        if let Some(claim) = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch) {
            claim.number = claim.number.max(number);
        }
    }

    /// Has somebody wait until the bucket has what an event has changed that began under the claim with this epoch. Returns whether
    /// there is something to wait for.
    ///
    /// Returns an error if that claim is lost.
    pub(in crate::store::shared) fn wait(
        &mut self,
        key: &RunKey,
        epoch: u64,
        waiter: W,
    ) -> Result<bool, Moved> {
        let claim = self.claims.get_mut(key).filter(|claim| claim.epoch == epoch && !claim.is_lost);
        let claim = claim.ok_or(Moved)?;
        let waits = claim.committed != claim.changes;
        if waits {
            claim.waiters.push((claim.changes, waiter));
        }
        Ok(waits)
    }
}

impl ClaimTable {
    /// What to wait for until the bucket has what an event has changed that began under the claim with this epoch; none if it
    /// has everything.
    ///
    /// Returns an error if that claim is lost.
    pub(super) fn commitment(&mut self, key: &RunKey, epoch: u64) -> Result<Option<Commitment>, Moved> {
        let (sender, receiver) = oneshot::channel();
        Ok(self.wait(key, epoch, sender)?.then_some(receiver))
    }
}

#[cfg(test)]
impl<W: std::hash::Hash> std::hash::Hash for ClaimTable<W> {
    fn hash<H: std::hash::Hasher>(&self, hasher: &mut H) {
        let of_state = |state: &StoredRun| (state.stops_blocked, state.had_turn.clone());
        for claim in self.claims.values() {
            (claim.epoch, claim.number, of_state(&claim.state), claim.is_adopted).hash(hasher);
            (claim.is_lost, claim.is_over, claim.changes, claim.committed).hash(hasher);
            (claim.in_flight, &claim.waiters).hash(hasher);
        }
        (self.claims.len(), self.uncommitted.len()).hash(hasher);
        self.claiming.values().for_each(|heard| heard.hash(hasher));
        let mut departing: Vec<_> = self.departing.iter().collect();
        departing.sort_by_key(|((_, epoch), _)| *epoch);
        for ((_, epoch), waiters) in departing {
            (epoch, waiters).hash(hasher);
        }
    }
}
