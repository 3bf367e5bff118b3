//! Which daemon goes on with a run whose state has to hold on all of them, and that state.
//!
//! Before the first event of a run whose hooks leave something behind, as those that run once per run, a daemon writes a claim
//! into the bucket: the message of the run, in place of exactly the one that it has read. It has the state that the last claim
//! left. What hooks change later is written the same way, before the event is answered, in place of the daemon's own last
//! message. If another daemon has claimed the run meanwhile, that fails: the event gets `moved`, and the daemon forgets what
//! it knew of the state.

pub(super) mod message;
mod publisher;
pub(super) mod table;
#[cfg(test)]
mod tests;

use std::{
    hash::{BuildHasher, RandomState},
    sync::Arc,
    time::Duration,
};

use parking_lot::Mutex as SyncMutex;
use tokio::{
    sync::{Mutex, MutexGuard, Notify},
    time::{Instant, sleep},
};

use super::{
    HaltListener,
    bucket::Bucket,
    error::ClusterError,
    messages::token_of,
    publication::{Message, PATIENCE, Put},
};
use crate::{
    model::RunKey,
    store::{Commitment, Moved, StoredRun},
};

use message::{ClaimMessage, FoundClaim, LastClaim};
pub(super) use publisher::publish;
use table::{ClaimTable, Taken};

/// How many runs are claimed at the same time, at most; of those that share a place, one after the other.
const PLACES: usize = 1024;

/// How long a claim may take.
const CLAIM_PATIENCE: Duration = Duration::from_secs(2);

/// How long the end of a run is tried to be told.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// The wait before a claim is tried again that another daemon was faster with.
const CONTENDED_PAUSE: Duration = Duration::from_millis(3);

/// The wait before a claim is tried again that the store did not confirm.
const UNREACHABLE_PAUSE: Duration = Duration::from_millis(100);

/// The store does not confirm that this daemon goes on with a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotClaimed;

/// A claim whose state the directory of runs does not have yet.
#[derive(Debug)]
pub(crate) struct NewClaim<'c> {
    claims: &'c RunClaims,
    epoch: u64,
    /// What hooks have done in the run.
    pub(crate) state: StoredRun,
    /// Other daemons have had the run: what is known of it here may be old.
    pub(crate) is_known: bool,
    _turn: MutexGuard<'c, ()>,
}

impl NewClaim<'_> {
    /// The directory of runs has the state: the run goes on here.
    pub(crate) fn adopted(self, key: &RunKey) {
        self.claims.table.lock().adopted(key, self.epoch);
    }
}

/// The runs that this daemon has claimed.
pub(crate) struct RunClaims {
    bucket: Bucket,
    listener: Arc<dyn HaltListener>,
    table: SyncMutex<ClaimTable>,
    /// The table has another change that the bucket does not have.
    changed: Notify,
    /// One claim of a run at a time.
    places: Box<[Mutex<()>]>,
    hasher: RandomState,
}

impl std::fmt::Debug for RunClaims {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunClaims").field("bucket", &self.bucket).finish_non_exhaustive()
    }
}

impl RunClaims {
    pub(super) fn new(bucket: Bucket, listener: Arc<dyn HaltListener>) -> Self {
        Self {
            bucket,
            listener,
            table: SyncMutex::default(),
            changed: Notify::new(),
            places: (0..PLACES).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
        }
    }

