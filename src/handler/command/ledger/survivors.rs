//! Ends the process groups that a killed hookyard left, and signals nothing that may have reused their ids.
//!
//! If the leader's start is within the recorded time window, the group is the recorded one. If the leader is gone, the
//! id alone proves little; then only those members are ended whose environment marks them as part of a hook.

use std::{collections::BTreeSet, sync::LazyLock, thread, time::Duration};
#[cfg(feature = "daemon")]
use std::{fs::File, io::Read, path::Path};

use rustix::process::{Pid, Signal, getpgrp, getpid, getuid, kill_process_group};

use super::format::{GroupRecord, MARK, now};
#[cfg(feature = "daemon")]
use super::format::{HEADER, LINE, LedgerHeader, MAX_GROUPS};
use crate::{
    handler::command::environment::OF_A_HOOK,
    platform::{self, ProcessEntry, ProcessHandle, raw},
};

/// The environment variable that tells the processes of one invocation from all others, also those that left its
/// process group.
pub(in crate::handler::command) const PROCESS_MARK: &str = "HOOKYARD_PROCESS";

/// Between SIGTERM and SIGKILL, for all groups together: nobody waits for the output of these hooks, but somebody waits
/// for hookyard to start.
const GRACE: Duration = Duration::from_secs(1);

/// How long the groups are waited for after SIGKILL.
const KILL_TIMEOUT: Duration = Duration::from_millis(250);

/// The longest that the count of processes takes: somebody waits for the outcome.
const MAX_COUNT_TIME: Duration = Duration::from_millis(100);

/// Between two checks of what is left.
const POLL: Duration = Duration::from_millis(5);

/// The mark of the process that has written a ledger, and the ids of the groups that it has recorded. What cannot be read
/// is not known.
#[cfg(feature = "daemon")]
pub(in crate::handler::command) fn read_ledger(path: &Path) -> (Option<String>, Vec<i32>) {
    let Ok(file) = File::open(path) else { return (None, Vec::new()) };
    let mut text = Vec::new();
    _ = file.take((HEADER + MAX_GROUPS * LINE) as u64).read_to_end(&mut text);
    let groups = GroupRecord::read_all(&text);
    let groups = groups.iter().map(|record| record.group.as_raw_nonzero().get()).collect();
    (LedgerHeader::read(&text).map(|header| header.mark()), groups)
}

/// Ends the recorded groups that still run, and all other processes with the mark, given as `NAME=value`. Blocks its
/// thread for up to little more than a second.
///
/// Returns how many groups were still running.
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
        wait(&survivors, &marked, KILL_TIMEOUT);
    }
    living + groups.len()
}

/// Whether any process with the mark is alive.
pub(super) fn has_marked(mark: &str) -> bool {
    let entry = format!("{MARK}={mark}");
    living().iter().any(|process| has_mark(process.pid, &entry) && process.pid != raw(getpid()))
}

/// Signals processes with the mark outside the groups that were signalled: hookyard was killed before it could record
/// them.
fn signal_marked(mark: Option<&str>, survivors: &[Survivor], signal: Signal) -> Vec<ProcessEntry> {
    let Some(mark) = mark else { return Vec::new() };
    let known: Vec<_> = survivors.iter().flat_map(|survivor| survivor.signalled.members()).collect();
    let is_marked = |process: &ProcessEntry| has_mark(process.pid, mark) && signal_member(process, signal);
    living().into_iter().filter(|process| !known.contains(&process)).filter(is_marked).collect()
}

/// The beginning of [`PROCESS_MARK`]'s values in this process.
pub(in crate::handler::command) fn process_mark() -> &'static str {
    static OF_PROCESS: LazyLock<String> = LazyLock::new(|| format!("{}-{}", raw(getpid()), now()));
    &OF_PROCESS
}

/// Ends all processes with a mark, or one that begins with it and a dot, except those that die by themselves: members of
/// a killed group are there for a moment after its leader. Blocks its thread for up to little more than a second.
///
/// Returns how many process groups were still running.
pub(in crate::handler::command) fn end_marked(mark: &str) -> usize {
    let mark = format!("{PROCESS_MARK}={mark}");
    let marked: Vec<_> = living().into_iter().filter(|process| has_mark(process.pid, &mark)).collect();
    wait(&[], &marked, KILL_TIMEOUT);
    end(&[], Some(&mark))
}

/// Counts the processes with a mark that are in another group than this one: its members were killed. Blocks its thread
/// for at most [`MAX_COUNT_TIME`]; what was not looked at by then is not counted.
pub(in crate::handler::command) fn count_marked(mark: &str, group: Pid) -> usize {
    let begun = now();
    let mark = format!("{PROCESS_MARK}={mark}");
    let has_left = |process: &ProcessEntry| process.group != raw(group) && has_mark(process.pid, &mark);
    let in_time = |_: &ProcessEntry| Duration::from_nanos(now() - begun) < MAX_COUNT_TIME;
    living().into_iter().take_while(in_time).filter(has_left).count()
}

fn has_mark(pid: i32, mark: &str) -> bool {
    has_variable(pid, |variable| {
        variable.strip_prefix(mark.as_bytes()).is_some_and(|rest| rest.is_empty() || rest.starts_with(b"."))
    })
}

