//! The generator of decision ids.

use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering},
};

use crate::model::DecisionId;

/// The next decision id: unique within this process and, by the process's start time and id, very likely between
/// processes.
pub fn next_decision_id() -> DecisionId {
    static PROCESS: OnceLock<u64> = OnceLock::new();
    static NUMBER: AtomicU64 = AtomicU64::new(1);
    let process = *PROCESS.get_or_init(process_number);
    DecisionId::new(process, NUMBER.fetch_add(1, Ordering::Relaxed))
}

fn process_number() -> u64 {
    let since_epoch = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
    let micros = u64::try_from(since_epoch.as_micros()).unwrap_or(u64::MAX);
    micros ^ (u64::from(std::process::id()) << 48)
}
