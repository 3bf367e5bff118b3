//! The line with the state of the daemon.

use std::{sync::atomic::Ordering, time::SystemTime};

use serde::Serialize;

use crate::{
    daemon::{routes::DaemonStatus, state::DaemonState},
    model::Timestamp,
};

#[derive(Serialize)]
struct StateLine {
    at: String,
    state: EdgeState,
}

/// What an organisation asks of its machines: which hooks are in force, and whether anything of it is wrong.
#[derive(Serialize)]
struct EdgeState {
    #[serde(flatten)]
    status: DaemonStatus,
    /// Hooks that failed since the start, and whose events went on all the same.
    failed_open: u64,
}

/// The line, with its end.
pub(in crate::daemon) fn state_line(state: &DaemonState) -> Vec<u8> {
    let failed_open = state
        .observers
        .audit
        .as_ref()
        .map_or(0, |audit| audit.counters().failed_open.load(Ordering::Relaxed));
    let at = Timestamp::of(SystemTime::now()).to_string();
    let line = StateLine { at, state: EdgeState { status: DaemonStatus::of(state), failed_open } };
    // The types have no keys but texts, so it cannot fail.
    let mut bytes = serde_json::to_vec(&line).unwrap_or_default();
    bytes.push(b'\n');
    bytes
}
