//! The generator of decision ids.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use crate::model::DecisionId;

/// The name of the daemon that this process is. Global, because the ids of a process are.
static NODE: OnceLock<Box<str>> = OnceLock::new();

/// Names the daemon that this process is in all further decision ids. The first name stays.
#[cfg(feature = "daemon")]
pub(crate) fn name_decisions(node: &str) {
    // Fails if there is a name, which stays.
    _ = NODE.set(node.into());
}

/// The next decision id: unique within this process and, by the process's start time and id and the name of the daemon,
/// very likely between processes.
pub fn next_decision_id() -> DecisionId {
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    numbered(NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// The decision id of this process with this number.
pub(super) fn numbered(number: u64) -> DecisionId {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    let process = *PROCESS.get_or_init(process_number);
    let node = NODE.get().map_or("", |node| &**node);
    DecisionId::new(process, number).of_node(node)
}

/// The number of a decision id, if it is of this process.
pub(super) fn own_number(id: DecisionId) -> Option<u64> {
    let (_, _, number) = id.parts();
    (numbered(number) == id).then_some(number)
}

fn process_number() -> u64 {
    let since_epoch = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let micros = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
    micros ^ (u64::from(std::process::id()) << 48)
}
