//! The halts of a cluster, as this daemon knows them, and those of its own that the bucket does not have yet. Pure.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    time::Duration,
};

use tokio::sync::oneshot;

use super::messages::{HaltMessage, token_of};
use crate::{model::RunKey, store::StoredHalt};

/// What is known of the halt of each run.
#[derive(Debug, Default)]
pub(super) struct HaltTable {
    runs: HashMap<RunKey, KnownHalt>,
    /// The runs with a change that the bucket does not have, by the number of the change.
    unstored: BTreeMap<u64, RunKey>,
    changes: u64,
    waiters: Vec<Waiter>,
}

/// Those who wait until the others know the halt of a run, whom one asks for all.
#[derive(Debug, Default)]
pub(super) struct OwnQuestions {
    pub(super) waiting: HashMap<RunKey, Vec<oneshot::Sender<()>>>,
}

/// Somebody who waits until the bucket has all changes up to this one, of a run or of all.
#[derive(Debug)]
struct Waiter {
    last: u64,
    key: Option<RunKey>,
    notified: oneshot::Sender<()>,
}

/// What is known of the halt of a run.
#[derive(Debug, Default)]
struct KnownHalt {
    /// The halt; none if it is over.
    halt: Option<StoredHalt>,
    /// The change that the bucket does not have, if it lacks one.
    unstored: Option<OwnChange>,
    /// The number of its last message in the bucket; 0 if there is none.
    number: u64,
    /// When that was written, by the clock of the servers, in seconds; 0 until it was read.
    written: i64,
    /// The other daemons know the halt.
    is_known_by_all: bool,
    /// The last message that was read while the bucket lacked a change.
    overheard: Option<Overheard>,
}

/// What this daemon has done to a run, as long as the bucket does not have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct OwnChange {
    id: u64,
    /// The number of the message that it takes the place of. Only a new halt takes that of any.
    after: Option<u64>,
}

/// A message of the bucket that may be overtaken by a change of this daemon.
#[derive(Debug)]
struct Overheard {
    number: u64,
    written: i64,
    halt: Option<StoredHalt>,
}

/// A change that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnstoredChange {
    pub(super) id: u64,
    pub(super) key: RunKey,
    pub(super) halt: Option<StoredHalt>,
    /// The number of the message that it takes the place of: the end of a halt ends no other, and a halt that is written
    /// again takes back no end. None for a new halt, which counts whatever there is.
    pub(super) after: Option<u64>,
}

/// What a message of the bucket means for the runs of this daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heard {
    /// A run is halted, or its halt is over.
    Changed,
    /// Nothing that was not known, or that is not overtaken.
    Nothing,
}

/// A halt that the bucket will lose.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Aging {
    /// It is so old that it has to be written again if somebody asks for it.
    Old(RunKey),
    /// The bucket has it no more.
    Gone(RunKey),
}

impl HaltTable {
    /// Notes the halt of a run of this daemon, or that it is over. Returns whether the bucket has to be told.
    pub(super) fn note(&mut self, key: &RunKey, halt: Option<&StoredHalt>) -> bool {
        match (self.runs.get(key), halt) {
            (None | Some(KnownHalt { halt: None, .. }), None)
            | (Some(KnownHalt { halt: Some(_), .. }), Some(_)) => {
                return false;
            }
            _ => {}
        }
        let after = halt.is_none().then(|| self.number_of(key));
        self.write(key, halt.cloned(), after);
        true
    }

    /// The number of the last message of a run; 0 if there is none.
    fn number_of(&self, key: &RunKey) -> u64 {
        self.runs.get(key).map_or(0, |known| known.number)
    }

    /// Has all halts written again: the bucket has lost some.
    pub(super) fn renew_all(&mut self) {
        let keys: Vec<RunKey> = self.runs.keys().cloned().collect();
        for key in keys {
            if let Some(known) = self.runs.get_mut(&key) {
                known.number = 0;
                known.unstored.iter_mut().for_each(|own| own.after = own.after.map(|_| 0));
            }
            self.renew(&key);
        }
    }

    /// Has the halt of the run written again that has this key in the bucket: something else is there.
    pub(super) fn renew_at(&mut self, token: &str) {
        let found = self.runs.iter().find(|(key, _)| token_of(key) == token);
        if let Some((key, halt)) = found.and_then(|(key, known)| Some((key.clone(), known.halt.clone()?))) {
            self.write(&key, Some(halt), None);
        }
    }

