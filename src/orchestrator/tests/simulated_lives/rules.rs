//! What must hold of simulated lives, whatever happens in them.

use std::collections::{BTreeMap, BTreeSet};

use super::{
    record::{Cancelled, Record, Sent, Work, WorkEnd},
    schedule::{Action, HOOK_TIMEOUT, Schedule},
};
use crate::{model::Verdict, orchestrator::DispatchError, store::tests::SimulatedDisk};

/// The waits between the tries of an event.
const PAUSES: [u64; 4] = [1000, 4000, 16_000, 64_000];

/// How much longer than its wait an event may wait for others of its run, for its place and for the disk.
const SLACK: u64 = 60_000;

/// How long an answer waits for a disk that hangs.
pub(super) const LONGEST_SAVE: u64 = 2000;

/// Holds what was seen against the rules.
pub(super) struct Check<'a> {
    schedule: &'a Schedule,
    sent: Vec<Sent>,
    work: BTreeMap<usize, Vec<Work>>,
    cancelled: Vec<Cancelled>,
    killed: Vec<(usize, u64)>,
}

impl<'a> Check<'a> {
    pub(super) fn new(schedule: &'a Schedule, record: &Record) -> Self {
        let mut sent = record.sent.lock().clone();
        sent.sort_by_key(|sent| (sent.life, sent.answered));
        let mut work: BTreeMap<usize, Vec<Work>> = BTreeMap::new();
        for done in record.work.lock().iter() {
            work.entry(done.number).or_default().push(done.clone());
        }
        for work in work.values_mut() {
            work.sort_by_key(|work| (work.life, work.from, work.to));
        }
        let cancelled = record.cancelled.lock().clone();
        Self { schedule, sent, work, cancelled, killed: record.killed.lock().clone() }
    }

    fn is_calm(&self) -> bool {
        self.schedule.seed.is_multiple_of(2)
    }

    /// Whether a daemon was killed in a life during a handover.
    fn is_broken(&self, life: usize) -> bool {
        self.killed.iter().any(|(killed_in, _)| *killed_in == life)
    }

    /// Whether a run may have begun afresh between two moments.
    fn begins_afresh(&self, run: usize, from: (usize, u64), to: (usize, u64)) -> bool {
        let within = |at: (usize, u64)| from <= at && at <= to;
        let cancelled = self.cancelled.iter().any(|known| known.run == run && within((known.life, known.at)));
        // Its end comes when its hooks have ended.
        let until = |sent: &Sent| (sent.life, sent.answered + 2 * HOOK_TIMEOUT + LONGEST_SAVE);
        cancelled
            || self.sent.iter().any(|sent| {
                matches!(sent.action, Action::Note { run: ended, ends_run: true, .. } if ended == run)
                    && (sent.life, sent.at) <= to
                    && until(sent) >= from
            })
    }

    /// A halt that was answered is on disk, and holds in this life and in all later ones.
    pub(super) fn halts_hold(&self) -> Result<(), String> {
        for halt in &self.sent {
            let Action::Call { run, .. } = halt.action else { continue };
            if halt.answer != Ok(Verdict::Halt) || !halt.has_hooks {
                continue;
            }
            let is_slow = halt.answered - halt.at >= LONGEST_SAVE;
            let from = (halt.life, halt.at);
            let is_fresh = self.begins_afresh(run, from, (halt.life, halt.answered));
            let must_be_stored = halt.disk_worked && !is_slow && !is_fresh;
            if must_be_stored && !halt.is_on_disk {
                return Err(format!("a halt was answered before it was on disk: {halt:?}"));
            }
            for later in &self.sent {
                let concerned = matches!(later.action, Action::Call { run: other, .. } if other == run);
                let to = (later.life, later.answered);
                let is_later = (later.life, later.at) > (halt.life, halt.answered);
                let is_known = later.process == halt.process || must_be_stored;
                if !concerned || !is_later || !is_known || self.begins_afresh(run, from, to) {
                    continue;
                }
                let holds = match &later.answer {
                    Ok(verdict) => *verdict == Verdict::Halt && !later.has_hooks,
                    Err(_) => true,
                };
                if !holds {
                    return Err(format!("the halt {halt:?} is undone: {later:?}"));
                }
            }
        }
        Ok(())
    }

    /// No later life delivers what was accepted before its run was cancelled.
    pub(super) fn cancelled_runs_stay_so(&self) -> Result<(), String> {
        for cancelled in self.cancelled.iter().filter(|cancelled| cancelled.is_stored) {
            for sent in &self.sent {
                let Action::Note { number, run, .. } = sent.action else { continue };
                let is_earlier = (sent.life, sent.answered) < (cancelled.life, cancelled.at);
                let work = self.work.get(&number).map(Vec::as_slice).unwrap_or_default();
                let later = work.iter().find(|work| work.life > cancelled.life);
                if let Some(later) = later.filter(|_| run == cancelled.run && is_earlier) {
                    return Err(format!("{cancelled:?} is undone for {sent:?}: {later:?}"));
                }
            }
        }
        Ok(())
    }

