//! What is seen of simulated lives.

use std::{collections::BTreeSet, sync::atomic::AtomicUsize};

use parking_lot::Mutex;

use super::schedule::{Action, Side};
use crate::{model::Verdict, orchestrator::DispatchError};

/// One hook at work on one event.
#[derive(Debug, Clone)]
pub(super) struct Work {
    pub(super) number: usize,
    pub(super) delivery: u32,
    pub(super) life: usize,
    pub(super) process: usize,
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) ended: WorkEnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WorkEnd {
    Done,
    Failed,
    /// By the end of the process, a timeout or a cancelled run.
    Dropped,
}

/// What an event got.
#[derive(Debug, Clone)]
pub(super) struct Sent {
    pub(super) life: usize,
    pub(super) process: usize,
    pub(super) at: u64,
    pub(super) answered: u64,
    pub(super) action: Action,
    pub(super) answer: Result<Verdict, DispatchError>,
    /// Whether a hook of its own gave the verdict.
    pub(super) has_hooks: bool,
    /// Whether the halt of its run was on disk when the answer came.
    pub(super) is_on_disk: bool,
    /// Whether the disk was all right from the event to the answer.
    pub(super) disk_worked: bool,
}

/// A run that was cancelled.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cancelled {
    pub(super) life: usize,
    pub(super) at: u64,
    pub(super) run: usize,
    /// Whether it was answered in time by a disk that was all right until then.
    pub(super) is_stored: bool,
}

/// All that is seen of a simulation.
#[derive(Debug, Default)]
pub(super) struct Record {
    pub(super) work: Mutex<Vec<Work>>,
    pub(super) sent: Mutex<Vec<Sent>>,
    pub(super) cancelled: Mutex<Vec<Cancelled>>,
    /// When one of two daemons was killed during a handover: in which life, and when.
    pub(super) killed: Mutex<Vec<(usize, u64)>>,
    /// After how many lines of a handover which of them was.
    pub(super) steps: Mutex<BTreeSet<(u64, Side)>>,
    /// How many daemons were started.
    pub(super) processes: AtomicUsize,
}
