//! How busy a pool is, shared by its workers and its queue.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use crate::telemetry::Meters;

/// How many hooks of a pool run and wait, and where what is shed is counted.
#[derive(Debug)]
pub(super) struct PoolLoad {
    pub(super) busy: AtomicUsize,
    pub(super) waiting: AtomicUsize,
    pub(super) meters: Arc<Meters>,
}

impl PoolLoad {
    pub(super) fn new(meters: &Arc<Meters>) -> Self {
        Self { busy: AtomicUsize::new(0), waiting: AtomicUsize::new(0), meters: Arc::clone(meters) }
    }
}

/// RAII guard: a worker is busy for as long as it lives.
pub(super) struct BusyGuard<'a>(&'a AtomicUsize);

impl<'a> BusyGuard<'a> {
    pub(super) fn enter(load: &'a PoolLoad) -> Self {
        load.busy.fetch_add(1, Ordering::Relaxed);
        Self(&load.busy)
    }
}

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
