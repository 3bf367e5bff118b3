//! What the workers of one hook change while they come and go: their health, and how many events they take at once.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use tokio::sync::watch;

use super::{
    handle::WorkerCapacity,
    health::{EndedWorker, FleetHealth},
    limits::WorkerConfig,
};
use crate::telemetry::WorkersDegraded;

/// What the tasks of the workers change.
#[derive(Debug)]
pub(super) struct FleetState {
    hook: Arc<str>,
    pub(super) health: Mutex<FleetHealth>,
    shared_capacity: Arc<WorkerCapacity>,
    /// How many events the fleet takes at once, for who lets them wait; any number while each gets a process.
    capacity: watch::Sender<usize>,
    gauge: Mutex<WorkersDegraded>,
    /// How many workers said hello and then failed, or could not be started.
    failed: AtomicU64,
}

impl FleetState {
    pub(super) fn new(config: &WorkerConfig, shared_capacity: Arc<WorkerCapacity>) -> Self {
        Self {
            hook: Arc::clone(&config.hook),
            health: Mutex::default(),
            capacity: watch::Sender::new(shared_capacity.total()),
            shared_capacity,
            gauge: Mutex::new(WorkersDegraded::serving(&config.meters.workers)),
            failed: AtomicU64::new(0),
        }
    }

    /// How many events the fleet takes at once, and how that changes.
    pub(super) fn capacity(&self) -> watch::Receiver<usize> {
        self.capacity.subscribe()
    }

    /// How many workers said hello and then failed, or could not be started.
    pub(super) fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }

    /// A worker has said hello, and how many events it should have.
    pub(super) fn note_protocol(&self) {
        self.health.lock().note_protocol(&self.hook);
        self.publish();
    }

    /// A worker ended.
    pub(super) fn record(&self, ended: &EndedWorker) {
        if ended.end.is_failure() {
            self.failed.fetch_add(1, Ordering::Relaxed);
        }
        let mut health = self.health.lock();
        if ended.said_hello {
            health.note_protocol(&self.hook);
        }
        health.record(&self.hook, &ended.end, ended.age);
        drop(health);
        self.publish();
    }

    /// Publishes the capacity and the gauge.
    pub(super) fn publish(&self) {
        let health = self.health.lock();
        let now = if health.has_no_hello() { usize::MAX } else { self.shared_capacity.total() };
        self.capacity.send_if_modified(|known| std::mem::replace(known, now) != now);
        self.gauge.lock().set(health.degradation().map(|(degradation, _)| degradation));
    }
}
