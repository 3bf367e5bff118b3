//! The halts of a cluster, as this daemon knows them, and those of its own that the bucket does not have yet. Pure.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use tokio::sync::oneshot;

use super::messages::HaltMessage;
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
    /// When that was written, by the clock of the servers, in seconds.
    written: i64,
}

/// A change that is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UnstoredChange {
    pub(super) id: u64,
    pub(super) key: RunKey,
    pub(super) halt: Option<StoredHalt>,
}

/// What a message of the bucket means for the runs of this daemon.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// The run is halted.
    Halted(StoredHalt),
    /// Its halt is over.
    Over,
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

    /// The changes that the bucket does not have, but for those that are being written; at most so many.
    pub(super) fn unstored(&self, under_way: &BTreeSet<u64>, most: usize) -> Vec<UnstoredChange> {
        let waiting = self.unstored.iter().filter(|(id, _)| !under_way.contains(id)).take(most);
        let change = |(&id, key): (&u64, &RunKey)| {
            let halt = self.runs.get(key)?.halt.clone();
            Some(UnstoredChange { id, key: key.clone(), halt })
        };
        waiting.filter_map(change).collect()
    }

    /// The bucket has a change, under this number.
    pub(super) fn stored(&mut self, change: &UnstoredChange, number: u64) {
        self.unstored.remove(&change.id);
        if let Some(known) = self.runs.get_mut(&change.key) {
            known.number = known.number.max(number);
            if known.unstored == Some(change.id) {
                known.unstored = None;
                if known.halt.is_none() {
                    self.runs.remove(&change.key);
                }
            }
        }
        self.notify();
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
        // What this daemon has to say comes after it.
        if known.unstored.is_some() || number < known.number {
            return Heard::Nothing;
        }
        (known.number, known.written) = (number, written);
        known.halt.clone_from(&message.halt);
        if let Some(halt) = message.halt {
            return Heard::Halted(halt);
        }
        self.runs.remove(&message.key);
        Heard::Over
    }

    /// The halts that have been in the bucket for half of this time or longer, at this time of the servers' clock.
    pub(super) fn aging(&mut self, now: i64, kept: Duration) -> Vec<Aging> {
        let kept = i64::try_from(kept.as_secs()).unwrap_or(i64::MAX);
        let age = |known: &KnownHalt| now.saturating_sub(known.written);
        let settled = self.runs.iter().filter(|(_, known)| known.unstored.is_none());
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
