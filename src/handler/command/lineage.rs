//! Tells whether another process is a hook of this process, or was started by one.
//!
//! Descendants of this process and members of recorded groups are hooks. The daemon adopts orphans, so all that its hooks
//! start are descendants. Where orphans go elsewhere, as in an embedding program, a process that detached itself still has the
//! mark in the environment it was started with, unless it was given another one. Where a cgroup is delegated to this process,
//! all that its hooks start is in that one.

use std::{fs, io, path::PathBuf, process::id};

use parking_lot::RwLock;
use rustix::process::{DumpableBehavior, Pid, dumpable_behavior, set_dumpable_behavior};

#[cfg(feature = "cli")]
use super::cgroup;
use super::{environment::OF_A_HOOK, ledger};

/// How often the ancestors are listed again because one of them has ended meanwhile.
const MAX_ATTEMPTS: usize = 8;

/// The daemons that this process has replaced. Global, because process ids are.
static PREDECESSORS: RwLock<Vec<Predecessor>> = RwLock::new(Vec::new());

/// A daemon that this process has replaced. Its hooks count as hooks of this process while it lives.
#[derive(Debug)]
struct Predecessor {
    pid: i32,
    /// The record of its process groups.
    ledger: PathBuf,
    /// The mark of its hooks.
    mark: Option<String>,
}

/// RAII guard: the hooks of another daemon count as hooks of this process.
#[derive(Debug)]
pub(crate) struct AdoptedHooks {
    pid: i32,
}

impl AdoptedHooks {
    pub(crate) fn of(pid: i32, ledger: PathBuf) -> Self {
        let (mark, _) = ledger::read_ledger(&ledger);
        PREDECESSORS.write().push(Predecessor { pid, ledger, mark });
        Self { pid }
    }
}

impl Drop for AdoptedHooks {
    fn drop(&mut self) {
        PREDECESSORS.write().retain(|predecessor| predecessor.pid != self.pid);
    }
}

/// What is known of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lineage {
    /// It is a hook, or was started by one.
    Hook,
    /// It is none.
    Other,
    /// It has ended, or hides its environment.
    Unknown,
}

/// Whether a process is a hook of this process, or was started by one.
pub(crate) fn lineage(pid: Pid) -> Lineage {
    let pid = pid.as_raw_nonzero().get();
    let Ok(chain) = chain(pid) else { return Lineage::Unknown };
    let own = i32::try_from(id()).unwrap_or_default();
    // This process itself may use its own sockets, as an embedding program does.
    let predecessors = predecessors();
    if chain.iter().skip(1).any(|kin| kin.pid == own || predecessors.contains(&kin.pid)) {
        return Lineage::Hook;
    }
    let mut groups = ledger::recorded_groups();
    for predecessor in PREDECESSORS.read().iter() {
        groups.extend(ledger::read_ledger(&predecessor.ledger).1);
    }
    if chain.iter().any(|kin| groups.contains(&kin.group)) {
        return Lineage::Hook;
    }
    #[cfg(feature = "cli")]
    if predecessors.into_iter().chain([own]).any(|daemon| pid != daemon && cgroup::is_in_that_of(daemon, pid))
    {
        return Lineage::Hook;
    }
    match has_mark(pid) {
        Err(_) => return Lineage::Unknown,
        Ok(true) => return Lineage::Hook,
        Ok(false) => {}
    }
    // The environments of ancestors that belong to other users cannot be read, and those are no hooks.
    let is_marked = chain.iter().skip(1).any(|kin| has_mark(kin.pid).unwrap_or(false));
    if is_marked { Lineage::Hook } else { Lineage::Other }
}

/// Whether a mark is that of hooks of this process, or of a daemon that it has replaced.
pub(crate) fn is_own_mark(mark: &[u8]) -> bool {
    let is_adopted = |predecessor: &Predecessor| {
        predecessor.mark.as_ref().is_some_and(|adopted| adopted.as_bytes() == mark)
    };
    ledger::is_own_mark(mark) || PREDECESSORS.read().iter().any(is_adopted)
}

