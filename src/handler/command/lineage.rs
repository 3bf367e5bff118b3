//! Tells whether another process is a hook of this process, or was started by one.
//!
//! Descendants of this process and members of recorded groups are hooks. The daemon adopts orphans, so all that its hooks
//! start are descendants. Where orphans go elsewhere, as in an embedding program, a process that detached itself still has the
//! mark in the environment it was started with, unless it was given another one. Where a cgroup is delegated to this process,
//! all that its hooks start is in that one.

use std::{io, path::PathBuf, process::id};

use parking_lot::RwLock;
use rustix::process::Pid;

use super::{environment::OF_A_HOOK, ledger};
#[cfg(feature = "cli")]
use crate::platform::is_in_cgroup_of;
use crate::platform::{self, ProcessEntry, raw};

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
    let pid = raw(pid);
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
    if predecessors.into_iter().chain([own]).any(|daemon| pid != daemon && is_in_cgroup_of(daemon, pid)) {
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

/// A process and its ancestors, the nearest first. Ancestors that this process may not see, which are those of other
/// users where the system hides them, end the list.
///
/// Returns an error if the process itself has ended, or if its ancestors end faster than they can be listed.
fn chain(pid: i32) -> io::Result<Vec<ProcessEntry>> {
    for _ in 0..MAX_ATTEMPTS {
        if let Some(chain) = try_chain(platform::process(pid)?) {
            return Ok(chain);
        }
    }
    Err(io::ErrorKind::TimedOut.into())
}

/// The same, or none if an ancestor has ended meanwhile: its children have another parent by now.
fn try_chain(first: ProcessEntry) -> Option<Vec<ProcessEntry>> {
    let mut chain = vec![first];
    let mut last = first;
    while last.parent != 0 {
        let parent = platform::process(last.parent);
        // As long as it is the parent, its id is no other's.
        let is_parent = |again: ProcessEntry| again.parent == last.parent && again.started == last.started;
        if !platform::process(last.pid).is_ok_and(is_parent) {
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
    let environment = platform::environment(pid)?;
    let is_mark = |variable: &[u8]| {
        let rest = variable.strip_prefix(OF_A_HOOK.as_bytes());
        rest.is_some_and(|rest| rest.starts_with(b"="))
    };
    Ok(environment.split(|byte| *byte == 0).any(is_mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ancestors_of_this_process_begin_with_its_parent() {
        let own = i32::try_from(id()).unwrap();
        let parent = i32::try_from(std::os::unix::process::parent_id()).unwrap();
        let chain = chain(own).unwrap();
        assert_eq!((chain[0].pid, chain[0].parent), (own, parent));
        assert_eq!(chain.last().unwrap().parent, 0);
    }
}