    /// Of one run, a daemon delivers one event at a time again, so that its events begin in order.
    pub(super) fn repetitions_take_turns(&self) -> Result<(), String> {
        let mut runs: BTreeMap<(usize, usize), Vec<&Work>> = BTreeMap::new();
        for sent in &self.sent {
            let Action::Note { number, run, .. } = sent.action else { continue };
            let work = self.work.get(&number).map(Vec::as_slice).unwrap_or_default();
            for again in work.iter().filter(|work| work.delivery > 1) {
                runs.entry((again.process, run)).or_default().push(again);
            }
        }
        for work in runs.values_mut() {
            work.sort_by_key(|work| (work.from, work.to));
            for (before, after) in work.iter().zip(work.iter().skip(1)) {
                if after.from < before.to {
                    return Err(format!(
                        "two events of a run are delivered again at a time: {before:?}, {after:?}"
                    ));
                }
            }
        }
        Ok(())
    }

    pub(super) fn deliveries_are_right(&self, disk: &SimulatedDisk) -> Result<(), String> {
        let dead = dead_letters(disk)?;
        for sent in &self.sent {
            let Action::Note { number, run, is_awaited, .. } = sent.action else { continue };
            let work = self.work.get(&number).map(Vec::as_slice).unwrap_or_default();
            let is_done = work.iter().any(|work| work.ended == WorkEnd::Done);
            let is_cancelled = self
                .cancelled
                .iter()
                .any(|known| known.run == run && (known.life, known.at) >= (sent.life, sent.at));
            match &sent.answer {
                Ok(_) if !is_awaited && !is_done && !is_cancelled && !dead.contains(&number) => {
                    return Err(format!(
                        "no hook has had this event, which was accepted: {sent:?}: {work:?}"
                    ));
                }
                Err(DispatchError::NotStored(_)) if work.iter().any(|work| work.life == sent.life) => {
                    return Err(format!("a hook ran for an event that was refused: {sent:?}: {work:?}"));
                }
                Err(DispatchError::NotStored(_)) if sent.disk_worked && !self.is_broken(sent.life) => {
                    return Err(format!("the disk worked, and an event was refused: {sent:?}"));
                }
                _ => {}
            }
            self.tries_are_right(number, work)?;
        }
        Ok(())
    }

    /// One delivery after the other, each with the next number, and each after its wait, whatever the wall clock does.
    fn tries_are_right(&self, number: usize, work: &[Work]) -> Result<(), String> {
        for (before, after) in work.iter().zip(work.iter().skip(1)) {
            let wrong = |what: &str| Err(format!("{what}: event {number}: {before:?}, then {after:?}"));
            let is_in_order = before.life == after.life && !self.is_broken(before.life);
            if before.ended == WorkEnd::Done && self.is_calm() && is_in_order {
                return wrong("delivered again after its hook has ended");
            }
            if before.life != after.life {
                if after.from > SLACK {
                    return wrong("the first delivery of a life comes late");
                }
                if self.is_calm() && after.delivery <= before.delivery {
                    return wrong("a delivery of a later life has no higher number");
                }
                continue;
            }
            if after.from < before.to {
                return wrong("two deliveries at the same time");
            }
            if before.process != after.process {
                if self.is_calm() && is_in_order && after.delivery <= before.delivery {
                    return wrong("a delivery of a successor has no higher number");
                }
                continue;
            }
            if after.delivery != before.delivery + 1 {
                return wrong("a delivery has not the next number");
            }
            let wait = after.from - before.to;
            if !PAUSES.iter().any(|pause| (*pause..=pause + SLACK).contains(&wait)) {
                return wrong("not the right wait between two deliveries");
            }
        }
        // A try that a bad disk did not keep is made again by the next life, with the same number.
        let failed = work.iter().filter(|work| work.ended == WorkEnd::Failed);
        let failed: BTreeSet<u32> = failed.map(|work| work.delivery).collect();
        if failed.len() > 5 {
            return Err(format!("event {number} was tried {} times: {work:?}", failed.len()));
        }
        Ok(())
    }
}

/// The numbers of the dead letters that are left. Nothing else is.
fn dead_letters(disk: &SimulatedDisk) -> Result<Vec<usize>, String> {
    let mut dead = Vec::new();
    for row in disk.stored().outbox.rows {
        let number = row.event.extra.iter().find(|(name, _)| **name == *"n");
        let number =
            number.and_then(|(_, number)| number.as_str().parse().ok()).ok_or("a row without a number")?;
        let tries = row.progress.tries;
        if row.progress.dead.is_none() || tries != 5 {
            return Err(format!("event {number} is left with {:?}", row.progress));
        }
        dead.push(number);
    }
    Ok(dead)
}