    /// Claims a run, unless this daemon has. Returns the claim if it is new; others wait until it is dropped.
    ///
    /// Returns an error if the store does not confirm it in time.
    pub(crate) async fn claim(&self, key: &RunKey) -> Result<Option<NewClaim<'_>>, NotClaimed> {
        let place = usize::try_from(self.hasher.hash_one(key) % PLACES as u64).unwrap_or_default();
        let turn = self.places[place].lock().await;
        if self.table.lock().held(key).is_some() {
            return Ok(None);
        }
        let started = Instant::now();
        // Most runs are new: no look at the bucket.
        let mut found = FoundClaim::default();
        while started.elapsed() < CLAIM_PATIENCE {
            let is_known = found.number > 0;
            match self.try_claim(key, found).await {
                Ok((epoch, state)) => {
                    return Ok(Some(NewClaim { claims: self, epoch, state, is_known, _turn: turn }));
                }
                Err(TryAgain::Contended) => sleep(CONTENDED_PAUSE).await,
                Err(TryAgain::Unreachable) => sleep(UNREACHABLE_PAUSE).await,
                Err(TryAgain::Never) => return Err(NotClaimed),
            }
            found = self.find(key).await?;
        }
        Err(NotClaimed)
    }

    async fn try_claim(&self, key: &RunKey, found: FoundClaim) -> Result<(u64, StoredRun), TryAgain> {
        let own = self.bucket.options();
        let number = found.number;
        let is_ending = self.table.lock().is_ending(key);
        let claim = ClaimMessage::following(key, found, &own.instance, is_ending).ok_or(TryAgain::Never)?;
        let bytes = claim.encode(&own.node).map_err(|_| TryAgain::Never)?;
        let message = Message::put(bytes).after(Some(number));
        let _claiming = Claiming::of(self, key);
        match self.bucket.write(&subject_of(key), message, PATIENCE).await {
            Ok(Put::Written(number)) => {
                let (settled, taken) = self.table.lock().taken(&claim, number, Instant::now());
                settled.tell();
                match taken {
                    Taken::Here => Ok((claim.epoch, claim.state)),
                    Taken::Over => Err(TryAgain::Contended),
                }
            }
            Ok(Put::Taken | Put::Contended) => Err(TryAgain::Contended),
            Err(_) => Err(TryAgain::Unreachable),
        }
    }

    /// What the bucket has of a run.
    ///
    /// Returns an error if it cannot be read.
    async fn find(&self, key: &RunKey) -> Result<FoundClaim, NotClaimed> {
        let last = self.last(key).await.map_err(|_| NotClaimed)?;
        last.map_or_else(|| Ok(FoundClaim::default()), |last| last.found(key)).map_err(|why| {
            tracing::error!(run = %key.run, %why, "the state of a run in the store of the cluster cannot be read");
            NotClaimed
        })
    }

    /// The last message of a run in the bucket.
    async fn last(&self, key: &RunKey) -> Result<Option<LastClaim>, ClusterError> {
        let last = self.bucket.last(&subject_of(key)).await?;
        Ok(last.map(|last| LastClaim::of(last.number, last.is_over, &last.bytes)))
    }

    /// The epoch of the claim on a run, if it goes on here.
    pub(crate) fn held(&self, key: &RunKey) -> Option<u64> {
        self.table.lock().held(key)
    }

    /// Notes the state of a run.
    pub(super) fn note(&self, key: &RunKey, state: StoredRun) {
        if self.table.lock().note(key, state) {
            self.changed.notify_one();
        }
    }

    /// This daemon forgets a run, or the run is over.
    pub(super) fn leave(&self, key: &RunKey, is_over: bool) {
        if !is_over {
            return self.table.lock().forget(key).tell();
        }
        if self.table.lock().end(key) {
            self.changed.notify_one();
        }
    }

    /// Ends a run that this daemon has not claimed, if the bucket has something of it. Nobody waits for it.
    pub(super) fn end_elsewhere(self: &Arc<Self>, key: &RunKey) {
        if self.table.lock().is_ending(key) {
            return;
        }
        let (claims, key) = (Arc::clone(self), key.clone());
        tokio::spawn(async move {
            let started = Instant::now();
            while started.elapsed() < END_PATIENCE {
                match claims.try_end(&key).await {
                    Ok(Put::Written(_)) => return,
                    Ok(Put::Taken | Put::Contended) => sleep(CONTENDED_PAUSE).await,
                    Err(_) => sleep(UNREACHABLE_PAUSE).await,
                }
            }
            tracing::warn!(run = %key.run, "what hooks did in a run that is over stays in the store of the cluster");
        });
    }

    /// Ends a run that is not known here, if the bucket has something of it. Returns whether it had.
    pub(crate) async fn end_now(&self, key: &RunKey) -> bool {
        let started = Instant::now();
        while started.elapsed() < CLAIM_PATIENCE {
            match self.try_end(key).await {
                Ok(Put::Written(number)) => return number > 0,
                Ok(Put::Taken | Put::Contended) => sleep(CONTENDED_PAUSE).await,
                Err(_) => sleep(UNREACHABLE_PAUSE).await,
            }
        }
        tracing::warn!(run = %key.run, "what hooks did in a run that is cancelled stays in the store of the cluster");
        false
    }

    /// Returns where the end is; at 0 if there is nothing to end.
    async fn try_end(&self, key: &RunKey) -> Result<Put, ClusterError> {
        let Some(last) = self.last(key).await?.filter(|last| !last.is_over) else {
            return Ok(Put::Written(0));
        };
        let own = self.bucket.options();
        let message = ClaimMessage::end(key, &last, &own.instance);
        let bytes = message.encode(&own.node).map_err(|why| ClusterError::Unreachable(why.to_string()))?;
        self.bucket.write(&subject_of(key), Message::end(bytes).after(Some(last.number)), PATIENCE).await
    }

    /// What to wait for until the bucket has what an event has changed that began under the claim with this epoch; none if it
    /// has everything.
    ///
    /// Returns an error if that claim is lost.
    pub(crate) fn commitment(&self, key: &RunKey, epoch: u64) -> Result<Option<Commitment>, Moved> {
        self.table.lock().commitment(key, epoch)
    }

    /// Takes in a message of the bucket about a run, with this number.
    pub(super) fn hear(&self, bytes: &[u8], is_over: bool, number: u64) {
        let Some(key) = ClaimMessage::key_of(bytes) else { return };
        // Most are about runs of other daemons, and the rest of them is not read.
        if !self.table.lock().concerns(&key, number)
            || !LastClaim::of(number, is_over, bytes).is_of_another(&self.bucket.options().instance)
        {
            return;
        }
        let lost = self.table.lock().hear_of_another(&key, number);
        if let Some(epoch) = lost {
            self.lose(&key, epoch);
        }
    }

    /// The bucket has lost what it had confirmed. What is known here is all there is: the next claims bring it back.
    pub(super) fn lose_all(&self) {
        let mut table = self.table.lock();
        for (key, epoch) in table.all() {
            table.lost(&key, epoch).tell();
        }
    }

    /// Another daemon goes on with a run. What is known of it here is forgotten first: what a later claim brings comes after.
    fn lose(&self, key: &RunKey, epoch: u64) {
        if self.table.lock().is_news(key, epoch) {
            self.listener.moved(key);
            self.table.lock().lost(key, epoch).tell();
        }
    }

    /// Has the claims written again that are this old, before the bucket forgets them.
    pub(super) fn renew_old(&self, age: Duration) {
        self.table.lock().renew_old(age, Instant::now());
        self.changed.notify_one();
    }
}

/// A claim of a run that is being written: what is heard of others meanwhile counts.
struct Claiming<'c> {
    claims: &'c RunClaims,
    key: &'c RunKey,
}

impl<'c> Claiming<'c> {
    fn of(claims: &'c RunClaims, key: &'c RunKey) -> Self {
        claims.table.lock().begins(key);
        Self { claims, key }
    }
}

impl Drop for Claiming<'_> {
    fn drop(&mut self) {
        self.claims.table.lock().ends(self.key);
    }
}

/// Why a claim was not written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TryAgain {
    /// Another daemon was faster.
    Contended,
    /// The store does not confirm it.
    Unreachable,
    /// It would be too long.
    Never,
}

fn subject_of(key: &RunKey) -> String {
    format!("run.{}", token_of(key))
}
