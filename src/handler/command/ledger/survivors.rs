//! The groups that a killed hookyard left. Owns how they are told from strangers that have their numbers by now, and
//! how they end; refuses to signal whom it is not sure of.
//!
//! A leader whose start fits what is recorded has its number still, and so has its group. Without a leader the
//! number alone says little; then only those members are ended that are marked as part of a hook.

use std::{collections::BTreeSet, fs, thread, time::Duration};

use rustix::process::{
    Pid, PidfdFlags, Signal, getpgrp, getpid, getuid, kill_process_group, pidfd_open, pidfd_send_signal,
};

use super::{
    file::MARK,
    format::{GroupRecord, now},
};
use crate::handler::command::environment::OF_A_HOOK;

/// Between SIGTERM and SIGKILL, for all groups together: nobody waits for what these hooks would say, and somebody
/// waits for hookyard to start.
const GRACE: Duration = Duration::from_secs(1);

/// After SIGKILL, how long the groups are waited for.
const SETTLE: Duration = Duration::from_millis(250);

/// Between two looks at who is left.
const POLL: Duration = Duration::from_millis(5);

/// Ends the groups that live on, and who else has the mark, within about a second. Blocks its thread meanwhile.
///
/// Returns how many groups there were.
pub(super) fn end(records: &[GroupRecord], mark: Option<&str>) -> usize {
    let allowed = |record: &&GroupRecord| {
        let id = record.group;
        id != Pid::INIT && id != getpgrp() && id != getpid()
    };
    let mut survivors: Vec<_> = records.iter().filter(allowed).map(|record| Survivor::on(*record)).collect();
    let living = if survivors.is_empty() { 0 } else { signal(&mut survivors, Signal::TERM) };
    let mut marked = signal_marked(mark, &survivors, Signal::TERM);
    let groups: BTreeSet<_> = marked.iter().map(|process| process.group).collect();
    if living > 0 || !marked.is_empty() {
        wait(&survivors, &marked, GRACE);
        signal(&mut survivors, Signal::KILL);
        marked.extend(signal_marked(mark, &[], Signal::KILL));
        wait(&survivors, &marked, SETTLE);
    }
    living + groups.len()
}

/// Signals those with the mark that belong to no group that was signalled. They are not recorded: hookyard was killed
/// when it had just started them.
fn signal_marked(mark: Option<&str>, survivors: &[Survivor], signal: Signal) -> Vec<ProcessStat> {
    let Some(mark) = mark else { return Vec::new() };
    let known: Vec<_> = survivors.iter().flat_map(|survivor| survivor.signalled.members()).collect();
    let entry = format!("{MARK}={mark}");
    let is_marked = |process: &ProcessStat| {
        has_variable(process.pid, |variable| variable == entry.as_bytes()) && process.signal(signal)
    };
    living().into_iter().filter(|process| !known.contains(&process)).filter(is_marked).collect()
}

/// Signals every group that lives on; returns how many do.
fn signal(survivors: &mut [Survivor], signal: Signal) -> usize {
    let living = living();
    survivors.iter_mut().filter_map(|survivor| survivor.signal(&living, signal).then_some(())).count()
}

/// Waits until nobody who was signalled is left, for so long at most.
fn wait(survivors: &[Survivor], others: &[ProcessStat], longest: Duration) {
    let begun = now();
    let left = || {
        survivors
            .iter()
            .flat_map(|survivor| survivor.signalled.members())
            .chain(others)
            .any(ProcessStat::is_there)
    };
    while Duration::from_nanos(now() - begun) < longest && left() {
        thread::sleep(POLL);
    }
}

/// A recorded group, and who of it was signalled.
struct Survivor {
    record: GroupRecord,
    signalled: Signalled,
}

/// Who was signalled.
enum Signalled {
    Nobody,
    /// The group. As long as one who was in it then still is, the number is that of the same group.
    ProcessGroup(Vec<ProcessStat>),
    /// Members one by one.
    Members(Vec<ProcessStat>),
}

impl Signalled {
    fn members(&self) -> &[ProcessStat] {
        match self {
            Self::Nobody => &[],
            Self::ProcessGroup(members) | Self::Members(members) => members,
        }
    }
}

/// What became of a group's leader.
enum Leader {
    /// It leads the group still; also as a zombie, which keeps the number.
    Leads,
    Gone,
    /// The number is another's.
    Stranger,
}

impl Survivor {
    fn on(record: GroupRecord) -> Self {
        Self { record, signalled: Signalled::Nobody }
    }