    /// Has the halt of a run written again, unless the bucket has something newer.
    pub(super) fn renew(&mut self, key: &RunKey) {
        let Some(known) = self.runs.get(key) else { return };
        // One that is not in the bucket yet will be.
        if let (Some(halt), None) = (known.halt.clone(), known.unstored) {
            self.write(key, Some(halt), Some(self.number_of(key)));
        }
    }

    fn write(&mut self, key: &RunKey, halt: Option<StoredHalt>, after: Option<u64>) {
        self.changes += 1;
        let known = self.runs.entry(key.clone()).or_default();
        known.halt = halt;
        if let Some(overtaken) = known.unstored.replace(OwnChange { id: self.changes, after }) {
            self.unstored.remove(&overtaken.id);
        }
        self.unstored.insert(self.changes, key.clone());
    }

    /// The changes that the bucket does not have, but for those of runs of which one is being written; at most so many. The
    /// latest come first: somebody waits for them, and for halts that are written again nobody does.
    pub(super) fn unstored(&self, under_way: &HashSet<RunKey>, most: usize) -> Vec<UnstoredChange> {
        let waiting = self.unstored.iter().rev().filter(|(_, key)| !under_way.contains(key)).take(most);
        let change = |(&id, key): (&u64, &RunKey)| {
            let known = self.runs.get(key)?;
            let after = known.unstored?.after;
            Some(UnstoredChange { id, key: key.clone(), halt: known.halt.clone(), after })
        };
        waiting.filter_map(change).collect()
    }

    /// The bucket has a change, under this number; with none, it has something newer, so that the change is dropped. Returns
    /// whether the directory of runs has to be told what is known of the run now.
    pub(super) fn stored(&mut self, change: &UnstoredChange, number: Option<u64>) -> bool {
        self.unstored.remove(&change.id);
        let has_news = self.settle(change, number);
        self.notify();
        has_news
    }

    fn settle(&mut self, change: &UnstoredChange, number: Option<u64>) -> bool {
        let Some(known) = self.runs.get_mut(&change.key) else { return false };
        known.number = known.number.max(number.unwrap_or_default());
        let is_raised = |own: &OwnChange| number.is_none() && own.after > change.after;
        match &mut known.unstored {
            // An earlier change of this daemon was in its place, and not confirmed: it is written again.
            Some(own) if own.id == change.id && is_raised(own) => {
                self.unstored.insert(change.id, change.key.clone());
                return false;
            }
            Some(own) if own.id == change.id => known.unstored = None,
            // It has done something else since, which takes the place of this.
            Some(later) if later.after.is_some() && number.is_some() => {
                later.after = later.after.max(number);
                return false;
            }
            _ => return false,
        }
        // The others were asked before.
        known.is_known_by_all = number.is_some();
        let mut is_overtaken = false;
        if let Some(Overheard { number: heard, written, halt }) = known.overheard.take()
            && number.is_none_or(|number| heard >= number)
        {
            is_overtaken = halt.is_some() != known.halt.is_some();
            known.is_known_by_all &= number == Some(heard);
            (known.number, known.written, known.halt) = (known.number.max(heard), written, halt);
        }
        let is_halted = known.halt.is_some();
        if !is_halted {
            self.runs.remove(&change.key);
        }
        is_overtaken || is_halted
    }

    /// Whether the halt of a run may be answered with strict promises, or the run is not halted.
    pub(super) fn may_be_answered(&self, key: &RunKey) -> bool {
        let Some(known) = self.runs.get(key) else { return true };
        known.unstored.is_none() && (known.halt.is_none() || known.is_known_by_all)
    }

    /// The number of the halt of a run of which the others have not been asked whether they know it.
    pub(super) fn unasked(&self, key: &RunKey) -> Option<u64> {
        let known = self.runs.get(key).filter(|known| known.halt.is_some() && !known.is_known_by_all)?;
        Some(known.number)
    }

    /// The others know the halt of a run that the message with this number tells.
    pub(super) fn known_by_all(&mut self, key: &RunKey, number: u64) {
        if let Some(known) = self.runs.get_mut(key).filter(|known| known.number == number) {
            known.is_known_by_all = known.halt.is_some();
        }
    }