/// The processes of the daemons that this process has replaced and that have not ended.
fn predecessors() -> Vec<i32> {
    PREDECESSORS.read().iter().map(|predecessor| predecessor.pid).collect()
}

/// A process, with its parent and its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Kin {
    pid: i32,
    parent: i32,
    group: i32,
    /// In clock ticks since the boot. It tells the process from others that have had its id.
    started: u64,
}

impl Kin {
    fn of(pid: i32) -> io::Result<Self> {
        let stat = fs::read(format!("/proc/{pid}/stat"))?;
        Self::read(pid, &stat).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// Parses a `stat` file. The name in it may contain anything, including brackets and spaces.
    fn read(pid: i32, stat: &[u8]) -> Option<Self> {
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let rest = std::str::from_utf8(&stat[name_end + 1..]).ok()?;
        // The first of these is the third field.
        let fields: Vec<_> = rest.split_ascii_whitespace().collect();
        let parent = fields.get(1)?;
        let group = fields.get(2)?;
        let started = fields.get(19)?;
        Some(Self {
            pid,
            parent: parent.parse().ok()?,
            group: group.parse().ok()?,
            started: started.parse().ok()?,
        })
    }
}

/// A process and its ancestors, the nearest first. Ancestors that this process may not see, which are those of other
/// users where `/proc` hides them, end the list.
///
/// Returns an error if the process itself has ended, or if its ancestors end faster than they can be listed.
fn chain(pid: i32) -> io::Result<Vec<Kin>> {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(chain) = try_chain(Kin::of(pid)?) {
            return Ok(chain);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// The same, or none if an ancestor has ended meanwhile: its children have another parent by now.
fn try_chain(first: Kin) -> Option<Vec<Kin>> {
    let mut chain = vec![first];
    let mut last = first;
    while last.parent != 0 {
        let parent = Kin::of(last.parent);
        // As long as it is the parent, its id is no other's.
        if !Kin::of(last.pid).is_ok_and(|again| again.parent == last.parent && again.started == last.started)
        {
            return None;
        }
        let Ok(parent) = parent else { break };
        chain.push(parent);
        last = parent;
    }
    Some(chain)
}

/// Whether a process was started with a variable that every hook has.
fn has_mark(pid: i32) -> io::Result<bool> {
    let environment = fs::read(format!("/proc/{pid}/environ"))?;
    let is_mark = |variable: &[u8]| {
        let rest = variable.strip_prefix(OF_A_HOOK.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"="))
    };
    Ok(environment.split(|byte| *byte == 0).any(is_mark))
}

/// RAII guard: processes of the same user can read the environment of this one, which otherwise may hide it. A daemon
/// looks for the mark of hooks in that of who asks it for control.
#[derive(Debug)]
pub(crate) struct ReadableEnvironment {
    before: Option<DumpableBehavior>,
}

impl ReadableEnvironment {
    pub(crate) fn begin() -> Self {
        let before = dumpable_behavior().ok();
        // If it fails, the daemon refuses.
        set_dumpable_behavior(DumpableBehavior::Dumpable).ok();
        Self { before }
    }
}

impl Drop for ReadableEnvironment {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // It is one of the two that can be set.
            set_dumpable_behavior(before).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name_is() {
        for name in ["sh", "a b", ") Z 9 9 (", "\u{fffd}"] {
            let stat = format!("4711 ({name}) S 1 4700 1 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 123456 1 1");
            let expected = Kin { pid: 4711, parent: 1, group: 4700, started: 123_456 };
            assert_eq!(Kin::read(4711, stat.as_bytes()), Some(expected), "{name}");
        }
        assert_eq!((Kin::read(1, b"1 (sh) S"), Kin::read(1, b"")), (None, None));
    }

    #[test]
    fn the_ancestors_of_this_process_begin_with_its_parent() {
        let own = i32::try_from(id()).unwrap();
        let parent = i32::try_from(std::os::unix::process::parent_id()).unwrap();
        let chain = chain(own).unwrap();
        assert_eq!((chain[0].pid, chain[0].parent), (own, parent));
        assert_eq!(chain.last().unwrap().parent, 0);
    }
}