    /// Signals whom it is sure of; returns whether there was anyone.
    fn signal(&mut self, living: &[ProcessStat], signal: Signal) -> bool {
        let group = self.record.group;
        let members: Vec<_> = living.iter().filter(|process| process.group == raw(group)).copied().collect();
        let entire = match self.leader() {
            _ if members.is_empty() => false,
            Leader::Leads => true,
            Leader::Gone => {
                matches!(&self.signalled, Signalled::ProcessGroup(known) if known.iter().any(|one| members.contains(one)))
            }
            Leader::Stranger => return false,
        };
        self.signalled = if entire {
            // An error means that all have gone since.
            let _ = kill_process_group(group, signal);
            // A stopped process takes no SIGTERM.
            let _ = kill_process_group(group, Signal::CONT);
            Signalled::ProcessGroup(members)
        } else {
            let hook =
                |member: &ProcessStat| self.record.is_older_than(member.started) && member.signal(signal);
            Signalled::Members(members.into_iter().filter(hook).collect())
        };
        !self.signalled.members().is_empty()
    }

    fn leader(&self) -> Leader {
        let group = self.record.group;
        match ProcessStat::of(group) {
            None => Leader::Gone,
            Some(leader)
                if leader.group == raw(group) && self.record.covers(leader.started) && is_ours(group) =>
            {
                Leader::Leads
            }
            Some(_) => Leader::Stranger,
        }
    }
}

/// A process, told from later ones of its number by when it was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ProcessStat {
    pid: Pid,
    group: i32,
    /// In clock ticks since the boot.
    started: u64,
    /// It is no zombie.
    alive: bool,
}

impl ProcessStat {
    fn of(pid: Pid) -> Option<Self> {
        let stat = fs::read(format!("/proc/{}/stat", raw(pid))).ok()?;
        Self::read(pid, &stat)
    }

    /// Reads a `stat` file. The name in it may hold anything, also brackets and spaces.
    fn read(pid: Pid, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        // The first of these is the third field.
        let fields: Vec<_> = rest.split_ascii_whitespace().collect();
        let (state, group, started) = (fields.first()?, fields.get(2)?, fields.get(19)?);
        let alive = !matches!(*state, "Z" | "X" | "x");
        Some(Self { pid, group: group.parse().ok()?, started: started.parse().ok()?, alive })
    }

    fn is_there(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Signals a process that is part of a hook; returns whether it is one. The descriptor comes before the looks:
    /// should the number change hands between them, the signal reaches nobody.
    fn signal(&self, signal: Signal) -> bool {
        let Ok(descriptor) = pidfd_open(self.pid, PidfdFlags::empty()) else { return false };
        let certain =
            self.pid != getpid() && self.is_there() && is_ours(self.pid) && is_part_of_a_hook(self.pid);
        certain
            && pidfd_send_signal(&descriptor, signal).is_ok()
            && pidfd_send_signal(&descriptor, Signal::CONT).is_ok()
    }
}

/// All processes but zombies.
fn living() -> Vec<ProcessStat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?));
    pids.filter_map(ProcessStat::of).filter(|process| process.alive).collect()
}

/// Whether a process runs as the user that hookyard runs as.
fn is_ours(pid: Pid) -> bool {
    let status = fs::read(format!("/proc/{}/status", raw(pid))).unwrap_or_default();
    let real = status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"Uid:"));
    let real = real.and_then(|ids| std::str::from_utf8(ids).ok()?.split_ascii_whitespace().next());
    real.is_some_and(|id| id.parse() == Ok(getuid().as_raw()))
}

/// Whether a process has the variable that hooks have, and whom they start.
fn is_part_of_a_hook(pid: Pid) -> bool {
    let is_mark = |variable: &[u8]| {
        variable.strip_prefix(OF_A_HOOK.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    has_variable(pid, is_mark)
}

/// Whether a process was started with such a variable.
fn has_variable(pid: Pid, is_it: impl Fn(&[u8]) -> bool) -> bool {
    let environment = fs::read(format!("/proc/{}/environ", raw(pid))).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(is_it)
}

fn raw(pid: Pid) -> i32 {
    pid.as_raw_nonzero().get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        let fields = "S 1 4700 1 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 1";
        for name in ["sh", "a b", ") Z 9 9 (", "\u{fffd}"] {
            let stat = format!("4711 ({name}) {fields}");
            let pid = Pid::from_raw(4711).unwrap();
            let expected = ProcessStat { pid, group: 4700, started: 123_456, alive: true };
            assert_eq!(ProcessStat::read(pid, stat.as_bytes()), Some(expected), "{name}");
        }
        assert_eq!(ProcessStat::read(Pid::INIT, b"4711 (sh) S 1 4700"), None);
        assert_eq!(ProcessStat::read(Pid::INIT, b""), None);
    }

    #[test]
    fn this_process_is_alive_ours_and_no_group_to_end() {
        let own = ProcessStat::of(getpid()).unwrap();
        assert!(own.alive && own.is_there() && is_ours(getpid()));
        let record = |group| GroupRecord { group, from: 0, until: now() };
        assert_eq!(end(&[record(getpgrp()), record(getpid()), record(Pid::INIT)], None), 0);
    }
}