    /// A receiver that is notified once the bucket has what it lacks now of a run, or of all runs.
    pub(super) fn flushed(&mut self, key: Option<&RunKey>) -> oneshot::Receiver<()> {
        let (notified, receiver) = oneshot::channel();
        self.waiters.push(Waiter { last: self.changes, key: key.cloned(), notified });
        self.notify();
        receiver
    }

    fn notify(&mut self) {
        let (runs, unstored) = (&self.runs, &self.unstored);
        let first_of = |key: &RunKey| Some(runs.get(key)?.unstored?.id);
        let is_done = |waiter: &Waiter| {
            let first = match &waiter.key {
                Some(key) => first_of(key),
                None => unstored.keys().next().copied(),
            };
            first.is_none_or(|first| first > waiter.last) || waiter.notified.is_closed()
        };
        for waiter in self.waiters.extract_if(.., |waiter| is_done(waiter)) {
            // A send fails only if whoever waited has given up.
            waiter.notified.send(()).ok();
        }
    }

    /// Takes in a message of the bucket with this number, written at this time by this daemon or another one.
    pub(super) fn hear(&mut self, message: HaltMessage, number: u64, written: i64, is_own: bool) -> Heard {
        let known = self.runs.entry(message.key.clone()).or_default();
        if number < known.number {
            return Heard::Nothing;
        }
        // Between two messages, the run may have gone on.
        known.is_known_by_all &= number == known.number;
        known.number = number;
        match &mut known.unstored {
            // It comes after this one.
            Some(OwnChange { after: None, .. }) => {
                known.overheard = Some(Overheard { number, written, halt: message.halt });
                return Heard::Nothing;
            }
            // What this daemon has done last takes the place of what it did before, which was not confirmed.
            Some(OwnChange { after: Some(after), .. }) if is_own => {
                *after = number.max(*after);
                known.written = written;
                return Heard::Nothing;
            }
            // It cannot be written any more.
            Some(OwnChange { id, after: Some(after) }) if number > *after => {
                self.unstored.remove(id);
                (known.unstored, known.overheard) = (None, None);
            }
            Some(_) => return Heard::Nothing,
            None => {}
        }
        known.written = written;
        known.halt.clone_from(&message.halt);
        if message.halt.is_none() {
            self.runs.remove(&message.key);
        }
        self.notify();
        Heard::Changed
    }

    /// The servers' clock was set forward by so many seconds: what was written before is no older for that. The servers may take
    /// it for old, so halts are written again.
    pub(super) fn set_forward(&mut self, ahead: i64) {
        for known in self.runs.values_mut().filter(|known| known.written != 0) {
            known.written = known.written.saturating_add(ahead);
        }
        let keys: Vec<RunKey> = self.runs.keys().cloned().collect();
        for key in &keys {
            self.renew(key);
        }
    }

    /// The halts that have been in the bucket for half of this time or longer, at this time of the servers' clock.
    pub(super) fn aging(&mut self, now: i64, kept: Duration) -> Vec<Aging> {
        // That clock was ahead meanwhile, or some were read after it was set forward.
        self.runs.values_mut().for_each(|known| known.written = known.written.min(now));
        let kept = i64::try_from(kept.as_secs()).unwrap_or(i64::MAX);
        let age = |known: &KnownHalt| now.saturating_sub(known.written);
        let settled = self.runs.iter().filter(|(_, known)| known.unstored.is_none() && known.written != 0);
        let old = settled.filter(|(_, known)| age(known) >= kept / 2);
        let aging: Vec<Aging> = old
            .map(
                |(key, known)| {
                    if age(known) > kept { Aging::Gone(key.clone()) } else { Aging::Old(key.clone()) }
                },
            )
            .collect();
        for gone in &aging {
            if let Aging::Gone(key) = gone {
                self.runs.remove(key);
            }
        }
        aging
    }

    /// The halt of a run, if it is halted.
    pub(super) fn halt_of(&self, key: &RunKey) -> Option<StoredHalt> {
        self.runs.get(key)?.halt.clone()
    }

    /// How many halts are known, and how many changes the bucket does not have.
    pub(super) fn counts(&self) -> (usize, usize) {
        (self.runs.len(), self.unstored.len())
    }
}