/// Signals every group that still runs; returns how many do.
fn signal(survivors: &mut [Survivor], signal: Signal) -> usize {
    let living = living();
    survivors.iter_mut().filter_map(|survivor| survivor.signal(&living, signal).then_some(())).count()
}

/// Waits until nothing that was signalled is left, for at most `longest`.
fn wait(survivors: &[Survivor], others: &[ProcessEntry], longest: Duration) {
    let begun = now();
    let left =
        || survivors.iter().flat_map(|survivor| survivor.signalled.members()).chain(others).any(is_there);
    while Duration::from_nanos(now() - begun) < longest && left() {
        thread::sleep(POLL);
    }
}

/// A recorded group, and which of its processes were signalled.
struct Survivor {
    record: GroupRecord,
    signalled: Signalled,
}

/// Which processes of a group were signalled.
enum Signalled {
    Nobody,
    /// The whole group. As long as one of these members is in it, its id is not reused.
    ProcessGroup(Vec<ProcessEntry>),
    /// These members, one by one.
    Members(Vec<ProcessEntry>),
}

impl Signalled {
    fn members(&self) -> &[ProcessEntry] {
        match self {
            Self::Nobody => &[],
            Self::ProcessGroup(members) | Self::Members(members) => members,
        }
    }
}

/// The state of a recorded leader.
enum Leader {
    /// It is there, perhaps as a zombie, which keeps the id.
    Leads,
    Gone,
    /// Its id is another process's.
    Reused,
}

impl Survivor {
    fn on(record: GroupRecord) -> Self {
        Self { record, signalled: Signalled::Nobody }
    }

    /// Signals the processes that certainly are the group's; returns whether there were any.
    fn signal(&mut self, living: &[ProcessEntry], signal: Signal) -> bool {
        let group = self.record.group;
        let members: Vec<_> = living.iter().filter(|process| process.group == raw(group)).copied().collect();
        let entire = match self.leader() {
            _ if members.is_empty() => false,
            Leader::Leads => true,
            Leader::Gone => {
                matches!(&self.signalled, Signalled::ProcessGroup(known) if known.iter().any(|one| members.contains(one)))
            }
            Leader::Reused => return false,
        };
        self.signalled = if entire {
            // An error means that all have exited since.
            let _ = kill_process_group(group, signal);
            // A stopped process handles no SIGTERM.
            let _ = kill_process_group(group, Signal::CONT);
            Signalled::ProcessGroup(members)
        } else {
            let hook = |member: &ProcessEntry| {
                self.record.is_older_than(member.started) && signal_member(member, signal)
            };
            Signalled::Members(members.into_iter().filter(hook).collect())
        };
        !self.signalled.members().is_empty()
    }

    fn leader(&self) -> Leader {
        let group = self.record.group;
        match platform::process(raw(group)) {
            Err(_) => Leader::Gone,
            Ok(leader)
                if leader.group == raw(group)
                    && self.record.covers(leader.started)
                    && is_ours(leader.pid) =>
            {
                Leader::Leads
            }
            Ok(_) => Leader::Reused,
        }
    }
}

/// Whether a process is the one that it was.
fn is_there(process: &ProcessEntry) -> bool {
    let is_same = |now: ProcessEntry| {
        (now.group, now.started, now.alive) == (process.group, process.started, process.alive)
    };
    platform::process(process.pid).is_ok_and(is_same)
}

/// Signals a process if it is part of a hook; returns whether it is. It is held before the checks: if the id is reused in
/// between, the signal reaches nobody.
fn signal_member(process: &ProcessEntry, signal: Signal) -> bool {
    let Ok(held) = ProcessHandle::open(process.pid) else { return false };
    let certain = process.pid != raw(getpid())
        && is_there(process)
        && is_ours(process.pid)
        && is_part_of_a_hook(process.pid);
    let is_signalled = certain && held.signal(signal);
    if is_signalled {
        // One that is stopped takes the signal then. It may be gone by now.
        held.signal(Signal::CONT);
    }
    is_signalled
}

/// All processes except zombies.
fn living() -> Vec<ProcessEntry> {
    platform::processes().into_iter().filter(|process| process.alive).collect()
}

/// Whether a process runs as the user that hookyard runs as.
fn is_ours(pid: i32) -> bool {
    platform::user(pid) == Some(getuid().as_raw())
}

/// Whether a process has the variable that every hook has and passes on to what it starts.
fn is_part_of_a_hook(pid: i32) -> bool {
    let is_mark = |variable: &[u8]| {
        variable.strip_prefix(OF_A_HOOK.as_bytes()).is_some_and(|rest| rest.starts_with(b"="))
    };
    has_variable(pid, is_mark)
}

/// Whether a process was started with a variable, given as `name=value`, that matches.
fn has_variable(pid: i32, is_it: impl Fn(&[u8]) -> bool) -> bool {
    let environment = platform::environment(pid).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(is_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_alive_ours_and_no_group_to_end() {
        let own = platform::process(raw(getpid())).unwrap();
        assert!(own.alive && is_there(&own) && is_ours(own.pid));
        let record = |group| GroupRecord { group, from: 0, until: now() };
        assert_eq!(end(&[record(getpgrp()), record(getpid()), record(Pid::INIT)], None), 0);
    }
}
