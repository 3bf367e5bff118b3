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
    waiters: Vec<(u64, oneshot::Sender<()>)>,
}

/// What is known of the halt of a run.
#[derive(Debug, Default)]
struct KnownHalt {
    /// The halt; none if it is over.
    halt: Option<StoredHalt>,
    /// The number of the change that the bucket does not have, if it lacks one.
    unstored: Option<u64>,
    /// The number of its last message in the bucket; 0 if there is none.
    number: u64,
    /// When that was written, by the clock of the servers, in seconds; 0 until it was read.
    written: i64,
    /// The last message that was read while the bucket lacked a change.
    overheard: Option<Overheard>,
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
    /// The number of the message that it follows. The end of a halt ends no other.
    pub(super) after: u64,
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
        self.write(key, halt.cloned());
        true
    }

    /// Has all halts written again: the bucket has lost some.
    pub(super) fn renew_all(&mut self) {
        let keys: Vec<RunKey> = self.runs.keys().cloned().collect();
        for key in keys {
            if let Some(known) = self.runs.get_mut(&key) {
                known.number = 0;
            }
            self.renew(&key);
        }
    }

    /// Has the halt of the run written again that has this key in the bucket: something else is there.
    pub(super) fn renew_at(&mut self, token: &str) {
        let found = self.runs.keys().find(|key| token_of(key) == token).cloned();
        if let Some(key) = found {
            self.renew(&key);
        }
    }

    /// Has the halt of a run written again.
    pub(super) fn renew(&mut self, key: &RunKey) {
        if let Some(halt) = self.runs.get(key).and_then(|known| known.halt.clone()) {
            self.write(key, Some(halt));
        }
    }

    fn write(&mut self, key: &RunKey, halt: Option<StoredHalt>) {
        self.changes += 1;
        let known = self.runs.entry(key.clone()).or_default();
        known.halt = halt;
        if let Some(overtaken) = known.unstored.replace(self.changes) {
            self.unstored.remove(&overtaken);
        }
        self.unstored.insert(self.changes, key.clone());
    }

    /// The changes that the bucket does not have, but for those of runs of which one is being written; at most so many.
    pub(super) fn unstored(&self, under_way: &HashSet<RunKey>, most: usize) -> Vec<UnstoredChange> {
        let waiting = self.unstored.iter().filter(|(_, key)| !under_way.contains(key)).take(most);
        let change = |(&id, key): (&u64, &RunKey)| {
            let known = self.runs.get(key)?;
            Some(UnstoredChange { id, key: key.clone(), halt: known.halt.clone(), after: known.number })
        };
        waiting.filter_map(change).collect()
    }

    /// The bucket has a change, under this number; with none, it has something newer, so that the change is dropped. Returns
    /// whether another daemon has changed the run after it.
    pub(super) fn stored(&mut self, change: &UnstoredChange, number: Option<u64>) -> bool {
        self.unstored.remove(&change.id);
        let is_overtaken = self.settle(change, number);
        self.notify();
        is_overtaken
    }

    fn settle(&mut self, change: &UnstoredChange, number: Option<u64>) -> bool {
        let Some(known) = self.runs.get_mut(&change.key) else { return false };
        known.number = known.number.max(number.unwrap_or_default());
        if known.unstored != Some(change.id) {
            return false;
        }
        known.unstored = None;
        let mut is_overtaken = false;
        if let Some(Overheard { number: heard, written, halt }) = known.overheard.take()
            && number.is_none_or(|number| heard >= number)
        {
            is_overtaken = halt.is_some() != known.halt.is_some();
            (known.number, known.written, known.halt) = (known.number.max(heard), written, halt);
        }
        if known.halt.is_none() {
            self.runs.remove(&change.key);
        }
        is_overtaken
    }

    /// A receiver that is notified once the bucket has all that it lacks now.
    pub(super) fn flushed(&mut self) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.waiters.push((self.changes, sender));
        self.notify();
        receiver
    }

    fn notify(&mut self) {
        let first = self.unstored.keys().next().copied().unwrap_or(u64::MAX);
        for (_, waiter) in self.waiters.extract_if(.., |(last, waiter)| *last < first || waiter.is_closed()) {
            // A send fails only if whoever waited has given up.
            waiter.send(()).ok();
        }
    }

    /// Takes in a message of the bucket with this number, written at this time.
    pub(super) fn hear(&mut self, message: HaltMessage, number: u64, written: i64) -> Heard {
        let known = self.runs.entry(message.key.clone()).or_default();
        if number < known.number {
            return Heard::Nothing;
        }
        // What this daemon has to say may come before it or after it: the bucket will tell.
        if known.unstored.is_some() {
            known.number = number;
            known.overheard = Some(Overheard { number, written, halt: message.halt });
            return Heard::Nothing;
        }
        (known.number, known.written) = (number, written);
        known.halt.clone_from(&message.halt);
        if message.halt.is_none() {
            self.runs.remove(&message.key);
        }
        Heard::Changed
    }

    /// The halts that have been in the bucket for half of this time or longer, at this time of the servers' clock.
    pub(super) fn aging(&mut self, now: i64, kept: Duration) -> Vec<Aging> {
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
